"""Every command of README.md is run, or checked as far as that goes without a cloud or a server."""

import io
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import readme
import typer
from loopback import Site, serve

from sweep.cli import app
from sweep.fetch_names import HUB_SETS
from sweep.study import build_study
from trainables.encoders.tiny import tiny_encoder

NOT_CARRIED_OUT = (".", "make", "ray", "mlflow")
"""First words of commands that are checked only."""


def _sweep_commands() -> list[list[str]]:
    return [words for words in readme.commands() if words[0] == "sweep"]


def test_the_page_has_commands():
    """The page is taken apart rightly: its first command is make demo, and most are sweep's."""
    found = list(readme.commands())
    assert found[0] == ["make", "demo"]
    assert len(_sweep_commands()) > 25
    assert {words[0] for words in found} == {"sweep", *NOT_CARRIED_OUT}


@pytest.mark.parametrize("words", _sweep_commands(), ids=" ".join)
def test_each_sweep_command_is_understood(words):
    """Command and options exist, and required arguments are there."""
    command, rest, name = typer.main.get_command(app), words[1:], "sweep"
    context = None
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        name, command = rest[0], command.commands[rest[0]]
        rest = rest[1:]
    if rest == ["--install-completion"]:
        assert any(rest[0] in parameter.opts for parameter in command.params)
        return
    context = command.make_context(name, list(rest))
    assert not context.args


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
@pytest.mark.parametrize("target", [w[1] for w in readme.commands() if w[0] == "make"])
def test_each_make_target_is_there(target):
    """Make knows the target and what it would do, without doing it."""
    done = subprocess.run(
        ["make", "-n", target], cwd=readme.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout or "sweep" in done.stdout or "pytest" in done.stdout


def test_each_link_leads_somewhere():
    """Files that the page points to are there."""
    missing = [str(path) for path in readme.links() if not path.exists()]
    assert not missing


@pytest.mark.parametrize("text", readme.blocks("toml"))
def test_each_study_file_is_valid(text):
    """A whole study is taken as it is; a part of one is taken below the first."""
    whole = tomllib.loads(readme.blocks("toml")[0])
    study = build_study(whole | tomllib.loads(text))
    assert study.name == "my-study"


LANGUAGES = {
    "en": "English", "fr": "French", "de": "German", "ru": "Russian", "ar": "Arabic",
    "tr": "Turkish", "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "es": "Spanish",
}  # fmt: skip
"""Languages of first-align-small."""


@pytest.fixture
def trees(made_up_trees):
    """Made-up sentences, by the names of real files; the parallel ones have the same ids."""
    files = {
        f"UD_English-EWT/en_ewt-ud-{split}.conllu": made_up_trees("aa", n, seed=n)
        for split, n in (("train", 40), ("dev", 12), ("test", 13))
    }
    for code, name in LANGUAGES.items():
        text = made_up_trees("aa" if code == "en" else "bb", 10, seed=3)
        files[f"UD_{name}-PUD/{code}_pud-ud-test.conllu"] = text
    return files


def parquet(rows):
    """A parquet file as the hub has it."""
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def hub(name, language, split):
    """Path of a file on the hub."""
    repository = HUB_SETS[name].repository
    return f"/datasets/{repository}/resolve/main/{language}/{split}-00000-of-00001.parquet"


@pytest.fixture
def mirror(trees):
    """A server on loopback that has what the page fetches, at the real paths."""
    served = {}
    for name, text in trees.items():
        folder, file = name.split("/")
        served[f"/{folder}/r2.16/{file}"] = text.encode()
        if folder == "UD_English-EWT":
            served[f"/{folder}/r2.5/{file}"] = text.encode()
    served["/UD_Welsh-CCG/r2.4/cy_ccg-ud-test.conllu"] = trees[
        "UD_French-PUD/fr_pud-ud-test.conllu"
    ].encode()
    for split in ("train", "validation", "test"):
        rows = [{"tokens": ["a", "b"], "ner_tags": [1, 0], "langs": ["sw", "sw"]}]
        path = hub("wikiann", "sw", split)
        served[path] = parquet(rows)
    site = Site(files=served)
    server = serve(site)
    yield site
    server.shutdown()
    server.server_close()


@pytest.fixture
def tour(tmp_path, trees, mirror, monkeypatch):
    """A folder as the page takes it for granted: an encoder, some treebanks, cluster.yaml."""
    tiny_encoder(tmp_path / "my-encoder", n_layers=12)
    for name in (*(n for n in trees if "EWT" in n), "UD_English-PUD/en_pud-ud-test.conllu"):
        path = tmp_path / "ud" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trees[name], encoding="utf-8")
    french = tmp_path / "ud" / "UD_French-PUD" / "fr_pud-ud-test.conllu"
    french.parent.mkdir()
    french.write_text(trees["UD_French-PUD/fr_pud-ud-test.conllu"], encoding="utf-8")
    shutil.copy(readme.ROOT / "cluster.yaml", tmp_path)
    for name, value in {
        "XLING_CACHE": str(tmp_path / "cache"),
        "XLING_UD_URL": mirror.url,
        "HF_ENDPOINT": mirror.url,
        "NO_COLOR": "1",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # to fetch; encoders are folders
    return tmp_path


class Tour:
    """Runs the words of the page in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trial = ""
        self.has_run = False

    def sweep(self, words: list[str]) -> str:
        """Carry out one command of ours as it is written, but for what the top of the file says."""
        words = [self.trial if word == "TRIAL" else word for word in words]
        if words[1] == "run":
            words += ["--executor", "local", "--workers", "2"] if self.has_run else []
            self.has_run = True
        if words[1:] == ["doctor"]:
            words.append("--quick")  # the next one of the page is whole
        done = subprocess.run(
            [str(Path(sys.executable).with_name("sweep")), *words[1:]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        expected = 2 if words[1] == "cluster" else 0
        assert done.returncode == expected, f"{words}: {done.stderr}{done.stdout}"
        if expected:  # the file that ships has no machine image, as regions differ
            assert "ami-REPLACE-ME" in done.stderr
        return done.stdout


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.rehearsal
def test_the_commands_of_the_page_work_in_their_order(tour):
    """From an encoder and some treebanks to pages, tables and JSON; the third seed alone is new."""
    page = Tour(tour)
    said = {}
    later = []
    for words in readme.commands():
        if words[0] in NOT_CARRIED_OUT or "--install-completion" in words:
            continue
        if "TRIAL" in words or "demo" in words:
            later.append(words)
            continue
        said[" ".join(words)] = page.sweep(words)
    assert "14 in this run" not in said["sweep run my-study.toml --set seeds.report=[1,2,3]"]
    assert "(7 in this run" in said["sweep run my-study.toml --set seeds.report=[1,2,3]"]
    listed = json.loads(page.sweep(["sweep", "status", "my-study.toml", "--trials", "--json"]))
    page.trial = listed["list"][1]["trial_id"][:6]
    for words in later:
        said[" ".join(words)] = page.sweep(words)
    assert said["sweep show TRIAL"].startswith(f"Trial {page.trial}")
    for code in readme.blocks("python"):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tour, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "value_mean" in done.stdout


@pytest.mark.slow
def test_mlflow_knows_the_option():
    """`mlflow ui` takes the option that the page gives it."""
    option = next(words[2] for words in readme.commands() if words[:2] == ["mlflow", "ui"])
    done = subprocess.run(
        [str(Path(sys.executable).with_name("mlflow")), "ui", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert option in done.stdout
