"""Study files: what they say, what is refused, and how the refusal reads."""

import re
import tomllib
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweep.overrides import merge, override
from sweep.protocols import FOLDER as PROTOCOLS
from sweep.protocols import laid_below, protocol_names
from sweep.sections import HyperSection, OptionsSection
from sweep.study import StudyError, build_study, load_study, study_names
from sweep.studyfile import FOLDER
from trainables.spec import HyperParameters, TrialOptions

TEXT = """
name = "tiny"
[encoder]
model = "./encoder"
[data]
root = "data"
sources = { en = "en_ewt", ru = "ru_gsd" }
[grid]
task = "upos"
source = ["en", "ru"]
ablation = ["ref", "reinit:1-2"]
[hyper]
learning_rate = 1e-4
batch_size = 8
epochs = 1
[seeds]
report = [1, 2]
[evaluate]
targets = ["en", "fr", "de_gsd"]
naming = "{lang}_pud"
[similarity]
"""


@pytest.fixture
def file(tmp_path):
    """A study file that is right."""
    path = tmp_path / "zero-shot.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def refusal(path, *overrides):
    """The message with which a study is refused."""
    with pytest.raises(StudyError) as caught:
        load_study(str(path), overrides)
    return str(caught.value)


def test_a_study_says_what_its_file_says(file):
    """Values of the file arrive as they stand there, a single name as a list of one."""
    study = load_study(str(file))
    assert study.name == "tiny"
    assert study.grid.task == ("upos",)
    assert study.grid.source == ("en", "ru")
    assert study.seeds.report == (1, 2)
    assert study.settings("upos").hyper == HyperParameters(
        learning_rate=1e-4, batch_size=8, epochs=1
    )
    assert study.settings("upos").options == TrialOptions()
    assert study.source_code("upos", "ru") == "ru_gsd"
    assert study.target_codes("upos") == ("en_pud", "fr_pud", "de_gsd")


def test_languages_compared_are_all_sources_and_all_languages_of_the_targets(file):
    """Without a list of its own, similarity covers sources, then targets, each once."""
    assert load_study(str(file)).parallel_languages() == ("en", "ru", "fr", "de")


def test_no_states_means_nothing_is_compared(file):
    """An empty list of states switches similarity off."""
    assert load_study(str(file), ["similarity.states=[]"]).parallel_languages() == ()


def test_a_study_is_frozen(file):
    """A study cannot be changed once it is read."""
    with pytest.raises(ValueError, match="frozen"):
        load_study(str(file)).name = "other"


def test_paths_of_the_file_start_from_its_folder(file, tmp_path):
    """`root = "data"` is the folder beside the study file."""
    study = load_study(str(file))
    assert study.data.root == str(tmp_path / "data")
    assert study.encoder.model == str(tmp_path / "encoder")


def test_paths_of_the_command_line_start_from_the_working_directory(file, tmp_path, monkeypatch):
    """`--set data.root=here` is a folder of the shell that typed it."""
    (tmp_path / "shell").mkdir()
    monkeypatch.chdir(tmp_path / "shell")
    study = load_study(str(file), ["data.root=here", "storage=s3://bucket/x"])
    assert study.data.root == str(tmp_path / "shell" / "here")
    assert study.storage == "s3://bucket/x"


def test_a_hub_id_stays_a_hub_id(file):
    """A model name without a leading dot or slash is not made a path."""
    study = load_study(str(file), ["encoder.model=intfloat/multilingual-e5-small"])
    assert study.encoder.model == "intfloat/multilingual-e5-small"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "grid.ablatoin=1",
            "grid.ablatoin: unknown key. Did you mean 'ablation'? Known: task, source, ablation.",
        ),
        ("tasks.upos.hyper.epoch=1", "tasks.upos.hyper.epoch: unknown key. Did you mean 'epochs'?"),
        ("grid.task=upso", "grid.task[0] = \"upso\": unknown task. Did you mean 'upos'?"),
        ("tasks.chunking.naming='{lang}_x'", "unknown task. Known: "),
        (
            "similarity.measures=linear_cka",
            "unknown similarity measure. Did you mean 'linear-cka'?",
        ),
        ("hyper.learning_rate=-1", "hyper.learning_rate = -1: Input should be greater than 0."),
        ("hyper.learning_rate=nan", "hyper.learning_rate = NaN: Input should be a finite number."),
        ("hyper.epochs=true", "hyper.epochs = true: Input should be a valid integer."),
        ("hyper.epochs='2'", 'hyper.epochs = "2": Input should be a valid integer.'),
        ("seeds.report=[1, 2, 1]", "seeds.report = [1, 2, 1]: 1 is named twice. Name it once."),
        ("seeds.report=[]", "seeds.report = []: empty. Name at least one."),
        (
            "search.method=bayes",
            "search.method = \"bayes\": Input should be 'none', 'grid', 'random', 'tpe' or 'gp'.",
        ),
        ("name=../../etc", 'name = "../../etc": it becomes the name of a folder.'),
        ("name='a/b'", 'name = "a/b": it becomes the name of a folder.'),
        ('evaluate.targets=["EN"]', 'evaluate.targets[0] = "EN": neither a language (fr) nor'),
        ("evaluate.naming=pud", 'evaluate.naming = "pud": not a treebank with a place for the'),
        ("grid.source=fr", "grid.source = \"fr\": no treebank to train 'upos' on. Known: en, ru."),
        ('similarity.languages=["fr"]', "source 'en' is not among them. Add it, or write"),
        ("options.overlap=300", "options.overlap = 300: more than half of max_length = 512."),
        ("protocol=first-aling", "unknown protocol. Did you mean 'first-align'?"),
        ("encoder=5", "encoder = 5: Input should be"),
    ],
)
def test_what_is_wrong_is_refused_with_file_key_value_and_mend(file, change, message):
    """A wrong key or value is named with its file and with what would be right."""
    told = refusal(file, change)
    assert told.startswith("zero-shot.toml: ")
    assert message in told


def test_all_that_is_wrong_is_told_at_once(file):
    """Two mistakes make a message of two lines."""
    assert len(refusal(file, "grid.ablatoin=1", "hyper.epochs=0").splitlines()) == 2


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("name", "zero-shot.toml: name: missing. Give the study a name"),
        ("encoder", "zero-shot.toml: encoder: missing. Write [encoder] and model"),
        ("grid", "zero-shot.toml: grid: missing."),
        ("seeds", "zero-shot.toml: seeds: missing. Write [seeds] and report"),
        ("evaluate", "zero-shot.toml: evaluate: missing."),
        ("hyper", "zero-shot.toml: hyper.learning_rate: missing, and no protocol supplies it"),
    ],
)
def test_what_is_missing_is_asked_for(key, message):
    """A study without a section that it needs is told how to write it."""
    table = tomllib.loads(TEXT)
    del table[key]
    with pytest.raises(StudyError, match=re.escape(message)):
        build_study(table, "zero-shot.toml")


def test_a_language_without_naming_is_refused():
    """A target language needs a treebank."""
    table = tomllib.loads(TEXT)
    del table["evaluate"]["naming"]
    with pytest.raises(StudyError, match=r'evaluate\.targets = "en": which treebank'):
        build_study(table, "zero-shot.toml")


def test_a_syntax_error_names_its_line(tmp_path):
    """What is not TOML is shown with file and line."""
    path = tmp_path / "broken.toml"
    path.write_text('name = "x"\nseeds == 1\n', encoding="utf-8")
    assert refusal(path).startswith("broken.toml:2: not TOML: ")


@pytest.mark.parametrize("name", ["nowhere.toml", "./nowhere", "first-aling-small"])
def test_a_study_that_is_not_there_is_refused(name):
    """A path that does not exist and a name that does not ship have a message."""
    assert "no such study file" in refusal(name) or "Did you mean 'first-align-small'" in refusal(
        name
    )


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("hyper.learning_rate=4e-4", {"hyper": {"learning_rate": 4e-4}}),
        ('grid.source=["en", "ru"]', {"grid": {"source": ["en", "ru"]}}),
        ("tracking.enabled=false", {"tracking": {"enabled": False}}),
        ("encoder.model=../me5", {"encoder": {"model": "../me5"}}),
        ("data.root=a=b", {"data": {"root": "a=b"}}),
        ("name=", {"name": ""}),
    ],
)
def test_an_override_is_toml_or_a_plain_string(text, table):
    """The value of --set is read as TOML where it is TOML, else as the text it is."""
    assert override([text]) == table


@pytest.mark.parametrize("text", ["seeds.report", "=1", "a..b=1", "grid.source=[en]"])
def test_an_override_without_meaning_is_refused(text):
    """A --set that is not key=value, or a broken list, has a message that shows it."""
    with pytest.raises(StudyError, match=re.escape(f"--set {text}")):
        override([text])


def test_the_last_override_wins():
    """Of two values for one key, the later one holds."""
    assert override(["a.b=1", "a.c=2", "a.b=3"]) == {"a": {"b": 3, "c": 2}}


def test_an_override_cannot_look_inside_a_value():
    """A key that was given a value has no keys of its own."""
    with pytest.raises(StudyError, match="'a' was given a value"):
        override(["a=1", "a.b=2"])


TABLES = st.recursive(
    st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
).filter(lambda value: isinstance(value, dict))


@given(TABLES, TABLES)
def test_merging_keeps_every_key_and_lets_the_upper_table_win(below, above):
    """A key is in the merged table when it is in either; where it is a value above, it stays."""
    merged = merge(below, above)
    assert set(merged) == set(below) | set(above)
    for key, value in above.items():
        if not (isinstance(value, dict) and isinstance(below.get(key), dict)):
            assert merged[key] == value
    assert merge(merged, above) == merged


PROTOCOL = {
    "hyper": {"learning_rate": 1.0, "batch_size": 1, "epochs": 1, "warmup": 0.5},
    "tasks": {"upos": {"hyper": {"learning_rate": 2.0, "epochs": 2}}, "ner": {"naming": "n"}},
}


def test_a_study_beats_the_task_section_of_its_protocol():
    """The study's own general value goes before the protocol's value for the task."""
    table = laid_below(PROTOCOL, {"hyper": {"learning_rate": 3.0}})
    assert table["tasks"]["upos"]["hyper"] == {"learning_rate": 3.0, "epochs": 2}
    assert table["hyper"] == {**PROTOCOL["hyper"], "learning_rate": 3.0}


def test_a_study_for_one_task_beats_the_study_for_all():
    """The study's section of a task goes before everything else."""
    study = {"hyper": {"epochs": 3}, "tasks": {"upos": {"hyper": {"epochs": 4}}}}
    assert laid_below(PROTOCOL, study)["tasks"]["upos"]["hyper"]["epochs"] == 4
    assert laid_below(PROTOCOL, study)["tasks"]["ner"]["hyper"]["epochs"] == 3


def test_first_align_supplies_the_papers_settings():
    """With the protocol, a study needs no hyper-parameters, sources, naming or seeds."""
    table = {
        "name": "x",
        "protocol": "first-align",
        "encoder": {"model": "m"},
        "grid": {"task": "upos", "source": ["ru"]},
        "evaluate": {"targets": ["ru", "sv"]},
    }
    study = build_study(table)
    settings = study.settings("upos")
    assert study.seeds.report == (1, 2, 3, 4, 5)
    assert study.source_code("upos", "ru") == "ru_gsd"
    assert study.target_codes("upos") == ("ru_pud", "sv_pud")
    assert (settings.hyper.learning_rate, settings.hyper.batch_size, settings.hyper.epochs) == (
        5e-5,
        16,
        6,
    )
    assert settings.options.max_length == 500


@pytest.mark.parametrize(
    ("section", "spec", "more"),
    [(HyperSection, HyperParameters, set()), (OptionsSection, TrialOptions, {"precision"})],
)
def test_sections_hold_the_fields_of_the_spec(section, spec, more):
    """Whatever a spec can say, a study file can say."""
    assert set(section.model_fields) == {field.name for field in fields(spec)} | more


@pytest.mark.parametrize("name", study_names())
def test_studies_that_ship_are_right_and_say_what_they_are_for(name):
    """Each shipped study loads, is named as its file, and opens with the same five questions."""
    study = load_study(name)
    assert study.name == name
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    head = text[: text.index("\n\n")]
    assert re.findall(r"^# (\w+):", head, re.MULTILINE) == [
        "Question",
        "Paper",
        "Run",
        "Cost",
        "Expect",
    ]


@pytest.mark.parametrize("name", protocol_names())
def test_protocols_that_ship_hold_only_keys_of_a_study(name):
    """A protocol, with the four things it leaves to the study, is a study."""
    table = tomllib.loads((PROTOCOLS / f"{name}.toml").read_text(encoding="utf-8"))
    own = {
        "name": "x",
        "encoder": {"model": "m"},
        "grid": {"task": "upos", "source": "en"},
        "evaluate": {"targets": ["en"]},
    }
    assert build_study(merge(table, own)).name == "x"


def test_tasks_have_targets_and_data_of_their_own():
    """The first paper's protocol trains and tests NER on WikiANN, all else on treebanks."""
    table = {
        "name": "both",
        "protocol": "first-align",
        "encoder": {"model": "e"},
        "grid": {"task": ["upos", "ner"], "source": ["en", "ar"]},
    }
    study = build_study(table)
    assert study.source_code("upos", "ar") == "ar_padt"
    assert study.source_code("ner", "ar") == "wikiann-ar"
    upos, ner = study.target_codes("upos"), study.target_codes("ner")
    assert (len(upos), upos[0], upos[-1]) == (17, "en_pud", "tr_pud")
    assert {code.removeprefix("wikiann-") for code in ner} == {
        *(code.removesuffix("_pud") for code in upos),
        "sl",
    }
    assert study.settings("ner").hyper.learning_rate == 3.5e-5
    # Similarity is that of parallel sentences, whatever the task.
    assert set(study.parallel_languages()) == {code.removesuffix("_pud") for code in upos}


def test_targets_of_the_study_go_before_those_of_the_protocol():
    """A study goes before its protocol, what it says for one task before what it says for all."""
    table = {
        "name": "both",
        "protocol": "first-align",
        "encoder": {"model": "e"},
        "grid": {"task": ["upos", "ner"], "source": "en"},
        "evaluate": {"targets": ["en", "de"]},
    }
    assert build_study(table).target_codes("ner") == ("wikiann-en", "wikiann-de")
    own = {"tasks": {"ner": {"targets": ["fr", "uner-de_pud", "conll:x/{split}-nl.txt"]}}}
    study = build_study(table | own)
    assert study.target_codes("ner") == ("wikiann-fr", "uner-de_pud", "conll:x/{split}-nl.txt")
    assert study.target_codes("upos") == ("en_pud", "de_pud")
    assert study.parallel_languages() == ("en", "de")
