"""Curves over layers: similarity to the source, by ablation or by target; correlation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from analysis import labels
from analysis.evidence import Alignment
from analysis.figures import style
from analysis.figures.style import Drawing
from analysis.profiles import FINE_TUNED, PRETRAINED, Profile

ROOM = 18
"""Labels that fit beside a figure."""

_End = tuple[float, float, str, Any]
"""Where a line ends, what it is called, its colour."""

Kind = Literal["reference", "pretrained", "other"]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line.

    Attributes:
        key: What it is, in the CSV.
        label: What it is, in the figure.
        kind: How it is drawn.
        values: One a layer; NaN leaves a hole.
    """

    key: str
    label: str
    kind: Kind
    values: Float[np.ndarray, " l"]


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure of lines over layers.

    Attributes:
        title: One line.
        y_label: What is measured.
        layers: State indices, 0 = embeddings.
        lines: In the order of colours, dark to light.
        null: Mean and 95 % quantile over shuffled pairings; None for no band.
        y_limits: The whole range of what is measured; None for that of the lines.
    """

    title: str
    y_label: str
    layers: tuple[int, ...]
    lines: tuple[Curve, ...]
    null: Float[np.ndarray, "2 l"] | None = None
    y_limits: tuple[float, float] | None = None

    def csv(self) -> str:
        """One row a line and layer."""
        rows = [
            (line.key, layer, value)
            for line in self.lines
            for layer, value in zip(self.layers, line.values, strict=True)
        ]
        if self.null is not None:
            for name, values in zip(("null mean", "null 95 %"), self.null, strict=True):
                rows += [(name, layer, v) for layer, v in zip(self.layers, values, strict=True)]
        return style.to_csv(("line", "layer", "value"), rows)


def by_ablation_data(profile: Profile, source: str) -> Curves:
    """Mean over targets: one line an ablation, and the pretrained encoder."""
    seed_means = profile.mean()
    lines = [
        Curve(name, labels.ablation_column(name), _kind(name), _over_targets(seed_means[a]))
        for a, name in enumerate(profile.lineup.ablations)
    ]
    if not np.isnan(profile.pretrained).all():
        before = _over_targets(profile.pretrained)
        lines.append(Curve("pretrained", "pretrained", "pretrained", before))
    n = len(profile.targets)
    whose = f"mean of {n} languages" if n > 1 else labels.language(profile.targets[0])
    return Curves(
        f"Similarity to {labels.language(source)} by layer, {whose}",
        labels.measure(profile.measure),
        profile.layers,
        _drawn(lines),
        _band(profile),
    )


def by_target_data(
    profile: Profile,
    source: str,
    scores: Sequence[tuple[str, float]],
    models: str = labels.REFERENCE,
) -> Curves | None:
    """One line a target, best transfer first.

    Args:
        profile: Similarities.
        source: Language of the training data.
        scores: (target, transfer score); a target without one comes last.
        models: An ablation, or `profiles.PRETRAINED`.

    Returns:
        None when these models have no similarities.
    """
    if models == PRETRAINED:
        means = profile.pretrained
    elif models in profile.lineup.ablations:
        means = profile.mean()[profile.lineup.ablations.index(models)]
    else:
        return None
    if np.isnan(means).all():
        return None
    score_of = dict(scores)
    said = "reference" if models == labels.REFERENCE else labels.ablation_column(models)
    of_null = _band(profile) if models == labels.REFERENCE else None  # shuffled for it alone
    order = sorted(
        range(len(profile.targets)),
        key=lambda t: (-np.nan_to_num(score_of.get(profile.targets[t], -1.0), nan=-1.0), t),
    )
    lines = [
        Curve(profile.targets[t], labels.language(profile.targets[t]), "other", means[t])
        for t in order
    ]
    return Curves(
        f"Similarity to {labels.language(source)} by layer, {said}; dark = best transfer",
        labels.measure(profile.measure),
        profile.layers,
        _drawn(lines),
        of_null,
    )


def correlation_data(alignment: Alignment) -> Curves:
    """Rho of similarity and transfer in every layer, one line a state."""
    lines = [
        Curve(state, state, "reference" if state == FINE_TUNED else "pretrained", values)
        for state, values in alignment.layers.items()
    ]
    return Curves(
        f"Similarity against transfer by layer, {len(alignment.targets)} languages",
        "Spearman's rho(score, similarity)",
        alignment.profile.layers,
        _drawn(lines),
        y_limits=(-1.05, 1.05),
    )


def draw_curves(data: Curves) -> Drawing:
    """Lines over layers, each named at its end."""
    tips: dict[str, str] = {}
    ends: list[_End] = []
    end = float(data.layers[-1])
    others = [line for line in data.lines if line.kind == "other"]
    colours = dict(zip([line.key for line in others], style.ramp(len(others)), strict=True))
    everything = np.concatenate([line.values for line in data.lines] or [np.zeros(1)])
    if data.null is not None:
        everything = np.concatenate([everything, data.null.ravel()])
    low, high = data.y_limits or style.limits(everything)
    with style.canvas() as (figure, axes):
        if data.null is not None:
            axes.fill_between(data.layers, *data.null, color=style.BAND, linewidth=0, zorder=1)
            axes.plot(data.layers, data.null[0], color=style.QUIET, linewidth=0.8, zorder=1)
            ends.append((end, float(data.null[0][-1]), "chance", style.QUIET))
        for i, line in enumerate(data.lines):
            colour = colours.get(line.key, style.REFERENCE)
            axes.plot(
                data.layers,
                line.values,
                color=colour,
                linewidth=1.2 if line.kind == "other" else 2.0,
                linestyle=(0, (4, 2)) if line.kind == "pretrained" else "-",
                zorder=2 if line.kind == "other" else 3,
                gid=f"tip-{i}",
            )
            tips[f"tip-{i}"] = _tip(data, line)
            seen = np.flatnonzero(~np.isnan(line.values))
            ends.append((end, float(line.values[seen[-1]]), line.label, colour))
        style.label_ends(axes, _few(ends), least=(high - low) * 0.048, bold="REF")
        axes.set_ylim(low, high)
        axes.set_xlim(data.layers[0], data.layers[-1])
        axes.set_xticks(data.layers[:: 1 if len(data.layers) < 15 else 2])  # noqa: PLR2004 - room
        axes.set_xlabel("layer (0 = embeddings)")
        axes.set_ylabel(data.y_label)
    return Drawing(figure, tips)


def _few(ends: list[_End]) -> list[_End]:
    """Labels that there is room for: of many lines those that end farthest from the middle."""
    if len(ends) <= ROOM:
        return ends
    named = [end for end in ends if end[3] in {style.REFERENCE, style.QUIET}]
    middle = float(np.median([end[1] for end in ends]))
    rest = sorted((end for end in ends if end not in named), key=lambda e: -abs(e[1] - middle))
    return named + rest[: ROOM - len(named)]


def _tip(data: Curves, line: Curve) -> str:
    values = zip(data.layers, line.values, strict=True)
    return f"{line.label}: " + ", ".join(f"{layer}: {value:.2f}" for layer, value in values)


def _kind(ablation: str) -> Kind:
    return "reference" if ablation == labels.REFERENCE else "other"


def _drawn(lines: Sequence[Curve]) -> tuple[Curve, ...]:
    return tuple(line for line in lines if not np.isnan(line.values).all())


def _band(profile: Profile) -> Float[np.ndarray, "2 l"] | None:
    band = np.stack([_over_targets(side) for side in profile.null])
    return None if np.isnan(band).any() else band


def _over_targets(values: Float[np.ndarray, "t l"]) -> Float[np.ndarray, " l"]:
    """Mean over targets; NaN unless all of them are there."""
    return np.asarray(values.mean(axis=0))
