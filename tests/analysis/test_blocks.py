"""Scores as arrays, and which trials are shown."""

import json

import numpy as np
import pyarrow as pa
import pytest

from analysis.blocks import blocks, hyper_text, language_of, lineups, main_metrics
from analysis.cells import scored
from analysis.roster import roster


def laid_out(tables, **options):
    """Roster, lineups and blocks of made-up tables."""
    known = roster(tables.trials)
    found = scored(tables.scores, known)
    shown = lineups(known, found, main_metrics(tables.curves, known, found))
    return known, shown, blocks(known, found, shown, **options)


def with_column(table, name, values):
    """The table with one column replaced."""
    index = table.column_names.index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values))


def test_values_stand_where_their_labels_say(make_tables):
    """The score of German under 1-2 is at its ablation, target and seed."""
    _, (lineup,), (block,) = laid_out(make_tables((3, 5)))
    at = lineup.ablations.index("reinit:1-2"), block.targets.index("de"), lineup.seeds.index(5)
    assert block.values[at] == pytest.approx(0.872 - 0.243)
    assert block.values.shape == (7, 10, 2)


def test_reference_first_then_layers_in_order(make_tables):
    """Ablations stand in the order of their layers, 9-10 before 11-12."""
    _, (lineup,), _ = laid_out(make_tables(ablations=("reinit:11-12", "reinit:9-10", "ref")))
    assert lineup.ablations == ("ref", "reinit:9-10", "reinit:11-12")
    assert lineup.reference == 0


def test_source_comes_first_then_the_declared_order(make_tables):
    """Targets follow the study's order behind the source; X is all but the source."""
    tables = make_tables(languages=("ar", "de", "en", "fr"))
    _, _, (block,) = laid_out(tables, declared=("fr", "de_pud"))
    assert block.targets == ("en", "fr", "de", "ar")
    assert block.source == 0
    assert block.others == (1, 2, 3)


def test_a_declared_test_set_without_scores_is_a_column_of_nan(make_tables):
    """Nobody scored Polish: it is there, empty; another family's test set is not."""
    _, _, (block,) = laid_out(make_tables(), declared=("en_pud", "pl_pud", "pl_lfg"))
    assert np.isnan(block.values[:, block.targets.index("pl")]).all()
    assert "pl_lfg" not in block.treebanks


def test_no_source_test_set_no_source(make_tables):
    """A study that did not test the source language says so."""
    _, _, (block,) = laid_out(make_tables(languages=("fr", "de")))
    assert block.source is None
    assert block.others == (0, 1)


def test_a_failed_seed_is_a_hole(make_tables):
    """A failed trial leaves NaN at its seed and keeps its place in the lineup."""
    known, (lineup,), (block,) = laid_out(make_tables((0, 1), failed=[("reinit:1-2", 1)]))
    row = lineup.ablations.index("reinit:1-2")
    assert np.isnan(block.values[row, :, 1]).all()
    assert known.trials[lineup.trials[row, 1]].status == "failed"


def searched(make_tables):
    """Two learning rates of the reference: the second is better on dev and worse on test."""
    tables = make_tables((0, 1), ablations=("ref",), languages=("en",))
    rates = [json.dumps({"learning_rate": rate}) for rate in (0.1, 0.2)]
    trials = with_column(tables.trials, "hyper", ["{}", *rates])
    values = [0.99, 0.90, 0.50, 0.91]  # test, dev of the first; test, dev of the second
    scores = with_column(tables.scores, "value", values)
    return type(tables)(trials, scores, tables.similarity, tables.curves)


def test_hyper_parameters_are_chosen_on_source_dev(make_tables):
    """The set with the best dev score is shown, however its test score is; it is said."""
    _, (lineup,), (block,) = laid_out(searched(make_tables))
    assert lineup.hypers == ('{"learning_rate": 0.2}',)
    assert block.values[0, 0][~np.isnan(block.values[0, 0])].tolist() == [0.5]
    assert "source dev" in lineup.note


def test_two_metrics_are_two_blocks(make_tables):
    """Each metric has its own block; the one that trials select on is the task's main one."""
    tables = make_tables(ablations=("ref",))
    other = with_column(tables.scores, "metric", ["a_las"] * len(tables.scores))
    both = pa.concat_tables([tables.scores, other])
    tables = type(tables)(tables.trials, both, tables.similarity, tables.curves)
    known, _, found = laid_out(tables)
    assert [block.metric for block in found] == ["a_las", "accuracy"]
    assert main_metrics(tables.curves, known, scored(both, known)) == {"upos": "accuracy"}


@pytest.mark.parametrize(
    ("code", "language"), [("fr_pud", "fr"), ("wikiann-fr", "fr"), ("fr", "fr")]
)
def test_language_of_a_test_set(code, language):
    """The language is read off the code."""
    assert language_of(code) == language


def test_hyper_parameters_in_words():
    """The three that a grid varies are named, absent ones are not."""
    assert hyper_text('{"epochs": 2, "learning_rate": 0.0004}') == "learning_rate 0.0004, epochs 2"
