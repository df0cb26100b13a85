import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from trainables.encoders import fingerprint
from trainables.encoders.fingerprint import EncoderError, encoder_ref, folder_fingerprint
from trainables.encoders.pretrained import load_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def copied(bert, tmp_path):
    folder = tmp_path / "copied"
    shutil.copytree(bert.location, folder)
    return folder


@pytest.fixture
def cache(bert, tmp_path, monkeypatch):
    """A Hugging Face cache that holds org/tiny at one commit, and no network."""
    root = tmp_path / "hub"
    repo = root / "models--org--tiny"
    shutil.copytree(bert.location, repo / "snapshots" / COMMIT)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(root))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return repo / "snapshots" / COMMIT


def test_a_folder_is_pinned_by_its_content(copied, bert):
    """A copy elsewhere has the same fingerprint, another name and another location."""
    ref = encoder_ref(str(copied))
    assert ref.fingerprint == bert.fingerprint
    assert ref.fingerprint.startswith("sha256:")
    assert (ref.name, ref.location, ref.revision) == (str(copied), str(copied), "")
    assert ref.n_layers == 4


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_changed_file_that_matters_changes_the_fingerprint(copied, bert, name):
    """One byte more, in config, weights or tokenizer, is another encoder."""
    with (copied / name).open("ab") as file:
        file.write(b" ")
    assert folder_fingerprint(copied) != bert.fingerprint


def test_the_name_of_a_file_matters(copied):
    """The same bytes as added tokens or as a map of special ones are two tokenizers."""
    (copied / "added_tokens.json").write_text("{}")
    added = folder_fingerprint(copied)
    (copied / "added_tokens.json").rename(copied / "special_tokens_map.json")
    assert folder_fingerprint(copied) != added


def test_other_files_do_not_matter(copied, bert):
    """A README or optimiser state beside the weights leaves the id alone."""
    (copied / "README.md").write_text("hello")
    (copied / "training_args.bin").write_bytes(b"x")
    assert folder_fingerprint(copied) == bert.fingerprint


def test_an_unchanged_file_is_read_once(copied, monkeypatch):
    """A second look trusts size and time of change; a touched file is read again."""
    expected = folder_fingerprint(copied)
    read = []
    digest = fingerprint.hashlib.file_digest
    monkeypatch.setattr(
        fingerprint.hashlib, "file_digest", lambda f, kind: read.append(f.name) or digest(f, kind)
    )
    assert folder_fingerprint(copied) == expected
    assert read == []
    os.utime(copied / "config.json", ns=(1, 1))
    assert folder_fingerprint(copied) == expected
    assert [Path(name).name for name in read] == ["config.json"]


def test_a_relative_folder_becomes_absolute(copied, monkeypatch):
    """Workers start elsewhere: the location must not depend on the working directory."""
    monkeypatch.chdir(copied.parent)
    assert encoder_ref("copied").location == str(copied)


def test_pickled_weights_are_refused(copied):
    """A folder with only .bin files could run code: refused, with how to convert."""
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"only pytorch_model\.bin.*safe_serialization"):
        encoder_ref(str(copied))


def test_code_of_its_own_is_refused(copied):
    """`auto_map` asks for code from the folder, which is never run."""
    config = json.loads((copied / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "modeling_evil.Evil"}
    (copied / "config.json").write_text(json.dumps(config))
    with pytest.raises(EncoderError, match=r"auto_map.*modeling_evil\.Evil.*never executed"):
        encoder_ref(str(copied))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json is missing"),
        (lambda f: (f / "config.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
        (lambda f: (f / "config.json").write_text("{}"), "gives no number of layers"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer"),
        (
            lambda f: (f / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"a": "model-1.safetensors"}})
            ),
            r"model-1\.safetensors is missing \(1 of 1 shards\)",
        ),
        (lambda f: (f / "model.safetensors.index.json").write_text("{}"), "no index of shards"),
    ],
)
def test_a_folder_with_something_missing_says_what(copied, spoil, told):
    """Every gap is found before anything is loaded, and named."""
    spoil(copied)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (copied / name).unlink(missing_ok=True)
    with pytest.raises(EncoderError, match=told):
        encoder_ref(str(copied))


@pytest.mark.parametrize("name", ["/no/such/folder", "./here", "../up", "~/mine", "a/b/c"])
def test_what_looks_like_a_path_is_not_looked_up_on_the_hub(name):
    """A misspelt folder is called a folder."""
    with pytest.raises(EncoderError, match=r"no such folder\. Check the path"):
        encoder_ref(name)


def test_a_folder_has_no_revision(copied):
    """A revision given with a folder is a misunderstanding, and said to be one."""
    with pytest.raises(EncoderError, match="has no revision 'main'"):
        encoder_ref(str(copied), "main")


@pytest.mark.usefixtures("cache")
def test_offline_a_hub_id_is_pinned_by_the_cached_commit():
    """Default branch and commit hash give the same pinned encoder, and it loads."""
    ref = encoder_ref("org/tiny")
    assert (ref.name, ref.location, ref.revision) == ("org/tiny", "org/tiny", COMMIT)
    assert ref.fingerprint == f"hub:{COMMIT}"
    assert encoder_ref("org/tiny", COMMIT) == ref
    assert load_encoder(ref).n_layers == 4


@pytest.mark.parametrize(("model", "revision"), [("org/other", None), ("org/tiny", "v9")])
@pytest.mark.usefixtures("cache")
def test_offline_an_unknown_hub_id_says_how_to_get_it(model, revision):
    """Neither folder nor cached nor reachable: the message names all three."""
    with pytest.raises(EncoderError, match=r"HF_HUB_OFFLINE is set.*Fetch it once"):
        encoder_ref(model, revision)


def test_offline_a_cache_of_the_config_alone_is_not_enough(cache):
    """Planning needs the config only; loading then says that the weights are not here."""
    ref = encoder_ref("org/tiny")
    (cache / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match="only a part of it is in the local"):
        fingerprint.local_folder(ref)


def test_a_name_that_no_hub_model_can_have_is_refused():
    """Blanks are in no hub id; the hub's own reason is shown."""
    with pytest.raises(EncoderError, match="'my model': neither a folder nor"):
        encoder_ref("my model")


def test_pinning_a_folder_loads_neither_torch_nor_transformers(copied):
    """`sweep plan` stays light: only the standard library is needed for a folder."""
    code = (
        "import sys; from trainables.encoders.pretrained import encoder_ref; "
        f"from trainables.ablations.base import canonical; encoder_ref({str(copied)!r}); "
        "canonical('reinit:1-2+freeze:3', 4); "
        "print(sorted({'torch', 'transformers', 'huggingface_hub', 'numpy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert out.stdout.strip() == "[]"
