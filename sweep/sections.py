"""The sections of a study file, as pydantic models: what keys there are, and what they may hold.

Numbers that a protocol may supply are optional here; `sweep.study` says what is still missing
after the protocol has spoken.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from sweep.complaints import closest
from trainables.registry import SIMILARITIES, TASKS
from trainables.spec import SimilarityRequest, State

LANGUAGE = r"[a-z]{2,3}"
"""What a language code looks like; any other target is the code of a treebank."""

Item = TypeVar("Item")


class Section(BaseModel):
    """One `[section]`: frozen, no unknown keys, no silent conversion of types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _one_as_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise ValueError(f"{value!r} is named twice. Name it once.")
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
    head_dropout: Decay | None = None
    reinit: Literal["normal", "torch-default"] | None = None
    frozen_mode: Literal["eval", "train"] | None = None
    batching: Literal["bucketed", "random"] | None = None
    pool_special: bool | None = None
    select: str | None = None
    parser: Literal["first-align", "beto"] | None = None
    deprels: Literal["full", "coarse"] | None = None
    precision: Literal["fp32", "bf16", "fp16"] | None = None


class TaskSection(Section):
    """`[tasks.upos]`: what holds for one task of the grid only.

    Attributes:
        sources: As `[data.sources]`.
        dev: As `[data.dev]`.
        naming: As in `[evaluate]`.
        targets: As in `[evaluate]`; empty for those there.
        hyper: As `[hyper]`.
        options: As `[options]`.
    """

    sources: Mapping[Language, Code] = {}
    dev: Mapping[Language, Code] = {}
    naming: Naming | None = None
    targets: Several[Code] = ()
    hyper: HyperSection = HyperSection()
    options: OptionsSection = OptionsSection()


class SearchSection(Section):
    """How hyper-parameters are chosen: `none` takes those of `[hyper]` as they are."""

    method: Literal["none"] = "none"


class SeedsSection(Section):
    """Seeds of the trials that are reported."""

    report: Annotated[
        Several[Annotated[int, Field(ge=0, lt=2**63)]],
        Field(min_length=1),
    ]


class EvaluateSection(Section):
    """What trained models are tested on.

    Attributes:
        targets: Languages, to be put into `naming`, or names of data (`fr_gsd`, `wikiann-fr`).
        naming: Data of a target language, e.g. `{lang}_pud`.
        limit: Only the first so many sentences of each.
        sentences: Keep what each sentence adds to the score that trials are selected by, for
            intervals over sentences: about half a byte a sentence and trial.
    """

    targets: Annotated[Several[Code], Field(min_length=1)]
    naming: Naming | None = None
    limit: Positive | None = None
    sentences: bool = True


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


class ResourcesSection(Section):
    """What one trial may use.

    Attributes:
        cpus: Cores; a fraction packs more trials than cores, each with one thread.
        gpus: Share of one GPU.
    """

    cpus: Annotated[float, Field(gt=0)] = 1.0
    gpus: Fraction = 0.0

    @property
    def threads(self) -> int:
        """CPU threads of a trial: whole cores, at least one."""
        return max(1, int(self.cpus))


class TrackingSection(Section):
    """The MLflow window: empty `uri` means MLFLOW_TRACKING_URI, then a file in the store."""

    uri: str = ""
    enabled: bool = True
