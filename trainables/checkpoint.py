"""Save and restore a trial exactly: mid-trial states and the best epoch's weights.

Files lie under the trial id, not under an executor's run, so any later driver, executor or machine
finds them. safetensors only; a torn or foreign file is noticed, reported and passed over. Writing
happens on a thread of its own, from a copy, so the loop does not wait for the disk.
"""

import dataclasses
import hashlib
import json
import logging
import os
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from trainables.identity import identity
from trainables.spec import CurvePoint, TrialSpec
from trainables.training import Progress, Scores, Training

FORMAT = "xling-sweep-1"
KEPT = "best.safetensors"
N_STATES = 2
"""Mid-trial states left on disk: the newest and, should that be torn, the one before."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """The best epoch of a finished training, as `best.safetensors` holds it.

    Attributes:
        weights: Trainable parameters by name, with the compact input embedding as it was trained.
        table_ids: Piece ids of the rows of that embedding; empty when it was not compact.
        labels: Label inventory of the head.
        best_epoch: 1-based.
        best_scores: Dev scores of that epoch.
        curve: The whole training curve.
    """

    weights: Mapping[str, Tensor]
    table_ids: Tensor
    labels: tuple[str, ...]
    best_epoch: int
    best_scores: Scores
    curve: tuple[CurvePoint, ...]


class Checkpoints:
    """The checkpoint folder of one trial."""

    def __init__(
        self,
        folder: str,
        spec: TrialSpec,
        *,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the folder; it need not exist.

        Args:
            folder: Local path or URI of `pyarrow.fs`.
            spec: Files of another spec are foreign.
            interval_s: Least seconds between two mid-trial states.
            clock: Seconds; replaced in tests.
        """
        if "://" in folder:
            self._fs, self._root = pa.fs.FileSystem.from_uri(folder)
        else:
            self._fs, self._root = pa.fs.LocalFileSystem(), str(Path(folder).absolute())
        self._mark = mark(spec)
        self._interval_s, self._clock = interval_s, clock
        self._last = clock()
        self._writer: threading.Thread | None = None

    def save_if_due(self, training: Training) -> None:
        """Write a mid-trial state if the interval has passed and the last write is through."""
        if self._clock() - self._last < self._interval_s:
            return
        if self._writer is not None and self._writer.is_alive():
            return
        self.save(training)

    def save(self, training: Training) -> None:
        """Copy the state of `training` and write it in the background."""
        self.wait()
        tensors, about = _snapshot(training)
        name = f"step-{training.progress.step:09d}.safetensors"
        self._last = self._clock()
        self._writer = threading.Thread(
            target=self._write_state, args=(name, tensors, about), name="checkpoint", daemon=True
        )
        self._writer.start()

    def wait(self) -> None:
        """Wait for the write under way, if any."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def restore(self, training: Training) -> bool:
        """Bring `training` to the newest state that is whole and its own; False if none is."""
        for name in reversed(self._states()):
            read = self._read(name)
            if read is None:
                continue
            if _fits(training, read[0]):
                _apply(training, *read)
                return True
            log.warning("%s/%s is of another model and will be ignored", self._root, name)
        return False

    def keep(self, training: Training, table_ids: Tensor, labels: tuple[str, ...]) -> None:
        """Store the best epoch's weights for later requests.

        Raises:
            OSError: the storage refused them; a trial that promised them must say so.
        """
        progress = training.progress
        about = {
            "labels": list(labels),
            "best_epoch": progress.best_epoch,
            "best_scores": dict(progress.best_scores),
            "curve": [dataclasses.asdict(point) for point in progress.curve],
        }
        self._publish(KEPT, {**progress.best, "table_ids": table_ids}, about)

    def kept(self) -> Kept | None:
        """The stored weights; None when there are none, or none that can be trusted."""
        read = self._read(KEPT)
        if read is None:
            return None
        tensors, about = read
        ids = tensors.pop("table_ids")
        return Kept(
            weights=tensors,
            table_ids=ids,
            labels=tuple(about["labels"]),
            best_epoch=about["best_epoch"],
            best_scores={k: (v[0], v[1]) for k, v in about["best_scores"].items()},
            curve=tuple(CurvePoint(**point) for point in about["curve"]),
        )

    def _states(self) -> list[str]:
        selector = pa.fs.FileSelector(self._root, allow_not_found=True)
        names = [info.base_name for info in self._fs.get_file_info(selector)]
        return sorted(n for n in names if n.startswith("step-") and n.endswith(".safetensors"))

    def _write_state(self, name: str, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        try:
            self._publish(name, tensors, about)
            for old in self._states()[:-N_STATES]:
                self._fs.delete_file(f"{self._root}/{old}")
        except OSError as error:
            log.warning("checkpoint %s/%s not written: %s", self._root, name, error)

    def _publish(self, name: str, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        """Write aside, then make visible in one step; on an object store a PUT is one step."""
        data = save(tensors, {"format": FORMAT, "mark": self._mark, "about": json.dumps(about)})
        self._fs.create_dir(self._root, recursive=True)
        path = f"{self._root}/{name}"
        if not isinstance(self._fs, pa.fs.LocalFileSystem):
            with self._fs.open_output_stream(path) as sink:
                sink.write(data)
            return
        aside = Path(f"{path}.part-{uuid.uuid4().hex[:8]}")  # pids are equal in containers
        try:
            with aside.open("wb") as sink:
                sink.write(data)
                sink.flush()
                os.fsync(sink.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)

    def _read(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """One file's tensors and metadata; None with a warning where it cannot be trusted."""
        path = f"{self._root}/{name}"
        if self._fs.get_file_info(path).type != pa.fs.FileType.File:
            return None
        try:
            with self._fs.open_input_file(path) as source:
                data = source.read()
            tensors = load(data)
            (length,) = struct.unpack_from("<Q", data)
            header = json.loads(data[8 : 8 + length])["__metadata__"]
        except (OSError, SafetensorError, struct.error, ValueError, KeyError) as error:
            log.warning("%s is torn and will be ignored: %s", path, error)
            return None
        if header.get("format") != FORMAT or header.get("mark") != self._mark:
            log.warning("%s belongs to another trial or version and will be ignored", path)
            return None
        return tensors, json.loads(header["about"])


def mark(spec: TrialSpec) -> str:
    """Hash of what a checkpoint must match: equal for specs of equal trial id.

    So files stay their trial's own when its data are called something else, and when a later
    version adds an option.
    """
    text = json.dumps(identity(spec), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _snapshot(training: Training) -> tuple[dict[str, Tensor], dict[str, Any]]:
    progress = training.progress
    tensors = {f"best.{name}": tensor for name, tensor in progress.best.items()}
    tensors["loss_sum"] = progress.loss_sum.to("cpu", copy=True)
    for name, parameter in training.model.trainable():
        tensors[f"model.{name}"] = parameter.detach().to("cpu", copy=True)
        for key, value in training.optimiser.state.get(parameter, {}).items():
            tensors[f"adam.{key}.{name}"] = value.detach().to("cpu", copy=True)
    about = {
        "step": progress.step,
        "epoch": progress.epoch,
        "n_labelled": progress.n_labelled,
        "best_epoch": progress.best_epoch,
        "best_scores": dict(progress.best_scores),
        "curve": [dataclasses.asdict(point) for point in progress.curve],
        "scaler": training.scaler.state_dict(),
    }
    return tensors, about


def _fits(training: Training, tensors: Mapping[str, Tensor]) -> bool:
    """Whether the model has just these parameters: another version may cut words otherwise."""
    stored = {name: tensor.shape for name, tensor in tensors.items() if name.startswith("model.")}
    return stored == {f"model.{name}": p.shape for name, p in training.model.trainable()}


def _apply(training: Training, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    named = dict(training.model.trainable())
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(tensors[f"model.{name}"])
    for name, parameter in named.items():
        state = {
            key: tensors[f"adam.{key}.{name}"].to(parameter.device)
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"adam.{key}.{name}" in tensors
        }
        if state:  # a fused optimiser counts its steps on the device too
            training.optimiser.state[parameter] = state
    training.scaler.load_state_dict(about["scaler"])
    training.progress = Progress(
        step=about["step"],
        epoch=about["epoch"],
        loss_sum=tensors["loss_sum"].to(training.model.device),
        n_labelled=about["n_labelled"],
        curve=[CurvePoint(**point) for point in about["curve"]],
        best_epoch=about["best_epoch"],
        best_scores={k: (v[0], v[1]) for k, v in about["best_scores"].items()},
        best={n.removeprefix("best."): t for n, t in tensors.items() if n.startswith("best.")},
    )
