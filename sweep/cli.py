"""The command line: read arguments, call one function, print. Only this file exits.

Data go to stdout, progress and errors to stderr. Exit codes: 0 done; 1 failed trials, or an error
of ours; 2 wrong usage, study or data; 130 interrupted.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sweep import cli_cluster, cli_data, cli_simulate
from sweep.cli_options import (
    DONE,
    FAILED,
    INTERRUPTED,
    WRONG,
    ClusterFile,
    Json,
    Overrides,
    Prices,
    Storage,
    StudyName,
    TrialStart,
    Uri,
    examples,
    print_json,
)
from sweep.sparing import spare_pandas
from sweep.study import Study, load_study

OURS: Mapping[tuple[str, str], int] = {
    ("sweep.complaints", "StudyError"): WRONG,
    ("trainables.data.sentence", "DataError"): WRONG,
    ("trainables.registry", "UnknownName"): WRONG,
    ("trainables.ablations.base", "AblationError"): WRONG,
    ("trainables.encoders.fingerprint", "EncoderError"): WRONG,
    ("analysis.reference.published", "UnknownPaper"): WRONG,
    ("sweep.clusterlint", "ClusterFileError"): WRONG,
    ("sweep.tracking", "TrackingError"): FAILED,
    ("sweep.storage", "StorageError"): FAILED,
    ("sweep.executor", "ClusterError"): FAILED,
    ("sweep.lock", "StoreLockedError"): FAILED,
    ("sweep.fetch_http", "FetchError"): FAILED,
    ("analysis.rowfiles", "TableError"): FAILED,
    ("analysis.folder", "FolderError"): FAILED,
}
"""Errors that say all there is to say, so that no traceback is shown, and their exit codes."""

app = typer.Typer(
    name="sweep",
    help="Which layers of an encoder carry zero-shot cross-lingual transfer, and is it real?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(cli_data.app, name="data")
app.add_typer(cli_cluster.app, name="cluster")
app.command(epilog=cli_simulate.EXAMPLES)(cli_simulate.simulate)


class ExecutorName(str, Enum):  # noqa: UP042 - typer shows the values of a str enum
    """Where trials run."""

    LOCAL = "local"
    TUNE = "tune"


@app.command(
    epilog=examples(
        "sweep new my-study",
        "sweep new my-study --encoder ./my-encoder --data ud --task upos --task parsing",
        "sweep new entities --task ner --source en --target sw --target ar --seeds 5",
    )
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the study, or its file.")],
    *,
    encoder: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A hub id or a folder.")
    ] = None,
    data: Annotated[str | None, typer.Option(metavar="FOLDER", help="Use what lies there.")] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="upos (default), parsing, ner, ...")
    ] = None,
    source: Annotated[list[str] | None, typer.Option(help="Language to train on; en.")] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Language to test on; all there are.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trials of a cell.")] = 3,
) -> None:
    """Write a commented study file to start from; without options, on what ships."""
    from sweep import new as starting

    wish = starting.wish(encoder, data, task or (), source or (), target or (), n_seeds=seeds)
    written = starting.write_study(name, wish)
    for note in written.notes:
        typer.echo(f"note: {note}", err=True)
    return _print_lines(starting.next_steps(written))


@app.command(
    epilog=examples(
        "sweep plan first-align --counts",
        "sweep plan my-study.toml",
        "sweep plan my-study.toml --set 'seeds.report=[1,2,3]' --json",
        "sweep plan first-align --counts --cluster cluster.yaml --set resources.gpus=0.25",
    )
)
def plan(
    study: StudyName,
    *,
    overrides: Overrides = None,
    storage: Storage = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Only count the grid: no data or encoder needed.")
    ] = False,
    cluster: ClusterFile = None,
    price: Prices = None,
    as_json: Json = False,
) -> None:
    """Show cells and trials, what is done, what is left, and what it costs."""
    from sweep import plan as planning
    from sweep import screen
    from sweep.imagined import counted
    from sweep.opened import open_study

    loaded = _load(study, overrides)
    opened = None if counts else open_study(loaded, storage)
    made = opened.plan() if opened else counted(loaded)
    quote = cli_simulate.quote(loaded, made, opened, cluster, price) if cluster else None
    if as_json:
        return print_json(planning.as_json(made) | ({"quote": quote.content} if quote else {}))
    screen.show(*screen.plan_rows(made))
    return _print_lines([*screen.plan_lines(made), *(quote.lines if quote else ())])


@app.command(
    epilog=examples(
        "sweep run my-study.toml",
        "sweep run my-study.toml --executor local --workers 2",
        "sweep run first-align-small --set data.root=ud --storage s3://bucket/results",
    )
)
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
    from sweep.cache import cache_folder
    from sweep.check import refuse_faults
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


@app.command(
    epilog=examples(
        "sweep status my-study.toml",
        "sweep status my-study.toml --trials",
        "sweep status my-study.toml --json",
    )
)
def status(
    study: StudyName,
    *,
    overrides: Overrides = None,
    storage: Storage = None,
    trials: Annotated[
        bool, typer.Option("--trials", help="One line a trial, with its id.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what is done, what failed, and why."""
    from sweep import screen, trial_list
    from sweep.opened import open_study

    opened = open_study(_load(study, overrides), storage)
    made, failed, pruned = opened.plan(), opened.failures(), opened.ledger.pruned()
    if as_json:
        told = screen.status_json(opened, made, failed)
        return print_json(
            {**told, "list": trial_list.trials_json(made, failed, pruned)} if trials else told
        )
    if trials:
        return screen.show(trial_list.HEADER, trial_list.trial_rows(made, failed, pruned))
    screen.show(*screen.status_rows(made, failed))
    return _print_lines(screen.status_lines(made, failed))


@app.command(
    epilog=examples(
        "sweep show 3f2a",
        "sweep show 3f2a9c --study my-study.toml",
        "sweep show 3f2a9c --storage s3://bucket/results --json",
    )
)
def show(
    trial: TrialStart,
    *,
    study: Annotated[
        str | None, typer.Option(help="A study whose store holds it.", metavar="STUDY")
    ] = None,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Show one trial: spec, attempts, scores, similarity, failure, where its traces are."""
    from sweep import show as showing
    from sweep.opened import storage_of, store_of

    store = store_of(_load(study, None), storage) if study else storage_of(storage or "results")
    found, link, logs = showing.look_up(trial, store)
    if as_json:
        return print_json(showing.as_json(found, link, logs))
    return _print_lines(showing.lines(found, link, logs))


@app.command(
    epilog=examples(
        "sweep report my-study.toml",
        "sweep report first-align --set data.root=data --against first-align --out report",
    )
)
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
        return print_json({"page": str(written.page), "files": files})
    return _print_lines([written.main_table.rstrip(), "", f"Page: {written.page}"])


@app.command(epilog=examples("sweep toy --to toy", "sweep toy --to toy --json"))
def toy(
    to: Annotated[str, typer.Option("--to", metavar="FOLDER", help="Where the files go.")],
    as_json: Json = False,
) -> None:
    """Write the treebanks of eleven invented languages; show how far each lies from the first."""
    from sweep import screen
    from sweep import toy as invented

    folder = invented.write_languages(to)
    header, rows = invented.language_rows()
    if as_json:
        return print_json([dict(zip(header, row, strict=True)) for row in rows])
    screen.show(header, rows)
    return _print_lines([f"Files: {folder}", f"Try: sweep run demo --set data.root={folder}"])


@app.command(
    epilog=examples(
        "sweep track my-study.toml",
        "sweep track my-study.toml --uri http://127.0.0.1:5000",
    )
)
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


@app.command(
    epilog=examples(
        "sweep doctor",
        "sweep doctor --study my-study.toml",
        "sweep doctor --quick --json",
    )
)
def doctor(
    *,
    study: Annotated[
        str | None, typer.Option(metavar="STUDY", help="Also look for its encoder and its data.")
    ] = None,
    overrides: Overrides = None,
    storage: Storage = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out torch, Ray, MLflow and the network.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Check whether a study can run here; say how to mend what is wrong. Exits 1 if it cannot."""
    from sweep import screen
    from sweep.doctor import examination

    checks = examination.checks(_load(study, overrides) if study else None, storage, is_quick=quick)
    with screen.busy() as begin:
        found = list(examination.examined(checks, begin))
    if as_json:
        print_json(examination.as_json(found))
    elif sys.stdout.isatty():
        screen.show(examination.HEADER[:3], examination.narrow_rows(found))
    else:
        screen.show(examination.HEADER, examination.rows(found))
    if not as_json:
        typer.echo(examination.last_line(found))
    return DONE if examination.is_fit(found) else FAILED


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    if arguments is None:  # a process of our own
        spare_pandas()
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
        from sweep.screen import complain

        complain(str(error))
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
