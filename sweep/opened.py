"""A study together with its trials and what its store knows of them: what every command needs."""

from dataclasses import dataclass
from pathlib import Path

from sweep.grid import PlannedTrial, planned
from sweep.ledger import Failure, Ledger
from sweep.plan import Plan, make_plan
from sweep.resolve import Resolved, resolve
from sweep.search.layout import Layout, lay_out, needs_layout
from sweep.search.log import StoreLog
from sweep.search.results import CommittedResults
from sweep.storage import Store
from sweep.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A study, multiplied out and held against its store.

    Attributes:
        study: The study.
        store: Root of its store: an absolute path or a URI.
        trials: All its trials, in the order in which they are run; stand-ins for those that a
            search has still to decide.
        ledger: What the store knows.
        layout: Its searches and cells; None when its grid says all.
        results: What they know of their trials.
        resolved: Its files, where a later look at the store will need them again.
    """

    study: Study
    store: str
    trials: tuple[PlannedTrial, ...]
    ledger: Ledger
    layout: Layout | None = None
    results: CommittedResults | None = None
    resolved: Resolved | None = None

    @property
    def trial_ids(self) -> tuple[str, ...]:
        """Ids of the study's trials that can be named by now, in order."""
        return tuple(trial.trial_id for trial in self.trials if not trial.is_open)

    @property
    def reported(self) -> tuple[PlannedTrial, ...]:
        """The trials of tables and probes: not those that only search."""
        return tuple(trial for trial in self.trials if trial.phase != "search")

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
    return _opened(study, store_of(study, storage), resolve(study))


def again(opened: Opened) -> Opened:
    """The study as its store knows it by now."""
    if opened.resolved is None:
        opened.ledger.refresh()
        return opened
    return _opened(opened.study, opened.store, opened.resolved)


def _opened(study: Study, store: str, resolved: Resolved) -> Opened:
    ledger = Ledger(store)
    if not needs_layout(study):
        trials = planned(study, resolved)
        return Opened(study=study, store=store, trials=trials, ledger=ledger)
    layout, results = laid_out(study, store, resolved, ledger)
    layout.decide(lambda t: ledger.missing(t.trial_id, t.spec, t.request) is None)
    return Opened(
        study=study,
        store=store,
        resolved=resolved,
        trials=layout.trials(),
        ledger=ledger,
        layout=layout,
        results=results,
    )


def laid_out(
    study: Study, store: str, resolved: Resolved, ledger: Ledger
) -> tuple[Layout, CommittedResults]:
    """Searches and cells of a study, with what its store knows of them."""
    home = Store(store)
    results = CommittedResults(ledger, home, takes_pruned=study.search.prune != "off")
    layout = lay_out(study, resolved, log=StoreLog(home), results=results)
    results.prepare([i for search in layout.searches for i in search.asked_before()])
    return layout, results


def store_of(study: Study, storage: str | None = None) -> str:
    """The store as an absolute path, or as the URI it is."""
    return storage_of(storage or study.storage)


def storage_of(place: str) -> str:
    """A store as an absolute path, or as the URI it is."""
    return place if "://" in place else str(Path(place).expanduser().absolute())
