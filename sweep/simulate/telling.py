"""How a rehearsal reads: lines for people, JSON for scripts."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from sweep.pricing.instances import PriceList
from sweep.pricing.speeds import Forecast, Interval
from sweep.progress import duration
from sweep.simulate.rehearsal import Rehearsed

_AT_ONCE = 200
"""Trials at a time that `sweep run` takes on a cluster where nobody says."""

_IDLE = (
    "These machines have GPUs, and the study trains on their cores. To use them: "
    "--set resources.gpus=auto, or a share."
)


def quote_lines(told: Rehearsed, prices: PriceList) -> list[str]:
    """What a study costs on a cluster, in a few lines below its plan."""
    if not told.trials:
        return ["Nothing is left to pay for."]
    head = (
        f"On {_where(told)}: {_hours(told.busy_hours)} {told.unit}-hours of trials, "
        f"{_dollars(told.usd)}, done after {_span(told.makespan_s)}."
    )
    return [head, *_basis(told, prices)]


def table_rows(told: Rehearsed) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """One row a figure: what, expected, and the 90 % interval where it has one."""
    setting = told.setting
    extra = round(told.ended) - told.trials
    spot = math.isfinite(setting.mtbf_s)
    rows = [
        ["trials", f"{told.trials:,}", ""],
        ["trials at a time, at most", f"{setting.workers or told.slots:,}", ""],
        ["time until the last trial is done", *_both(told.makespan_s, duration)],
        [f"{told.unit}-hours of trials", *_both(told.busy_hours, _number)],
        [f"{told.unit}-hours on the bill", *_both(told.billed_hours, _number)],
        ["dollars", *(_both(told.usd, _number) if told.usd else ("no price", ""))],
        ["slots in use while nodes are up", f"{told.utilisation:.0%}", ""],
        ["worker nodes at once, at most", f"{told.most_nodes:,}", ""],
    ]
    if extra > 0:
        rows.insert(
            1, ["further seeds where intervals are wide", f"{told.ended - told.trials:.1f}", ""]
        )
    if told.pruned:
        rows.insert(1, ["of these stopped early", f"{told.pruned:.1f}", ""])
    if spot:
        rows += [
            ["nodes taken back", f"{told.interruptions:.1f}", ""],
            ["trials interrupted by that", f"{told.hit:.1f}", ""],
            [f"{told.unit}-hours done twice", f"{told.lost_hours:.2f}", ""],
            ["trials given up", f"{told.failed:.1f}", ""],
        ]
    return ["", "expected", "90 % interval"], rows


def table_lines(told: Rehearsed, prices: PriceList) -> list[str]:
    """What stands below the table."""
    head = f"{told.study} on {_where(told)}: {_times(told.repeats)}."
    lines = [head, *_basis(told, prices)]
    workers = told.setting.workers or told.slots
    if workers > _AT_ONCE:
        lines.append(
            f"Note: sweep run holds {_AT_ONCE} trials at a time; for {workers} add "
            f"--workers {workers}."
        )
    return lines


def as_json(told: Rehearsed, prices: PriceList) -> dict[str, Any]:
    """The rehearsal for scripts; hours and dollars as [expected, low, high]."""
    setting, forecast = told.setting, told.forecast
    return {
        "study": told.study,
        "cluster": setting.cluster.name,
        "trials": told.trials,
        "trials_ended": told.ended,
        "trials_pruned": told.pruned,
        "slots": told.slots,
        "workers": setting.workers or told.slots,
        "cpus": setting.cpus,
        "gpus": setting.gpus,
        "unit": f"{told.unit}-hours",
        "rehearsals": told.repeats,
        "trial_seconds": _triple(forecast.total),
        "makespan_s": _triple(told.makespan_s),
        "busy_hours": _triple(told.busy_hours),
        "billed_hours": _triple(told.billed_hours),
        "usd": None if told.usd is None else _triple(told.usd),
        "utilisation": told.utilisation,
        "most_nodes": told.most_nodes,
        "nodes_taken_back": told.interruptions,
        "trials_interrupted": told.hit,
        "lost_hours": told.lost_hours,
        "trials_given_up": told.failed,
        "measured_trials": forecast.n_measured,
        "assumed": list(forecast.doubts),
        "prices": {"source": prices.source, "date": prices.date, "own": dict(prices.own)},
        "node_types": [
            {
                "name": kind.name,
                "machine": kind.machine,
                "device": kind.device,
                "max_workers": kind.max_workers,
                "is_spot": kind.is_spot,
                "usd_per_hour": kind.usd_per_hour,
            }
            for kind in setting.cluster.types
        ],
    }


def _where(told: Rehearsed) -> str:
    """The cluster in a few words."""
    setting = told.setting
    per = f"{setting.gpus:g} GPU" if setting.gpus else f"{setting.cpus:g} cores"
    kinds = ", ".join(
        f"up to {min(kind.max_workers, setting.cluster.max_workers)} "
        f"{'spot ' if kind.is_spot else ''}{kind.machine or kind.name} "
        f"({f'{kind.gpus:g} x {kind.device}' if kind.gpus else f'{kind.cpus:g} cores'})"
        for kind in setting.cluster.workers
    )
    head = setting.cluster.head
    on_head = head.slots(setting.cpus, setting.gpus)
    with_head = f"{' and ' if kinds else ''}the head ({head.machine or head.name})"
    return f"{kinds}{with_head if on_head else ''} at {per} a trial"


def _basis(told: Rehearsed, prices: PriceList) -> list[str]:
    """What the figures rest on."""
    lines = [_speeds(told.forecast)]
    if not told.setting.gpus and any(kind.gpus for kind in told.setting.cluster.workers):
        lines.insert(0, _IDLE)
    is_listed = any(
        kind.usd_per_hour is not None and not {kind.name, kind.machine} & set(prices.own)
        for kind in told.setting.cluster.types
        if kind.machine
    )
    if is_listed:
        lines.append(f"Prices: {prices.source}, {prices.date}; --price NAME=USD overrules them.")
    if told.setting.note:
        lines.append(f"Note: {told.setting.note}.")
    absent = [k.machine or k.name for k in told.setting.cluster.types if k.usd_per_hour is None]
    if absent:
        what = ", ".join(dict.fromkeys(absent))
        lines.append(f"No price for {what}: give dollars an hour with --price.")
    return lines


def _speeds(forecast: Forecast) -> str:
    if not forecast.n_measured:
        doubts = "".join(f"; {doubt}" for doubt in forecast.doubts)
        return (
            "Speeds: a model of operations and assumed throughput, as nothing was measured yet"
            f"{doubts}."
        )
    learnt = f"Speeds: learnt from {forecast.n_measured} trials in the store"
    if forecast.is_other_device:
        return f"{learnt}, all on another kind of device: the step from there is modelled."
    return f"{learnt}."


def _hours(hours: Interval) -> str:
    return f"{_number(hours.mean)} ({_number(hours.low)} to {_number(hours.high)})"


def _span(seconds: Interval) -> str:
    return f"{duration(seconds.mean)} ({duration(seconds.low)} to {duration(seconds.high)})"


def _dollars(usd: Interval | None) -> str:
    if usd is None:
        return "of unknown price"
    return f"${_number(usd.mean)} (${_number(usd.low)} to ${_number(usd.high)})"


def _number(value: float) -> str:
    """Three digits or so."""
    few, many = 10, 100
    digits = 2 if value < few else 1 if value < many else 0
    return f"{value:,.{digits}f}"


def _both(interval: Interval, words: Callable[[float], str]) -> tuple[str, str]:
    return words(interval.mean), f"{words(interval.low)} to {words(interval.high)}"


def _triple(interval: Interval) -> list[float]:
    return [interval.mean, interval.low, interval.high]


def _times(n: int) -> str:
    return f"{n} rehearsals" if n > 1 else "one rehearsal, as it is large"
