"""Intervals over seeds and sentences, from a store's rows to the numbers of a report."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))
from counted_samples import counted_study

from analysis.blocks import blocks, lineups, main_metrics
from analysis.cells import scored
from analysis.counted import Counted
from analysis.evidence import weigh
from analysis.roster import roster
from analysis.sentences import draw, over_seeds_and_sentences, sentence_weights, widening


def opened(tables, rows):
    """The only block of a study, its counts, and its roster."""
    known = roster(tables.trials)
    found = scored(tables.scores, known)
    metrics = main_metrics(tables.curves, known, found)
    (block,) = blocks(known, found, lineups(known, found, metrics))
    counted = Counted(rows, known, found)
    return block, counted, known


def weighed(tables, rows):
    block, counted, known = opened(tables, rows)
    return weigh(block, known, sets=counted.of(block))


def worse(ablation, seed, language):
    """Misses: a tenth, doubled by the ablation in other languages than English."""
    return 0.2 if ablation != "ref" and language != "en" else 0.1 + 0.005 * seed


@pytest.mark.parametrize("spans", [False, True])
def test_counts_give_the_scores_of_the_block(make_tables, spans):
    """With each sentence counted once, every trial has the score of its row."""
    tables, rows = counted_study(make_tables, (1, 2), worse, spans=spans)
    block, counted, _ = opened(tables, rows)
    for t, one in enumerate(counted.of(block)):
        once = np.ones((1, one.right.shape[1]), np.float32)
        assert one.values(once)[0] == pytest.approx(block.values[:, t].ravel(), abs=1e-12)
    assert counted.n_off == 0


def test_intervals_hold_the_numbers_and_pair_the_sentences(make_tables):
    """Every interval holds its number; paired differences are tighter than unpaired ones."""
    by_sentence = np.clip(np.random.default_rng(3).normal(0.3, 0.2, 40), 0.02, 0.95)
    hard = {"ref": by_sentence, "reinit:1-2": np.clip(by_sentence + 0.05, 0, 1)}
    tables, rows = counted_study(make_tables, (1, 2, 3, 4, 5), lambda a, *_: hard[a])
    found = weighed(tables, rows)
    both = found.spread
    scores, delta = found.scores.mean, found.delta.mean[1]
    assert (both.scores[..., 0] < scores).all()
    assert (scores < both.scores[..., 1]).all()
    assert (both.delta[1, :, 0] < delta).all()
    assert (delta < both.delta[1, :, 1]).all()
    width = np.diff(both.delta[1])[:, 0]
    assert (width < 0.7 * np.hypot(*np.diff(both.scores)[..., 0])).all()
    assert both.gap_x[0, 0] <= found.gap_x.mean[0] <= both.gap_x[0, 1]
    effect = found.effects[0]
    assert effect.others.over_both == tuple(both.delta_x[1])
    assert effect.beyond.over_both == tuple(both.beyond[1])
    assert effect.source.over_both == tuple(both.delta[1, 0])


def test_one_seed_has_an_interval_over_sentences(make_tables):
    """With one seed there is no interval over seeds, and one over sentences that is plain."""
    tables, rows = counted_study(make_tables, (1,), worse)
    block, counted, known = opened(tables, rows)
    found = weigh(block, known, sets=counted.of(block))
    effect = found.effects[0]
    assert np.isnan(effect.others.over_seeds).all()
    assert effect.others.over_both[0] < effect.others.mean < effect.others.over_both[1]
    english = counted.of(block)[0]
    difference = (english.right[1] - english.right[0])[None].astype(float)
    plain = over_seeds_and_sentences(difference, english.whole, np.random.default_rng(0))
    assert effect.source.over_both == pytest.approx(plain, abs=0.01)


def test_sentences_alone_agree_with_the_standard_error(make_tables):
    """One seed's interval is the score plus and minus 1.96 linearised standard errors."""
    tables, rows = counted_study(make_tables, (1,), worse, n=400)
    block, counted, known = opened(tables, rows)
    found = weigh(block, known, sets=counted.of(block))
    one, score = counted.of(block)[1], found.scores.mean[0, 1]
    words = one.whole.astype(float)
    error = np.sqrt(((one.right[0] - score * words) ** 2).sum()) / words.sum()
    assert found.spread.scores[0, 1] == pytest.approx(
        score + 1.96 * error * np.array([-1, 1]), abs=0.2 * error
    )


def test_a_number_whose_trials_lack_counts_has_no_interval(make_tables):
    """Without the counts of one trial and target, that target, X and the gap go without."""
    tables, rows = counted_study(make_tables, (1, 2), worse)
    lost = next(row for row in rows.to_pylist() if row["treebank"] == "fr_pud")
    kept = [row for row in rows.to_pylist() if row != lost]
    both = weighed(tables, pa.Table.from_pylist(kept, schema=rows.schema)).spread
    fr = ["en", "ar", "de", "fr"].index("fr")
    assert np.isnan(both.scores[0, fr]).all()
    assert np.isnan(both.delta_x[1]).all()
    assert not np.isnan(np.delete(both.scores[0], fr, axis=0)).any()
    assert not np.isnan(both.scores[1]).any()


def test_counts_that_do_not_add_up_to_the_score_are_not_used(make_tables):
    """A score of other predictions than its counts is noticed, and goes without interval."""
    tables, rows = counted_study(make_tables, (1, 2), worse)
    scores = tables.scores.to_pylist()
    scores[0]["value"] += 0.01
    wrong = dataclasses.replace(
        tables, scores=pa.Table.from_pylist(scores, schema=tables.scores.schema)
    )
    block, counted, known = opened(wrong, rows)
    found = weigh(block, known, sets=counted.of(block))
    assert counted.n_off == 1
    assert np.isnan(found.spread.scores).all(axis=-1).sum() == 1


def test_a_seed_that_lacks_a_target_is_left_out_of_pairs_alike(make_tables):
    """The gap of the table and that of the correlation come from the same seeds."""
    tables, _ = counted_study(make_tables, (1, 2, 3), worse)
    rows = [
        row
        for row in tables.scores.to_pylist()
        if not (
            row["treebank"] == "en_pud" and row["trial_id"] == tables.trials["trial_id"][0].as_py()
        )
    ]
    holed = dataclasses.replace(
        tables, scores=pa.Table.from_pylist(rows, schema=tables.scores.schema)
    )
    known = roster(holed.trials)
    found = scored(holed.scores, known)
    metrics = main_metrics(holed.curves, known, found)
    (block,) = blocks(known, found, lineups(known, found, metrics))
    gap = weigh(block, known).gap
    by_hand = np.nanmean(block.values[:, :1] - block.values, axis=-1)
    assert gap.mean == pytest.approx(by_hand)
    assert sorted(np.unique(gap.n)) == [2, 3]


def test_drawn_weights_are_resamples():
    """Each row draws n of n: weights are whole, add up to n, and differ between rows."""
    weights = draw(50, 20, np.random.default_rng(0))
    assert (weights.sum(axis=1) == 50).all()
    assert (weights == weights.astype(int)).all()
    assert len(np.unique(weights, axis=0)) == 20
    assert np.array_equal(sentence_weights(50, 20), sentence_weights(50, 20))


def test_two_seeds_are_widened_to_what_student_asks():
    """Sqrt(2) for the spread of two, 12.7 in place of 1.96 for its quantile; many need nothing."""
    assert widening(2, 0.95) == pytest.approx(np.sqrt(2) * 12.7062 / 1.95996, rel=1e-4)
    assert widening(1000, 0.95) == pytest.approx(1.0, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "sentences", "by_seed", "by_sentence"),
    [
        (2, 200, 0.02, 0.0),
        (2, 30, 0.002, 0.1),
        (3, 200, 0.01, 0.06),
        (5, 200, 0.0, 0.1),
        (10, 200, 0.01, 0.06),
    ],
)
def test_intervals_over_both_cover_the_truth(seeds, sentences, by_seed, by_sentence):
    """Of 300 studies, at least 92 % of the intervals hold the true score, whatever rules.

    And they are not idly wide: half of them stay below 1.2 times Student's over seeds and the
    normal one over sentences, put together at right angles.
    """
    rng = np.random.default_rng(seeds)
    hits, times = 0, []
    for _ in range(300):
        n = rng.integers(5, 30, sentences)
        p = 0.8 + by_seed * rng.normal(size=(seeds, 1))
        p = p + by_sentence * rng.normal(size=(1, sentences))
        right = rng.binomial(n, np.clip(p, 0, 1)).astype(float)
        low, high = over_seeds_and_sentences(right, n, rng, draws=300)
        hits += low <= 0.8 <= high
        score, mean = right.sum(axis=1) / n.sum(), right.mean(axis=0)
        over_seeds = stats.t.ppf(0.975, seeds - 1) * score.std(ddof=1) / np.sqrt(seeds)
        over_sentences = 1.96 * np.sqrt(((mean - score.mean() * n) ** 2).sum()) / n.sum()
        times.append((high - low) / 2 / np.hypot(over_seeds, over_sentences))
    assert hits >= 276
    assert np.median(times) < 1.2
