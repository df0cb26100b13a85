"""`sweep cluster`: look at the cluster that trials would run on before it costs anything."""

from pathlib import Path
from typing import Annotated

import typer

from sweep.cli_options import DONE, WRONG, examples

app = typer.Typer(help="Check the file of a cluster.", no_args_is_help=True)


@app.callback()
def cluster() -> None:
    """Check the file of a cluster."""


@app.command(epilog=examples("sweep cluster check cluster.yaml"))
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As `ray up` takes it.")],
) -> int:
    """Find typos, holes and open doors in a cluster file that `ray up` does not see."""
    from sweep.clusterlint import cluster_faults, read_cluster

    faults = cluster_faults(read_cluster(file), root=Path.cwd())
    for fault in faults:
        typer.echo(f"error: {file}: {fault}", err=True)
    if not faults:
        typer.echo(f"{file}: no fault found.")
    return WRONG if faults else DONE
