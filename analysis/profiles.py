"""Similarity to the source, layer by layer, as arrays: ablation x target x layer x seed."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int

from analysis.blocks import Lineup
from analysis.columns import Coded, coded, integers, numbers, positions, starts_of_runs
from analysis.roster import Roster, Setting

_READ = ["source", "target", "layer", "n", "value", "null_mean", "null_95"]

FINE_TUNED = "fine-tuned"
PRETRAINED = "pretrained"


@dataclass(frozen=True, slots=True)
class Profile:
    """How alike the source and other languages are in every state of a setting's models.

    Attributes:
        lineup: Whose models.
        measure: Which similarity.
        targets: Languages, without the source.
        layers: State indices, 0 = embeddings.
        values: Of fine-tuned models; NaN where there is none.
        null: Mean and 95 % quantile over shuffled pairings (reference, mean over seeds).
        pretrained: Of the encoder before training; NaN where it was not measured.
        probes: Trials that measured it.
        n: Sentence pairs: least and most of any value.
    """

    lineup: Lineup
    measure: str
    targets: tuple[str, ...]
    layers: tuple[int, ...]
    values: Float[np.ndarray, "a t l s"]
    null: Float[np.ndarray, "2 t l"]
    pretrained: Float[np.ndarray, "t l"]
    probes: tuple[str, ...]
    n: tuple[int, int]

    def mean(self) -> Float[np.ndarray, "a t l"]:
        """Mean over seeds; NaN where there is none."""
        return _mean(self.values)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The similarity table as numbers, cut down to the rows in use."""

    trial: Int[np.ndarray, " rows"]
    first: Int[np.ndarray, " rows"]
    second: Int[np.ndarray, " rows"]
    layer: Int[np.ndarray, " rows"]
    measure: Int[np.ndarray, " rows"]
    n: Int[np.ndarray, " rows"]
    value: Float[np.ndarray, " rows"]
    null_mean: Float[np.ndarray, " rows"]
    null_95: Float[np.ndarray, " rows"]

    def __getitem__(self, rows: np.ndarray) -> "_Rows":
        return _Rows(*(getattr(self, name)[rows] for name in self.__slots__))

    def __len__(self) -> int:
        return len(self.trial)


def profiles(
    similarity: pa.Table,
    known: Roster,
    shown: Sequence[Lineup],
    *,
    order: Sequence[str] = (),
) -> tuple[Profile, ...]:
    """Lay similarities to the source out as arrays, one profile a setting and measure.

    A pair counts whichever of its two languages is named first; pairs without the source are
    left out. Where a pair was measured on several sets of sentences, the largest counts.

    Args:
        similarity: Rows of `schema.SIMILARITY`.
        known: Who took part.
        shown: Which trials.
        order: Languages in the order of tables; others follow by name.
    """
    if not len(similarity):
        return ()
    everyone = (*known.trials, *known.probes)
    trial = positions(similarity["trial_id"], [t.trial_id or "-" for t in everyone])
    state = coded(similarity["state"])
    measure = coded(similarity["measure"])
    is_shown = np.zeros(len(everyone) + 1, bool)  # the last for trials that are not ours
    is_shown[len(known.trials) : -1] = True
    for lineup in shown:
        is_shown[lineup.trials[lineup.trials >= 0]] = True
    rows = np.flatnonzero(is_shown[trial])
    if len(rows) < len(trial):  # a search tries many trials that no table shows
        similarity = similarity.select(_READ).take(pa.array(rows))
        trial, state = trial[rows], Coded(state.codes[rows], state.names)
        measure = Coded(measure.codes[rows], measure.names)
    first, second = coded(similarity["source"]), coded(similarity["target"])
    languages = tuple(sorted({*first.names, *second.names}))
    whole = _Rows(
        trial,
        _among(languages, first),
        _among(languages, second),
        integers(similarity["layer"]),
        measure.codes,
        integers(similarity["n"]),
        *(numbers(similarity[name]) for name in ("value", "null_mean", "null_95")),
    )
    is_tuned = _is_state(state, FINE_TUNED)
    tuned = whole[np.flatnonzero(is_tuned & (trial >= 0) & (trial < len(known.trials)))]
    before = whole[np.flatnonzero(_is_state(state, PRETRAINED) & (trial >= 0))]
    fingerprints = [t.fingerprint for t in everyone]
    build = _Builder(known, shown, languages, measure.names, order, before, fingerprints)
    return tuple(build.all(tuned))


def _among(languages: Sequence[str], side: Coded) -> Int[np.ndarray, " rows"]:
    """Index into the languages of both sides."""
    lookup = np.array([languages.index(name) for name in side.names] + [-1], np.int64)
    found: Int[np.ndarray, " rows"] = lookup[side.codes]
    return found


def _is_state(state: Coded, name: str) -> Bool[np.ndarray, " rows"]:
    if name not in state.names:
        return np.zeros(len(state.codes), bool)
    return np.asarray(state.codes == state.names.index(name))


@dataclass(frozen=True)
class _Builder:
    known: Roster
    shown: Sequence[Lineup]
    languages: tuple[str, ...]
    measures: tuple[str, ...]
    order: Sequence[str]
    before: _Rows
    fingerprints: Sequence[str]

    def all(self, tuned: _Rows) -> list[Profile]:
        n_trials = len(self.known.trials)
        row_of, seed_of, lineup_of = (np.full(n_trials, -1, np.int64) for _ in range(3))
        for i, lineup in enumerate(self.shown):
            for (row, seed), trial in np.ndenumerate(lineup.trials):
                if trial >= 0 and self.known.trials[trial].status == "done":
                    row_of[trial], seed_of[trial], lineup_of[trial] = row, seed, i
        sources = [self.known.settings[lineup.setting].source for lineup in self.shown]
        place = {name: i for i, name in enumerate(self.languages)}
        source_of = np.array([place.get(source, -2) for source in sources] + [-2], np.int64)
        tuned = tuned[np.flatnonzero(lineup_of[tuned.trial] >= 0)]
        tuned, target = _towards(tuned, source_of[lineup_of[tuned.trial]])
        by = np.lexsort((tuned.n, tuned.measure, lineup_of[tuned.trial]))
        tuned, target = tuned[by], target[by]
        keys = lineup_of[tuned.trial], tuned.measure
        starts = np.append(np.flatnonzero(starts_of_runs(*keys)), len(tuned))
        spans = {
            (int(keys[0][a]), int(keys[1][a])): slice(int(a), int(b))
            for a, b in itertools.pairwise(starts)
        }
        built = []
        for i, lineup in enumerate(self.shown):
            for m in range(len(self.measures)):
                rows = np.arange(len(tuned))[spans.get((i, m), slice(0, 0))]
                setting = self.known.settings[lineup.setting]
                before, other = self._before(setting, m, int(source_of[i]))
                if len(rows) or len(before):
                    at = row_of[tuned.trial[rows]], seed_of[tuned.trial[rows]]
                    parts = (tuned[rows], target[rows], *at, before, other)
                    built.append(self._profile(lineup, m, *parts))
        return built

    def _before(
        self, setting: Setting, measure: int, source: int
    ) -> tuple[_Rows, Int[np.ndarray, " rows"]]:
        """Rows of the pretrained encoder; of several probes the first, whole, speaks."""
        rows = self.before[np.flatnonzero(self.before.measure == measure)]
        same = [self.fingerprints[trial] == setting.fingerprint for trial in rows.trial]
        rows, other = _towards(rows[np.flatnonzero(same)], np.full(sum(same), source))
        if len(rows):
            first = np.flatnonzero(rows.trial == rows.trial.min())
            rows, other = rows[first], other[first]
        order = np.argsort(rows.n, kind="stable")
        return rows[order], other[order]

    def _profile(  # noqa: PLR0917 - one profile, from the rows of its two states
        self,
        lineup: Lineup,
        measure: int,
        rows: _Rows,
        target: Int[np.ndarray, " rows"],
        ablation: Int[np.ndarray, " rows"],
        seed: Int[np.ndarray, " rows"],
        before: _Rows,
        other: Int[np.ndarray, " rows_before"],
    ) -> Profile:
        ranks = {language: i for i, language in enumerate(self.order)}
        used = sorted(
            {*np.unique(target).tolist(), *np.unique(other).tolist()},
            key=lambda t: (ranks.get(self.languages[t], len(ranks)), self.languages[t]),
        )
        layers = sorted({*np.unique(rows.layer).tolist(), *np.unique(before.layer).tolist()})
        place, level = np.zeros(len(self.languages), np.int64), np.zeros(max(layers) + 1, np.int64)
        place[used], level[layers] = np.arange(len(used)), np.arange(len(layers))
        shape = (len(lineup.ablations), len(used), len(layers), len(lineup.seeds))
        values, nulls = np.full(shape, np.nan), np.full((2, *shape), np.nan)
        at = (ablation, place[target], level[rows.layer], seed)
        values[at] = rows.value  # rows of most sentences come last, and stay
        nulls[(0, *at)], nulls[(1, *at)] = rows.null_mean, rows.null_95
        pretrained = np.full(shape[1:3], np.nan)
        pretrained[place[other], level[before.layer]] = before.value
        sizes = np.concatenate([rows.n, before.n])
        everyone = (*self.known.trials, *self.known.probes)
        return Profile(
            lineup,
            self.measures[measure],
            tuple(self.languages[t] for t in used),
            tuple(layers),
            values,
            _mean(nulls[:, lineup.reference or 0]),
            pretrained,
            tuple(sorted({everyone[trial].trial_id for trial in np.unique(before.trial)})),
            (int(sizes.min()), int(sizes.max())),
        )


def _towards(
    rows: _Rows, source: Int[np.ndarray, " rows"]
) -> tuple[_Rows, Int[np.ndarray, " kept"]]:
    """Rows that compare the source with another language, and that other language."""
    forward = (rows.first == source) & (rows.second != source)
    backward = (rows.second == source) & (rows.first != source)
    kept = np.flatnonzero(forward | backward)
    other = np.where(forward, rows.second, rows.first)
    return rows[kept], other[kept]


def _mean(values: Float[np.ndarray, "*axes s"]) -> Float[np.ndarray, "*axes"]:
    there = ~np.isnan(values)
    n = there.sum(axis=-1)
    return np.where(n > 0, np.where(there, values, 0.0).sum(axis=-1) / np.maximum(n, 1), np.nan)
