"""Find and pin an encoder without loading it: folder or hub id -> `EncoderRef`. No torch here."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainables.registry import SHIPPED_ENCODERS
from trainables.spec import EncoderRef

PACKAGE = Path(__file__).parents[1]
"""Where the encoders lie that ship."""

CONFIG = "config.json"

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
)

LAYER_KEYS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers")
"""What configs call the number of transformer blocks, most usual first."""


class EncoderError(Exception):
    """An encoder cannot be used: says which, what is wrong, and how to mend it."""


def encoder_ref(model: str, revision: str | None = None) -> EncoderRef:
    """Pin an encoder: a folder by its content, a hub id by its commit.

    Args:
        model: The name of an encoder that ships (`toy`), a folder (it wins over the hub when it
            exists), or a hub id such as `xlm-roberta-base`.
        revision: Branch, tag or commit on the hub; None for its default branch. A folder has none.

    Raises:
        EncoderError: there is no such folder or hub model, it cannot be reached, or it holds no
            weights in safetensors, custom code, or a config without a number of layers.
    """
    is_shipped = model in SHIPPED_ENCODERS
    folder = folder_of(model)
    if not folder.is_dir():
        if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
            raise EncoderError(f"encoder '{model}': no such folder. Check the path.")
        return _hub_ref(model, revision)
    if revision:
        raise EncoderError(
            f"encoder '{model}' is a folder and has no revision '{revision}'. "
            "Leave the revision out: a folder is pinned by its content."
        )
    folder = folder.resolve()
    check_folder(folder, model)
    return EncoderRef(
        name=model,
        location=model if is_shipped else str(folder),
        fingerprint=folder_fingerprint(folder),
        n_layers=_n_layers(read_config(folder, model), model),
    )


def read_config(folder: Path, name: str) -> dict[str, Any]:
    """`config.json` of an encoder, refused when it asks for code of its own.

    Raises:
        EncoderError: it is missing, not JSON, or names custom code (`auto_map`).
    """
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EncoderError(
            f"encoder '{name}': {path} is missing. Name a folder that `save_pretrained` wrote."
        ) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise EncoderError(f"encoder '{name}': {path} cannot be read: {error}.") from None
    if not isinstance(config, dict):
        raise EncoderError(f"encoder '{name}': {path} holds no JSON object.")
    if "auto_map" in config:
        raise EncoderError(
            f"encoder '{name}': its config asks for code of its own (auto_map = "
            f"{json.dumps(config['auto_map'])}), which is never executed here. Choose an encoder "
            "whose architecture ships with transformers."
        )
    return config


def check_folder(folder: Path, name: str) -> None:
    """Refuse a folder without safetensors weights or without a tokenizer.

    Raises:
        EncoderError: as said.
    """
    read_config(folder, name)
    if not list(folder.glob("*.safetensors")):
        pickled = sorted(p.name for p in folder.glob("*.bin"))
        found = f" (only {', '.join(pickled)}, which could run code when loaded)" if pickled else ""
        raise EncoderError(
            f"encoder '{name}': no weights in safetensors in {folder}{found}. "
            "Convert them: save_pretrained(..., safe_serialization=True)."
        )
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise EncoderError(f"encoder '{name}': {index} is no index of shards.") from None
        missing = sorted(shard for shard in shards if not (folder / shard).is_file())
        if missing:
            raise EncoderError(
                f"encoder '{name}': {folder / missing[0]} is missing ({len(missing)} of "
                f"{len(shards)} shards). Fetch the encoder again."
            )
    if not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise EncoderError(
            f"encoder '{name}': no tokenizer in {folder}. Save it beside the weights "
            "(tokenizer.json)."
        )


def folder_fingerprint(folder: Path) -> str:
    """`sha256:<hash>` over names and bytes of config, weights and tokenizer files.

    Independent of where the folder lies and of other files in it. A file is read again only when
    its size or time of change differ from when it was last hashed in this process.
    """
    named = [folder / CONFIG, *(folder / file for file in TOKENIZER_FILES)]
    named += [*folder.glob("*.safetensors"), *folder.glob("*.safetensors.index.json")]
    whole = hashlib.sha256()
    for path in sorted(path for path in named if path.is_file()):
        now = path.stat()
        digest = _file_digest(str(path), now.st_size, now.st_mtime_ns, now.st_ino)
        whole.update(f"{path.name}\x1f{digest}\n".encode())
    return f"sha256:{whole.hexdigest()}"


@lru_cache(maxsize=4096)
def _file_digest(path: str, size: int, mtime_ns: int, inode: int) -> str:  # noqa: ARG001 - part of the key
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _n_layers(config: dict[str, Any], name: str) -> int:
    for key in LAYER_KEYS:
        if isinstance(config.get(key), int):
            return int(config[key])
    raise EncoderError(
        f"encoder '{name}': its config.json gives no number of layers "
        f"(looked for {', '.join(LAYER_KEYS)}). Choose an encoder-only model."
    )


def _hub_ref(model: str, revision: str | None) -> EncoderRef:
    """Ask the hub for the commit; offline, take the one in the local cache.

    A downloaded config lies in `snapshots/<commit>/`, which names the commit either way.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    at = f" at revision '{revision}'" if revision else ""
    try:
        path = Path(hf_hub_download(model, CONFIG, revision=revision))
    except LocalEntryNotFoundError:
        offline = " (HF_HUB_OFFLINE is set)" if constants.HF_HUB_OFFLINE else ""
        raise EncoderError(
            f"encoder '{model}'{at}: no such folder, not in the local Hugging Face cache, and the "
            f"hub cannot be reached{offline}. Fetch it once while online, or name a folder."
        ) from None
    except (OSError, ValueError) as error:  # hub errors: unknown, private, gated, no such revision
        reason = str(error).strip().splitlines()[0]
        raise EncoderError(
            f"encoder '{model}'{at}: neither a folder nor a usable model on the hub: {reason} "
            "Check the spelling; private and gated models need HF_TOKEN."
        ) from None
    commit = path.parent.name
    return EncoderRef(
        name=model,
        location=model,
        revision=commit,
        fingerprint=f"hub:{commit}",
        n_layers=_n_layers(read_config(path.parent, model), model),
    )


def folder_of(location: str) -> Path:
    """Where the files of a location would lie, if it is a folder or an encoder that ships.

    What ships lies with the code, which may be elsewhere on another machine.
    """
    shipped = SHIPPED_ENCODERS.get(location)
    return PACKAGE / shipped if shipped else Path(location).expanduser()


def local_folder(ref: EncoderRef) -> Path:
    """The folder that holds a pinned encoder; a hub model is fetched once per machine.

    Raises:
        EncoderError: it is not here and cannot be fetched, or a folder's content is no longer
            what the study was planned with.
    """
    if not ref.fingerprint.startswith("hub:"):
        folder = folder_of(ref.location)
        if not folder.is_dir():
            raise EncoderError(
                f"encoder '{ref.name}': {folder} is not a folder on this machine. Use a path that "
                "all workers see, or a hub id."
            )
        check_folder(folder, ref.name)
        if folder_fingerprint(folder) != ref.fingerprint:
            raise EncoderError(
                f"encoder '{ref.name}': the content of {folder} has changed since the study was "
                "planned. Run the command again: it will be planned anew."
            )
        return folder
    return _snapshot(ref)


def _snapshot(ref: EncoderRef) -> Path:
    """The hub's files at one commit: those in the cache if they are whole, else downloaded."""
    from huggingface_hub import constants, snapshot_download

    def fetch(*, local: bool) -> Path:
        wanted = [CONFIG, "*.safetensors", "*.safetensors.index.json", *TOKENIZER_FILES]
        here = snapshot_download(
            ref.location, revision=ref.revision, allow_patterns=wanted, local_files_only=local
        )
        check_folder(Path(here), ref.name)
        return Path(here)

    try:
        return fetch(local=True)
    except (OSError, ValueError, EncoderError) as error:  # not in the cache, or only a part of it
        absent = error
    try:
        if constants.HF_HUB_OFFLINE:
            raise absent
        return fetch(local=False)
    except EncoderError:
        if not constants.HF_HUB_OFFLINE:
            raise
        reason = "only a part of it is in the local Hugging Face cache, and HF_HUB_OFFLINE is set."
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
    raise EncoderError(
        f"encoder '{ref.name}' at commit {ref.revision}: cannot be fetched: {reason} "
        "Fetch it once while online."
    )
