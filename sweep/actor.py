"""What runs in a worker process of Ray: one job after the other, one call an epoch.

It knows nothing of Ray and Tune, which a worker would take 1.3 s and 65 MB to import; `sweep.tune`
has Tune make and call it in place of a Trainable.
"""

import pickle
import time
from collections.abc import Mapping
from typing import Any

from sweep.executor import Attempt, failed, load_start
from sweep.nodes import blindness
from trainables.spec import CurvePoint, Job

POINT = "point"
OUTCOME = "outcome"
DONE = "done"
"""Tune's own name of it."""


class Worker:
    """A warm actor. Its methods are those that Tune calls on a Trainable.

    Tune also makes actors for trials that another actor then takes, so that making one must do
    nothing but remember.

    Args:
        config: `job` (a `Job`, pickled), `worker` (the function that runs it, as "module:object"),
            `mark` (token of the driver's lock, which the store must show; None to ask for none).
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._attempt: Attempt | None = None
        self._take(config)

    def reset(self, config: Mapping[str, Any]) -> bool:
        """Take another job: the actor stays warm."""
        self.stop()
        self._take(config)
        return True

    def _take(self, config: Mapping[str, Any]) -> None:
        self._job: Job = pickle.loads(config["job"])  # noqa: S301 - from our own driver
        self._worker: str = config["worker"]
        self._mark: str | None = config["mark"]
        self._attempt = None
        self._go_on = True

    def prune(self) -> None:
        """Called by the driver before the next `train`: let the trial end as pruned."""
        self._go_on = False

    def train(self) -> dict[str, object]:
        """Run to the end of an epoch, or to the end of the job."""
        if self._attempt is None:
            lacks = "" if self._mark is None else blindness(self._job, self._mark)
            if lacks:
                outcome = failed(self._job, "storage", lacks, time.monotonic())
                return {OUTCOME: outcome, DONE: True}
            self._attempt = Attempt(load_start(self._worker), self._job)
        answer = self._attempt.step(go_on=self._go_on)
        if isinstance(answer, CurvePoint):
            return {POINT: answer, DONE: False}
        return {OUTCOME: answer, DONE: True}

    def stop(self) -> None:
        """Let go of a job that was not run to its end."""
        if self._attempt is not None:
            self._attempt.close()
