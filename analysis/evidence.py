"""What the blocks say: means, differences with their uncertainty, correlations. No text, no files.

Chance enters by generators that are made from the name of what is tested, so that the numbers of
one setting do not depend on which others are there.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from analysis import gaps
from analysis.blocks import Block
from analysis.correlation import Correlation, correlate, permutation_ps, spearman
from analysis.counted import TestSet
from analysis.gaps import Paired
from analysis.intervals import NONE, Interval, bootstrap_means, t_interval, t_intervals
from analysis.profiles import FINE_TUNED, PRETRAINED, Profile
from analysis.resampling import Spread
from analysis.resampling import spread as resampled
from analysis.roster import Roster
from analysis.significance import holm, sign_flips

FEWEST = 6
"""Fewer languages get no bootstrap interval: of 5 it would hold the mean 83 times in 100, of 3 75
times, and not the 95 that it promises (`intervals.bootstrap`)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference and what is known of its spread.

    Attributes:
        mean: Fraction; NaN where there is none.
        sd: Over paired seeds (ddof 1); NaN below two.
        n: Paired seeds.
        over_seeds: 95 % t interval; NaN below two seeds.
        over_targets: 95 % bootstrap interval over target languages; NaN where it has no meaning.
        over_both: 95 % bootstrap interval over seeds and sentences, over sentences alone with one
            seed; NaN without counts of sentences.
    """

    mean: float
    sd: float
    n: int
    over_seeds: Interval
    over_targets: Interval = NONE
    over_both: Interval = NONE


@dataclass(frozen=True, slots=True)
class Effect:
    """What one ablation does to one setting.

    Attributes:
        ablation: Which.
        source: Difference on the source language.
        others: Mean difference over the other languages.
        beyond: `others` less `source`: what transfer loses on top. It is the gap's fall.
        p_others: Sign flips over languages: "the others lose nothing"; and after Holm.
        p_beyond: The same for "the others lose what the source loses"; and after Holm.
    """

    ablation: str
    source: Estimate
    others: Estimate
    beyond: Estimate
    p_others: tuple[float, float]
    p_beyond: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that one block says.

    Attributes:
        block: Which.
        scores: Seed means of every target, with spread.
        scores_x: Mean over the other languages (SRC-X); NaN where one of them is missing.
        gap: Cross-lingual gap of every target, over the seeds that have source and target; None
            without a source test set or without X.
        gap_x: Its mean over the other languages.
        delta: Differences to the reference by target; None without a reference.
        delta_x: Their mean over the other languages.
        effects: One an ablation, without the reference.
        lacking: For each ablation the targets that it has no number for.
        spread: Intervals over seeds and sentences; None without counts of sentences.
    """

    block: Block
    scores: Paired
    scores_x: Paired
    gap: Paired | None
    gap_x: Paired | None
    delta: Paired | None
    delta_x: Paired | None
    effects: tuple[Effect, ...]
    lacking: tuple[tuple[int, ...], ...]
    spread: Spread | None = None


@dataclass(frozen=True, slots=True)
class Alignment:
    """How similarity goes with transfer in the reference models of one block.

    Attributes:
        block: Scores.
        profile: Similarities.
        targets: Languages that have both; the source only if it was asked for.
        gap: Their cross-lingual gap, mean over seeds.
        similarity: State -> their similarity to the source, mean over seeds and layers.
        whole: State -> rho over the mean of layers.
        layers: State -> rho(score, similarity) of each layer of the profile; NaN if undefined.
        p_layers: State -> permutation p of each layer: plain, and corrected for all layers.
    """

    block: Block
    profile: Profile
    targets: tuple[str, ...]
    gap: Float[np.ndarray, " t"]
    similarity: Mapping[str, Float[np.ndarray, " t"]]
    whole: Mapping[str, Correlation]
    layers: Mapping[str, Float[np.ndarray, " l"]]
    p_layers: Mapping[str, Float[np.ndarray, "2 l"]]


def generator(*names: object) -> np.random.Generator:
    """A generator that depends on names only."""
    return np.random.default_rng(zlib.crc32("|".join(map(str, names)).encode()))


def weigh(
    block: Block,
    known: Roster,
    *,
    has_effects: bool = True,
    sets: tuple[TestSet | None, ...] | None = None,
) -> Evidence:
    """Compute what a block says.

    Args:
        block: Scores.
        known: Who took part.
        has_effects: Whether more than its table is wanted.
        sets: Counts of the sentences of each test set (`counted.Counted.of`); None without.
    """
    reference, others = block.lineup.reference, block.others
    scores = gaps.over_seeds(block.values)
    gap = gap_x = spread = None
    if block.source is not None and others:
        gap = gaps.over_seeds(gaps.cross_lingual_gap(block.values, block.source))
        gap_x = _mean_of_targets(gap, others)
    if sets is not None:
        rng = generator("sentences", known.settings[block.lineup.setting], block.family)
        spread = resampled(block, sets, rng)
    delta = delta_x = None
    effects: tuple[Effect, ...] = ()
    if reference is not None:
        delta = gaps.deltas(block.values, reference)
        delta_x = _mean_of_targets(delta, others)
        if has_effects:
            rng = generator(known.settings[block.lineup.setting], block.family, block.metric)
            effects = _effects(block, delta, delta_x, rng, spread)
    return Evidence(
        block,
        scores,
        _mean_of_targets(scores, others),
        gap,
        gap_x,
        delta,
        delta_x,
        effects,
        gaps.lacking(scores.mean, tuple(range(len(block.targets)))),
        spread,
    )


def gap_intervals(evidence: Evidence, a: int) -> tuple[Interval, Interval]:
    """95 % intervals of an ablation's gap to the mean of others: over seeds; and sentences, too."""
    gap, spread = evidence.gap_x, evidence.spread
    if gap is None:
        return NONE, NONE
    both = NONE if spread is None else _pair(spread.gap_x[a])
    return t_interval(float(gap.mean[a]), float(gap.sd[a]), int(gap.n[a])), both


def _mean_of_targets(paired: Paired, among: tuple[int, ...]) -> Paired:
    """Seed means first, then the mean over targets; the spread is that of whole seeds."""
    spread = gaps.over_seeds(gaps.over_targets(paired.by_seed, among))
    return Paired(spread.by_seed, gaps.over_targets(paired.mean, among), spread.sd, spread.n)


def _effects(
    block: Block,
    delta: Paired,
    delta_x: Paired,
    rng: np.random.Generator,
    both: Spread | None,
) -> tuple[Effect, ...]:
    """What each ablation but the reference does."""
    nothing = np.full((len(block.lineup.ablations), len(block.lineup.seeds)), np.nan)
    source = gaps.over_seeds(nothing if block.source is None else delta.by_seed[:, block.source])
    beyond = gaps.over_seeds(delta_x.by_seed - source.by_seed)
    beyond = Paired(beyond.by_seed, delta_x.mean - source.mean, beyond.sd, beyond.n)
    on_targets = delta.mean[:, list(block.others)]
    spread = bootstrap_means(on_targets, rng, draws=4_000)
    if len(block.others) < FEWEST:
        spread = np.full_like(spread, np.nan)
    own = None if both is None or block.source is None else both.delta[:, block.source]
    ablated = [a for a in range(len(nothing)) if a != block.lineup.reference]
    tests = [
        sign_flips(rows[ablated], rng) for rows in (on_targets, on_targets - source.mean[:, None])
    ]
    corrected = [holm(p) for p in tests]
    estimates = (
        _estimates(source, None, own),
        _estimates(delta_x, spread, None if both is None else both.delta_x),
        # The same resamples, shifted.
        _estimates(beyond, spread - source.mean[:, None], None if both is None else both.beyond),
    )
    p_others, p_beyond = (
        list(zip(p.tolist(), adjusted.tolist(), strict=True))
        for p, adjusted in zip(tests, corrected, strict=True)
    )
    return tuple(
        Effect(
            ablation=block.lineup.ablations[a],
            source=estimates[0][a],
            others=estimates[1][a],
            beyond=estimates[2][a],
            p_others=p_others[i],
            p_beyond=p_beyond[i],
        )
        for i, a in enumerate(ablated)
    )


def _estimates(
    paired: Paired,
    over_targets: Float[np.ndarray, "a 2"] | None,
    over_both: Float[np.ndarray, "a 2"] | None,
) -> list[Estimate]:
    intervals = t_intervals(paired.mean, paired.sd, paired.n)
    nothing = np.full(intervals.shape, np.nan)
    targets = nothing if over_targets is None else over_targets
    both = nothing if over_both is None else over_both
    return [
        Estimate(float(mean), float(sd), int(n), *map(_pair, ends))
        for mean, sd, n, *ends in zip(
            paired.mean, paired.sd, paired.n, intervals, targets, both, strict=True
        )
    ]


def _pair(ends: Float[np.ndarray, " 2"]) -> Interval:
    return float(ends[0]), float(ends[1])


def align(
    block: Block,
    profile: Profile,
    known: Roster,
    *,
    include_source: bool = False,
    include_embeddings: bool = False,
) -> Alignment | None:
    """Correlate similarity with transfer over the targets of the reference models.

    Args:
        block: Scores.
        profile: Similarities of the same setting.
        known: Who took part.
        include_source: Count the source as a target of gap 0 and similarity 1 (D-24).
        include_embeddings: Average similarity over states 0..L in place of 1..L.

    Returns:
        None without a reference, a source test set, or a target that has both numbers.
    """
    reference, source = block.lineup.reference, block.source
    if reference is None or source is None:
        return None
    both = [(i, profile.targets.index(block.targets[i])) for i in block.others
            if block.targets[i] in profile.targets]  # fmt: skip
    if not both:
        return None
    rows, at = [i for i, _ in both], [i for _, i in both]
    scores = block.values[reference]
    gap_by_seed = (scores[source] - scores[rows]).T
    own = int(include_source)
    gap_by_seed = np.pad(gap_by_seed, ((0, 0), (0, own)))
    gap = gaps.over_seeds(gap_by_seed.T).mean
    averaged = [i for i, layer in enumerate(profile.layers) if layer > 0 or include_embeddings]
    n_seeds = len(block.lineup.seeds)
    tuned = np.moveaxis(profile.values[reference][at], -1, 0)
    states = {FINE_TUNED: tuned, PRETRAINED: np.tile(profile.pretrained[at], (n_seeds, 1, 1))}
    similarity, whole, layers, p_layers = {}, {}, {}, {}
    for state, by_seed in states.items():
        padded = np.pad(by_seed, ((0, 0), (0, own), (0, 0)), constant_values=1.0)
        if np.isnan(by_seed).all():
            continue
        rng = generator(known.settings[block.lineup.setting], profile.measure, state, block.family)
        mean = gaps.over_seeds(np.moveaxis(padded, 0, -1)).mean
        similarity[state] = mean[:, averaged].mean(axis=1)
        whole[state] = correlate(
            gap,
            similarity[state],
            rng,
            gap_by_seed=gap_by_seed,
            similarity_by_seed=padded[:, :, averaged].mean(axis=2),
        )
        layers[state], p_layers[state] = _by_layer(gap, mean)
    targets = tuple(block.targets[i] for i in rows) + (block.targets[source],) * own
    return Alignment(block, profile, targets, gap, similarity, whole, layers, p_layers)


def _by_layer(
    gap: Float[np.ndarray, " t"], similarity: Float[np.ndarray, "t l"]
) -> tuple[Float[np.ndarray, " l"], Float[np.ndarray, "2 l"]]:
    """Rho(score, similarity) and its two p in every layer, over targets that all layers have."""
    there = ~(np.isnan(gap) | np.isnan(similarity).any(axis=1))
    x, y = similarity[there].T, gap[there]
    if not there.any():
        return np.full(len(x), np.nan), np.full((2, len(x)), np.nan)
    return -spearman(x, np.broadcast_to(y, x.shape)), permutation_ps(x, y)
