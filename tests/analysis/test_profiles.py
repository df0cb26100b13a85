"""Similarities as arrays."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.blocks import lineups
from analysis.cells import scored
from analysis.profiles import profiles
from analysis.roster import roster
from analysis.schema import SIMILARITY


def profile_of(tables, similarity=None):
    """The only profile of made-up tables."""
    known = roster(tables.trials)
    shown = lineups(known, scored(tables.scores, known), {})
    rows = tables.similarity if similarity is None else similarity
    (profile,) = profiles(rows, known, shown, order=("en", "fr", "de"))
    return profile


def edited(table, change):
    """The similarity table with each row passed through `change`; None drops it."""
    rows = [row for row in map(change, table.to_pylist()) if row is not None]
    return pa.Table.from_pylist(rows, schema=SIMILARITY)


def test_values_stand_where_their_labels_say(make_tables):
    """French, layer 3, of the reference and of the pretrained encoder: the numbers put in."""
    profile = profile_of(make_tables())
    fr = profile.targets.index("fr")
    assert profile.targets[:2] == ("fr", "de")
    assert profile.layers == tuple(range(13))
    assert profile.values[0, fr, 3, 0] == pytest.approx(0.66 + 0.08 * 0.75)
    assert profile.pretrained[fr, 3] == pytest.approx(0.70 + 0.08 * 0.75)
    assert profile.null[:, fr, 3] == pytest.approx([0.28, 0.29])


def test_a_pair_counts_whichever_language_is_named_first(make_tables):
    """Rows that name the source second give the same profile."""
    tables = make_tables()
    turned = edited(
        tables.similarity, lambda row: row | {"source": row["target"], "target": row["source"]}
    )
    first, second = profile_of(tables), profile_of(tables, turned)
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.pretrained, second.pretrained)


def test_pairs_without_the_source_are_left_out(make_tables):
    """With all pairs measured, only those of the source enter."""
    tables = make_tables()
    extra = edited(
        tables.similarity, lambda row: row | {"source": "fr", "target": "de", "value": 9}
    )
    both = pa.concat_tables([tables.similarity, extra])
    assert np.nanmax(profile_of(tables, both).values) < 1


def test_the_largest_set_of_sentences_counts(make_tables):
    """Measured on 500 and on 1,000 pairs, the latter is shown and the mixture is reported."""
    tables = make_tables()
    more = edited(
        tables.similarity,
        lambda row: row | {"n": 1000, "value": 0.5} if row["layer"] == 2 else None,
    )
    profile = profile_of(tables, pa.concat_tables([more, tables.similarity]))
    assert (profile.values[:, :, 2] == 0.5).all()
    assert profile.n == (500, 1000)


def test_mean_over_seeds_skips_a_failed_one(make_tables):
    """Where one of two seeds failed, the mean is the other's value."""
    profile = profile_of(make_tables((0, 1), noise=1.0, failed=[("ref", 1)]))
    assert profile.mean()[0] == pytest.approx(profile.values[0, ..., 0])


def test_another_encoders_probe_does_not_count(make_tables):
    """A probe of another fingerprint says nothing of this encoder."""
    tables = make_tables()
    index = tables.trials.column_names.index("encoder_fingerprint")
    prints = ["sha256:other", *["sha256:me5-small"] * 7]
    trials = tables.trials.set_column(index, tables.trials.schema.field(index), pa.array(prints))
    tables = type(tables)(trials, tables.scores, tables.similarity, tables.curves)
    assert np.isnan(profile_of(tables).pretrained).all()


def test_no_rows_no_profiles(make_tables):
    """A study without similarity has none."""
    tables = make_tables(similarity=False)
    known = roster(tables.trials)
    assert (
        profiles(tables.similarity, known, lineups(known, scored(tables.scores, known), {})) == ()
    )
