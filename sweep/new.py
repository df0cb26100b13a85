"""A study file to start from, valid as it is written: `sweep plan` works on it at once."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sweep.cache import cache_folder
from sweep.complaints import StudyError, closest
from sweep.new_data import (
    TASKS,
    TREEBANK_TASKS,
    ParallelData,
    TaskData,
    found_data,
    parallel_data,
    usual_data,
)
from sweep.opened import open_study
from sweep.protocols import read_protocol
from sweep.study import Study, load_study
from trainables.encoders.fingerprint import EncoderError, encoder_ref
from trainables.registry import SHIPPED_DATA, SHIPPED_ENCODERS, load

BASE_LAYERS = 12
"""Blocks of an encoder that cannot be looked at now: those of every base model."""

TOY, LANGUAGE_OF_TOY = "toy", "qaa"
"""Encoder and data that ship, and their source language."""

USUAL_ENCODER = "bert-base-multilingual-cased"
"""Encoder of the papers."""

_PARTS = 6
_PROTOCOL = "first-align"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a new study is to ask.

    Attributes:
        encoder: A hub id, a folder, or an encoder that ships.
        data: Folder of the data; empty where there is none yet.
        tasks: What is learnt.
        sources: Languages that it is learnt in.
        targets: Languages that it is tested in; empty for all there are.
        n_seeds: Trials of a cell.
    """

    encoder: str
    data: str = ""
    tasks: tuple[str, ...] = ("upos",)
    sources: tuple[str, ...] = ("en",)
    targets: tuple[str, ...] = ()
    n_seeds: int = 3


def wish(
    encoder: str | None,
    data: str | None,
    tasks: Sequence[str],
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    n_seeds: int,
) -> Wish:
    """Fill in what was not said: what ships where nothing was, else the papers' encoder.

    Args:
        encoder: See `Wish`, as are the others; None where nothing was said.
        data: Folder of the data.
        tasks: What is learnt.
        sources: Languages that it is learnt in.
        targets: Languages that it is tested in.
        n_seeds: Trials of a cell.
    """
    own = tasks and not set(tasks) <= set(TREEBANK_TASKS)
    if not (encoder or data or sources or targets or own):
        encoder = data = TOY
    if encoder is None:
        encoder = TOY if data in SHIPPED_DATA else USUAL_ENCODER
    first = (LANGUAGE_OF_TOY,) if data in SHIPPED_DATA else ("en",)
    return Wish(
        encoder=encoder,
        data=data or "",
        tasks=tuple(dict.fromkeys(tasks or ["upos"])),
        sources=tuple(dict.fromkeys(sources or first)),
        targets=tuple(dict.fromkeys(targets)),
        n_seeds=n_seeds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudy:
    """What was written.

    Attributes:
        path: The file.
        study: As it is read back.
        notes: What could not be looked at.
    """

    path: Path
    study: Study
    notes: tuple[str, ...]


def write_study(name: str, wish: Wish) -> NewStudy:
    """Write a study file, checked before it appears under its name.

    Args:
        name: Name of the study, or path of its file.
        wish: What it is to ask.

    Returns:
        The file, which `load_study` has read; with data, its files were found too.

    Raises:
        StudyError: there is such a file already, or something of the wish is not to be had.
            Nothing was written.
    """
    path = Path(name if name.endswith(".toml") else f"{name}.toml").expanduser()
    if path.exists():
        raise StudyError(f"{path}: exists already. Choose another name, or remove it first.")
    if not path.parent.is_dir():
        raise StudyError(f"{path}: no folder {path.parent}. Make it first (mkdir -p).")
    for task in wish.tasks:
        if task not in TASKS:
            own = " It has a study file of its own: sweep plan langid." if task == "langid" else ""
            raise StudyError(f"task '{task}': unknown here.{own}{closest(task, TASKS)}")
    n_layers, notes = _layers(wish)
    text = compose(path.stem, path.parent, wish, n_layers)
    aside = path.with_name(f".{path.name}.{os.getpid()}.toml")
    aside.write_text(text, encoding="utf-8")
    try:
        study = load_study(str(aside))
        if wish.data and not notes:
            open_study(study)
        os.link(aside, path)  # fails where somebody was quicker
    except FileExistsError:
        raise StudyError(f"{path}: exists already. Choose another name.") from None
    except StudyError as error:
        raise StudyError(str(error).replace(aside.name, path.name)) from None
    finally:
        aside.unlink()
    return NewStudy(path=path, study=load_study(str(path)), notes=tuple(notes))


def next_steps(new: NewStudy) -> list[str]:
    """What was written, and what to type next."""
    grid = new.study.grid
    n_cells = len(grid.task) * len(grid.source) * len(grid.ablation)
    n_trials = n_cells * len(new.study.seeds.report)
    told = [f"Wrote {new.path}: {n_cells} cells, {n_trials} trainings."]
    if new.study.data.root:
        return [*told, f"Next: sweep plan {new.path}"]
    return [
        *told,
        f"Next: sweep plan {new.path} --counts",
        f"      sweep data get --study {new.path} --to data",
        f"      sweep plan {new.path} --set data.root=data",
    ]


def _layers(wish: Wish) -> tuple[int, list[str]]:
    """How many blocks the encoder has; a guess, said so, where it cannot be reached now."""
    try:
        return encoder_ref(wish.encoder).n_layers, []
    except EncoderError as error:
        if Path(wish.encoder).expanduser().exists() or wish.encoder.startswith((".", "/", "~")):
            raise StudyError(str(error)) from None
        note = f"{error} The ablations take it to have {BASE_LAYERS} layers."
        return BASE_LAYERS, [note]


def compose(name: str, folder: Path, wish: Wish, n_layers: int) -> str:
    """The text of the file.

    Args:
        name: Name of the study.
        folder: Where the file will lie: relative paths start there.
        wish: What it is to ask.
        n_layers: Blocks of the encoder.

    Raises:
        StudyError: the data folder does not hold what is wished.
    """
    root = _root(wish)
    data = {
        task: usual_data(task, wish.sources, wish.targets)
        if root is None
        else found_data(root, task, wish.sources, wish.targets)
        for task in wish.tasks
    }
    one = next(iter(data.values())) if len(data) == 1 else None
    return "\n".join(
        [
            _head(name, wish),
            _encoder(folder, wish),
            _data(folder, wish, one),
            _grid(wish, n_layers),
            *([] if one else [_task(wish, task, its) for task, its in data.items()]),
            *([_hyper(wish, wish.tasks[0], "hyper")] if one else []),
            _SEARCH,
            _seeds(wish),
            _evaluate(next(iter(data.values())), is_only=bool(one)),
            _similarity(parallel_data(root, data)),
            _RESOURCES,
        ]
    )


def _root(wish: Wish) -> Path | None:
    """The folder to look into; None where there is none yet.

    Raises:
        StudyError: there is no such folder.
    """
    if not wish.data:
        return None
    if wish.data in SHIPPED_DATA:
        made: Path = load("data set", wish.data, SHIPPED_DATA)(Path(cache_folder()))
        return made
    root = Path(wish.data).expanduser()
    if not root.is_dir():
        raise StudyError(f"data folder {wish.data}: no such folder. Check the path.")
    return root


def _head(name: str, wish: Wish) -> str:
    what = f"{_and(wish.tasks)} from {_and(wish.sources)}"
    return f"""\
# Question: which layers of {wish.encoder} carry the transfer of
#   {what}?
# Expect: (what do you expect? Write it down before you look.)
# Run: sweep plan {name}.toml, then sweep run {name}.toml, then sweep report {name}.toml
# Any key can be overridden for one run: --set 'seeds.report=[1,2]'.

name = {_toml(name)}
protocol = "{_PROTOCOL}"    # optimiser, scorer and data handling of Muller et al. (2021)
# executor = "local"        # processes of this machine, without Ray
# storage = "results"       # of what is measured: a folder, or s3://bucket/results
# keep = "best"             # keep weights, so that a new target language trains nothing
"""


def _encoder(folder: Path, wish: Wish) -> str:
    model = wish.encoder
    if model not in SHIPPED_ENCODERS and Path(model).expanduser().is_dir():
        model = _relative(Path(model).expanduser(), folder)
    return f"""\
[encoder]               # a hub id, or ./folder with config.json, *.safetensors, tokenizer.json
model = {_toml(model)}
"""


def _data(folder: Path, wish: Wish, one: TaskData | None) -> str:
    limit = "train_limit = 300" if wish.encoder in SHIPPED_ENCODERS else "# train_limit = 2000"
    root = '# root = "data"         # files may lie at any depth; else the variable XLING_DATA'
    if wish.data in SHIPPED_DATA:
        root = f"root = {_toml(wish.data)}            # invented languages, written on first use"
    elif wish.data:
        root = f"root = {_toml(_relative(Path(wish.data).expanduser(), folder))}"
    return f"""\
[data]
{root}
{_sources(one) if one else ""}{limit}    # train on the first so many sentences only
"""


def _sources(data: TaskData) -> str:
    """What a source is trained on, as `[data]` and `[tasks.x]` say it."""
    listed = ", ".join(f"{lang} = {_toml(code)}" for lang, code in data.sources.items())
    return f"sources = {{ {listed} }}    # train file; best epoch by dev file\n"


def _grid(wish: Wish, n_layers: int) -> str:
    listed = "".join(f"    {_toml(name)},\n" for name in ("ref", *_pieces(n_layers)))
    return f"""\
[grid]                  # every task x source x ablation is a cell
task = {_toml(wish.tasks)}
source = {_toml(wish.sources)}
ablation = [            # also "freeze:3", "all" (from scratch), "reinit:1+freeze:2"
{listed}]
"""


def _pieces(n_layers: int) -> list[str]:
    """Re-initialise the encoder piece by piece: about six pieces, at least a layer each."""
    size = max(1, round(n_layers / _PARTS))
    starts = range(1, n_layers + 1, size)
    return [
        f"reinit:{start}" if end == start else f"reinit:{start}-{end}"
        for start in starts
        for end in [min(start + size - 1, n_layers)]
    ]


def _task(wish: Wish, task: str, data: TaskData) -> str:
    hyper = _hyper(wish, task, f"tasks.{task}.hyper")
    return f"[tasks.{task}]\n{_sources(data)}{_targets(data)}\n{hyper}"


def _targets(data: TaskData) -> str:
    naming = f"naming = {_toml(data.naming)}    # test data of a target language\n"
    return f"{naming if data.naming else ''}targets = {_toml(data.targets)}\n"


def _hyper(wish: Wish, task: str, section: str) -> str:
    """The protocol's hyper-parameters, to be changed; usual ones for tasks that it leaves out."""
    if wish.encoder in SHIPPED_ENCODERS:
        return f"[{section}]    # they suit the tiny encoder\n{_TINY_HYPER}"
    tasks = read_protocol("", _PROTOCOL)["tasks"]
    if task in tasks:
        known = tasks[task]["hyper"].items()
        listed = "".join(f"# {key} = {_number(value)}\n" for key, value in known)
        return f"[{section}]    # the protocol's own; small encoders want a larger rate\n{listed}"
    return f"[{section}]\nlearning_rate = 3e-5\nbatch_size = 32\nepochs = 4\n"


_TINY_HYPER = "learning_rate = 1e-3\nbatch_size = 16\nepochs = 4\n"


def _seeds(wish: Wish) -> str:
    seeds = ", ".join(str(seed) for seed in range(1, wish.n_seeds + 1))
    return f"""\
[seeds]                 # another one later computes just that one
report = [{seeds}]
"""


def _evaluate(data: TaskData, *, is_only: bool) -> str:
    targets = _targets(data) if is_only else f"targets = {_toml(data.targets)}    # see above\n"
    return f"""\
[evaluate]
{targets}# limit = 500           # only the first so many sentences of each
"""


def _similarity(parallel: ParallelData) -> str:
    if len(parallel.languages) < 2:  # noqa: PLR2004 - a pair
        return """\
[similarity]            # no parallel treebanks of the source and another: none to compare
states = []
"""
    return f"""\
[similarity]            # of parallel sentences, in every layer
measures = ["linear-cka"]    # also debiased-cka, rbf-cka, uncentred-cka, cosine
parallel = {_toml(parallel.naming)}
languages = {_toml(parallel.languages)}
"""


_SEARCH = """\
# [search]              # of hyper-parameters; the reference's winner serves all its ablations
# method = "tpe"        # grid | random | tpe | gp
# trials = 8
# scope = "ref"         # or "cell": a search in each cell
# learning_rate = { low = 1e-5, high = 1e-3, log = true }
# batch_size = [16, 32]
"""

_RESOURCES = """\
[resources]             # of one trial
cpus = 1.0
gpus = 0.0              # a share of one GPU, e.g. 0.25
"""


def _relative(path: Path, folder: Path) -> str:
    """A path as the file writes it: below or beside its folder, else absolute."""
    absolute = path.resolve()
    try:
        below = absolute.relative_to(folder.resolve())
    except ValueError:
        return str(absolute)
    return f"./{below}"


def _toml(value: str | Sequence[str]) -> str:
    """A text or a list of texts as TOML, which writes them as JSON does."""
    if isinstance(value, str):
        # JSON escapes a letter outside the basic plane in two halves, which TOML refuses.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_toml, value))}]"


def _number(value: object) -> str:
    return re.sub(r"e-0(\d)", r"e-\1", f"{value:g}") if isinstance(value, float) else str(value)


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
