"""The command line: read arguments, call one function, print. Only this file exits.

Data go to stdout, progress and errors to stderr. Exit codes: 0 done; 1 failed trials, or an error
of ours; 2 wrong usage, study or data; 130 interrupted.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sweep.study import Study, load_study

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130

OURS: Mapping[tuple[str, str], int] = {
    ("sweep.complaints", "StudyError"): WRONG,
    ("trainables.data.sentence", "DataError"): WRONG,
    ("trainables.registry", "UnknownName"): WRONG,
    ("trainables.ablations.base", "AblationError"): WRONG,
    ("trainables.encoders.fingerprint", "EncoderError"): WRONG,
    ("analysis.reference.published", "UnknownPaper"): WRONG,
    ("sweep.tracking", "TrackingError"): FAILED,
    ("sweep.storage", "StorageError"): FAILED,
    ("sweep.lock", "StoreLockedError"): FAILED,
    ("sweep.fetch_http", "FetchError"): FAILED,
    ("analysis.rowfiles", "TableError"): FAILED,
}
"""Errors that say all there is to say, so that no traceback is shown, and their exit codes."""

app = typer.Typer(
    name="sweep",
    help="Which layers of an encoder carry zero-shot cross-lingual transfer, and is it real?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data of a study.", no_args_is_help=True)
app.add_typer(data_app, name="data")


class ExecutorName(str, Enum):  # noqa: UP042 - typer shows the values of a str enum
    """Where trials run."""

    LOCAL = "local"
    TUNE = "tune"


StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A study that ships, or a file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one key, e.g. hyper.epochs=3."),
]
Storage = Annotated[str | None, typer.Option(help="Result store: a folder, s3://, gs://.")]
Uri = Annotated[str | None, typer.Option(help="MLflow server or database; else the study's.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def plan(
    study: StudyName,
    *,
    overrides: Overrides = None,
    storage: Storage = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Only count the grid: no data or encoder needed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show cells and trials, what is done, what is left, and what it costs."""
    from sweep import plan as planning
    from sweep import screen
    from sweep.imagined import counted
    from sweep.opened import open_study

    loaded = _load(study, overrides)
    made = counted(loaded) if counts else open_study(loaded, storage).plan()
    if as_json:
        return _print_json(planning.as_json(made))
    screen.show(*screen.plan_rows(made))
    return _print_lines(screen.plan_lines(made))


@app.command()
def run(
    study: StudyName,
    *,
    overrides: Overrides = None,
    storage: Storage = None,
    executor: Annotated[ExecutorName | None, typer.Option(help="Where trials run.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Trials at a time.")] = None,
    no_track: Annotated[bool, typer.Option("--no-track", help="Leave MLflow alone.")] = False,
) -> int:
    """Run what is left of a study; run it again after any end to go on."""
    from sweep import screen
    from sweep.check import refuse_faults
    from sweep.jobs import cache_folder
    from sweep.run import run_study

    loaded = _load(study, overrides)
    refuse_faults(loaded, Path(cache_folder()))
    summary = run_study(
        loaded,
        store=storage,
        executor=executor.value if executor else None,
        workers=workers,
        track=False if no_track else None,
    )
    _print_lines(screen.run_lines(summary))
    return DONE if summary.is_complete else FAILED


@app.command()
def status(
    study: StudyName, overrides: Overrides = None, storage: Storage = None, as_json: Json = False
) -> None:
    """Show what is done, what failed, and why."""
    from sweep import screen
    from sweep.opened import open_study

    opened = open_study(_load(study, overrides), storage)
    made, failed = opened.plan(), opened.failures()
    if as_json:
        return _print_json(screen.status_json(opened, made, failed))
    screen.show(*screen.status_rows(made, failed))
    return _print_lines(screen.status_lines(made, failed))


@app.command()
def report(
    study: StudyName,
    *,
    overrides: Overrides = None,
    storage: Storage = None,
    out: Annotated[str | None, typer.Option(help="Folder; else inside the store.")] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="PAPER", help="Published numbers beside: first-align, beto, dlfa."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write tables, figures and a page from what is committed; print the main table."""
    from analysis.reference.published import check_paper
    from sweep.opened import open_study
    from sweep.reporting import report_study

    if against is not None:
        check_paper(against)
    opened = open_study(_load(study, overrides), storage)
    written = report_study(opened, out, study, overrides or [], against=against)
    if as_json:
        files = [str(path) for path in written.files]
        return _print_json({"page": str(written.page), "files": files})
    return _print_lines([written.main_table.rstrip(), "", f"Page: {written.page}"])


@app.command()
def track(
    study: StudyName, overrides: Overrides = None, storage: Storage = None, uri: Uri = None
) -> None:
    """Build or complete the study's MLflow runs from the tables."""
    from sweep import tracking
    from sweep.opened import open_study

    opened = open_study(_load(study, overrides), storage)
    tracked = tracking.track(
        opened.study.name,
        opened.ledger.tables(opened.trial_ids),
        store=opened.store,
        uri=uri or opened.study.tracking.uri,
    )
    typer.echo(
        f"{opened.study.name}: {tracked.created} runs created, {tracked.completed} completed, "
        f"{tracked.unchanged} right already."
    )


@data_app.command()
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

    asked, by_hand = fetch.names_of(_load(study, None)) if study else ((), ())
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
        _print_json(fetch_screen.as_json(outcomes))
    else:
        screen.show(*fetch_screen.rows(outcomes))
    for name in by_hand:
        typer.echo(f"note: {name} cannot be fetched here; get it by hand.", err=True)
    faults = [outcome for outcome in outcomes if outcome.is_fault]
    for outcome in faults:
        typer.echo(f"error: {outcome.told}", err=True)
    return FAILED if faults else DONE


@data_app.command()
def check(study: StudyName, overrides: Overrides = None) -> int:
    """Read all files of a study: sentences, words, faults, and whether parallel files align."""
    from sweep import screen
    from sweep.check import check_data

    checked = check_data(_load(study, overrides))
    screen.show(*screen.data_rows(checked))
    if checked.n_parallel is not None:
        typer.echo(f"All compared languages share {checked.n_parallel} parallel sentences.")
    for note in checked.notes:
        typer.echo(f"Note: {note}.")
    for fault in checked.faults:
        typer.echo(f"error: {fault}", err=True)
    return WRONG if checked.faults else DONE


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(_code(arguments))


def _code(arguments: Sequence[str] | None) -> int:
    try:
        return app(args=arguments, standalone_mode=False) or DONE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # `sweep plan | head`: nobody reads on; and flushing would raise again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if callable(explain := getattr(error, "show", None)):  # typer's own: usage, bad parameter
            explain()
            return int(getattr(error, "exit_code", WRONG))
        code = _code_of(error)
        if code is None:
            raise
        typer.echo(f"error: {error}", err=True)
        return code


def _code_of(error: Exception) -> int | None:
    """The exit code of an error of ours; None for a bug."""
    for (module, name), code in OURS.items():
        # What was never imported cannot have been raised, and is not imported to look.
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return code
    return None


def _load(study: str, overrides: list[str] | None) -> Study:
    return load_study(study, overrides or [])


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        typer.echo(line)


def _print_json(content: object) -> None:
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
