"""From what is left of a study to the jobs that would complete it."""

from sweep.cache import cache_folder
from sweep.grid import PlannedTrial
from sweep.identity import request_hash
from sweep.opened import Opened
from trainables.spec import Job, Workspace


def jobs_left(opened: Opened) -> list[Job]:
    """The jobs that would complete a study, in the order to run them, as far as they are known."""
    jobs = []
    for trial in opened.trials:
        job = None if trial.is_open or trial.ended else job_of(opened, trial)
        if job is not None:
            jobs.append(job)
    return jobs


def job_of(opened: Opened, trial: PlannedTrial) -> Job | None:
    """The job of one trial; None when nothing of it is left to do."""
    request = opened.ledger.missing(trial.trial_id, trial.spec, trial.request)
    if request is None:
        return None
    is_more = opened.ledger.has_trained(trial.trial_id)
    resources = opened.study.resources
    return Job(
        job_id=f"{trial.trial_id}+{request_hash(request)}" if is_more else trial.trial_id,
        trial_id=trial.trial_id,
        study=opened.study.name,
        spec=trial.spec,
        request=request,
        workspace=Workspace(
            checkpoints=f"{opened.store.rstrip('/')}/checkpoints/{trial.trial_id}",
            cache=cache_folder(),
            threads=resources.threads,
            device="cuda" if resources.gpus else "cpu",
            checkpoint_s=resources.checkpoint_s,
            gpus=resources.least_gpus,
            memory_fraction=resources.least_gpus or 1.0,
        ),
        store=opened.store,
        phase=trial.phase,
    )
