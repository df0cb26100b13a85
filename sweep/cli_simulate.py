"""`sweep simulate`, and what `sweep plan --cluster` adds to a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweep.cli_options import (
    ClusterFile,
    Json,
    Overrides,
    Prices,
    Storage,
    StudyName,
    examples,
    print_json,
)
from sweep.study import Study, load_study

if TYPE_CHECKING:
    from sweep.opened import Opened
    from sweep.plan import Plan

EXAMPLES = examples(
    "sweep simulate first-align --nodes 15 --gpus-per-node 1 --share 0.25 --price 0.526",
    "sweep simulate first-align --cluster cluster.yaml --share 0.25 --spot-mtbf 2h",
    "sweep simulate my-study.toml --left --nodes 4 --cpus-per-node 16 --json",
)


@dataclass(frozen=True, slots=True)
class Quote:
    """What a plan costs on a cluster: for people, and for scripts."""

    lines: Sequence[str]
    content: Mapping[str, Any]


def quote(
    study: Study,
    made: "Plan",
    opened: "Opened | None",
    cluster: str,
    price: Sequence[str] | None,
) -> Quote:
    """The price of what a plan leaves, on the cluster of a file."""
    from sweep.simulate import telling
    from sweep.simulate.options import Asked
    from sweep.simulate.studies import simulate_study

    asked = Asked(file=cluster, prices=price or ())
    told, prices = simulate_study(study, asked, made, opened)
    return Quote(telling.quote_lines(told, prices), telling.as_json(told, prices))


def simulate(
    study: StudyName,
    *,
    overrides: Overrides = None,
    storage: Storage = None,
    cluster: ClusterFile = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Or: so many equal nodes.")] = None,
    gpus_per_node: Annotated[int, typer.Option(min=0, help="GPUs of each.")] = 0,
    cpus_per_node: Annotated[float | None, typer.Option(min=0.1, help="Cores of each.")] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="KIND", help="T4 (default), A10G, A100, H100, ...")
    ] = None,
    share: Annotated[
        float | None, typer.Option(metavar="GPU", help="Of a GPU, for each trial: 0.25.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Trials at a time.")] = None,
    spot_mtbf: Annotated[
        str | None, typer.Option(metavar="TIME", help="Mean life of a spot node: 2h.")
    ] = None,
    boot: Annotated[
        str | None, typer.Option(metavar="TIME", help="From the wish for a node to its work: 180s.")
    ] = None,
    price: Prices = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Rehearsals.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of durations and interruptions.")] = 0,
    left: Annotated[
        bool, typer.Option("--left", help="What the store lacks, at its speeds; needs the data.")
    ] = False,
    timeline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw slots over time: slots.png.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rehearse a study on an imagined cluster: time, GPU-hours, dollars, interruptions.

    Needs neither data nor encoder nor cluster: the real scheduler runs on a virtual clock.
    """
    from sweep import screen
    from sweep.imagined import counted
    from sweep.opened import open_study
    from sweep.simulate import telling
    from sweep.simulate.options import Asked
    from sweep.simulate.studies import simulate_study

    asked = Asked(
        file=cluster,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        cpus_per_node=cpus_per_node,
        gpu=gpu,
        share=share,
        workers=workers,
        spot_mtbf=spot_mtbf,
        boot=boot,
        prices=price or (),
        repeats=repeats,
        seed=seed,
    )
    loaded = load_study(study, overrides or [])
    opened = open_study(loaded, storage) if left else None
    made = opened.plan() if opened else counted(loaded)
    told, prices = simulate_study(loaded, asked, made, opened, keeps_spans=timeline is not None)
    if timeline is not None:
        from sweep.simulate.picture import write_timeline

        write_timeline(told.first, timeline)
    if as_json:
        return print_json(telling.as_json(told, prices))
    screen.show(*telling.table_rows(told))
    for line in telling.table_lines(told, prices):
        typer.echo(line)
    return None
