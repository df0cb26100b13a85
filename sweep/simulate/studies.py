"""A study, what is known of it, and the wish for a cluster: rehearsed."""

import pyarrow as pa

from analysis.schema import TABLES
from sweep.grid import PlannedTrial
from sweep.imagined import imagined
from sweep.opened import Opened
from sweep.packing import measured
from sweep.plan import Plan
from sweep.pricing.instances import PriceList
from sweep.pricing.speeds import Speeds
from sweep.search.layout import needs_layout
from sweep.search.log import StoreLog
from sweep.simulate.options import Asked, setting_of
from sweep.simulate.rehearsal import MakeSchedule, Rehearsed, job_for, rehearse
from sweep.simulate.searching import Rehearsal, curve
from sweep.storage import Store
from sweep.study import Study
from trainables.spec import Job


def simulate_study(
    study: Study,
    asked: Asked,
    plan: Plan,
    opened: Opened | None = None,
    *,
    keeps_spans: bool = False,
) -> tuple[Rehearsed, PriceList]:
    """Rehearse what is left of a study.

    Args:
        study: The study.
        asked: The cluster and the rest of the options.
        plan: What is left of it.
        opened: The study as its store knows it; None when nothing is to be looked at.
        keeps_spans: Keep every attempt of the first rehearsal, for a timeline.

    Raises:
        StudyError: an option or the cluster file is wrong, or a trial fits on no node.
    """
    nothing = pa.Table.from_batches([], TABLES["trials"])  # an array would load pandas
    rows = nothing if opened is None else opened.ledger.table("trials")
    make_schedule = None
    if needs_layout(study):
        make_schedule = _searching(study, plan, opened)
    shares = measured(rows.to_pylist()) if study.resources.gpus == "auto" else {}
    setting, prices = setting_of(study, asked, max(shares.values(), default=None))
    requests = {left.trial.trial_id: left.trial.request for left in plan.trials}
    speeds = Speeds(rows, requests)
    told = rehearse(
        plan,
        speeds,
        setting,
        make_schedule=make_schedule,
        curves=curve if make_schedule else None,
        keeps_spans=keeps_spans,
    )
    return told, prices


def _searching(study: Study, plan: Plan, opened: Opened | None) -> MakeSchedule:
    """What searches and adds seeds, on what the store knows or on nothing."""
    if opened is None or opened.resolved is None:
        resolved = imagined(study)
        return lambda: Rehearsal(study, resolved, lambda trial: job_for(trial, trial.request, plan))
    found, ledger = opened.resolved, opened.ledger

    def make_job(trial: PlannedTrial) -> Job | None:
        request = ledger.missing(trial.trial_id, trial.spec, trial.request)
        return None if request is None else job_for(trial, request, plan)

    log = StoreLog(Store(opened.store))
    return lambda: Rehearsal(study, found, make_job, log=log, results=opened.results)
