"""Load a pinned encoder and its tokenizer: fp32, safetensors, nothing left uninitialised.

No torch at the top: `sweep plan` reads `encoder_ref` from here.
"""

import copy
import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainables.encoders.fingerprint import EncoderError, encoder_ref, local_folder
from trainables.spec import EncoderRef

if TYPE_CHECKING:
    import trainables.encoders.base

__all__ = ["EncoderError", "encoder_ref", "load_encoder", "load_tokenizer", "quiet"]

BUFFERS = ("position_ids", "token_type_ids", "inv_freq")
"""Ends of keys that old checkpoints store and that hold no weights."""


def load_encoder(ref: EncoderRef) -> "trainables.encoders.base.Encoder":
    """A pristine copy of an encoder in fp32, in eval mode, on the CPU.

    The files are read once per process; each call copies what was read, so what a trial does to
    its encoder never reaches the next. Global random state is left as it was. Dropout comes from
    the config.

    Raises:
        EncoderError: the files are missing, changed, unsafe or incomplete, or the blocks cannot be
            found.
    """
    return copy.deepcopy(_pristine(ref))


@lru_cache(maxsize=1)
def _pristine(ref: EncoderRef) -> "trainables.encoders.base.Encoder":
    import torch

    from trainables.encoders.base import Encoder

    folder = local_folder(ref)
    with torch.random.fork_rng(devices=[]), quiet():
        model = _load(folder, ref.name)
    model.requires_grad_(requires_grad=True)
    encoder = Encoder(model, ref.name).eval()
    encoder.check(ref.name)
    if encoder.n_layers != ref.n_layers:
        raise EncoderError(
            f"encoder '{ref.name}': {encoder.n_layers} layers, but its config.json says "
            f"{ref.n_layers}. Plan the study again."
        )
    return encoder


def _load(folder: Path, name: str) -> Any:  # noqa: ANN401 - transformers ships no types
    import torch
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModel

    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        kind = AutoModel._model_mapping[type(config)]  # noqa: SLF001 - the only way to its class
    except (OSError, ValueError, KeyError) as error:
        raise EncoderError(
            f"encoder '{name}': not an encoder that the installed transformers knows: {error} "
            "Choose another, or a newer transformers."
        ) from None
    kind = kind[0] if isinstance(kind, tuple) else kind
    accepted = inspect.signature(kind.__init__).parameters
    extra = {"add_pooling_layer": False} if "add_pooling_layer" in accepted else {}
    try:
        model, info = kind.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            attn_implementation="sdpa" if kind._supports_sdpa else "eager",  # noqa: SLF001 - no public name
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # so that the message names them
            local_files_only=True,
            output_loading_info=True,
            **extra,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise EncoderError(
            f"encoder '{name}': cannot be loaded from {folder}: {error}. Fetch or save it again."
        ) from None
    _check_complete(model, info, name)
    return model


def _check_complete(model: Any, info: dict[str, Any], name: str) -> None:  # noqa: ANN401 - as above
    """Every weight of the encoder came from the file, and no weight of its parts was passed over.

    Heads and poolers that the encoder does not have may stay in the file.
    """
    missing = sorted(key for key in info["missing_keys"] if not key.endswith(BUFFERS))
    wrong = sorted(key if isinstance(key, str) else key[0] for key in info["mismatched_keys"])
    prefix = f"{model.base_model_prefix}."
    own = {child for child, _ in model.named_children()}
    unused = sorted(
        key
        for key in info["unexpected_keys"]
        if key.removeprefix(prefix).split(".")[0] in own and not key.endswith(BUFFERS)
    )
    for keys, what in (
        (missing, "missing from its file and would be random"),
        (wrong, "of another shape than its config says"),
        (unused, "in its file but not in the architecture of its config"),
    ):
        if keys:
            raise EncoderError(
                f"encoder '{name}' ({type(model).__name__}): {len(keys)} weights are {what}: "
                f"{', '.join(keys[:3])}{' ...' if len(keys) > 3 else ''}. "  # noqa: PLR2004 - a few will do
                "Check that config.json belongs to these weights."
            )


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and reports of transformers; what they report, we check."""
    from transformers.utils import logging

    level, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bar:
            logging.enable_progress_bar()


@lru_cache(maxsize=8)
def load_tokenizer(ref: EncoderRef) -> Any:  # noqa: ANN401 - transformers ships no types
    """The encoder's tokenizer; one object per process, not to be changed.

    `tokenizer.json` is honoured as it is: the classes of transformers 5 that bear a model's name
    rebuild parts of the pipeline and would split some words otherwise than in pretraining.

    Raises:
        EncoderError: there is none, or only a slow one.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    folder = local_folder(ref)
    with quiet():
        if (folder / "tokenizer.json").is_file():
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        else:
            tokenizer = AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
    if not tokenizer.is_fast:
        raise EncoderError(
            f"encoder '{ref.name}': its tokenizer has no fast form. Save it with a tokenizer.json."
        )
    _name_special_pieces(tokenizer, folder)
    return tokenizer


def _name_special_pieces(tokenizer: Any, folder: Path) -> None:  # noqa: ANN401 - as above
    """Give special pieces their names where other files than tokenizer_config.json tell them."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if tokenizer.pad_token is None and isinstance(config.get("pad_token_id"), int):
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(config["pad_token_id"])
    if tokenizer.unk_token is None:
        model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
        unknown = model.get("unk_token")
        if unknown is None and isinstance(model.get("unk_id"), int):
            unknown = model["vocab"][model["unk_id"]][0]
        if unknown is not None:
            tokenizer.unk_token = unknown
    around = tokenizer.convert_ids_to_tokens(tokenizer("")["input_ids"])
    if around and tokenizer.cls_token is None:
        tokenizer.cls_token = around[0]
    if around and tokenizer.sep_token is None:
        tokenizer.sep_token = around[-1]
