"""A study's rows, handed to the analysis: which trials, which targets, where the page goes."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa

from analysis.aside import read_sentences
from analysis.pictures import start_painters
from analysis.report import Report, write_report
from analysis.schema import TRIALS
from analysis.searching import Searching
from analysis.tables import Tables
from sweep.complaints import StudyError
from sweep.grid import PlannedTrial
from sweep.opened import Opened
from sweep.overlap import read_overlap
from sweep.rows import spec_from_json, spec_to_json
from sweep.search.found import searched_rows
from sweep.studyfile import study_text
from sweep.tracking_link import RunLink, find_runs
from sweep.tracking_uri import TrackingError, tracking_uri

OF_A_SPEC = (
    *("trial_id", "task", "encoder", "encoder_fingerprint", "source", "train"),
    *("ablation", "seed", "cell", "hyper", "spec"),
)
"""Columns of the trials table that are known before a trial has run."""


def report_study(
    opened: Opened,
    out: str | None,
    name: str,
    overrides: Sequence[str],
    *,
    against: str | None = None,
) -> Report:
    """Write a study's report from what is committed by now; what is missing is shown as missing.

    Args:
        opened: The study and its store.
        out: Folder of the report; None for `studies/NAME/report` in the store.
        name: The study as it was asked for, and
        overrides: what was overridden, so that the page shows both.
        against: A paper whose numbers stand beside ours.

    Raises:
        UnknownPaper: `against` names none.
        StudyError: nothing is committed yet, or the store is no folder and none was named.
    """
    reported = opened.reported
    ids = [trial.trial_id for trial in reported if not trial.is_open]
    specs = [trial.spec for trial in reported]
    settings = {(spec.task, spec.source, spec.encoder.name) for spec in specs if spec.train}
    with start_painters(len(settings)) as painters:  # they take as long to start as tables to read
        tables = opened.ledger.tables(ids, is_lean=True)
        if not tables.trials.num_rows:
            raise StudyError(
                f"{opened.study.name}: no trial has ended yet in {opened.store}. "
                "Run it first, or give its --storage."
            )
        similarity, links = opened.study.similarity, run_links(opened)
        return write_report(
            with_defaults(tables),
            report_folder(opened, out),
            title=opened.study.name,
            study_text=study_text(name, overrides),
            targets=_targets(opened),
            seeds={trial.spec.seed for trial in reported if trial.phase == "report"},
            planned=planned_rows(reported),
            sentences=read_sentences(opened.store, ids),
            overlaps=read_overlap(opened.store),
            measure=similarity.measures[0] if similarity else "",
            painters=painters,
            against=against,
            searching=_searching(opened),
            links={trial_id: link.page for trial_id, link in links.items()},
            links_need=next((link.command for link in links.values()), ""),
        )


def _searching(opened: Opened) -> Searching | None:
    """What was decided by results, and the rows that say so; None when nothing was."""
    layout, study = opened.layout, opened.study
    if layout is None:
        return None
    searched = searched_rows(layout.searches, study.search.scope)
    ids = set(searched.column("trial_id").to_pylist())
    return Searching(
        searched,
        opened.ledger.tables(ids),
        study.seeds.report if study.seeds.until is not None else (),
    )


def run_links(opened: Opened) -> dict[str, RunLink]:
    """Where MLflow shows the trials of a study; empty where tracking is off or not to be had."""
    tracking = opened.study.tracking
    if not tracking.enabled:
        return {}
    try:
        uri = tracking_uri(opened.store, tracking.uri)
    except TrackingError:
        return {}
    return find_runs(opened.study.name, uri)


def report_folder(opened: Opened, out: str | None) -> Path:
    """Where the report goes.

    Raises:
        StudyError: the store is no folder of this machine, and none was named.
    """
    if out is None and "://" in opened.store:
        raise StudyError(f"storage = {opened.store}: name a folder for the report: --out FOLDER.")
    return Path(out or f"{opened.folder}/report").expanduser().absolute()


def planned_rows(trials: Sequence[PlannedTrial]) -> pa.Table:
    """Trials before they have run, as rows of the trials table."""
    rows = [
        {
            # A trial without hyper-parameters has no id yet, and still has its place in tables.
            "trial_id": trial.trial_id or f"open-{trial.cell_id}-{trial.spec.seed}",
            "task": trial.spec.task,
            "encoder": trial.spec.encoder.name,
            "encoder_fingerprint": trial.spec.encoder.fingerprint,
            "source": trial.spec.source,
            "train": trial.spec.train.code if trial.spec.train else "",
            "ablation": trial.spec.ablation,
            "seed": trial.spec.seed,
            "cell": trial.cell_id,
            "hyper": json.dumps(asdict(trial.spec.hyper), sort_keys=True),
            "spec": spec_to_json(trial.spec),
        }
        for trial in trials
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([TRIALS.field(name) for name in OF_A_SPEC]))


def with_defaults(tables: Tables) -> Tables:
    """Write out the defaults of options that were added after a trial ran.

    Its id left them out and is unchanged; its stored spec must not look like another setting.
    """
    column = tables.trials.column("spec").to_pylist()
    filled = {text: spec_to_json(spec_from_json(text)) for text in set(column)}
    at = tables.trials.schema.get_field_index("spec")
    specs = pa.array([filled[text] for text in column], pa.string())
    return replace(tables, trials=tables.trials.set_column(at, TRIALS.field("spec"), specs))


def _targets(opened: Opened) -> tuple[str, ...]:
    codes = [code for task in opened.study.grid.task for code in opened.study.target_codes(task)]
    return tuple(dict.fromkeys(codes))
