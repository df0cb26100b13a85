"""The command line: what it prints where, and how it exits."""

import json
import subprocess
import sys

import pytest

from analysis.report import Report
from sweep import cli
from sweep.run import RunSummary
from sweep.screen import complain, duration, show
from sweep.tracking_writer import Tracked

STUDY = """
name = "tiny"
encoder = { model = "./encoder" }
storage = "results"
[data]
root = "data"
sources = { en = "en_ewt" }
[grid]
task = "upos"
source = "en"
ablation = ["ref", "reinit:1"]
[hyper]
learning_rate = 1e-4
batch_size = 8
epochs = 1
[seeds]
report = [1, 2]
[evaluate]
targets = ["en", "fr"]
naming = "{lang}_pud"
[similarity]
"""
SENTENCE = """# sent_id = {code}-1
# text = a b
1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_
2\tb\t_\tVERB\t_\t_\t1\tdep\t_\t_

"""
FILES = ("en_ewt-ud-train", "en_ewt-ud-dev", "en_pud-ud-test", "fr_pud-ud-test")


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study file with its data and an encoder of two layers."""
    for name in FILES:
        path = tmp_path / "data" / f"{name}.conllu"
        path.parent.mkdir(exist_ok=True)
        path.write_text(SENTENCE.format(code=name[3:]), encoding="utf-8")
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    config = {
        "model_type": "bert",
        "num_hidden_layers": 2,
        "hidden_size": 8,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "max_position_embeddings": 16,
        "vocab_size": 5,
    }
    (encoder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (encoder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (encoder / "model.safetensors").write_bytes(b"weights")
    path = tmp_path / "tiny.toml"
    path.write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XLING_DATA", raising=False)
    return path


def run(*arguments):
    """The exit code of one command."""
    return cli._code([str(argument) for argument in arguments])


def test_plan_prints_a_tab_separated_table_off_a_terminal(study, capsys):
    """Off a terminal, plan prints lines that `cut` and `grep` can read, and nothing on stderr."""
    assert run("plan", study) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:4] == [
        "task\tablation\ten",
        "\tpretrained\t1 of 1 left",
        "upos\tref\t2 of 2 left",
        "upos\treinit:1\t2 of 2 left",
    ]
    assert "tiny: 2 cells, 5 trials: 4 to train, 1 only to measure, 0 done." in out
    assert err == ""


def test_plan_as_json_is_all_of_stdout(study, capsys):
    """With --json, stdout is one JSON value."""
    assert run("plan", study, "--json", "--set", "seeds.report=[7]") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["trials"], told["train"], told["measure"]) == (3, 2, 1)
    assert {trial["seed"] for trial in told["list"]} == {0, 7}


def test_the_store_is_the_studys_unless_the_command_line_names_one(study, capsys, tmp_path):
    """`storage` of the file starts from its folder; --storage goes before it."""
    assert run("plan", study, "--json") == 0
    assert json.loads(capsys.readouterr().out)["store"] == str(tmp_path / "results")
    assert run("plan", study, "--json", "--storage", "other") == 0
    assert json.loads(capsys.readouterr().out)["store"] == str(tmp_path / "other")


def test_plan_writes_nothing(study, tmp_path):
    """Asking for the price leaves no file."""
    before = sorted(tmp_path.rglob("*"))
    assert run("plan", study) == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_status_of_an_empty_store(study, capsys):
    """Before the first run, nothing is done and nothing has failed."""
    assert run("status", study) == 0
    assert "tiny: 0 of 5 trials done, 0 failed, 5 not run yet." in capsys.readouterr().out
    assert run("status", study, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["done"], told["left"], told["failed"]) == (0, 5, [])


def test_status_lists_trials_with_their_ids(study, capsys):
    """One line a trial, the probe first; as JSON the ids are those of the plan."""
    assert run("status", study, "--trials") == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[1:] for line in lines[:3]] == [
        ["task", "source", "ablation", "seed", "status"],
        ["", "", "pretrained", "", "to be measured"],
        ["upos", "en", "ref", "1", "to be trained"],
    ]
    assert run("status", study, "--trials", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["list"]
    assert [trial["trial_id"] for trial in listed] == [line[0] for line in lines[1:]]
    assert [trial["seed"] for trial in listed[1:]] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "grid.ablatoin=1"], "tiny.toml: grid.ablatoin: unknown key. Did you mean"),
        (["--set", "grid.ablation=['reinit:3']"], 'tiny.toml: grid.ablation = "reinit:3"'),
        (
            ["--set", "epochs=3"],
            "tiny.toml: epochs: unknown key here. Did you mean hyper.epochs or search",
        ),
        (["--set", "evaluate.targets=['de']"], "no file de_pud-ud-test.conllu"),
        (["--set", "data.root=nowhere"], "no such folder"),
        (["--set", "data.root="], "or the variable XLING_DATA"),
        (["--set", "encoder.model=./nowhere"], "nowhere"),
        (["--sets", "a=1"], "No such option"),
    ],
)
def test_what_the_user_can_mend_exits_2_without_traceback(study, capsys, arguments, message):
    """A wrong study, file or option gives a message on stderr, exit code 2 and no traceback."""
    assert run("plan", study, *arguments) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert "Traceback" not in err
    assert out == ""


def test_a_terminal_gets_errors_broken_between_words(monkeypatch, capsys):
    """At 40 columns no line is longer, no word is cut, and lines of a list stay indented."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    complain("a.toml: 2 of 4 files cannot be used, in x:\n  no file with-a-long-name for the task")
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 40
    assert lines == [
        "error: a.toml: 2 of 4 files cannot be",
        "  used, in x:",
        "  no file with-a-long-name for the task",
    ]


def test_all_missing_files_are_listed_at_once(study, capsys, tmp_path):
    """Two files that are missing are two lines of one message."""
    (tmp_path / "data" / f"{FILES[1]}.conllu").unlink()
    (tmp_path / "data" / f"{FILES[3]}.conllu").unlink()
    assert run("plan", study) == 2
    err = capsys.readouterr().err
    assert f"2 of 4 files cannot be used, in {tmp_path / 'data'}:" in err
    assert "sweep data get --study tiny.toml --to FOLDER" in err
    assert "en_ewt-ud-dev.conllu" in err
    assert "fr_pud-ud-test.conllu" in err
    assert "(for upos target, similarity)" in err


def test_the_data_folder_may_come_from_the_environment(study, monkeypatch, tmp_path):
    """Without data.root, XLING_DATA names the folder."""
    monkeypatch.setenv("XLING_DATA", str(tmp_path / "data"))
    assert run("plan", study, "--set", "data.root=") == 0


def test_ctrl_c_exits_130(study, monkeypatch):
    """An interrupt is no error and has the shell's exit code."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "load_study", interrupt)
    assert run("plan", study) == 130


def test_a_bug_keeps_its_traceback(study, monkeypatch):
    """An error that is not ours is not hidden."""

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "load_study", broken)
    with pytest.raises(ZeroDivisionError):
        run("plan", study)


@pytest.fixture
def made_up_run(monkeypatch, tmp_path):
    """Instead of running anything, a summary that the test fills; what was asked for."""
    asked = {}

    def run_study(study, **settings):
        asked.update(settings, study=study)
        counts = {"study": "tiny", "store": "/s", "total": 5, "already": 1, "seconds": 7.0}
        return RunSummary(**counts | asked["summary"])

    monkeypatch.setattr("sweep.run.run_study", run_study)
    monkeypatch.setenv("XLING_CACHE", str(tmp_path / "cache"))
    return asked


@pytest.mark.parametrize(
    ("summary", "ends"),
    [
        ({"done": 4}, (0, "tiny: 5 of 5 trials done (4 in this run, 7 s).")),
        ({"done": 3, "failed": {"user": 1}, "left": 0}, (1, "Failed: 1 user. Why: sweep status")),
        ({"done": 1, "left": 3}, (1, "Left: 3 trials. The same command goes on.")),
        ({"done": 4, "untracked": 2}, (0, "Not in MLflow yet: 2 trials.")),
    ],
)
def test_run_exits_0_only_when_nothing_is_left(study, capsys, made_up_run, summary, ends):
    """`run` says what it did, and its exit code whether the study is complete."""
    made_up_run["summary"] = summary
    code, said = ends
    assert run("run", study) == code
    assert said in capsys.readouterr().out


def test_run_passes_its_options_on(study, made_up_run):
    """Executor, workers, storage and tracking of the command line reach the run."""
    made_up_run["summary"] = {"done": 4}
    options = ("--executor", "local", "--workers", 3, "--storage", "s", "--no-track")
    assert run("run", study, *options, "--set", "hyper.epochs=9") == 0
    settings = {name: made_up_run[name] for name in ("store", "executor", "workers", "track")}
    assert settings == {"store": "s", "executor": "local", "workers": 3, "track": False}
    assert made_up_run["study"].hyper.epochs == 9


def test_run_refuses_broken_data_before_it_starts(study, capsys, made_up_run, tmp_path):
    """A file that cannot be read stops the sweep before anything is spent."""
    (tmp_path / "data" / f"{FILES[3]}.conllu").write_text("1\ta\n\n", encoding="utf-8")
    assert run("run", study) == 2
    assert f"{FILES[3]}.conllu:1" in capsys.readouterr().err
    assert made_up_run == {}


def test_data_check_shows_every_file(study, capsys, tmp_path):
    """`data check` counts what it reads, and exits 2 with the reason for what it cannot."""
    assert run("data", "check", study, "--set", "evaluate.targets=['en']") == 0
    assert "en_ewt\ttrain\t1\t2\tupos source en" in capsys.readouterr().out
    other = SENTENCE.format(code="other")
    (tmp_path / "data" / f"{FILES[3]}.conllu").write_text(other, encoding="utf-8")
    assert run("data", "check", study) == 2
    assert "do not match" in capsys.readouterr().err


def test_track_hands_the_studys_rows_to_mlflow(study, capsys, monkeypatch, tmp_path):
    """`track` passes the study's own rows, its store, and the URI of the command line."""
    asked = {}

    def track(name, rows, **settings):
        asked.update(settings, name=name, rows=rows.trials.num_rows)
        return Tracked(created=2, completed=1, unchanged=0)

    monkeypatch.setattr("sweep.tracking.track", track)
    assert run("track", study, "--uri", "sqlite:///x.db") == 0
    assert "tiny: 2 runs created, 1 completed, 0 right already." in capsys.readouterr().out
    assert asked == {
        "name": "tiny",
        "rows": 0,
        "store": str(tmp_path / "results"),
        "uri": "sqlite:///x.db",
    }


def test_report_prints_the_main_table_and_the_page(study, capsys, monkeypatch, tmp_path):
    """`report` ends with where its page is; as JSON it lists all that was written."""
    written = Report(tmp_path / "index.html", "| main |\n", (tmp_path / "index.html",))
    monkeypatch.setattr("sweep.reporting.report_study", lambda *_, **__: written)
    assert run("report", study) == 0
    assert capsys.readouterr().out == f"| main |\n\nPage: {tmp_path / 'index.html'}\n"
    assert run("report", study, "--json") == 0
    page = str(tmp_path / "index.html")
    assert json.loads(capsys.readouterr().out) == {"page": page, "files": [page]}


def test_report_of_nothing_says_what_to_do(study, capsys):
    """Before the first run there is no report, and the message says so."""
    assert run("report", study) == 2
    assert "no trial has ended yet" in capsys.readouterr().err


def test_a_terminal_gets_a_drawn_table(capsys, monkeypatch):
    """On a terminal a table has borders, and names in brackets are not read as markup."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    show(["name"], [["[bold]x"]])
    drawn = capsys.readouterr().out
    assert "[bold]x" in drawn
    assert len(drawn.splitlines()) == 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "120 min"),
        (7200, "2.0 h"),
        (9000, "2.5 h"),
    ],
)
def test_durations_read_well(seconds, text):
    """A duration has the unit that keeps its number short."""
    assert duration(seconds) == text


@pytest.mark.parametrize(("module", "name"), cli.OURS)
def test_errors_of_ours_exist(module, name):
    """Each error that the command line knows is there under that name."""
    kind = getattr(__import__(module, fromlist=[name]), name)
    assert issubclass(kind, Exception)


@pytest.mark.parametrize("command", ["plan", "status"])
def test_asking_loads_neither_torch_nor_ray(study, command):
    """In a fresh process, `sweep plan` and `status` answer without the heavy libraries."""
    code = (
        "import sys\n"
        "from sweep.cli import main\n"
        "try:\n"
        f"    main([{command!r}, {str(study)!r}])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0, end.code\n"
        "heavy = {'torch', 'ray', 'transformers', 'mlflow', 'optuna', 'matplotlib'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["loaded: []"], done.stderr
