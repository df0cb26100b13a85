"""The numbers of one trial as lines of text: its curve, its scores, its similarities."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from sweep.onetrial import OneTrial, Row
from sweep.sparkline import sparkline
from sweep.tracking_trial import family


def curve(trial: OneTrial) -> list[str]:
    """How it trained: the dev score and the loss over the epochs."""
    points = trial.curves
    if not points:
        return []
    dev, loss = [p["dev_value"] for p in points], [p["loss"] for p in points]
    best = (trial.main or {}).get("best_epoch")
    at = f", best in epoch {best}" if best else ""
    metric = f"{points[-1]['dev_metric']} on dev"
    width = max(len(metric), len("loss"))
    return [
        f"  {metric:<{width}}  {sparkline(dev)}  {dev[0]:.4f} -> {dev[-1]:.4f}{at}",
        f"  {'loss':<{width}}  {sparkline(loss)}  {loss[0]:.4f} -> {loss[-1]:.4f}",
    ]


def scores(trial: OneTrial, width: int) -> list[str]:
    """One row a test set, one column a metric; below, the mean of other languages and the gap.

    The items are those of the first metric; others may leave some out (punctuation, say).
    """
    rows = [row for row in trial.scores if row["split"] == "test"]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    sets = {row["treebank"]: row for row in rows}
    # Of a test set that was scored whole and cut short, the whole one is shown: it comes last.
    last = {(r["treebank"], r["metric"]): r for r in sorted(rows, key=lambda row: int(row["n"]))}
    value = {key: row["value"] for key, row in last.items()}
    if not rows:
        return []
    name = max(len("mean of others"), *map(len, sets))
    source = trial.attempts[-1]["source"]
    told = []
    for shown in _fitting(metrics, width - name - 12):
        columns = [max(len(metric), 6) for metric in shown]
        heads = "  ".join(f"{m:>{w}}" for m, w in zip(shown, columns, strict=True))
        told.append(f"  {'':<{name}}  {'items':>7}  {heads}")
        for code in sets:
            cells = [value.get((code, metric)) for metric in shown]
            items = next(last[code, metric]["n"] for metric in metrics if (code, metric) in last)
            told.append(f"  {code:<{name}}  {items:>7}  {_cells(cells, columns)}")
        others, gaps = zip(*(_transfer(sets, value, m, source) for m in shown), strict=True)
        if any(cell is not None for cell in others):
            told.append(f"  {'mean of others':<{name}}  {'':>7}  {_cells(others, columns)}")
        if any(cell is not None for cell in gaps):
            told.append(f"  {'gap':<{name}}  {'':>7}  {_cells(gaps, columns)}")
    return told


def _fitting(metrics: Sequence[str], width: int) -> Iterator[list[str]]:
    """The metrics, in groups that fit beside the names."""
    group: list[str] = []
    for metric in metrics:
        if group and sum(max(len(m), 6) + 2 for m in [*group, metric]) > width:
            yield group
            group = []
        group.append(metric)
    yield group


def _transfer(
    sets: Mapping[str, Row], value: Mapping[tuple[str, str], float], metric: str, source: str
) -> tuple[float | None, float | None]:
    """Mean over the test sets of other languages, and mean of source minus each (MLflow's too)."""
    here = {
        family(c): value[c, metric]
        for c, r in sets.items()
        if r["language"] == source and (c, metric) in value
    }
    other = {
        c: value[c, metric]
        for c, r in sets.items()
        if r["language"] != source and (c, metric) in value
    }
    gaps = [here[family(code)] - score for code, score in other.items() if family(code) in here]
    return (fmean(other.values()) if other else None), (fmean(gaps) if gaps else None)


def _cells(values: Sequence[float | None], widths: Sequence[int]) -> str:
    texts = ["-" if value is None else f"{value:.4f}" for value in values]
    return "  ".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))


def similarity(trial: OneTrial) -> Iterator[tuple[str, list[str]]]:
    """By state and measure: each pair of languages over the layers, and their mean."""
    groups: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in trial.similarity:
        pair = f"{row['source']}-{row['target']}"
        groups[row["state"], row["measure"]][pair][row["layer"]] = row["value"]
    for (state, measure), pairs in groups.items():
        layers = sorted({layer for values in pairs.values() for layer in values})
        means = {i: fmean(v[i] for v in pairs.values() if i in v) for i in layers}
        name = max(4, *map(len, pairs))
        body = [
            f"  {pair:<{name}}  {sparkline([v[i] for i in sorted(v)])}  {_profile(v)}"
            for pair, v in (*pairs.items(), *([("mean", means)] if len(pairs) > 1 else []))
        ]
        yield f"Similarity, {measure}, {state} (states {layers[0]} to {layers[-1]})", body


def _profile(values: Mapping[int, float]) -> str:
    ordered = [values[i] for i in sorted(values)]
    top = max(sorted(values), key=lambda i: values[i])
    return f"{ordered[0]:.3f} -> {ordered[-1]:.3f}, most in state {top}: {values[top]:.3f}"
