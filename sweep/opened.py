"""A study together with its trials and what its store knows of them: what every command needs."""

from dataclasses import dataclass
from pathlib import Path

from sweep.grid import PlannedTrial, planned
from sweep.ledger import Failure, Ledger
from sweep.plan import Plan, make_plan
from sweep.resolve import resolve
from sweep.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A study, multiplied out and held against its store.

    Attributes:
        study: The study.
        store: Root of its store: an absolute path or a URI.
        trials: All its trials, in the order in which they are run.
        ledger: What the store knows.
    """

    study: Study
    store: str
    trials: tuple[PlannedTrial, ...]
    ledger: Ledger

    @property
    def trial_ids(self) -> tuple[str, ...]:
        """Ids of the study's trials, in order."""
        return tuple(trial.trial_id for trial in self.trials)

    @property
    def folder(self) -> str:
        """Where the store keeps what belongs to this study alone."""
        return f"{self.store.rstrip('/')}/studies/{self.study.name}"

    def plan(self) -> Plan:
        """What is left of the study, and its price."""
        return make_plan(self.study, self.trials, self.ledger, self.store)

    def failures(self) -> dict[str, Failure]:
        """How trials of this study failed last, by trial id; those done since are not among them.

        A trial whose later request failed counts as failed, too.
        """
        ours = set(self.trial_ids)
        return {
            failure.trial_id: failure
            for failure in self.ledger.failures()
            if failure.trial_id in ours
        }


def open_study(study: Study, storage: str | None = None) -> Opened:
    """Find a study's files, multiply out its grid, and read its store; trains nothing.

    Args:
        study: The study.
        storage: Store to use instead of the study's own; None for that.

    Raises:
        StudyError: a file is missing, or an ablation does not fit.
        TableError: the store holds something that is not ours.
    """
    store = store_of(study, storage)
    return Opened(
        study=study,
        store=store,
        trials=planned(study, resolve(study)),
        ledger=Ledger(store),
    )


def store_of(study: Study, storage: str | None = None) -> str:
    """The store as an absolute path, or as the URI it is."""
    return storage_of(storage or study.storage)


def storage_of(place: str) -> str:
    """A store as an absolute path, or as the URI it is."""
    return place if "://" in place else str(Path(place).expanduser().absolute())
