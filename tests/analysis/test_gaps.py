"""Gap, paired differences, means over targets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from analysis import gaps

NAN = float("nan")


def test_gap_is_a_loss_when_positive():
    """Source 0.9 and target 0.7 make a gap of 0.2; the source's own gap is 0."""
    gap = gaps.cross_lingual_gap(np.array([[0.9, 0.7, 0.95]]), 0)
    assert gap == pytest.approx(np.array([[0.0, 0.2, -0.05]]))


def test_gap_compares_within_a_model():
    """Each ablation's targets are compared with its own source score, seed by seed."""
    scores = np.array([[[0.9, 0.8], [0.6, 0.4]], [[0.5, 0.5], [0.4, 0.1]]])
    assert gaps.cross_lingual_gap(scores, 0)[:, 1] == pytest.approx(
        np.array([[0.3, 0.4], [0.1, 0.4]])
    )


def test_deltas_are_paired_by_seed():
    """A seed that the ablation lacks leaves the reference's seed out too."""
    scores = np.array([[[0.80, 0.90, 0.70]], [[0.70, NAN, 0.64]]])
    found = gaps.deltas(scores, 0)
    assert found.mean[1, 0] == pytest.approx(-0.08)  # not 0.67 - 0.80
    assert found.n[1, 0] == 2
    assert found.sd[1, 0] == pytest.approx(np.std([-0.10, -0.06], ddof=1))


def test_no_seed_in_common_means_no_delta():
    """Reference and ablation of different seeds have no paired difference."""
    found = gaps.deltas(np.array([[[0.8, NAN]], [[NAN, 0.7]]]), 0)
    assert np.isnan(found.mean[1, 0])
    assert found.n[1, 0] == 0


def test_one_pair_has_no_spread():
    """The sd of a single difference is undefined, not 0."""
    assert np.isnan(gaps.deltas(np.array([[[0.8]], [[0.7]]]), 0).sd[1, 0])


def test_mean_over_targets_is_unweighted():
    """SRC-X of 0.6 and 0.8 is 0.7, whatever else is there."""
    assert gaps.over_targets(np.array([[0.95, 0.6, 0.8]]), (1, 2)).tolist() == pytest.approx([0.7])


def test_mean_over_targets_needs_all_of_them():
    """A missing declared target makes the mean missing, not a mean over fewer."""
    assert np.isnan(gaps.over_targets(np.array([[0.95, NAN, 0.8]]), (1, 2)))[0]


def test_no_targets_no_mean():
    """Without other languages SRC-X does not exist."""
    assert np.isnan(gaps.over_targets(np.array([[[0.95, 0.9]]]), ())).all()


def test_lacking_names_the_missing_targets():
    """Each ablation lists its declared targets without a number."""
    values = np.array([[0.9, 0.8, NAN], [0.9, NAN, NAN]])
    assert gaps.lacking(values, (0, 1, 2)) == ((2,), (1, 2))


@given(hnp.arrays(float, (3, 4, 2), elements=st.floats(0, 1)))
def test_mean_of_deltas_is_delta_of_means(scores):
    """With all seeds there, pairing changes the spread and not the mean."""
    delta = gaps.deltas(scores, 0)
    means = gaps.over_seeds(scores).mean
    assert np.allclose(delta.mean, means - means[:1], atol=1e-12)


@given(hnp.arrays(float, (2, 4, 2), elements=st.floats(0, 1)))
def test_fall_of_the_mean_gap_is_source_delta_less_x_delta(scores):
    """gap(ablated) - gap(ref), averaged over X, equals delta(source) - delta(X)."""
    gap = gaps.cross_lingual_gap(scores, 0)
    others = (1, 2, 3)
    rise = gaps.over_targets(gap[1:] - gap[:1], others)
    delta = scores[1:] - scores[:1]
    assert np.allclose(rise, delta[:, 0] - gaps.over_targets(delta, others), atol=1e-12)
