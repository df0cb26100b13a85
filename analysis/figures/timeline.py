"""Slots over time: which trial ran where and when, and how much of the slots stood idle.

Drawn from stored rows alone: `started`, `finished`, `host`, `pid` and `phase` of each trial.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation

from analysis.figures import style
from analysis.figures.style import Drawing

_COLUMNS = (
    *("trial_id", "cell", "task", "source", "ablation", "seed", "status", "phase"),
    *("host", "pid", "started", "finished"),
)
_COLOURS: Mapping[str, str] = {
    "search": style.ACCENT,
    "report": "#f0b27a",
    "probe": style.QUIET,
}
_LANE = 0.22
"""Inches a slot is high."""

_BELOW = 0.38
"""Inches from the slots down to the legend."""

_MOST_LANES = 60
_MINUTE = 60.0
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One trial in one slot.

    Attributes:
        lane: Slot, from 0.
        start: Seconds since the beginning, pauses between runs left out.
        end: The same.
        phase: `search`, `report` or `probe`.
        is_pruned: Stopped early.
        cell: Id of its cell.
        about: What it is, in a few words.
        trial_id: Which it is.
    """

    lane: int
    start: float
    end: float
    phase: str
    is_pruned: bool
    cell: str
    about: str
    trial_id: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A figure of slots over time.

    Attributes:
        title: One line.
        bars: By slot and time.
        lanes: Names of the slots.
        seconds: Length of the figure.
        idle: Share of all slots' time in which no trial ran.
        cuts: Where a pause between two runs was left out.
        ends: Cell -> end of its last trial of a search.
        n_apart: Trials whose rows say no process; they are not drawn.
    """

    title: str
    bars: tuple[Bar, ...]
    lanes: tuple[str, ...]
    seconds: float
    idle: float
    cuts: tuple[float, ...]
    ends: Mapping[str, float]
    n_apart: int

    def csv(self) -> str:
        """One row a bar."""
        rows = [
            (self.lanes[b.lane], b.start, b.end, b.phase, int(b.is_pruned), b.cell, b.trial_id)
            for b in self.bars
        ]
        names = ("slot", "start_s", "end_s", "phase", "pruned", "cell", "trial_id")
        return style.to_csv(names, rows)


def timeline_data(trials: pa.Table) -> Timeline | None:
    """Lay trials out in the slots that they ran in.

    A slot is a worker process, and those that took its place one after the other. A time in which
    nothing ran at all, longer than any trial took, is a pause between two runs, and left out.

    Args:
        trials: Rows of `schema.TRIALS`.

    Returns:
        None when no row says in which process it was made.
    """
    rows = trials.select(list(_COLUMNS)).to_pylist()
    timed = [row for row in rows if row["pid"] is not None and row["started"] and row["finished"]]
    if not timed:
        return None
    timed.sort(key=lambda row: (row["started"], row["trial_id"]))
    spans = [(row["started"].timestamp(), row["finished"].timestamp()) for row in timed]
    pauses = _pauses(spans)
    origin: float = spans[0][0]

    def at(moment: float) -> float:
        cut = sum(end - begin for begin, end in pauses if end <= moment)
        return moment - origin - cut

    lane_of, names = _lanes(timed)
    bars = [
        Bar(
            lane_of[row["host"], row["pid"]],
            at(start),
            at(end),
            row["phase"] or "report",
            row["status"] == "pruned",
            row["cell"],
            " ".join(filter(None, (row["task"], row["source"], row["ablation"]))),
            row["trial_id"],
        )
        for row, (start, end) in zip(timed, spans, strict=True)
    ]
    bars.sort(key=lambda bar: (bar.lane, bar.start))
    seconds = max(bar.end for bar in bars)
    ends: dict[str, float] = {}
    for bar in bars:
        if bar.phase == "search":
            ends[bar.cell] = max(ends.get(bar.cell, 0.0), bar.end)
    idle = _idle(bars, len(names), seconds)
    return Timeline(
        f"{len(bars)} trials on {len(names)} slots: idle {100 * idle:.1f} % of the time",
        tuple(bars),
        names,
        seconds,
        idle,
        tuple(at(end) for _, end in pauses),
        ends,
        len(rows) - len(timed),
    )


def _pauses(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Times in which nothing ran, longer than the longest trial."""
    longest = max(end - start for start, end in spans)
    found = []
    reached = spans[0][1]
    for start, end in spans[1:]:
        if start - reached > longest:
            found.append((reached, start))
        reached = max(reached, end)
    return found


def _lanes(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[dict[tuple[str, int], int], tuple[str, ...]]:
    """Slot of each process: a process takes the first slot of its host that is free for good."""
    lives: dict[tuple[str, int], list[Any]] = {}
    for row in rows:
        life = lives.setdefault((row["host"], row["pid"]), [row["started"], row["finished"]])
        life[1] = max(life[1], row["finished"])
    lane_of: dict[tuple[str, int], int] = {}
    last: list[tuple[str, Any]] = []  # of each slot: its host, and when it becomes free
    for process, (start, end) in sorted(lives.items(), key=lambda item: (item[1][0], item[0])):
        free = (i for i, (host, until) in enumerate(last) if host == process[0] and until <= start)
        lane = next(free, len(last))
        if lane == len(last):
            last.append((process[0], end))
        last[lane] = process[0], end
        lane_of[process] = lane
    counts: Counter[str] = Counter()
    names = []
    for host, _ in last:
        counts[host] += 1
        names.append(f"{host} {counts[host]}")
    return lane_of, tuple(names)


def _idle(bars: Sequence[Bar], n_lanes: int, seconds: float) -> float:
    busy = 0.0
    for lane in range(n_lanes):
        reached = 0.0
        for bar in (b for b in bars if b.lane == lane):
            busy += max(0.0, bar.end - max(bar.start, reached))
            reached = max(reached, bar.end)
    return 1.0 - busy / (n_lanes * seconds) if seconds else 0.0


def draw_timeline(data: Timeline) -> Drawing:
    """One row a slot, one bar a trial; a mark above where a cell's search ended."""
    unit, scale = _unit(data.seconds)
    n_lanes = min(len(data.lanes), _MOST_LANES)
    tips: dict[str, str] = {}
    with style.canvas((7.2, 1.2 + _LANE * max(3, n_lanes))) as (figure, axes):
        for i, bar in enumerate(b for b in data.bars if b.lane < n_lanes):
            tips[f"tip-{i}"] = _about(bar)
            box = (bar.start / scale, bar.lane + 0.1), (bar.end - bar.start) / scale, 0.8
            axes.add_artist(_box(box, bar.phase, is_pruned=bar.is_pruned, gid=f"tip-{i}"))
        for end in data.ends.values():
            axes.plot([end / scale], [-0.35], **_MARK, clip_on=False)
        for cut in data.cuts:
            axes.axvline(cut / scale, color=style.INK, lw=0.8, ls=":")
        axes.set_xlim(0, data.seconds / scale * 1.005)
        axes.set_ylim(n_lanes, -0.8)
        axes.set_yticks([i + 0.5 for i in range(n_lanes)], data.lanes[:n_lanes], fontsize=6.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{unit}, pauses between runs left out" if data.cuts else unit)
        axes.legend(
            handles=list(_legend(data)),
            loc="upper left",
            bbox_to_anchor=(0, 0),
            bbox_transform=axes.transAxes
            + ScaledTranslation(0, -_BELOW, figure.dpi_scale_trans),  # however high the slots are
            ncols=5,
            frameon=False,
            fontsize=7,
            handlelength=1.4,
        )
    return Drawing(figure, tips)


_MARK: Mapping[str, Any] = {"marker": "v", "ms": 4.5, "lw": 0, "color": style.INK}


def _unit(seconds: float) -> tuple[str, float]:
    if seconds > 2 * _HOUR:
        return "hours", _HOUR
    return ("minutes", _MINUTE) if seconds > 2 * _MINUTE else ("seconds", 1.0)


def _about(bar: Bar) -> str:
    stopped = ", stopped early" if bar.is_pruned else ""
    return f"{bar.about}: {bar.phase}, {bar.end - bar.start:.0f} s{stopped}"


def _box(
    box: tuple[tuple[float, float], float, float],
    phase: str,
    *,
    is_pruned: bool = False,
    gid: str | None = None,
    label: str = "",
) -> Rectangle:
    return Rectangle(
        *box,
        facecolor=_COLOURS.get(phase, style.QUIET),
        edgecolor="white",
        lw=0.4,
        hatch="/////" if is_pruned else None,
        gid=gid,
        label=label,
    )


def _legend(data: Timeline) -> Iterator[Artist]:
    phases = {bar.phase for bar in data.bars}
    for phase in (*_COLOURS, *sorted(phases - _COLOURS.keys())):
        if phase in phases:
            yield _box(((0, 0), 1, 1), phase, label=phase)
    if any(bar.is_pruned for bar in data.bars):
        yield _box(((0, 0), 1, 1), "search", is_pruned=True, label="stopped early")
    if data.ends:
        yield Line2D([], [], **_MARK, label="the search of a cell has ended")
