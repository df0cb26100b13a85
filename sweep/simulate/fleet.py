"""Nodes of an imagined cluster: launched on demand, taken back, idled away, and billed.

After Ray's autoscaler (2.60): demand is what waits for a slot; of a node type, at most
`upscaling_speed` times as many as are up, and never fewer than five, are on their way at once; a
node on which nothing ran for `idle_timeout_s` goes, down to `min_workers`. A spot node lives an
exponential time; the head is not taken back, as the sweep would end with it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sweep.clusterfile import Cluster, NodeType
from sweep.complaints import StudyError
from sweep.simulate.agenda import Agenda

_LEAST_LAUNCHES = 5
_LEAST_BILLED_S = 60.0


@dataclass(slots=True, eq=False)
class Node:
    """One machine.

    Attributes:
        number: Counted from 0, in the order of launch.
        type: Its kind.
        launched: When it was asked for, which is when the bill begins.
        slots: Trials that fit on it at a time.
        up: When it could work; None before.
        gone: When it was given back or taken; None before.
        busy_s: Seconds of its slots that trials have used.
        idle_since: When its last trial ended; meaningless while one runs.
        free: Numbers of its slots on which nothing runs, last used last.
        warm: Numbers of slots whose worker process has been started.
    """

    number: int
    type: NodeType
    launched: float
    slots: int
    up: float | None = None
    gone: float | None = None
    busy_s: float = 0.0
    idle_since: float = 0.0
    free: list[int] = field(default_factory=list)
    warm: set[int] = field(default_factory=set)

    @property
    def is_up(self) -> bool:
        """It can work."""
        return self.up is not None and self.gone is None

    def billed_s(self, end: float) -> float:
        """Seconds on the bill, if it is given back at `end` at the latest."""
        last = end if self.gone is None else min(self.gone, end)
        return max(_LEAST_BILLED_S, last - self.launched)

    def open_s(self, end: float) -> float:
        """Seconds of its slots in which trials could have run."""
        if self.up is None:
            return 0.0
        last = end if self.gone is None else min(self.gone, end)
        return max(0.0, last - self.up) * self.slots


class Fleet:
    """All nodes, past and present.

    Args:
        cluster: What may be launched.
        agenda: The clock.
        cpus: Cores of a trial.
        gpus: GPU share of a trial.
        lost: Called with a node that was taken back, when it has gone.
        random: For the lives of spot nodes.
        mtbf_s: Mean life of a spot node; infinite for nodes that stay.

    Raises:
        StudyError: no node of the cluster holds a single trial.
    """

    def __init__(
        self,
        cluster: Cluster,
        agenda: Agenda,
        *,
        cpus: float,
        gpus: float,
        lost: Callable[[Node], None],
        random: np.random.Generator,
        mtbf_s: float = math.inf,
    ) -> None:
        self.cluster = cluster
        self.nodes: list[Node] = []
        self._agenda = agenda
        self._lost = lost
        self._random = random
        self._mtbf_s = mtbf_s
        self._slots = {kind.name: kind.slots(cpus, gpus) for kind in cluster.types}
        self._count: dict[str, int] = dict.fromkeys(self._slots, 0)
        self._open: list[Node] = []  # nodes with a free slot, the last used last
        self._coming = dict.fromkeys(self._slots, 0)
        self.most_workers = 0
        """Most worker nodes that there were at once."""
        self._slots_coming = 0
        # A trial that needs no GPU leaves nodes with one to others, as Ray's autoscaler does.
        fitting = [kind for kind in cluster.workers if self._slots[kind.name]]
        self._choice = sorted(fitting, key=lambda kind: bool(kind.gpus) and not gpus)
        if not self.capacity:
            raise StudyError(_fits_nowhere(cluster, cpus, gpus))
        self._arrive(self._launch(cluster.head))
        for kind in fitting:
            for _ in range(min(kind.min_workers, kind.max_workers)):
                self._arrive(self._launch(kind))

    @property
    def capacity(self) -> int:
        """Trials that run at a time when every node is up."""
        most = self.cluster.max_workers
        total = self._slots[self.cluster.head.name]
        for kind in self._choice:
            n = min(kind.max_workers, most)
            total, most = total + n * self._slots[kind.name], most - n
        return total

    @property
    def _n_workers(self) -> int:
        return sum(self._count.values()) - self._count[self.cluster.head.name]

    def take(self) -> tuple[Node, int, bool] | None:
        """A free slot: its node, its number, whether its worker is warm; None if there is none."""
        while self._open and not (self._open[-1].is_up and self._open[-1].free):
            self._open.pop()
        if not self._open:
            return None
        node = self._open[-1]
        slot = node.free.pop()
        is_warm = slot in node.warm
        node.warm.add(slot)
        return node, slot, is_warm

    def free(self, node: Node, slot: int) -> None:
        """Give a slot back."""
        node.free.append(slot)
        self._open.append(node)
        if len(node.free) == node.slots:
            self._rest(node)

    def scale(self, waiting: int) -> None:
        """Launch what `waiting` trials without a slot need, within the limits."""
        while waiting > self._slots_coming:
            kind = self._next_kind()
            if kind is None:
                return
            node = self._launch(kind)
            self._coming[kind.name] += 1
            self._slots_coming += node.slots
            self._agenda.after(self.cluster.boot_s, lambda node=node: self._come(node))  # type: ignore[misc] # the default binds the node

    def _next_kind(self) -> NodeType | None:
        if self._n_workers >= self.cluster.max_workers:
            return None
        return next((kind for kind in self._choice if self._may_launch(kind)), None)

    def _may_launch(self, kind: NodeType) -> bool:
        coming = self._coming[kind.name]
        up = self._count[kind.name] - coming
        most = max(_LEAST_LAUNCHES, int(self.cluster.upscaling_speed * up))
        return self._count[kind.name] < kind.max_workers and coming < most

    def _launch(self, kind: NodeType) -> Node:
        node = Node(len(self.nodes), kind, self._agenda.now, self._slots[kind.name])
        self.nodes.append(node)
        self._count[kind.name] += 1
        self.most_workers = max(self.most_workers, self._n_workers)
        return node

    def _come(self, node: Node) -> None:
        self._coming[node.type.name] -= 1
        self._slots_coming -= node.slots
        self._arrive(node)

    def _arrive(self, node: Node) -> None:
        node.up = self._agenda.now
        node.free = list(range(node.slots))
        if node.slots:
            self._open.append(node)
            self._rest(node)
        if node.type.is_spot and node.type is not self.cluster.head and math.isfinite(self._mtbf_s):
            self._agenda.after(
                float(self._random.exponential(self._mtbf_s)), lambda: self._interrupt(node)
            )

    def _rest(self, node: Node) -> None:
        """All slots are free: the node goes if that stays so."""
        node.idle_since = now = self._agenda.now
        if node.type is self.cluster.head:
            return

        def leave() -> None:
            is_idle = len(node.free) == node.slots and node.idle_since == now
            if node.is_up and is_idle and self._count[node.type.name] > node.type.min_workers:
                self._remove(node)

        self._agenda.after(self.cluster.idle_timeout_s, leave)

    def _interrupt(self, node: Node) -> None:
        if node.is_up:
            self._remove(node)
            self._lost(node)

    def _remove(self, node: Node) -> None:
        node.gone = self._agenda.now
        self._count[node.type.name] -= 1


def _fits_nowhere(cluster: Cluster, cpus: float, gpus: float) -> str:
    share = f"{cpus:g} cores" + (f" and {gpus:g} GPU" if gpus else "")
    kinds = "; ".join(f"{k.name}: {k.cpus:g} cores, {k.gpus:g} GPUs" for k in cluster.types)
    return (
        f"cluster '{cluster.name}': a trial of {share} fits on no node ({kinds}). "
        "Lower resources.cpus or resources.gpus, or choose larger machines."
    )
