"""Cloud machines: cores, GPUs, and dollars an hour, from a dated table that anyone may overrule."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from sweep.complaints import StudyError, closest

OWN = "own"
"""What `--price` calls a machine of an imagined cluster, and of one on premises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One kind of machine.

    Attributes:
        name: As the provider calls it.
        cpus: Virtual cores.
        gpus: GPUs.
        gpu: Their kind, as `sweep.pricing.devices` names it; empty for none.
        usd: Dollars an hour on demand; None where unknown.
        spot: Dollars an hour as a spot machine, typically; None where unknown.
    """

    name: str
    cpus: float
    gpus: float = 0.0
    gpu: str = ""
    usd: float | None = None
    spot: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The table of `instances.toml`, with what `--price` says instead.

    Attributes:
        source: Where the prices come from.
        date: Year and month of the table.
        own: Machine or node type -> dollars an hour, given by the user.
    """

    source: str
    date: str
    own: Mapping[str, float]

    def hourly(self, instance: Instance, node_type: str, *, is_spot: bool) -> float | None:
        """Dollars an hour of a machine; None when nobody has said."""
        for name in (node_type, instance.name):
            if name in self.own:
                return self.own[name]
        return instance.spot if is_spot and instance.spot is not None else instance.usd


def price_list(given: Sequence[str] = ()) -> PriceList:
    """The price list, with prices of one's own.

    Args:
        given: `--price` texts: `g4dn.xlarge=0.19`; a number alone is the price of every machine
            of an imagined cluster.

    Raises:
        StudyError: one of them is no price.
    """
    own = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        try:
            usd = float(value)
        except ValueError:
            usd = -1.0
        if not 0 <= usd < float("inf") or (equals and not name):
            raise StudyError(
                f"--price {text}: not a price in dollars an hour. Write NAME=USD, with the name of "
                "a machine (g4dn.xlarge=0.19) or of a node type of the cluster file; or USD alone "
                "for the machines of --nodes."
            )
        own[name or OWN] = usd
    table = _table()
    return PriceList(source=table["source"], date=table["date"], own=own)


def instance(name: str) -> Instance | None:
    """A machine of the table; None for one that it does not hold."""
    found = _table()["instances"].get(name)
    return None if found is None else Instance(name=name, **found)


def closest_instance(name: str) -> str:
    """What may have been meant, for messages."""
    return closest(name, sorted(_table()["instances"]))


def with_gpus(machine: Instance, accelerator: str, count: int) -> Instance:
    """A Google machine with GPUs attached, which are paid apart."""
    found = _table()["attached"].get(accelerator)
    if found is None:
        return replace(machine, gpus=count, gpu=accelerator, usd=None, spot=None)
    return replace(
        machine,
        gpus=count,
        gpu=found["gpu"],
        usd=None if machine.usd is None else machine.usd + count * found["usd"],
        spot=None if machine.spot is None else machine.spot + count * found["spot"],
    )


@cache
def _table() -> dict[str, Any]:
    text = resources.files("sweep.pricing").joinpath("instances.toml").read_text("utf-8")
    return tomllib.loads(text)
