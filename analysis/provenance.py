"""Where numbers come from: commits, versions, machines, cost; and every trial as a row."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from analysis import labels
from analysis.blocks import hyper_text
from analysis.roster import Roster, Trial

_TIMES = ("load_s", "train_s", "evaluate_s", "similarity_s")


@dataclass(frozen=True, slots=True)
class Group:
    """Trials that differ by seed only, as the appendix lists them.

    Attributes:
        anchor: Its id in the page.
        title: Which they are.
        hyper: Their hyper-parameters.
        rows: One a trial: its `Trial` and its row of the table (None for a missing one).
    """

    anchor: str
    title: str
    hyper: str
    rows: tuple[tuple[Trial, Mapping[str, Any] | None], ...]


def facts(trials: pa.Table, known: Roster) -> tuple[tuple[str, str], ...]:
    """What ran, on what, with which code, at what cost: (name, value) pairs."""
    rows = trials.to_pylist()
    done = sum(trial.status == "done" for trial in (*known.trials, *known.probes))
    total = len(known.trials) + len(known.probes)
    compute = sum(row[name] or 0.0 for row in rows for name in _TIMES)
    times = [row["started"] for row in rows if row["started"]]
    ends = [row["finished"] for row in rows if row["finished"]]
    memory = max((row["peak_memory"] or 0 for row in rows), default=0)
    found = [
        ("Trials", f"{done} of {total} done"),
        ("Compute", f"{_duration(compute)} of trial time ({_shares(rows)})"),
        ("Encoders", _counted(rows, "encoder", "encoder_fingerprint")),
        ("Code", _counted(rows, "git_commit")),
        ("Versions", _versions(rows)),
        ("Machines", _counted(rows, "host", "device")),
        ("Studies that asked", _counted(rows, "study")),
    ]
    if times and ends:
        span = f"{min(times):%Y-%m-%d %H:%M} to {max(ends):%Y-%m-%d %H:%M} UTC"
        found.insert(2, ("Run", span))
    if memory:
        found.insert(3, ("Peak memory of a trial", f"{memory / 1e9:.1f} GB"))
    return tuple((name, value) for name, value in found if value)


def _shares(rows: list[dict[str, Any]]) -> str:
    parts = [(name.removesuffix("_s"), sum(row[name] or 0.0 for row in rows)) for name in _TIMES]
    return ", ".join(f"{name} {_duration(seconds)}" for name, seconds in parts)


def _counted(rows: list[dict[str, Any]], *names: str) -> str:
    counts = Counter(", ".join(str(row[name])[:48] for name in names if row[name]) for row in rows)
    ordered = sorted((item for item in counts.items() if item[0]), key=lambda i: (-i[1], i[0]))
    if len(ordered) == 1:
        return ordered[0][0]
    return "; ".join(f"{text} ({n} trials)" for text, n in ordered)


def _versions(rows: list[dict[str, Any]]) -> str:
    seen: dict[str, Counter[str]] = {}
    for text, n in Counter(row["versions"] for row in rows if row["versions"]).items():
        for package, version in json.loads(text).items():
            seen.setdefault(str(package), Counter())[str(version)] += n
    return ", ".join(
        f"{package} {' and '.join(sorted(versions))}" for package, versions in sorted(seen.items())
    )


def duration(seconds: float | None) -> str:
    """`4 min 14 s`; empty where it is not known."""
    return "" if seconds is None else _duration(seconds)


def _duration(seconds: float) -> str:
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def groups(trials: pa.Table, known: Roster) -> tuple[Group, ...]:
    """All trials, cell by cell, in the order of tables; probes last."""
    rank = {"train": 0, "failed": 1, "measure": 2}
    rows: dict[str, dict[str, Any]] = {}
    for row in sorted(trials.to_pylist(), key=lambda r: (rank.get(r["kind"], 3), r["commit_id"])):
        rows.setdefault(row["trial_id"], row)
    members: dict[tuple[int, str, str], list[Trial]] = {}
    for trial in (*known.trials, *known.probes):
        members.setdefault((trial.setting, trial.ablation, trial.hyper), []).append(trial)
    several = len({setting.encoder for setting in known.settings}) > 1
    found: list[Group] = []
    for (setting, ablation, hyper), own in members.items():
        if setting < 0:
            title = "Pretrained encoder, nothing trained"
        else:
            place = known.settings[setting]
            parts = [labels.task(place.task), f"from {labels.language(place.source)}"]
            parts += [place.encoder] * several + [place.detail] * bool(place.detail)
            title = f"{' '.join(parts[:2])}{''.join(', ' + part for part in parts[2:])}: {ablation}"
        rest = tuple((trial, rows.get(trial.trial_id)) for trial in own)
        found.append(
            Group(f"g{len(found)}", title, hyper_text(hyper) if setting >= 0 else "", rest)
        )
    return tuple(found)


def anchors(found: tuple[Group, ...]) -> dict[str, str]:
    """Trial id -> anchor of its group."""
    return {
        trial.trial_id: group.anchor for group in found for trial, _ in group.rows if trial.trial_id
    }
