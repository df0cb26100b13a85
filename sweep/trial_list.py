"""A study's trials one by one: id, what it is, how it stands."""

from collections.abc import Mapping, Sequence

from sweep.grid import PROBE
from sweep.ledger import Failure
from sweep.plan import Left, Plan

HEADER = ("trial", "task", "source", "ablation", "seed", "status")


def trial_rows(
    plan: Plan, failed: Mapping[str, Failure], pruned: Mapping[str, int]
) -> list[list[str]]:
    """One row a trial, in the order in which they are run.

    Args:
        plan: The study against its store.
        failed: Trial id -> how it failed last.
        pruned: Trial id -> the epoch after which it was stopped.
    """
    return [[*_name(left), _status(left, failed, pruned)] for left in plan.trials]


def trials_json(
    plan: Plan, failed: Mapping[str, Failure], pruned: Mapping[str, int]
) -> list[dict[str, object]]:
    """The same for scripts: whole words as keys, the seed a number."""
    keys = ("trial_id", *HEADER[1:])
    rows = zip(plan.trials, trial_rows(plan, failed, pruned), strict=True)
    return [
        dict(zip(keys, row, strict=True)) | {"seed": left.trial.spec.seed} for left, row in rows
    ]


def _name(left: Left) -> Sequence[str]:
    spec = left.trial.spec
    if spec.task == PROBE:
        return left.trial.trial_id, "", "", "pretrained", ""
    return left.trial.trial_id, spec.task, spec.source, spec.ablation, str(spec.seed)


def _status(left: Left, failed: Mapping[str, Failure], pruned: Mapping[str, int]) -> str:
    trial_id = left.trial.trial_id
    if not trial_id:  # its hyper-parameters are not known yet
        return "waits for the search"
    if left.work == "done":
        return "done"
    if trial_id in failed:
        return f"failed ({failed[trial_id].kind})"
    if trial_id in pruned:
        return f"pruned after epoch {pruned[trial_id]}"
    return "to be measured" if left.work == "measure" else "to be trained"
