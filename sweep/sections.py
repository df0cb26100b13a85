"""The sections of a study file, as pydantic models: what keys there are, and what they may hold.

Numbers that a protocol may supply are optional here; `sweep.study` says what is still missing
after the protocol has spoken.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from sweep.complaints import closest
from sweep.space import Axis, Choices, Range
from trainables.registry import SIMILARITIES, TASKS
from trainables.spec import SimilarityRequest, State, Workspace

LANGUAGE = r"[a-z]{2,3}"
"""What a language code looks like; any other target is the code of a treebank."""

STEP = 0.125
"""Measured shares of a GPU are multiples of this: few sizes fill a card without gaps, and a warm
worker is used again only by trials of its own size."""

Item = TypeVar("Item")


class Section(BaseModel):
    """One `[section]`: frozen, no unknown keys, no silent conversion of types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _one_as_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{value!r} is named twice. Name it once.")
        seen.add(value)
    return values


def _known(kind: str, table: Mapping[str, str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in table:
            raise ValueError(f"unknown {kind}.{closest(name, sorted(table))}")
        return name

    return AfterValidator(check)


def _shaped(pattern: str, what: str) -> AfterValidator:
    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(what)
        return text

    return AfterValidator(check)


def _default(of: type, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
    """The default of a spec's field, so that it is written down once."""
    return next(field.default for field in fields(of) if field.name == name)


Several = Annotated[
    tuple[Item, ...],
    BeforeValidator(_one_as_many),
    AfterValidator(_distinct),
]
"""A list without repetition; a single string may stand for a list of one."""
TaskName = Annotated[str, _known("task", TASKS)]
Name = Annotated[
    str,
    _shaped(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "it becomes the name of a folder. Write letters, digits, '.', '_' and '-', at most 100, "
        "a letter or digit first.",
    ),
]
Language = Annotated[
    str,
    _shaped(
        LANGUAGE,
        "not a language code. Write it as UD does (en, zh, bxr).",
    ),
]
Code = Annotated[
    str,
    _shaped(
        r"[a-z][A-Za-z0-9_@:./{}-]*(\[[0-9]*:[0-9]*\])?",
        "neither a language (fr) nor a treebank (fr_gsd, fr@1.4) nor a data set (wikiann-fr). "
        "Write it as UD names its files.",
    ),
]
Naming = Annotated[
    str,
    _shaped(
        r"[A-Za-z0-9_@:./-]*\{lang\}[A-Za-z0-9_@:./{}-]*(\[[0-9]*:[0-9]*\])?",
        "not a treebank with a place for the language. Write it like {lang}_pud or wikiann-{lang}.",
    ),
]
Positive = Annotated[int, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]


class EncoderSection(Section):
    """Which pretrained encoder: a hub id or a local folder, and its revision on the hub."""

    model: Annotated[str, Field(min_length=1)]
    revision: Annotated[str, Field(min_length=1)] | None = None


class DataSection(Section):
    """Where treebanks lie, and what is trained on.

    Attributes:
        root: Folder that holds the files at any depth; empty: the variable XLING_DATA.
        sources: Source language -> its treebank.
        dev: Source language -> what the best epoch is selected on, where it is not the dev file
            of that treebank.
        train_limit: Train on the first so many sentences only.
        dev_limit: Select the best epoch on the first so many sentences of dev only.
    """

    root: str = ""
    sources: Mapping[Language, Code] = {}
    dev: Mapping[Language, Code] = {}
    train_limit: Positive | None = None
    dev_limit: Positive | None = None


class GridSection(Section):
    """The grid: every task x source x ablation is one cell."""

    task: Annotated[Several[TaskName], Field(min_length=1)]
    source: Annotated[Several[Language], Field(min_length=1)]
    ablation: Annotated[Several[str], Field(min_length=1)] = ("ref",)


class HyperSection(Section):
    """`trainables.spec.HyperParameters`; what is left out comes from the protocol or there."""

    learning_rate: Annotated[float, Field(gt=0)] | None = None
    batch_size: Positive | None = None
    epochs: Positive | None = None
    warmup: Fraction | None = None
    schedule: Literal["linear", "constant", "plateau"] | None = None
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    beta1: Decay | None = None
    beta2: Decay | None = None
    epsilon: Annotated[float, Field(gt=0)] | None = None
    clip_norm: Annotated[float, Field(ge=0)] | None = None


class OptionsSection(Section):
    """`trainables.spec.TrialOptions`, and the precision of training."""

    max_length: Annotated[int, Field(ge=8)] | None = None
    overlap: Annotated[int, Field(ge=0)] | None = None
    denominator: Literal["strict", "legacy"] | None = None
    head_dropout: Decay | None = None
    reinit: Literal["normal", "torch-default"] | None = None
    frozen_mode: Literal["eval", "train"] | None = None
    batching: Literal["bucketed", "random"] | None = None
    pool_special: bool | None = None
    select: str | None = None
    parser: Literal["first-align", "beto"] | None = None
    deprels: Literal["full", "coarse"] | None = None
    precision: Literal["fp32", "bf16", "fp16"] | None = None


class RangeSection(Section):
    """`{ low = 1e-5, high = 1e-3, log = true }`: all numbers between two, both included."""

    low: float
    high: float
    log: bool = False


Tried = tuple[int | float | str, ...] | RangeSection | None
"""What a search may try of one hyper-parameter: a list, a range; None where it is not searched."""


class SpaceSection(Section):
    """The keys of `[hyper]`, each with what a search may try of it."""

    learning_rate: Tried = None
    batch_size: Tried = None
    epochs: Tried = None
    warmup: Tried = None
    schedule: Tried = None
    weight_decay: Tried = None
    beta1: Tried = None
    beta2: Tried = None
    epsilon: Tried = None
    clip_norm: Tried = None

    @field_validator(*HyperSection.model_fields, mode="before")
    @classmethod
    def _tried(cls, value: object, info: ValidationInfo) -> object:
        name = str(info.field_name)
        if value is None or isinstance(value, RangeSection):
            return value
        if isinstance(value, Mapping):
            return _range(name, value)
        values = tuple(value) if isinstance(value, tuple | list) else (value,)
        if not values:
            raise ValueError("empty. Name at least one value.")
        for one in values:
            _as_hyper(name, one)
        return _distinct(values)

    def axes(self) -> dict[str, Axis]:
        """What is searched here, in the order of `[hyper]`."""
        found: dict[str, Axis] = {}
        for name in HyperSection.model_fields:
            tried = getattr(self, name)
            if isinstance(tried, RangeSection):
                found[name] = Range(tried.low, tried.high, tried.log, is_whole=name in _WHOLE)
            elif tried is not None:
                found[name] = Choices(tried)
        return found


_WHOLE = frozenset({"batch_size", "epochs"})


def _range(name: str, value: Mapping[str, object]) -> RangeSection:
    if name == "schedule":
        raise ValueError('a schedule has no range. Write a list: ["linear", "constant"].')
    try:
        found = RangeSection.model_validate(value)
    except ValidationError:
        raise ValueError(
            "not a range. Write { low = 1e-5, high = 1e-3, log = true }, or a list of values."
        ) from None
    if not found.low < found.high:
        raise ValueError("low must be below high.")
    if found.log and found.low <= 0:
        raise ValueError("a logarithmic range starts above 0.")
    for end in (found.low, found.high):
        _as_hyper(name, int(end) if name in _WHOLE and float(end).is_integer() else end)
    return found


def _as_hyper(name: str, value: object) -> None:
    """Refuse what `[hyper]` would not take."""
    try:
        HyperSection.model_validate({name: value})
    except ValidationError as error:
        what = error.errors(include_url=False)[0]["msg"]
        raise ValueError(f"{value!r} cannot be tried: {what[:1].lower()}{what[1:]}.") from None


class SearchSection(SpaceSection):
    """How hyper-parameters are chosen, beside what may be tried of each.

    Attributes:
        method: `none` takes those of `[hyper]` as they are; `grid` tries every point; `random`,
            `tpe` and `gp` (Gaussian process) try `trials` points.
        trials: Points to try; not for `grid`, which tries them all.
        scope: `cell`: every cell has its own search. `ref`: the reference is searched, and all
            ablations of its task and source take its winner (D-07).
        select: What the winner is best on: the source language's dev file.
        prune: Stop hopeless trials early: `asha` keeps the best `1 / reduction` at epochs `grace`,
            `grace * reduction` ...; `median` those no worse than the median. Trials of one search
            are compared with each other only.
        grace: Epochs that every trial gets.
        reduction: See `prune`.
        at_once: Most trials of one `tpe` or `gp` search that run at a time: each is proposed
            without the results of the others.
    """

    method: Literal["none", "grid", "random", "tpe", "gp"] = "none"
    trials: Positive | None = None
    scope: Literal["cell", "ref"] = "cell"
    select: Literal["source-dev"] = "source-dev"
    prune: Literal["off", "asha", "median"] = "off"
    grace: Positive = 1
    reduction: Annotated[int, Field(ge=2)] = 3
    at_once: Positive = 4

    @property
    def is_on(self) -> bool:
        """Hyper-parameters are searched."""
        return self.method != "none"


class UntilSection(Section):
    """When a difference has had seeds enough (`analysis.enough`).

    Attributes:
        half_width: The interval of a difference to the reference (its mean over the targets that
            are not the source) reaches no further than this to either side; a fraction.
        max: Most seeds, those of `report` among them.
        metric: Of which the difference is taken; None for what the best epoch is selected by.
        targets: Only these languages or test sets; empty for all.
    """

    half_width: Annotated[float, Field(gt=0, lt=1)]
    max: Annotated[int, Field(ge=2)]
    metric: str | None = None
    targets: Several[Code] = ()


class SeedsSection(Section):
    """Seeds of the trials that are reported, and of those that only search.

    Attributes:
        report: Seeds of every cell.
        search: Seed of the trials of a search.
        reuse_search: The winner's trial of the search counts among the reported ones, as
            `search` stands in `report`. It was picked for being good, so means come out a little
            too high.
        until: Add seeds after those of `report` where a difference is still uncertain.
    """

    report: Annotated[
        Several[Annotated[int, Field(ge=0, lt=2**63)]],
        Field(min_length=1),
    ]
    search: Annotated[int, Field(ge=0, lt=2**63)] = 0
    reuse_search: bool = False
    until: UntilSection | None = None


class TaskSection(Section):
    """`[tasks.upos]`: what holds for one task of the grid only.

    Attributes:
        sources: As `[data.sources]`.
        dev: As `[data.dev]`.
        naming: As in `[evaluate]`.
        targets: As in `[evaluate]`; empty for those there.
        hyper: As `[hyper]`.
        options: As `[options]`.
        search: What a search tries of each hyper-parameter, where it differs from `[search]`.
    """

    sources: Mapping[Language, Code] = {}
    dev: Mapping[Language, Code] = {}
    naming: Naming | None = None
    targets: Several[Code] = ()
    hyper: HyperSection = HyperSection()
    options: OptionsSection = OptionsSection()
    search: SpaceSection = SpaceSection()


class EvaluateSection(Section):
    """What trained models are tested on.

    Attributes:
        targets: Languages, to be put into `naming`, or names of data (`fr_gsd`, `wikiann-fr`).
        naming: Data of a target language, e.g. `{lang}_pud`.
        limit: Only the first so many sentences of each.
        sentences: Keep what each sentence adds to the score that trials are selected by, for
            intervals over sentences: about half a byte a sentence and trial.
        overlap: Count which of their subwords occur in training, and correlate that with scores.
    """

    targets: Annotated[Several[Code], Field(min_length=1)]
    naming: Naming | None = None
    limit: Positive | None = None
    sentences: bool = True
    overlap: bool = False


class SimilaritySection(Section):
    """Which parallel sentences are compared, in which states of the encoder, and how.

    Attributes:
        measures: Names in `trainables.registry.SIMILARITIES`.
        states: `pretrained` (one probe a study), `fine-tuned` (every trial); empty for none.
        pairs: `source`: each source with every language; `all`: every language with every other.
        languages: Empty: all sources and all languages of the targets.
        parallel: Treebank of a language's parallel sentences, e.g. `{lang}_pud`.
        null_draws: Shuffled pairings behind each null distribution.
        unmatched: Sentences that some language lacks: `refuse` the study, or `drop` them.
        limit: Only the first so many sentences of each file.
    """

    measures: Annotated[
        Several[Annotated[str, _known("similarity measure", SIMILARITIES)]],
        Field(min_length=1),
    ] = _default(SimilarityRequest, "measures")
    states: Several[State] = ("pretrained", "fine-tuned")
    pairs: Literal["source", "all"] = "source"
    languages: Several[Language] = ()
    parallel: Naming = "{lang}_pud"
    null_draws: Annotated[int, Field(ge=0)] = _default(SimilarityRequest, "null_draws")
    unmatched: Literal["refuse", "drop"] = _default(SimilarityRequest, "unmatched")
    limit: Positive | None = None


def _share(value: object) -> object:
    """A share of a GPU, or the word for a measured one."""
    if value == "auto":
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return value
    raise ValueError('not a share of one GPU. Write a number from 0 to 1, or "auto".')


class ResourcesSection(Section):
    """What one trial may use.

    Attributes:
        cpus: Cores; a fraction packs more trials than cores, each with one thread.
        gpus: Share of one GPU, the same for all trials; `auto` for what each kind of trial is
            measured to need.
        checkpoint_s: Seconds between two checkpoints of a trial: the most that a kill can lose.
    """

    cpus: Annotated[float, Field(gt=0)] = 1.0
    gpus: Annotated[float | Literal["auto"], BeforeValidator(_share)] = 0.0
    checkpoint_s: Annotated[float, Field(ge=0)] = _default(Workspace, "checkpoint_s")

    @property
    def least_gpus(self) -> float:
        """The smallest share of a GPU that a trial may get."""
        return STEP if self.gpus == "auto" else self.gpus

    @property
    def threads(self) -> int:
        """CPU threads of a trial: whole cores, at least one."""
        return max(1, int(self.cpus))


class TrackingSection(Section):
    """The MLflow window: empty `uri` means MLFLOW_TRACKING_URI, then a file in the store."""

    uri: str = ""
    enabled: bool = True
