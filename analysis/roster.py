"""Who took part: trials, how each ended, and which of them may be compared with each other.

A *setting* is all that a reference and its ablations share: encoder, task, source and every option
but ablation, hyper-parameters and seed. Deltas are taken inside a setting only.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from analysis.labels import ablation_order

PROBE = "probe"
_NAMES_OF_FILES = frozenset({"location", "revision", "code", "language", "split", "name"})
_OF_A_TRIAL = ("ablation", "hyper", "seed", "source", "task")
_COLUMNS = (
    "trial_id", "commit_id", "kind", "status", "task", "encoder", "encoder_fingerprint", "source",
    "train", "ablation", "seed", "cell", "hyper", "spec", "failure_kind", "failure", "pruned_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """What a reference and its ablations share.

    Attributes:
        encoder: Name of the encoder, for people.
        fingerprint: What the encoder is.
        task: Name of the task.
        source: Language of the training data.
        train: Treebank of the training data.
        detail: What sets it apart from others of the same encoder, task and source; mostly empty.
    """

    encoder: str
    fingerprint: str
    task: str
    source: str
    train: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial and how it ended.

    Attributes:
        trial_id: Its id.
        setting: Index into `Roster.settings`; -1 for a probe.
        fingerprint: What its encoder is.
        ablation: What was done to the encoder.
        hyper: Hyper-parameters, as JSON.
        seed: Its seed.
        status: `done`, `pruned`, `failed` or `missing` (planned, and not there).
        reason: Why there is no number; empty when done.
    """

    trial_id: str
    setting: int
    fingerprint: str
    ablation: str
    hyper: str
    seed: int
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Roster:
    """All trials, ordered by setting, ablation, hyper-parameters and seed.

    Attributes:
        settings: In the order of tables.
        trials: Those of settings, missing ones included.
        probes: Trials that measured a pretrained encoder.
        mishaps: Attempts that failed though their trial is done: (trial id, message).
    """

    settings: tuple[Setting, ...]
    trials: tuple[Trial, ...]
    probes: tuple[Trial, ...]
    mishaps: tuple[tuple[str, str], ...]

    @property
    def absent(self) -> tuple[Trial, ...]:
        """Trials without numbers, each with its reason."""
        everyone = (*self.probes, *self.trials)
        return tuple(trial for trial in everyone if trial.status != "done")

    def ablations(self, setting: int) -> tuple[str, ...]:
        """Ablations of a setting, the reference first."""
        found = {trial.ablation for trial in self.trials if trial.setting == setting}
        return tuple(sorted(found, key=ablation_order))


def roster(trials: pa.Table, planned: pa.Table | None = None) -> Roster:
    """Find out who took part.

    Args:
        trials: Rows of `schema.TRIALS`; several rows of one trial are attempts and later
            measurements.
        planned: Every trial that the study asks for: the columns of `schema.TRIALS` that come
            from a spec (`trial_id` to `spec`). Without it, a trial counts as missing when its
            seed ran for another ablation of its setting.
    """
    jobs = _rows(trials)
    if planned is not None:
        known = {row["trial_id"] for row in jobs}
        awaited = [row for row in _rows(planned) if row["trial_id"] not in known]
        jobs += [row | {"status": "missing"} for row in awaited]
    shared = _shared(jobs)
    keys = {row["cell"]: _setting_key(row, shared) for row in jobs if row["task"] != PROBE}
    ordered = sorted(set(keys.values()))
    details = _details(ordered)
    place = {key: i for i, key in enumerate(ordered)}
    settings = tuple(
        Setting(e, f, t, s, train, details[e, f, t, s, train, rest])
        for e, f, t, s, train, rest in ordered
    )
    found, mishaps = _outcomes(jobs, keys, place)
    if planned is None:
        found += _holes(found, len(settings))
    everyone = sorted(found, key=_order)
    return Roster(
        settings,
        tuple(trial for trial in everyone if trial.setting >= 0),
        tuple(trial for trial in everyone if trial.setting < 0),
        tuple(mishaps),
    )


def _order(trial: Trial) -> tuple[Any, ...]:
    return (
        trial.setting,
        ablation_order(trial.ablation),
        trial.hyper,
        trial.seed,
        trial.trial_id,
    )


def _rows(trials: pa.Table) -> list[dict[str, Any]]:
    names = [name for name in _COLUMNS if name in trials.column_names]
    blank = dict.fromkeys(_COLUMNS, "")
    return [blank | row for row in trials.select(names).to_pylist()]


def _setting_key(row: Mapping[str, Any], shared: Mapping[str, str]) -> tuple[str, ...]:
    names = ("encoder", "encoder_fingerprint", "task", "source", "train")
    return (*(row[name] for name in names), shared.get(row["cell"], ""))


def _shared(jobs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Cell -> canonical JSON of what it shares with its reference; one parse a cell."""
    texts: dict[str, str] = {}
    for row in jobs:
        if row["cell"] not in texts:
            spec = json.loads(row["spec"] or "{}")
            kept = {name: part for name, part in spec.items() if name not in _OF_A_TRIAL}
            texts[row["cell"]] = json.dumps(dict(_flat(kept)), sort_keys=True)
    return texts


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if name in _NAMES_OF_FILES:
            continue
        if isinstance(part, dict):
            yield from _flat(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", part


def _details(keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """What sets apart the settings of one encoder, task and source; empty for a lone one."""
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for key in keys:
        alike[key[:4]].append(key)
    found = {}
    for group in alike.values():
        differences = _differences([key[5] for key in group])
        several = len({key[4] for key in group}) > 1
        for key in group:
            parts = [
                part for part in differences[key[5]] if not (several and "fingerprint" in part)
            ]
            found[key] = ", ".join([f"trained on {key[4]}"] * several + parts)
    return found


def _differences(texts: Sequence[str]) -> dict[str, list[str]]:
    parsed = {text: json.loads(text) for text in texts}
    names = sorted({name for content in parsed.values() for name in content})
    varied = [
        name
        for name in names
        if len({json.dumps(content.get(name)) for content in parsed.values()}) > 1
    ]
    return {
        text: [f"{name}={_short(content.get(name))}" for name in varied]
        for text, content in parsed.items()
    }


def _short(value: object) -> str:
    return str(value).removeprefix("sha256:")[:12]


def _outcomes(
    jobs: Sequence[Mapping[str, Any]],
    keys: Mapping[str, tuple[str, ...]],
    place: Mapping[tuple[str, ...], int],
) -> tuple[list[Trial], list[tuple[str, str]]]:
    """Each trial once, by its best row; failures beside a success are mishaps."""
    rank = {"done": 0, "pruned": 1, "failed": 2}
    by_trial: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in jobs:
        by_trial[row["trial_id"]].append(row)
    found, mishaps = [], []
    for trial_id in sorted(by_trial):
        rows = sorted(by_trial[trial_id], key=lambda r: (rank.get(r["status"], 3), r["commit_id"]))
        best = rows[0]
        setting = -1 if best["task"] == PROBE else place[keys[best["cell"]]]
        reason = "" if best["status"] == "done" else _reason(best)
        found.append(_trial(best, setting, best["status"], reason))
        if best["status"] == "done":
            mishaps += [(trial_id, _reason(row)) for row in rows[1:] if row["status"] == "failed"]
    return found, mishaps


def _trial(row: Mapping[str, Any], setting: int, status: str, reason: str) -> Trial:
    return Trial(
        row["trial_id"],
        setting,
        row["encoder_fingerprint"],
        row["ablation"],
        row["hyper"],
        int(row["seed"]),
        status,
        reason,
    )


def _reason(row: Mapping[str, Any]) -> str:
    if row["status"] == "missing":
        return "not run yet"
    if row["status"] == "pruned":
        return f"pruned after epoch {row['pruned_at']}"
    message = (row["failure"] or "no message").strip().splitlines()
    return f"failed ({row['failure_kind'] or 'unknown'}): {message[-1] if message else ''}"


def _holes(found: Collection[Trial], n_settings: int) -> list[Trial]:
    """Seeds that ran for one ablation of a setting and not for another.

    Only ablations with one set of hyper-parameters are held to this: a search tries most of its
    points with few seeds.
    """
    holes = []
    by_setting: dict[int, list[Trial]] = defaultdict(list)
    for trial in found:
        by_setting[trial.setting].append(trial)
    for setting in range(n_settings):
        members = by_setting[setting]
        seeds = {trial.seed for trial in members}
        by_ablation: dict[str, list[Trial]] = defaultdict(list)
        for trial in members:
            by_ablation[trial.ablation].append(trial)
        for ablation, own in by_ablation.items():
            if len({trial.hyper for trial in own}) > 1:
                continue
            holes += [
                Trial("", setting, own[0].fingerprint, ablation, own[0].hyper, seed, "missing",
                      "not run yet, though other ablations ran with this seed")
                for seed in sorted(seeds - {trial.seed for trial in own})
            ]  # fmt: skip
    return holes
