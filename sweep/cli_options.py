"""What the commands share: arguments with their help and completion, and how examples are shown."""

import json
from typing import Annotated

import typer

from sweep.completion import complete_study, complete_trial

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
"""Exit codes."""

StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY", help="A study that ships, or a file.", autocompletion=complete_study
    ),
]
TrialStart = Annotated[
    str,
    typer.Argument(
        metavar="TRIAL", help="A trial id, or its first letters.", autocompletion=complete_trial
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one key, e.g. hyper.epochs=3."),
]
Storage = Annotated[
    str | None, typer.Option(metavar="STORE", help="Result store: a folder, s3://, gs://.")
]
Uri = Annotated[
    str | None, typer.Option(metavar="URI", help="MLflow server or database; else the study's.")
]
ClusterFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Cluster file of `ray up`: the price there.")
]
Prices = Annotated[
    list[str] | None,
    typer.Option("--price", metavar="NAME=USD", help="Dollars an hour of a machine or node type."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def examples(*commands: str) -> str:
    """The last lines of a command's help, one a line."""
    # The help is read as rich's markup, in which a bracket may open a tag.
    escaped = (command.replace("[", r"\[") for command in commands)
    return "\n".join(["Examples:", *(f"  {command}" for command in escaped)])


def print_json(content: object) -> None:
    """Print one JSON value, and nothing else."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
