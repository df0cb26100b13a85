"""A study, what is known of it, and the wish for a cluster: rehearsed."""

from analysis.schema import TABLES
from sweep.ledger import Ledger
from sweep.plan import Plan
from sweep.pricing.instances import PriceList
from sweep.pricing.speeds import Speeds
from sweep.simulate.options import Asked, setting_of
from sweep.simulate.rehearsal import Rehearsed, rehearse
from sweep.study import Study


def simulate_study(
    study: Study,
    asked: Asked,
    plan: Plan,
    ledger: Ledger | None = None,
) -> tuple[Rehearsed, PriceList]:
    """Rehearse what is left of a study.

    Args:
        study: The study.
        asked: The cluster and the rest of the options.
        plan: What is left of it.
        ledger: What was measured so far; None for nothing.

    Raises:
        StudyError: an option or the cluster file is wrong, or a trial fits on no node.
    """
    setting, prices = setting_of(study, asked)
    rows = TABLES["trials"].empty_table() if ledger is None else ledger.table("trials")
    requests = {left.trial.trial_id: left.trial.request for left in plan.trials}
    speeds = Speeds(rows, requests, share=setting.gpus or 1.0)
    return rehearse(plan, speeds, setting), prices
