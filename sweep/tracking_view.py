"""What MLflow shows of a whole study: the text on its page and a saved view of its runs; pure."""

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

VIEW_KEY = "xling-results"
"""Names the view in the address: `.../runs?viewStateShareKey=xling-results`."""

_PARTS = ("source", "targets", "gap")

Run = tuple[Mapping[str, str], Mapping[str, float]]
"""Tags and last metrics of one trial's run."""


def results_view(runs: Iterable[Run]) -> str:
    """Save a view: one flat list of trials with scores, gap and similarity, largest gap first.

    Without it MLflow shows a closed tree and no metric at all. The form is what MLflow 3.17 writes
    itself for *Views > Save as new view*: JSON, deflated, in an experiment tag. Another version
    that reads it otherwise falls back to its own view.
    """
    keys = {key for _, metrics in runs for key in metrics}
    names = metrics_of(keys)
    columns = [f"{name}/{part}" for name in names for part in ("dev", *_PARTS)]
    columns += sorted(key for key in keys if key.endswith("/overall"))
    sort = f"metrics.`{names[0]}/gap`" if names else "attributes.start_time"
    state = {
        "searchFilter": "",
        "orderByKey": sort,
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": ["tags.`status`", *(f"metrics.`{key}`" for key in columns)],
        "columnOrder": [],
        "columnWidths": {},
        "runsHiddenMode": "FIRST_20_RUNS",
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "globalLineChartConfig": {
            "xAxisKey": "step",
            "lineSmoothness": 0,
            "selectedXAxisMetricKey": "",
        },
    }
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    view = {"name": "Results", "createdAt": 0, "updatedAt": 0, "state": f"deflate;{packed}"}
    return json.dumps(view)


def experiment_note(experiment: str, parent: str, note: str) -> str:
    """Head the list of runs: the counts, links to the view and the study's page, the means."""
    first, _, rest = note.partition("\n")
    return (
        f"{first} [Results](#/experiments/{experiment}/runs?viewStateShareKey={VIEW_KEY}) · "
        f"[Means over seeds](#/experiments/{experiment}/runs/{parent})\n{rest}"
    )


def metrics_of(keys: Iterable[str]) -> list[str]:
    """Names of the metrics that have a gap: `accuracy` for `accuracy/gap`."""
    return sorted(key.removesuffix("/gap") for key in keys if re.fullmatch(r"[^/]+/gap", key))


def study_note(study: str, runs: Iterable[Run]) -> str:
    """Write the study's page: how many trials ended how, and a line per cell.

    Args:
        study: Its name.
        runs: Tags and last metrics of every trial's run.

    Returns:
        Markdown, scores as fractions, means over the seeds that are done.
    """
    status: dict[str, int] = defaultdict(int)
    cells: dict[tuple[str, ...], list[Mapping[str, float]]] = defaultdict(list)
    for tags, metrics in runs:
        status[tags.get("status", "unknown")] += 1
        if tags.get("status") == "done" and tags.get("task") != "probe":
            cells[tuple(tags.get(k, "") for k in ("task", "source", "ablation"))].append(metrics)
    lines = [f"{status[name]} {name}" for name in sorted(status)]
    text = f"Study `{study}`: {', '.join(lines) or 'no trials yet'}.\n"
    if cells:
        text += "\n| task | source | ablation | trials | metric | source | targets | gap |\n"
        text += "|---|---|---|---|---|---|---|---|\n"
    for cell, runs_of_cell in sorted(cells.items(), key=lambda item: _natural(item[0])):
        for metric in metrics_of({key for metrics in runs_of_cell for key in metrics}):
            means = [_mean(runs_of_cell, f"{metric}/{part}") for part in _PARTS]
            text += f"| {' | '.join(cell)} | {len(runs_of_cell)} | {metric} | "
            text += " | ".join(means) + " |\n"
    return text


def _mean(runs: Sequence[Mapping[str, float]], key: str) -> str:
    values = [metrics[key] for metrics in runs if key in metrics]
    return f"{fmean(values):.4f}" if values else ""


def _natural(cell: tuple[str, ...]) -> tuple[Any, ...]:
    """Order `ref` first and `reinit:11-12` after `reinit:9-10`."""
    task, source, ablation = cell
    numbers = [int(n) for n in re.findall(r"\d+", ablation)]
    return (task, source, ablation != "ref", re.sub(r"\d+", "", ablation), numbers)
