"""`sweep data`: fetch what may be fetched, and read what a study would read."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sweep.cli_options import DONE, FAILED, WRONG, Json, Overrides, StudyName, examples, print_json
from sweep.study import load_study

app = typer.Typer(help="Fetch the data of a study, and check it.", no_args_is_help=True)


@app.command(
    epilog=examples(
        "sweep data get en_ewt fr_pud wikiann-en --to data",
        "sweep data get --study first-align --to data --dry-run",
        "sweep data get en_ewt@2.16 --to data --ud-url http://mirror:8000",
    )
)
def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="en_ewt, UD_English-EWT@2.5, wikiann-en, xnli-en."),
    ] = None,
    *,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the data go.")],
    study: Annotated[str | None, typer.Option(help="All that a study reads.")] = None,
    release: Annotated[str, typer.Option(help="Release of UD, where a name says none.")] = "2.4",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is missing.")] = False,
    ud_url: Annotated[
        str | None, typer.Option(envvar="XLING_UD_URL", help="Mirror of the UD repositories.")
    ] = None,
    hub_url: Annotated[
        str | None, typer.Option(envvar="HF_ENDPOINT", help="Mirror of the Hugging Face hub.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Fetch data by name; what is there already is not fetched again."""
    from sweep import fetch, fetch_screen, screen

    asked, by_hand = fetch.names_of(load_study(study)) if study else ((), ())
    if not (names or asked):
        raise typer.BadParameter("name something to fetch, or a study with --study.")
    mirrors = fetch.Mirrors(release=release).at(ud_url, hub_url)
    files = fetch.files_of([*(names or []), *asked], mirrors)
    if dry_run:
        outcomes = fetch.rehearse(files, to)
    else:
        token = os.environ.get("HF_TOKEN", "")
        is_offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
        outcomes = fetch.fetch(
            files, to, token=token, is_offline=is_offline, tell=fetch_screen.tell
        )
    if as_json:
        print_json(fetch_screen.as_json(outcomes))
    else:
        screen.show(*fetch_screen.rows(outcomes))
    for name in by_hand:
        typer.echo(f"note: {name} cannot be fetched here; get it by hand.", err=True)
    faults = [outcome for outcome in outcomes if outcome.is_fault]
    for outcome in faults:
        screen.complain(outcome.told)
    return FAILED if faults else DONE


@app.command(
    epilog=examples(
        "sweep data check first-align --set data.root=data",
        "sweep data check my-study.toml",
    )
)
def check(study: StudyName, overrides: Overrides = None) -> int:
    """Read all files of a study: sentences, words, faults, and whether parallel files align."""
    from sweep import screen
    from sweep.check import check_data

    checked = check_data(load_study(study, overrides or []))
    screen.show(*screen.data_rows(checked))
    if checked.n_parallel is not None:
        typer.echo(f"All compared languages share {checked.n_parallel} parallel sentences.")
    for note in checked.notes:
        typer.echo(f"Note: {note}.")
    for fault in checked.faults:
        screen.complain(fault)
    return WRONG if checked.faults else DONE
