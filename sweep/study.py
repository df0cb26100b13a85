"""A study: one question and its grid, as a TOML file says it (DESIGN §3), checked and frozen."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, PrivateAttr, ValidationError

from sweep.complaints import (
    StudyError,
    closest,
    dotted,
    looked_up,
    unknown_key,
    wrong_value,
)
from sweep.overrides import merge, override
from sweep.protocols import laid_below, read_protocol
from sweep.sections import (
    LANGUAGE,
    DataSection,
    EncoderSection,
    EvaluateSection,
    GridSection,
    HyperSection,
    Name,
    OptionsSection,
    ResourcesSection,
    SearchSection,
    Section,
    SeedsSection,
    SimilaritySection,
    TaskName,
    TaskSection,
    TrackingSection,
)
from sweep.space import Choices, Space
from sweep.studyfile import anchored, read_study_file, study_names
from trainables.data.sentence import DataError
from trainables.data.treebanks import language_of
from trainables.spec import HyperParameters, TrialOptions

__all__ = ["Study", "StudyError", "TaskSettings", "build_study", "load_study", "study_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What a study and its protocol say for one task of the grid.

    Attributes:
        sources: Source language -> its treebank.
        dev: Source language -> what the best epoch is selected on, where it is something else.
        naming: Treebank of a target language, with `{lang}`; empty if there is none.
        hyper: Hyper-parameters of every trial.
        options: Protocol options of every trial.
        precision: Numeric precision of training.
    """

    sources: Mapping[str, str]
    dev: Mapping[str, str]
    naming: str
    hyper: HyperParameters
    options: TrialOptions
    precision: Literal["fp32", "bf16", "fp16"]


class Study(Section):
    """One question: the whole study file, its protocol laid below, every default filled in."""

    name: Name
    protocol: str | None = None
    encoder: EncoderSection
    data: DataSection = DataSection()
    grid: GridSection
    hyper: HyperSection = HyperSection()
    options: OptionsSection = OptionsSection()
    tasks: Mapping[TaskName, TaskSection] = {}
    search: SearchSection = SearchSection()
    seeds: SeedsSection
    evaluate: EvaluateSection
    similarity: SimilaritySection | None = None
    resources: ResourcesSection = ResourcesSection()
    executor: Literal["local", "tune"] = "tune"
    storage: str = "results"
    tracking: TrackingSection = TrackingSection()
    keep: Literal["none", "best"] = "none"
    _file: str = PrivateAttr(default="study")

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's signature
        """Remember which file it was, for messages."""
        self._file = context["file"] if context else "study"

    @property
    def file(self) -> str:
        """The study file, as messages name it."""
        return self._file

    def settings(self, task: str) -> TaskSettings:
        """What holds for one task.

        Raises:
            StudyError: a hyper-parameter without a default is given nowhere, or two settings
                contradict each other.
        """
        own = self.tasks.get(task, TaskSection())
        hyper = _given(self.hyper) | _given(own.hyper)
        options = _given(self.options) | _given(own.options)
        hyper = dict(self.space(task).middle()) | hyper  # stands in where only the search says
        for key in ("learning_rate", "batch_size", "epochs"):
            if key not in hyper:
                raise StudyError(
                    f"{self._file}: hyper.{key}: missing, and no protocol supplies it for task "
                    f"'{task}'. Give it in [hyper]."
                )
        precision = options.pop("precision", "fp32")
        settings = TaskSettings(
            sources={**self.data.sources, **own.sources},
            dev={**self.data.dev, **own.dev},
            naming=own.naming or self.evaluate.naming or "",
            hyper=HyperParameters(**hyper),
            options=TrialOptions(**options),
            precision=precision,
        )
        longest = settings.options.max_length // 2
        if settings.options.overlap > longest:
            what = (
                f"more than half of max_length = {settings.options.max_length}. "
                f"Write at most {longest}."
            )
            raise StudyError(
                wrong_value(self._file, "options.overlap", settings.options.overlap, what)
            )
        return settings

    def space(self, task: str) -> Space:
        """What a search tries for one task; nothing when there is no search."""
        if not self.search.is_on:
            return Space({})
        own = self.tasks.get(task, TaskSection()).search
        return Space(self.search.axes() | own.axes())

    def target_codes(self, task: str) -> tuple[str, ...]:
        """Treebanks that a task's models are tested on, in the order of the study file.

        Raises:
            StudyError: a language is named, and nothing says which treebank it stands for.
        """
        naming = self.settings(task).naming
        codes = []
        for target in self.tasks.get(task, TaskSection()).targets or self.evaluate.targets:
            is_language = re.fullmatch(LANGUAGE, target) is not None
            if is_language and not naming:
                what = 'which treebank? Write a code (fr_gsd) or evaluate.naming = "{lang}_pud".'
                raise StudyError(wrong_value(self._file, "evaluate.targets", target, what))
            codes.append(naming.replace("{lang}", target) if is_language else target)
        return tuple(codes)

    def parallel_languages(self) -> tuple[str, ...]:
        """Languages whose parallel sentences are compared: the same set in every trial.

        With one set, the sentences that all languages share are the same everywhere.

        Raises:
            StudyError: a source is to be compared, and is not among them.
        """
        wanted = self.similarity
        if wanted is None or not wanted.states:
            return ()
        try:
            targets = [language_of(target) for target in self.evaluate.targets]
        except DataError as error:
            raise StudyError(f"{self._file}: evaluate.targets: {error}") from None
        languages = wanted.languages or tuple(dict.fromkeys([*self.grid.source, *targets]))
        absent = [source for source in self.grid.source if source not in languages]
        if absent and wanted.pairs == "source":
            what = f"source '{absent[0]}' is not among them. Add it, or write pairs = \"all\"."
            raise StudyError(
                wrong_value(self._file, "similarity.languages", wanted.languages, what)
            )
        return languages

    def source_code(self, task: str, source: str) -> str:
        """The treebank that a source language is trained on.

        Raises:
            StudyError: nothing says which.
        """
        sources = self.settings(task).sources
        if source not in sources:
            what = (
                f"no treebank to train '{task}' on.{closest(source, sources)} "
                f'Add {source} = "{source}_..." below [data.sources].'
            )
            raise StudyError(wrong_value(self._file, "grid.source", source, what))
        return sources[source]

    def dev_code(self, task: str, source: str) -> str:
        """What the best epoch is selected on."""
        return self.settings(task).dev.get(source) or self.source_code(task, source)


def _given(section: HyperSection | OptionsSection) -> dict[str, Any]:
    return section.model_dump(exclude_none=True)


def load_study(name_or_path: str, overrides: Sequence[str] = ()) -> Study:
    """Read and check a study file.

    Args:
        name_or_path: A study that ships (`first-align-small`), or the path of a file.
        overrides: `--set` texts: `grid.source=["en"]`. Relative paths in them start from the
            working directory, those in the file from the file's folder.

    Raises:
        StudyError: there is no such study, or something in it is wrong.
    """
    table, file = read_study_file(name_or_path)
    return build_study(merge(table, anchored(override(overrides), Path.cwd())), file)


def build_study(table: Mapping[str, Any], file: str = "study") -> Study:
    """Check a parsed study file and lay its protocol below it.

    Raises:
        StudyError: something in it is wrong; the message has one line for each thing.
    """
    table = dict(_with_tuples(table))
    try:
        _validated(table, file)  # in the study's own words, before the protocol moves any
    except ValidationError as error:
        told = _complaints(error, table, file, ignore="missing")
        if told:
            raise StudyError(told) from None
    protocol = table.get("protocol")
    try:
        below = {} if protocol is None else read_protocol(file, protocol)
    except ValueError as error:
        raise StudyError(str(error)) from None
    whole = _with_tuples(laid_below(below, table))
    try:
        study = _validated(whole, file)
    except ValidationError as error:
        raise StudyError(_complaints(error, whole, file)) from None
    study.parallel_languages()
    for task in study.grid.task:
        study.target_codes(task)
        for source in study.grid.source:
            study.source_code(task, source)
    _check_search(study)
    _check_seeds(study)
    return study


def _check_search(study: Study) -> None:
    """Refuse a search that cannot be run as it is written.

    Raises:
        StudyError: as said.
    """
    search, file = study.search, study.file
    if not search.is_on:
        return

    def refuse(key: str, value: object, what: str) -> None:
        raise StudyError(wrong_value(file, key, value, what))

    if search.method == "grid" and search.trials is not None:
        refuse("search.trials", search.trials, "a grid tries all its points. Leave it out.")
    if search.method != "grid" and search.trials is None:
        raise StudyError(
            f"{file}: search.trials: missing. Say how many points '{search.method}' tries: "
            "trials = 12."
        )
    for task in study.grid.task:
        axes = study.space(task).axes
        if not axes:
            what = f"nothing to try for task '{task}'. Write learning_rate = [1e-5, 5e-5]."
            refuse("search.method", search.method, what)
        for name, axis in axes.items():
            if search.method == "grid" and not isinstance(axis, Choices):
                what = "a grid needs a list of values. Write a list, or another method."
                refuse(f"search.{name}", axis.as_json(), what)


def _check_seeds(study: Study) -> None:
    """Refuse seeds that contradict each other.

    Raises:
        StudyError: as said.
    """
    seeds, file = study.seeds, study.file
    is_reported = seeds.search in seeds.report
    if study.search.is_on and is_reported != seeds.reuse_search:
        what = (
            f"also the seed of the search. Write another seeds.search than {list(seeds.report)}, "
            "or reuse_search = true."
            if is_reported
            else f"seeds.search = {seeds.search} is not among seeds.report. Add it there."
        )
        key = "seeds.report" if is_reported else "seeds.reuse_search"
        value = list(seeds.report) if is_reported else True
        raise StudyError(wrong_value(file, key, value, what))
    if seeds.until is None:
        return
    if len(seeds.report) < 2:  # noqa: PLR2004 - one value has no spread
        what = "a spread needs two seeds to begin with; better three."
        raise StudyError(wrong_value(file, "seeds.report", list(seeds.report), what))
    if seeds.until.max < len(seeds.report):
        what = f"below the {len(seeds.report)} of seeds.report."
        raise StudyError(wrong_value(file, "seeds.until.max", seeds.until.max, what))
    if "ref" not in study.grid.ablation:
        what = "a difference needs the reference. Add 'ref'."
        raise StudyError(wrong_value(file, "grid.ablation", list(study.grid.ablation), what))


def _with_tuples(value: Any) -> Any:  # noqa: ANN401 - parsed TOML
    """Parsed TOML with its lists frozen."""
    if isinstance(value, Mapping):
        return {key: _with_tuples(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_with_tuples(item) for item in value)
    return value


def _validated(table: Mapping[str, Any], file: str) -> Study:
    return Study.model_validate(table, context={"file": file})


def _complaints(
    error: ValidationError, table: Mapping[str, Any], file: str, ignore: str = ""
) -> str:
    """One line for each thing that pydantic found; empty if it found only what to ignore."""
    lines = []
    for found in error.errors(include_url=False, include_context=False):
        place, kind = found["loc"], found["type"]
        if place[-1:] == ("[key]",):  # a key is wrong, not its value
            place = place[:-1]
        if kind == ignore:
            continue
        key = dotted(place)
        if kind == "extra_forbidden":
            lines.append(unknown_key(file, key, _keys_beside(place), _homes(place)))
        elif kind == "missing":
            lines.append(f"{file}: {key}: missing. {_MISSING.get(key, 'Give it.')}")
        else:
            what = found["msg"].removeprefix("Value error, ")
            if kind == "too_short":
                what = "empty. Name at least one."
            mend = "" if what.endswith(".") else "."
            lines.append(wrong_value(file, key, looked_up(table, place), f"{what}{mend}"))
    return "\n".join(lines)


_MISSING: Mapping[str, str] = {
    "name": 'Give the study a name: name = "my-study".',
    "encoder": 'Write [encoder] and model = "..." (a hub id or a folder).',
    "encoder.model": "Write a hub id or a folder, or --set encoder.model=...",
    "seeds": "Write [seeds] and report = [1, 2, 3].",
    "evaluate": 'Write [evaluate] and targets = ["en", "fr"].',
    "grid": "Write [grid] with task, source and ablation.",
}


def _homes(place: Sequence[str | int]) -> list[str]:
    """Where a key that stands above all sections belongs: `hyper.epochs` for `epochs`."""
    if len(place) != 1:
        return []
    return [
        f"{name}.{place[0]}"
        for name, field in Study.model_fields.items()
        for section in _sections(field.annotation)
        if name != "tasks" and place[0] in section.model_fields
    ]


def _keys_beside(place: Sequence[str | int]) -> Iterator[str]:
    """Keys that the section of this place knows."""
    section: type[BaseModel] = Study
    for part in place[:-1]:
        if part in section.model_fields:
            section = next(_sections(section.model_fields[str(part)].annotation), section)
    yield from section.model_fields


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - a type, of any form
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _sections(part)
