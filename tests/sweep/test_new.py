"""`sweep new`: a study file to start from, which every other command takes as it is."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from sweep import cli
from sweep.complaints import StudyError
from sweep.imagined import counted
from sweep.new import Wish, wish, write_study
from sweep.new_data import TASKS, found_data
from sweep.opened import open_study
from sweep.study import load_study

SENTENCE = """# sent_id = n1
# text = a b
1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_
2\tb\t_\tVERB\t_\t_\t1\tdep\t_\t_

"""


def put(root, *names):
    """Files of a data folder; treebanks differ in a comment, so that they are no copies."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"# newdoc id = {name}\n{SENTENCE}" if name.endswith("llu") else "en:a\tO\n"
        )
    return root


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder, offline."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XLING_DATA", raising=False)
    return tmp_path


def encoder(folder, n_layers=12):
    """A folder that looks like an encoder."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"num_hidden_layers": n_layers}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"w")
    return str(folder)


@pytest.mark.parametrize("tasks", [*((task,) for task in TASKS), TASKS])
def test_without_data_the_grid_can_be_counted(here, tasks):
    """For each task and all together: 7 cells a task, 3 seeds, and the probe."""
    written = write_study("s", Wish(encoder=encoder(here / "e"), tasks=tasks))
    study = load_study("s.toml")
    assert written.study == study
    assert len(counted(study).trials) == 7 * 3 * len(tasks) + 1
    assert study.grid.ablation[-1] == "reinit:11-12"


def test_what_is_commented_out_is_valid_too(here):
    """With every commented key taken in, the file is a study still."""
    write_study("s", Wish(encoder=encoder(here / "e"), tasks=("upos", "pawsx")))
    text = Path("s.toml").read_text()
    taken = re.sub(r"^# (?=\[|[a-z_]+ = )", "", text, flags=re.MULTILINE)
    assert taken.count("\n") == text.count("\n")
    Path("t.toml").write_text(taken)
    study = load_study("t.toml")
    assert (study.keep, study.executor, study.search.method) == ("best", "local", "tpe")
    assert (study.data.train_limit, study.evaluate.limit) == (2000, 500)


def test_with_data_the_plan_works_at_once(here):
    """Languages with parallel treebanks become targets, those without stay out."""
    put(here / "ud", "en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_pud-ud-test.conllu")
    put(here / "ud", "fr_pud-ud-test.conllu", "de_gsd-ud-test.conllu")
    made = Wish(encoder=encoder(here / "e", 4), data="ud", tasks=("upos", "parsing"), n_seeds=2)
    study = write_study("s", made).study
    opened = open_study(study)
    assert study.grid.ablation == ("ref", *(f"reinit:{layer}" for layer in range(1, 5)))
    assert study.target_codes("parsing") == ("en_pud", "fr_pud")
    assert study.parallel_languages() == ("en", "fr")
    assert len(opened.trials) == 2 * 5 * 2 + 1
    assert tomllib.loads(Path("s.toml").read_text())["data"]["root"] == "./ud"


def test_without_parallel_treebanks_nothing_is_compared(here):
    """Test sets are then named by code, and of several training sets the largest is taken."""
    put(here / "ud", "xx_b-ud-train.conllu", "xx_b-ud-dev.conllu", "yy_c-ud-test.conllu")
    put(here / "ud", "xx_a-ud-train.conllu")  # has no dev file
    put(here / "ud", "xx_big-ud-train.conllu", "xx_big-ud-dev.conllu", "xx_big-ud-test.conllu")
    big = here / "ud" / "xx_big-ud-train.conllu"
    big.write_text(big.read_text() + SENTENCE.replace("n1", "n2"))
    made = Wish(encoder=encoder(here / "e"), data="ud", sources=("xx",))
    study = write_study("s", made).study
    assert study.source_code("upos", "xx") == "xx_big"
    assert study.target_codes("upos") == ("xx_big", "yy_c")
    assert study.parallel_languages() == ()
    assert len(open_study(study).trials) == 7 * 3


def test_the_invented_languages_are_data_like_any(here, monkeypatch):
    """Their treebanks are written, found, and their parallel sentences compared."""
    monkeypatch.setenv("XLING_CACHE", str(here / "cache"))
    made = Wish(encoder=encoder(here / "e"), data="toy", sources=("qaa",), tasks=("parsing",))
    study = write_study("s", made).study
    assert study.data.root == "toy"
    assert study.target_codes("parsing")[:2] == ("qaa_par", "qab_par")
    assert len(study.parallel_languages()) == 11
    assert len(open_study(study).trials) == 7 * 3 + 1


@pytest.mark.parametrize(
    ("said", "encoder", "data", "sources"),
    [
        ((None, None, (), (), ()), "toy", "toy", ("qaa",)),
        ((None, "toy", (), (), ("qab",)), "toy", "toy", ("qaa",)),
        (("m", None, (), (), ()), "m", "", ("en",)),
        ((None, "ud", (), ("ru",), ()), "bert-base-multilingual-cased", "ud", ("ru",)),
        ((None, None, ("xnli",), (), ()), "bert-base-multilingual-cased", "", ("en",)),
    ],
)
def test_what_was_not_said_is_filled_in(said, encoder, data, sources):
    """Where nothing is said, what ships is taken; real data or languages get the usual encoder."""
    filled = wish(*said, n_seeds=1)
    assert (filled.encoder, filled.data, filled.sources) == (encoder, data, sources)


def test_the_first_data_set_that_is_whole_is_taken(here):
    """NER takes panx where wikiann lacks a training file of the source."""
    put(here, "wikiann/en/test", "panx/train-en.tsv", "panx/dev-en.tsv", "panx/test-sw.tsv")
    data = found_data(here, "ner", ("en",), ())
    assert (data.sources, data.naming, data.targets) == ({"en": "panx-en"}, "panx-{lang}", ("sw",))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tasks": ("langid",)}, "has a study file of its own: sweep plan langid"),
        ({"tasks": ("upso",)}, "Did you mean 'upos'"),
        ({"data": "nowhere"}, "data folder nowhere: no such folder"),
        ({"data": ".", "sources": ("de",)}, "no file de_gsd-ud-train.conllu"),
        ({"data": ".", "targets": ("zz",)}, "target 'zz': no test treebank"),
        ({"encoder": "./nowhere"}, "no such folder"),
        ({"sources": ("English",)}, "not a language code"),
    ],
)
def test_what_is_not_to_be_had_leaves_no_file(here, asked, message):
    """A wrong wish says what is wrong, in the name of the file that is not written."""
    put(here, "en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_pud-ud-test.conllu")
    asked = {"encoder": encoder(here / "e")} | asked
    before = sorted(here.iterdir())
    with pytest.raises(StudyError, match=message) as caught:
        write_study("s", Wish(**asked))
    assert sorted(here.iterdir()) == before
    assert ".s.toml." not in str(caught.value)


def test_no_file_is_overwritten(here, capsys):
    """A second `sweep new` of the same name exits 2 and leaves the first one's file."""
    arguments = ["new", "s", "--encoder", encoder(here / "e")]
    assert cli._code(arguments) == 0
    assert "Wrote s.toml: 7 cells, 21 trainings." in capsys.readouterr().out
    before = Path("s.toml").read_text()
    assert cli._code([*arguments, "--seeds", "9"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("s.toml").read_text() == before
    assert cli._code(["new", "nowhere/s", "--encoder", "./e"]) == 2


@pytest.mark.usefixtures("here")
def test_an_encoder_out_of_reach_is_taken_to_be_base_sized(capsys):
    """Offline, a hub id is written down all the same, and a note says what was assumed."""
    assert cli._code(["new", "s", "--encoder", "no-such/encoder"]) == 0
    err = capsys.readouterr().err
    assert "take it to have 12 layers" in err
    assert load_study("s.toml").grid.ablation[-1] == "reinit:11-12"


def test_strange_names_come_back_as_they_were(here):
    """Quotes, backslashes and letters beyond the basic plane survive in paths."""
    name = 'a "b\\ \U0001f600'
    put(here / name, "en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_pud-ud-test.conllu")
    study = write_study("s", Wish(encoder=encoder(here / "e"), data=name)).study
    assert study.data.root == str(here / name)
