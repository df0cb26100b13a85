"""What a trial runs on: how many operations a second this code is assumed to get out of it."""

import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from sweep.complaints import StudyError, closest

_GAIN = 0.5  # share of the idle half that a crowd of small trials is assumed to fill

CPU = "cpu"
"""Name of a CPU core among the devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Work of one kind.

    Attributes:
        operations: Floating-point operations of matrix products.
        elements: Operations that all the rest is worth on a CPU; no part of it on a GPU.
        queue_s: Seconds of a core that feeds a GPU with it; no part of it on a CPU.
    """

    operations: float = 0.0
    elements: float = 0.0
    queue_s: float = 0.0

    def __add__(self, other: "Load") -> "Load":
        """Both, one after the other."""
        return Load(
            operations=self.operations + other.operations,
            elements=self.elements + other.elements,
            queue_s=self.queue_s + other.queue_s,
        )

    def times(self, n: float) -> "Load":
        """The same n times."""
        return Load(
            operations=n * self.operations, elements=n * self.elements, queue_s=n * self.queue_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One kind of processor.

    Attributes:
        name: `cpu` (one core), `T4`, `A100`, ...
        single: Operations a second in fp32 that a lone trial is assumed to reach.
        half: The same in fp16 or bf16.
        memory: Bytes.
    """

    name: str
    single: float
    half: float
    memory: float

    def rate(self, precision: str, share: float = 1.0) -> float:
        """Operations a second of one trial that has a share of the device.

        Several trials on one card fill gaps that each leaves alone: with `k = 1 / share` trials
        together they are assumed to do `1 + (1 - 1/k) / 2` times the work of one.

        Args:
            precision: `fp32`, `bf16` or `fp16`.
            share: Of a GPU, in (0, 1]; for CPUs the number of cores.
        """
        peak = self.single if precision == "fp32" else self.half
        if self.name == CPU:
            return float(peak * share**0.9)  # two cores are not quite twice as fast as one
        share = min(share, 1.0)
        return peak * share * (1 + _GAIN * (1 - share))

    def seconds(self, load: Load, precision: str, share: float = 1.0) -> float:
        """Seconds that a trial takes for some work.

        A GPU computes while a core queues what comes next, so the longer of the two decides; where
        they are alike, both are felt. Each trial has a core of its own, but a share of the GPU:
        what waits for its core leaves the card to others.

        Args:
            load: The work.
            precision: `fp32`, `bf16` or `fp16`.
            share: As for `rate`.
        """
        rate = self.rate(precision, share)
        if self.name == CPU:
            return (load.operations + load.elements) / rate
        return math.hypot(load.operations / rate, load.queue_s)


def device(name: str) -> Device:
    """A device by its name in the table, or by what the driver calls it (`Tesla T4`).

    Raises:
        StudyError: it is not in the table.
    """
    found = device_named(name)
    if found is None:
        raise StudyError(f"unknown device '{name}'.{closest(name, known())}")
    return found


def device_named(name: str) -> Device | None:
    """A device by any of its names; None when it is not in the table."""
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    for key, values in _devices().items():
        if {text.lower() for text in values["names"]} & words:
            return Device(
                name=key,
                single=values["single"] * values["reached_single"] * 1e12,
                half=values["half"] * values["reached_half"] * 1e12,
                memory=values["memory"] * 1e9,
            )
    return None


def known() -> tuple[str, ...]:
    """Names of all devices."""
    return tuple(_devices())


@cache
def _devices() -> dict[str, Any]:
    text = resources.files("sweep.pricing").joinpath("devices.toml").read_text("utf-8")
    return {name: values for name, values in tomllib.loads(text).items() if name != "note"}
