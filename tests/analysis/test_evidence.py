"""What blocks say: effects with uncertainty, alignment of similarity and transfer."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from analysis.blocks import blocks, lineups
from analysis.cells import scored
from analysis.evidence import align, generator, weigh
from analysis.profiles import FINE_TUNED, PRETRAINED, profiles
from analysis.roster import roster

REF = np.array([95.1, 86.6, 87.2, 88.3, 72.0, 70.3, 73.6, 67.1, 66.3, 65.1]) / 100
LOWER = np.array([-2.3, -26.5, -24.3, -8.4, -7.4, -5.2, -14.9, -5.9, -5.2, -8.2]) / 100
ORDER = ("en", "fr", "de", "ru", "ar", "hi", "tr", "zh", "th", "ko")


@pytest.fixture
def study(make_tables):
    """Builds (roster, block, profile) of made-up tables."""

    def build(*args, **options):
        tables = make_tables(*args, **options)
        known = roster(tables.trials)
        found = scored(tables.scores, known)
        shown = lineups(known, found, {"upos": "accuracy"})
        (block,) = blocks(known, found, shown, declared=ORDER)
        return (
            known,
            block,
            next(iter(profiles(tables.similarity, known, shown, order=ORDER)), None),
        )

    return build


def test_numbers_of_the_first_real_study(study):
    """REF 95.10 and 75.17, gap 19.93; 1-2 costs 2.30 and 11.78 points: 9.48 beyond the source."""
    known, block, _ = study()
    found = weigh(block, known)
    assert found.scores_x.mean[0] == pytest.approx(REF[1:].mean())
    assert found.gap.mean[0].mean() * 10 / 9 == pytest.approx(REF[0] - REF[1:].mean())
    effect = found.effects[0]
    assert effect.ablation == "reinit:1-2"
    assert effect.source.mean == pytest.approx(-0.023)
    assert effect.others.mean == pytest.approx(LOWER[1:].mean())
    assert effect.beyond.mean == pytest.approx(LOWER[1:].mean() + 0.023)


def test_one_seed_has_no_interval_over_seeds(study):
    """With one seed only the interval over languages exists."""
    known, block, _ = study()
    effect = weigh(block, known).effects[0]
    assert np.isnan(effect.others.over_seeds).all()
    low, high = effect.others.over_targets
    assert low < effect.others.mean < high < 0


def test_few_languages_have_no_interval(study):
    """Five languages beside the source: a bootstrap would promise what it does not hold."""
    known, block, _ = study()
    kept = slice(0, 6)
    few = dataclasses.replace(
        block,
        treebanks=block.treebanks[kept],
        targets=block.targets[kept],
        values=block.values[:, kept],
    )
    effect = weigh(few, known).effects[0]
    assert len(few.others) == 5
    assert np.isnan(effect.others.over_targets).all()
    assert np.isnan(effect.beyond.over_targets).all()
    assert not np.isnan(effect.p_beyond).any()


def test_interval_over_seeds_is_of_whole_seeds(study):
    """Delta X of each seed first, then Student's interval over seeds."""
    known, block, _ = study((0, 1, 2), noise=0.5)
    effect = weigh(block, known).effects[0]
    by_seed = (block.values[1] - block.values[0])[1:].mean(axis=0)
    expected = stats.ttest_1samp(by_seed, 0).confidence_interval()
    assert effect.others.over_seeds == pytest.approx((expected.low, expected.high))
    assert effect.others.sd == pytest.approx(by_seed.std(ddof=1))


def test_p_over_languages_is_exact(study):
    """All nine languages lose more than English under 1-2: p = 2 / 2^9, Holm over 6 ablations."""
    known, block, _ = study()
    effect = weigh(block, known).effects[0]
    assert effect.p_beyond == pytest.approx((2 / 512, 6 * 2 / 512))


def test_numbers_of_one_setting_do_not_depend_on_others(study):
    """Chance is drawn by name: the same block gives the same evidence again."""
    first, second = (weigh(*reversed(study()[:2])) for _ in range(2))
    assert repr(first.effects) == repr(second.effects)
    assert generator("a", 1).random() == generator("a", 1).random() != generator("b", 1).random()


def test_a_missing_target_is_reported_and_stops_the_mean(study):
    """Without Korean in 1-2 there is no X for it, and the evidence names the target."""
    known, block, _ = study()
    block.values[1, block.targets.index("ko")] = np.nan
    found = weigh(block, known)
    assert found.lacking[1] == (9,)
    assert np.isnan(found.scores_x.mean[1])
    assert not np.isnan(found.scores_x.mean[[0, 2, 3, 4, 5, 6]]).any()
    assert np.isnan(found.effects[0].p_others).all()


def test_without_reference_there_is_no_delta(study):
    """Ablations alone are scored, not compared."""
    known, block, profile = study(ablations=("reinit:1-2",))
    found = weigh(block, known)
    assert found.delta is None
    assert found.effects == ()
    assert align(block, profile, known) is None


def test_alignment_agrees_with_scipy(study):
    """Rho over the mean of layers 1..L is scipy's, per state; the source is left out (n = 9)."""
    known, block, profile = study()
    found = align(block, profile, known)
    gap = REF[0] - REF[1:]
    for state, values in ((FINE_TUNED, profile.mean()[0]), (PRETRAINED, profile.pretrained)):
        expected = stats.spearmanr(gap, values[:, 1:].mean(axis=1)).statistic
        assert found.whole[state].rho_gap == pytest.approx(expected)
        assert found.whole[state].n == 9
        layer = stats.spearmanr(gap, values[:, 5]).statistic
        assert found.layers[state][5] == pytest.approx(-layer)


def test_the_source_can_be_counted(study):
    """With include_source the source joins with gap 0 and similarity 1 (D-24)."""
    known, block, profile = study()
    found = align(block, profile, known, include_source=True)
    assert found.targets[-1] == "en"
    assert found.gap[-1] == 0.0
    assert found.similarity[PRETRAINED][-1] == 1.0
    assert found.whole[PRETRAINED].n == 10
    assert (
        found.whole[PRETRAINED].rho_score > align(block, profile, known).whole[PRETRAINED].rho_score
    )


def test_the_embeddings_can_be_averaged_in(study):
    """Layers 0..L in place of 1..L changes the mean, nothing else."""
    known, block, profile = study()
    found = align(block, profile, known, include_embeddings=True)
    assert found.similarity[PRETRAINED] == pytest.approx(profile.pretrained.mean(axis=1))


def test_spread_of_rho_over_seeds(study):
    """Three seeds have three rhos of their own; the pretrained encoder is the same in each."""
    known, block, profile = study((0, 1, 2), noise=1.5)
    found = align(block, profile, known)
    near = profile.pretrained[:, 1:].mean(axis=1)
    own = [-stats.spearmanr(block.values[0, 0, s] - block.values[0, 1:, s], near).statistic
           for s in range(3)]  # fmt: skip
    assert found.whole[PRETRAINED].seed_mean == pytest.approx(np.mean(own))
    assert found.whole[PRETRAINED].n_seeds == 3
    assert found.whole[FINE_TUNED].n_seeds == 3


def test_languages_without_similarity_are_left_out(study):
    """A target that the parallel sentences lack has no point."""
    known, block, profile = study()
    cut = type(profile)(profile.lineup, profile.measure, profile.targets[:-1], profile.layers,
                        profile.values[:, :-1], profile.null[:, :-1], profile.pretrained[:-1],
                        profile.probes, profile.n)  # fmt: skip
    assert align(block, cut, known).targets == block.targets[1:-1]
