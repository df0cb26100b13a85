"""A rehearsal as a picture: slots over time, drawn as those of a real sweep are."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from analysis.figures import style
from analysis.figures.timeline import Timeline, draw_timeline, timeline_data
from analysis.schema import TRIALS
from sweep.complaints import StudyError
from sweep.identity import cell_id
from sweep.simulate.executor import Account, Span

_START = datetime(2000, 1, 1, tzinfo=UTC)
_MOST_SLOTS = 60
_STATUS = {"done": "done", "pruned": "pruned"}


def timeline_of(account: Account) -> Timeline | None:
    """The first slots of a rehearsal over time; None when nothing ran.

    Args:
        account: Of a rehearsal that kept its spans.
    """
    slots = sorted({(span.node, span.slot) for span in account.spans})[:_MOST_SLOTS]
    shown = set(slots)
    rows = [_row(span) for span in account.spans if (span.node, span.slot) in shown]
    names = (
        *("trial_id", "cell", "task", "source", "ablation", "seed", "status", "phase"),
        *("host", "pid", "started", "finished"),
    )
    schema = pa.schema([TRIALS.field(name) for name in names])
    return timeline_data(pa.Table.from_pylist(rows, schema=schema))


def write_timeline(account: Account, path: Path) -> None:
    """Draw a rehearsal.

    Args:
        account: Of a rehearsal that kept its spans.
        path: Ends in `.png` or `.svg`.

    Raises:
        StudyError: it ends in something else, or cannot be written.
    """
    if path.suffix not in {".png", ".svg"}:
        raise StudyError(f"--timeline {path}: not a picture. Write a name that ends in .png.")
    data = timeline_of(account)
    if data is None:
        raise StudyError(f"--timeline {path}: nothing was left to run.")
    drawing = draw_timeline(data)
    try:
        if path.suffix == ".png":
            path.write_bytes(style.png(drawing))
        else:
            path.write_text(style.svg(drawing), "utf-8")
    except OSError as error:
        raise StudyError(f"--timeline {path}: {error.strerror}. Check the folder.") from None


def _row(span: Span) -> dict[str, object]:
    spec = span.job.spec
    return {
        "trial_id": span.job.trial_id,
        "cell": cell_id(spec),
        "task": spec.task,
        "source": spec.source,
        "ablation": spec.ablation,
        "seed": spec.seed,
        "status": _STATUS.get(span.status, "failed"),
        "phase": span.job.phase,
        "host": f"node {span.node}",
        "pid": span.slot,
        "started": _START + timedelta(seconds=span.began),
        "finished": _START + timedelta(seconds=span.ended),
    }
