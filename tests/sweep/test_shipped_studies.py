"""Studies that ship: they load, and their grids have the sizes of the papers' tables."""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from sweep.cli import main
from sweep.fetch import names_of
from sweep.imagined import counted, imagined
from sweep.plan import as_json
from sweep.study import StudyError, build_study, load_study, study_names
from sweep.studyfile import study_text

PAIRS = ["reinit:1-2", "reinit:3-4", "reinit:5-6", "reinit:7-8", "reinit:9-10", "reinit:11-12"]


def grid(name):
    """The plan of a study, as a script reads it."""
    return as_json(counted(load_study(name)))


@pytest.mark.parametrize("name", study_names())
def test_a_study_that_ships_loads_and_expands(name):
    """Every study that ships has at least one training, and each of its trials is another one."""
    plan = grid(name)
    assert plan["train"] >= 1
    named = [trial["trial_id"] for trial in plan["list"] if not trial["open"]]
    assert len(set(named)) == len(named) == plan["trials"] - plan["open"]


@pytest.mark.parametrize(
    ("name", "cells", "trainings", "probes"),
    [
        ("first-align", 63, 315, 1),  # Tables 1, 6-8: 3 tasks x 3 sources x 7 x 5 seeds
        ("first-align-layers", 39, 195, 0),  # Table 5: 3 x 13 x 5
        ("domains", 21, 105, 0),  # Table 2: 3 x 7 x 5, of which the 35 of NER are first-align's
        ("beto", 5, 5, 0),  # W Tables 2-6: one training a table
        ("overlap", 5, 5, 0),  # W Figure 3: the trainings of beto
        ("freeze", 25, 25, 0),  # W Figure 1: 4 settings and ref of 5 tasks
    ],
)
def test_a_grid_has_the_size_of_its_paper(name, cells, trainings, probes):
    """Cells and trainings are those that PROTOCOLS counts, and that the study's head gives."""
    plan = grid(name)
    assert f"# Cost: {trainings} trainings" in study_text(name)
    assert (plan["cells"], plan["train"], plan["measure"]) == (cells, trainings, probes)


def test_first_align_is_tables_1_and_6_to_8():
    """Three tasks, three sources, ref and six pairs, on PUD in 17 languages or on WikiANN."""
    study = load_study("first-align")
    assert study.grid.task == ("parsing", "upos", "ner")
    assert study.grid.source == ("en", "ru", "ar")
    assert study.grid.ablation == ("ref", *PAIRS)
    assert len(study.target_codes("upos")) == 17
    assert set(study.target_codes("upos")) == set(study.target_codes("parsing"))
    assert {"wikiann-sl", "wikiann-sv"} < set(study.target_codes("ner"))  # D-01


def test_first_align_has_the_settings_of_table_3():
    """Batch size, rate and epochs of each task are the paper's winners; AdamW is D-06."""
    study = load_study("first-align")
    found = {task: study.settings(task).hyper for task in study.grid.task}
    assert {
        task: (hyper.batch_size, hyper.learning_rate, hyper.epochs) for task, hyper in found.items()
    } == {"parsing": (32, 5e-5, 15), "ner": (16, 3.5e-5, 6), "upos": (16, 5e-5, 6)}
    for hyper in found.values():
        assert (hyper.beta1, hyper.beta2, hyper.epsilon) == (0.9, 0.999, 1e-8)
        assert (hyper.weight_decay, hyper.warmup, hyper.schedule) == (0.0, 0.1, "linear")
    assert study.settings("parsing").options.select == "las"


def test_first_align_layers_has_the_targets_of_the_training_family():
    """D-09: the test sets of Table 5 are not PUD, and the thirteen sets are its columns."""
    study = load_study("first-align-layers")
    assert set(study.target_codes("parsing")) == {
        *("fr_gsd", "de_gsd", "tr_imst", "id_gsd", "ru_gsd", "ar_padt", "en_ewt")
    }
    assert set(study.target_codes("ner")) == {
        f"wikiann-{lang}" for lang in ("en", "fr", "de", "tr", "id", "ru", "ar")
    }
    assert len(study.grid.ablation) == 13


def test_studies_of_one_protocol_share_their_trials():
    """ref, 1-2 and 3-4 of English are the same 45 trials in Tables 1 and 5; NER is in Table 2."""
    ids = {
        name: {
            trial["trial_id"]: trial["task"]
            for trial in grid(name)["list"]
            if trial["work"] == "train"
        }
        for name in ("first-align", "first-align-layers", "domains")
    }
    assert len(ids["first-align"].keys() & ids["first-align-layers"].keys()) == 45
    shared = ids["first-align"].keys() & ids["domains"].keys()
    assert [ids["domains"][trial] for trial in shared] == ["ner"] * 35


def test_beto_has_the_profile_of_the_paper():
    """D-10: beta2 0.999, weight decay 0.01, windows of 128, English only, no ablation, one seed."""
    study = load_study("beto")
    for task in study.grid.task:
        settings = study.settings(task)
        assert (settings.hyper.beta2, settings.hyper.weight_decay) == (0.999, 0.01)
        assert (settings.options.max_length, settings.options.overlap) == (128, 64)
        assert settings.options.head_dropout == 0.0
    assert study.grid.source == ("en",)
    assert study.grid.ablation == ("ref",)
    assert study.seeds.report == (42,)
    parsing = study.settings("parsing").options
    assert (parsing.parser, parsing.deprels, parsing.select) == ("beto", "coarse", "las_no_punct")


@pytest.mark.data
@pytest.mark.parametrize(
    ("study", "task", "table", "printed"),
    [
        ("beto", "topic", "wu_dredze_tables2_6", "mldoc"),
        ("beto", "xnli", "wu_dredze_tables2_6", "xnli"),
        ("beto", "upos", "wu_dredze_tables2_6", "pos"),
        ("beto", "parsing", "wu_dredze_tables2_6", "parsing"),
        ("first-align", "upos", "first_align_tables6_7_8", "pos"),
        ("first-align", "ner", "first_align_tables6_7_8", "ner"),
        ("first-align-layers", "ner", "first_align_table5", "ner"),
    ],
)
def test_targets_are_the_languages_that_the_paper_prints(study, task, table, printed):
    """Every language of a printed table is a target, and no other one but Swedish (D-01)."""
    shared = Path(os.environ.get("XLING_SHARED", Path(__file__).parents[3] / "shared"))
    path = shared / "reference" / f"{table}.csv"
    if not path.is_file():
        pytest.skip("the shared folder with the papers' numbers is not here")
    with path.open(encoding="utf-8", newline="") as file:
        languages = {row["target"] for row in csv.DictReader(file) if row["task"] == printed}
    resolved = imagined(load_study(study))
    found = {ref.language for ref in resolved.targets[task]}
    printed_languages = languages - {"X", "AVG"}
    assert found - {"sv"} == printed_languages - {"sv"} - (
        {"sl"} if task == "upos" and study == "first-align" else set()
    )


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("first-align", set()),
        ("first-align-layers", set()),
        ("domains", {"conll-eng:test", "tweebank/en-ud-tweet-{split}.conllu:test"}),
    ],
)
def test_what_a_study_needs_can_be_fetched(name, by_hand):
    """All files but those under a licence have a name that `sweep data get` knows."""
    names, left = names_of(load_study(name))
    assert set(left) == by_hand
    assert names


def test_beto_needs_licensed_files_by_hand_only():
    """UD 1.4, UD 2.2 and XNLI are fetched; MLDoc and CoNLL are under licences."""
    names, by_hand = names_of(load_study("beto"))
    assert {name.partition("-")[0] for name in by_hand} == {"mldoc", "conll"}
    assert {"xnli-sw:test", "en@1.4:train", "cs_pdt@2.2:test"} <= set(names)


def test_the_command_counts_without_data_or_encoder(capsys, monkeypatch):
    """`sweep plan STUDY --counts` shows 315 trainings on a machine that has nothing else."""
    monkeypatch.delenv("XLING_DATA", raising=False)
    with pytest.raises(SystemExit) as left:
        main(["plan", "first-align", "--counts"])
    told = capsys.readouterr().out
    assert left.value.code == 0
    assert "63 cells, 316 trials: 315 to train, 1 only to measure, 0 done." in told
    assert "no data, encoder or store was looked at" in told


def test_counting_checks_the_spelling_of_ablations():
    """What is no ablation at all is refused before anything is downloaded."""
    with pytest.raises(StudyError, match=r"reinit:two"):
        counted(load_study("first-align", ['grid.ablation=["ref", "reinit:two"]']))


def test_counting_follows_overrides():
    """Two seeds and one task of a study are as many trials as they multiply out to."""
    overrides = ["seeds.report=[1, 2]", 'grid.task=["upos"]']
    plan = as_json(counted(load_study("first-align", overrides)))
    assert plan["train"] == 1 * 3 * 7 * 2


def test_counting_takes_any_encoder():
    """A deep encoder's layers may be named, as nothing is known of the encoder."""
    study = build_study(
        {
            "name": "deep",
            "encoder": {"model": "xlm-roberta-large"},
            "data": {"sources": {"en": "en_ewt"}},
            "grid": {"task": "upos", "source": "en", "ablation": ["ref", "reinit:23-24"]},
            "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2},
            "seeds": {"report": [1]},
            "evaluate": {"targets": ["en_pud"]},
        }
    )
    assert as_json(counted(study))["train"] == 2


def test_table3_searches_the_grid_of_the_paper():
    """Nine cells: six points for parsing and UPOS, eight for NER (D-07), and five seeds each."""
    plan = as_json(counted(load_study("table3")))
    assert (plan["cells"], plan["search"], plan["train"]) == (9, 2 * 3 * 6 + 3 * 8, 60 + 45)
    searched = [trial for trial in plan["list"] if trial["phase"] == "search"]
    assert Counter(trial["task"] for trial in searched) == {"parsing": 18, "upos": 18, "ner": 24}
    reported = [trial for trial in plan["list"] if trial["phase"] == "report"]
    assert all(trial["open"] for trial in reported)


def test_beto_search_tries_twelve_settings_a_task_and_reports_one_of_them():
    """One seed searches and is reported, as in the paper: sixty trainings in all."""
    plan = as_json(counted(load_study("beto-search")))
    assert (plan["cells"], plan["search"], plan["train"]) == (5, 60, 60)
    study = load_study("beto-search")
    points = list(study.space("xnli").grid())
    assert len(points) == 12
    assert {"learning_rate": 3e-5, "batch_size": 32, "epochs": 4} in points


def test_a_search_in_the_whole_first_align_grid_is_counted():
    """D-07: searched on ref alone 54 more trainings, per ablation 378 (54 of them on ref)."""
    grid = ["search.method=grid", "search.batch_size=[16, 32]"]
    grid.append("search.learning_rate=[1e-5, 2.5e-5, 5e-5]")
    frozen = as_json(counted(load_study("first-align", [*grid, "search.scope=ref"])))
    whole = as_json(counted(load_study("first-align", grid)))
    assert (frozen["train"], frozen["search"]) == (315 + 54, 54)
    assert (whole["train"], whole["search"]) == (315 + 378, 378)
