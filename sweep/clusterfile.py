"""A cluster before it exists: the node types, limits and delays of a Ray cluster file.

Read is the file that `ray up` takes (`available_node_types`, `max_workers`,
`idle_timeout_minutes`, `upscaling_speed`), on AWS, on Google Cloud, and with `provider: local`.
Nothing is launched or asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sweep import clusterlint
from sweep.complaints import StudyError, closest
from sweep.pricing.devices import CPU, device_named
from sweep.pricing.instances import (
    OWN,
    Instance,
    PriceList,
    closest_instance,
    instance,
    with_gpus,
)

BOOT_S = 180.0
"""Seconds from the wish for a node to a worker on it, where nobody says: boot, setup, start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """One kind of node.

    Attributes:
        name: As the file calls it.
        machine: The provider's name of the machine; empty where there is none.
        cpus: Cores that Ray may give away.
        gpus: GPUs that Ray may give away.
        device: What a trial computes on there: `T4`, ..., or `cpu`.
        min_workers: Nodes that are always up.
        max_workers: Nodes at most.
        is_spot: The provider may take it back at any time.
        usd_per_hour: Price; None where nobody has said.
    """

    name: str
    machine: str = ""
    cpus: float
    gpus: float = 0.0
    device: str = CPU
    min_workers: int = 0
    max_workers: int
    is_spot: bool = False
    usd_per_hour: float | None = None

    def slots(self, cpus: float, gpus: float) -> int:
        """Trials that fit on one node at a time, when each takes `cpus` cores and `gpus` GPUs."""
        by_cpu = math.floor(self.cpus / cpus + 1e-9)
        if not gpus:
            return by_cpu
        on_one = math.floor(1 / gpus + 1e-9)  # a share lies on one card
        return min(by_cpu, math.floor(self.gpus) * on_one)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What may be launched, and how fast.

    Attributes:
        name: Of the cluster.
        head: The node that is always there and drives the sweep.
        workers: Types of worker nodes, in the order of the file.
        max_workers: Worker nodes at most, of all types together.
        idle_timeout_s: A node on which nothing ran for so long is given back.
        upscaling_speed: Nodes of a type that may be on their way at once, as a multiple of those
            that are up; never fewer than five.
        boot_s: Seconds from the wish for a node to a worker on it.
    """

    name: str
    head: NodeType
    workers: tuple[NodeType, ...]
    max_workers: int
    idle_timeout_s: float = 300.0
    upscaling_speed: float = 1.0
    boot_s: float = BOOT_S

    @property
    def types(self) -> tuple[NodeType, ...]:
        """All kinds of nodes, the head first."""
        return (self.head, *self.workers)


def read_cluster(path: str | Path, prices: PriceList, *, boot_s: float = BOOT_S) -> Cluster:
    """Read a Ray cluster file.

    Args:
        path: The file.
        prices: For dollars an hour.
        boot_s: Seconds from the wish for a node to a worker on it; no cluster file says.

    Raises:
        ClusterFileError: there is no such file, or it is not YAML.
        StudyError: something in it is wrong, or it does not say what is in a machine.
    """
    reader = _Reader(str(path), clusterlint.read_cluster(Path(path)), prices)
    return replace(reader.cluster(), boot_s=boot_s)


def imagined_cluster(
    n_nodes: int,
    *,
    gpus: int = 0,
    cpus: float | None = None,
    device: str = CPU,
    is_spot: bool = False,
    prices: PriceList,
    boot_s: float = BOOT_S,
) -> Cluster:
    """A cluster of equal nodes that nobody has written a file for.

    Args:
        n_nodes: Worker nodes at most; they come when there is work.
        gpus: GPUs of each.
        cpus: Cores of each; None for four beside every GPU, or one.
        device: Kind of GPU, or `cpu`.
        is_spot: They may be taken back at any time.
        prices: For dollars an hour: those of `--price USD`.
        boot_s: Seconds from the wish for a node to a worker on it.
    """
    cores = cpus if cpus is not None else 4.0 * gpus or 1.0
    usd = prices.own.get(OWN)
    worker = NodeType(
        name="worker",
        cpus=cores,
        gpus=gpus,
        device=device,
        max_workers=n_nodes,
        is_spot=is_spot,
        usd_per_hour=usd,
    )
    head = NodeType(name="head", cpus=0.0, max_workers=0, usd_per_hour=prices.own.get("head", 0.0))
    return Cluster(
        name=f"{n_nodes} nodes", head=head, workers=(worker,), max_workers=n_nodes, boot_s=boot_s
    )


class _Reader:
    """Reads one file; knows its name for messages."""

    def __init__(self, file: str, table: Mapping[str, Any], prices: PriceList) -> None:
        self._file = file
        self._table = table
        self._prices = prices

    def cluster(self) -> Cluster:
        """The whole file."""
        provider = self._mapping(self._table.get("provider") or {}, "provider")
        if provider.get("type") == "local":
            return self._local(provider)
        types = self._mapping(self._table.get("available_node_types"), "available_node_types")
        head = str(self._table.get("head_node_type", ""))
        if head not in types:
            known = closest(head, types)
            raise StudyError(f"{self._file}: head_node_type = '{head}': no such node type.{known}")
        most = int(self._top("max_workers", 2))
        read = {
            str(name): self._type(str(name), value, 0 if name == head else most)
            for name, value in types.items()
        }
        return Cluster(
            name=str(self._table.get("cluster_name", "cluster")),
            head=_as_head(read[head]),
            workers=tuple(node for node in read.values() if node.max_workers > 0),
            max_workers=most,
            idle_timeout_s=60.0 * self._top("idle_timeout_minutes", 5.0),
            # As Ray reads it: 0 is nothing said.
            upscaling_speed=self._top("upscaling_speed", 1.0) or 1.0,
        )

    def _local(self, provider: Mapping[str, Any]) -> Cluster:
        """`provider: local` names machines; what is in them only they know: `resources` may say.

        Ray finds cores and GPUs when it starts there; until then a node counts as in the first of
        `available_node_types`, or as one core.
        """
        hosts = provider.get("worker_ips") or []
        if not isinstance(hosts, Sequence) or isinstance(hosts, str):
            raise StudyError(f"{self._file}: provider.worker_ips: not a list of hosts.")
        types = self._table.get("available_node_types") or {"local": {"resources": {"CPU": 1}}}
        name, value = next(iter(self._mapping(types, "available_node_types").items()))
        one = self._type(str(name), value, len(hosts))
        worker = replace(one, min_workers=len(hosts), max_workers=len(hosts), is_spot=False)
        return Cluster(
            name=str(self._table.get("cluster_name", "cluster")),
            head=_as_head(one),
            workers=(worker,) if hosts else (),
            max_workers=len(hosts),
        )

    def _type(self, name: str, value: object, most: int) -> NodeType:
        key = f"available_node_types.{name}"
        node = self._mapping(value, key)
        config = self._mapping(node.get("node_config") or {}, f"{key}.node_config")
        given = self._mapping(node.get("resources") or {}, f"{key}.resources")
        machine = self._machine(config, key)
        if machine is None and not given:
            asked = str(config.get("InstanceType", config.get("machineType", "")))
            raise StudyError(
                f"{self._file}: {key}: what is in a machine of type '{asked}'?"
                f"{closest_instance(asked)} Or write resources: {{CPU: 4, GPU: 1}}."
            )
        machine = machine or Instance(name=str(config.get("InstanceType", "")), cpus=1.0)
        gpus = self._number(given.get("GPU", machine.gpus if not given else 0), f"{key}.GPU")
        is_spot = _is_spot(config)
        return NodeType(
            name=name,
            machine=machine.name,
            cpus=self._number(given.get("CPU", machine.cpus), f"{key}.CPU"),
            gpus=gpus,
            device=_device_of(machine, given) if gpus else CPU,
            min_workers=int(self._number(node.get("min_workers", 0), f"{key}.min_workers")),
            max_workers=int(self._number(node.get("max_workers", most), f"{key}.max_workers")),
            is_spot=is_spot,
            usd_per_hour=self._prices.hourly(machine, name, is_spot=is_spot),
        )

    def _machine(self, config: Mapping[str, Any], key: str) -> Instance | None:
        """The machine in our table, GPUs attached; None for one that it does not hold."""
        name = config.get("InstanceType") or config.get("machineType") or ""
        found = instance(str(name).rpartition("/")[2])
        for accelerator in config.get("guestAccelerators") or []:
            one = self._mapping(accelerator, f"{key}.node_config.guestAccelerators")
            kind = str(one.get("acceleratorType", "")).rpartition("/")[2]
            if found is not None:
                found = with_gpus(found, kind, int(one.get("acceleratorCount", 1)))
        return found

    def _mapping(self, value: object, key: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            what = "missing" if value is None else f"{value!r} holds no keys"
            raise StudyError(f"{self._file}: {key}: {what}. Write it as `ray up` reads it.")
        return value

    def _top(self, key: str, default: float) -> float:
        return self._number(self._table.get(key, default), key)

    def _number(self, value: object, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise StudyError(f"{self._file}: {key} = {value!r}: not a number of at least 0.")
        return float(value)


def _as_head(kind: NodeType) -> NodeType:
    """The node that is always there, one of it; the sweep ends with it."""
    return replace(kind, name=f"{kind.name} (head)", min_workers=1, max_workers=1)


def _is_spot(config: Mapping[str, Any]) -> bool:
    """AWS says it in the market options, Google in the scheduling."""
    aws = config.get("InstanceMarketOptions")
    if isinstance(aws, Mapping) and aws.get("MarketType") == "spot":
        return True
    rules = config.get("scheduling")
    rules = rules if isinstance(rules, list) else [rules]
    return any(
        isinstance(rule, Mapping)
        and (bool(rule.get("preemptible")) or rule.get("provisioningModel") == "SPOT")
        for rule in rules
    )


def _device_of(machine: Instance, given: Mapping[str, Any]) -> str:
    """The kind of GPU: of our table, or as Ray has it among resources (`accelerator_type:T4`)."""
    for name in given:
        kind = str(name).removeprefix("accelerator_type:")
        found = device_named(kind) if kind != name else None
        if found is not None:
            return found.name
    return machine.gpu or "unknown GPU"
