"""Rows -> cells."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.cells import CELLS, cells, family_of, moments, scored
from analysis.roster import roster


def cells_of(tables, **options):
    """Cells of made-up tables, as dictionaries by (ablation, split, target)."""
    known = roster(tables.trials)
    table = cells(scored(tables.scores, known), known, **options)
    assert table.schema.equals(CELLS)
    return {(row["ablation"], row["split"], row["target"]): row for row in table.to_pylist()}


def test_a_cell_averages_over_seeds(make_tables):
    """Scores 0.6, 0.7, 0.8 of three seeds have mean 0.7 and sd 0.1."""
    tables = make_tables(
        (0, 1, 2), ablations=("ref",), languages=("en",), score=lambda _a, seed, _l: 0.6 + seed / 10
    )
    cell = cells_of(tables)["ref", "test", "en"]
    assert (cell["n"], cell["mean"], cell["sd"]) == pytest.approx((3, 0.7, 0.1))
    assert cell["seeds"] == [0, 1, 2]
    assert cell["values"] == pytest.approx([0.6, 0.7, 0.8])
    assert cell["trial_ids"] == [t.trial_id for t in roster(tables.trials).trials]


def test_one_seed_has_no_spread(make_tables):
    """The sd of one value is null."""
    assert cells_of(make_tables())["ref", "test", "fr"]["sd"] is None


def test_failed_trials_enter_no_mean(make_tables):
    """A failed seed lowers n, and its scores (had it any) do not count."""
    tables = make_tables((0, 1), failed=[("ref", 1)])
    failed = roster(tables.trials).absent[0].trial_id
    stray = tables.scores.slice(0, 1).to_pylist()[0] | {"trial_id": failed, "value": 0.0}
    scores = pa.concat_tables([tables.scores, pa.Table.from_pylist([stray], tables.scores.schema)])
    cell = cells_of(type(tables)(tables.trials, scores, tables.similarity, tables.curves))[
        "ref", "test", "en"
    ]
    assert (cell["n"], cell["mean"]) == pytest.approx((1, 0.951))


def test_hyper_parameters_split_cells(make_tables):
    """Two learning rates are two cells of one ablation."""
    tables = make_tables((0, 1), ablations=("ref",), languages=("en",))
    hyper = pa.array(["{}", "a", "b"])
    trials = tables.trials.set_column(tables.trials.column_names.index("hyper"), "hyper", hyper)
    known = roster(trials)
    table = cells(scored(tables.scores, known), known)
    assert sorted(zip(*(table[c].to_pylist() for c in ("hyper", "split", "n")), strict=True)) == [
        ("a", "dev", 1),
        ("a", "test", 1),
        ("b", "dev", 1),
        ("b", "test", 1),
    ]


def test_only_asked_seeds_count(make_tables):
    """The search's seed can be left out of what is reported."""
    cell = cells_of(make_tables((0, 1, 2)), seeds=[1, 2])["ref", "test", "en"]
    assert cell["seeds"] == [1, 2]


def test_order_of_rows_changes_nothing(make_tables):
    """Shuffled tables give the same cells."""
    tables = make_tables((0, 1), noise=0.5)
    order = np.random.default_rng(0).permutation(len(tables.scores))
    other = type(tables)(
        tables.trials.take(pa.array(np.arange(len(tables.trials))[::-1])),
        tables.scores.take(pa.array(order)),
        tables.similarity,
        tables.curves,
    )
    assert cells_of(tables) == cells_of(other)


def test_a_number_measured_twice_counts_once(make_tables):
    """The same row from two commits of a trial is one value."""
    tables = make_tables()
    scores = pa.concat_tables([tables.scores, tables.scores])
    known = roster(tables.trials)
    assert cells(scored(scores, known), known)["n"].to_pylist() == [1] * 77


@pytest.mark.parametrize(
    ("treebank", "language", "families", "family"),
    [
        ("en_pud", "en", None, "pud"),
        ("wikiann-en", "en", None, "wikiann"),
        ("uner-en_pud", "en", None, "uner-pud"),
        ("en", "en", None, "en"),
        ("conll2003", "en", None, "conll2003"),
        ("fr_gsd", "fr", {"*": "ud"}, "ud"),
        ("fr_gsd", "fr", {"*": "ud", "fr_gsd": "own"}, "own"),
    ],
)
def test_family_is_the_code_less_the_language(treebank, language, families, family):
    """Test sets of one family differ in language only; a study may say otherwise."""
    assert family_of(treebank, language, families) == family


def test_cut_test_sets_are_another_family(make_tables):
    """Scores on the first 500 sentences are not averaged with scores on all."""
    tables = make_tables(ablations=("ref",), languages=("en",))
    index = tables.scores.column_names.index("data_key")
    keys = pa.array([key.removesuffix("[:500]") for key in tables.scores["data_key"].to_pylist()])
    whole = tables.scores.set_column(index, tables.scores.schema.field(index), keys)
    known = roster(tables.trials)
    table = cells(scored(pa.concat_tables([tables.scores, whole]), known), known)
    assert set(table["family"].to_pylist()) == {"ewt", "pud", "pud[:500]"}


def test_changed_test_files_are_kept_apart(make_tables):
    """Two contents under one treebank code are two families, marked by their hashes."""
    tables = make_tables((0, 1), ablations=("ref",), languages=("en",))
    index = tables.scores.column_names.index("data_key")
    keys = pa.array(["sha256:aaaa", "sha256:d", "sha256:bbbb", "sha256:d"])
    scores = tables.scores.set_column(index, tables.scores.schema.field(index), keys)
    known = roster(tables.trials)
    table = cells(scored(scores, known), known)
    assert set(table["family"].to_pylist()) == {"pud#aaaa", "pud#bbbb", "ewt"}


def test_moments_of_runs():
    """Runs (1, 3) and (5) have means 2 and 5, sds sqrt(2) and 0."""
    n, mean, sd = moments(np.array([1.0, 3.0, 5.0]), np.array([0, 2]))
    assert n.tolist() == [2, 1]
    assert mean.tolist() == [2.0, 5.0]
    assert sd == pytest.approx([2**0.5, 0.0])
