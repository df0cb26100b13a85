"""What a trial cost: seconds by part, memory, speed."""

import time

import torch

from trainables.ablations.base import AblationReport
from trainables.finetuning import Learnt
from trainables.materials import Materials
from trainables.memory import mps_pipes, peak, total
from trainables.spec import Facts


class Stopwatch:
    """Seconds by part of the trial."""

    def __init__(self) -> None:
        """Start."""
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, part: str) -> None:
        """Book the time since the last lap on `part`."""
        now = time.monotonic()
        self.laps[part] = self.laps.get(part, 0.0) + now - self._last
        self._last = now


def facts(materials: Materials, learnt: Learnt, ablated: AblationReport, watch: Stopwatch) -> Facts:
    """What happened on the way."""
    is_gpu = materials.device.type == "cuda"
    train_s = watch.laps["train"]
    return Facts(
        device=torch.cuda.get_device_name() if is_gpu else "cpu",
        threads=materials.workspace.threads,
        load_s=watch.laps["load"],
        train_s=train_s,
        evaluate_s=watch.laps.get("evaluate", 0.0),
        similarity_s=watch.laps["similarity"],
        peak_memory=peak(materials.device),
        train_words_per_s=learnt.n_words_seen / train_s if train_s > 0 else 0.0,
        resumed_epochs=learnt.resumed_epochs,
        n_train=learnt.n_train,
        n_parameters=sum(p.numel() for p in learnt.model.encoder.parameters()),
        n_reinitialised=ablated.n_reinitialised,
        n_frozen=ablated.n_frozen,
        micro_batch=learnt.micro_batch,
        device_memory=total(materials.device) if is_gpu else None,
        gpu_share=materials.workspace.gpus if is_gpu else None,
        has_mps=mps_pipes() is not None if is_gpu else None,
        matmul_s=materials.pace.matmul_s,
    )
