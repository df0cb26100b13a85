"""The invented languages on the command line, and by name in a study."""

import json

import pytest

from sweep.cli import main
from sweep.complaints import StudyError
from sweep.imagined import counted
from sweep.plan import as_json
from sweep.resolve import data_root
from sweep.study import build_study, load_study
from sweep.studyfile import anchored, study_text
from sweep.toy import write_languages
from trainables.toy.corpus import MANIFEST
from trainables.toy.languages import LANGUAGES


def test_toy_writes_files_and_says_distances(tmp_path, capsys):
    """`sweep toy` fills a folder and prints one row a language, the source at distance 0."""
    with pytest.raises(SystemExit) as ended:
        main(["toy", "--to", str(tmp_path / "toy"), "--json"])
    assert ended.value.code == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in rows] == list(LANGUAGES)
    assert rows[0]["distance"] == "0.00"
    assert rows[10]["order"] == "0.50"
    assert len(list((tmp_path / "toy").rglob("*.conllu"))) == 4 * len(LANGUAGES)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    """A folder that holds other files is refused; one of an older writing is written anew."""
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(StudyError, match="something else in it"):
        write_languages(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    again = tmp_path / "again"
    write_languages(str(again))
    (again / MANIFEST).write_text("{}")
    write_languages(str(again))
    assert len(json.loads((again / MANIFEST).read_text())["sha256"]) == 8 * len(LANGUAGES)


def test_the_demo_has_two_tasks_six_pairs_and_three_seeds():
    """Of 14 cells two are searched, by three trials each; the trainings are those of its head."""
    plan = as_json(counted(load_study("demo")))
    assert (plan["cells"], plan["search"], plan["train"], plan["measure"]) == (14, 6, 48, 1)
    assert "# Cost: 42 trainings, 6 more that search, and 1 probe" in study_text("demo")


def study(root):
    return build_study(
        {
            "name": "s",
            "encoder": {"model": "toy"},
            "data": {"root": root, "sources": {"qaa": "qaa_toy"}},
            "grid": {"task": ["upos"], "source": ["qaa"]},
            "hyper": {"learning_rate": 1e-3, "batch_size": 8, "epochs": 1},
            "seeds": {"report": [1]},
            "evaluate": {"targets": ["qab_par"]},
        },
        "s.toml",
    )


def test_the_name_toy_stands_for_files_in_the_cache(tmp_path, monkeypatch):
    """`data.root = "toy"` is written into the cache once; `./toy` is a folder like any other."""
    monkeypatch.setenv("XLING_CACHE", str(tmp_path))
    first = data_root(study("toy"))
    assert first.parent == tmp_path
    written = (first / MANIFEST).stat().st_mtime_ns
    assert data_root(study("toy")) == first
    assert (first / MANIFEST).stat().st_mtime_ns == written
    assert anchored({"data": {"root": "toy"}}, tmp_path)["data"]["root"] == "toy"
    assert anchored({"data": {"root": "./toy"}}, tmp_path)["data"]["root"] == str(tmp_path / "toy")
