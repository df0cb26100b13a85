"""What the command line says of an imagined cluster, as values."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sweep.clusterfile import BOOT_S, Cluster, imagined_cluster, read_cluster
from sweep.complaints import StudyError
from sweep.pricing.devices import CPU, device
from sweep.pricing.instances import PriceList, price_list
from sweep.simulate.rehearsal import Setting
from sweep.study import Study

_UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DEFAULT_GPU = "T4"
_SPOT_MTBF_S = 8 * 3600.0
_AUTO_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Options of `sweep simulate` and `sweep plan --cluster`, as they were typed.

    Attributes:
        file: Cluster file; None for `nodes`.
        nodes: Equal worker nodes at most.
        gpus_per_node: GPUs of each.
        cpus_per_node: Cores of each; None for four beside a GPU.
        gpu: Kind of GPU of each.
        share: Of a GPU, that a trial takes; None for what the study says.
        workers: Trials at a time; None for all that fit.
        spot_mtbf: Mean life of a spot node, such as `2h`; with `nodes`, makes them spot nodes.
        boot: From the wish for a node to a worker on it, such as `180s`.
        prices: `NAME=USD`, each.
        repeats: Rehearsals.
        seed: Of the first.
    """

    file: str | None = None
    nodes: int | None = None
    gpus_per_node: int = 0
    cpus_per_node: float | None = None
    gpu: str | None = None
    share: float | None = None
    workers: int | None = None
    spot_mtbf: str | None = None
    boot: str | None = None
    prices: Sequence[str] = ()
    repeats: int | None = None
    seed: int = 0


def setting_of(
    study: Study, asked: Asked, measured: float | None = None
) -> tuple[Setting, PriceList]:
    """Where and how a study would be run, and what that costs an hour.

    Args:
        study: The study.
        asked: The options.
        measured: Share of a GPU that the largest of its trials so far needed, for
            `resources.gpus = "auto"`; None for none measured.

    Raises:
        StudyError: neither or both of file and nodes are given, or a value cannot be read.
    """
    prices = price_list(asked.prices)
    cluster = _cluster(asked, prices)
    has_gpus = any(kind.gpus for kind in cluster.types)
    wanted, note = study.resources.gpus, ""
    if wanted == "auto":
        wanted = measured or _AUTO_SHARE
        if measured is None and asked.share is None:
            note = f"shares are measured as trials run; until then {wanted:g} of a GPU is assumed"
    gpus = float(wanted) if asked.share is None else asked.share
    if asked.share is None and not gpus and asked.gpus_per_node:
        gpus = 1.0  # who names GPUs wants them used
    if not 0 <= gpus <= 1:
        raise StudyError(f"--share {gpus:g}: not a share of a GPU. Write a number in (0, 1].")
    if gpus and not has_gpus:
        raise StudyError(
            f"cluster '{cluster.name}' has no GPU, and a trial wants {gpus:g} of one. Add "
            "--gpus-per-node, or --set resources.gpus=0.0 for trials on the CPU."
        )
    # Where mtbf is not given, spot nodes of a file live as long as they commonly do.
    has_spot = any(kind.is_spot for kind in cluster.types)
    mtbf = seconds_of("--spot-mtbf", asked.spot_mtbf) if asked.spot_mtbf else _SPOT_MTBF_S
    setting = Setting(
        cluster=cluster,
        cpus=study.resources.cpus,
        gpus=gpus,
        workers=asked.workers,
        mtbf_s=mtbf if has_spot else math.inf,
        repeats=asked.repeats,
        seed=asked.seed,
        note=note,
    )
    return setting, prices


def seconds_of(option: str, text: str) -> float:
    """A duration: `90`, `180s`, `10min`, `2h`, `1d`.

    Raises:
        StudyError: it is none.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if match is None or match[2] not in _UNITS or not float(match[1]):
        raise StudyError(f"{option} {text}: not a duration. Write 180s, 10min, 2h or 1d.")
    return float(match[1]) * _UNITS[match[2]]


def _cluster(asked: Asked, prices: PriceList) -> Cluster:
    boot_s = seconds_of("--boot", asked.boot) if asked.boot else BOOT_S
    if (asked.file is None) == (asked.nodes is None):
        raise StudyError(
            "which cluster? Name its file (--cluster cluster.yaml) or make one up "
            "(--nodes 15 --gpus-per-node 1), not both."
        )
    if asked.file is not None:
        return read_cluster(asked.file, prices, boot_s=boot_s)
    kind = device(asked.gpu or _DEFAULT_GPU).name if asked.gpus_per_node else CPU
    return imagined_cluster(
        asked.nodes or 1,
        gpus=asked.gpus_per_node,
        cpus=asked.cpus_per_node,
        device=kind,
        is_spot=asked.spot_mtbf is not None,
        prices=prices,
        boot_s=boot_s,
    )
