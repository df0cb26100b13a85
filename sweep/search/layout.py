"""A study as searches and cells: what is tried where, and which cell waits for which search.

With a search or with seeds that are added as needed, the trials of a study depend on results.
`Layout.trials` are those that can be named by now, and stand-ins for the others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sweep.grid import REFERENCE, PlannedTrial, Template, probes, templates
from sweep.identity import cell_id
from sweep.resolve import Resolved
from sweep.search.cell import Cell
from sweep.search.log import Log
from sweep.search.results import Results
from sweep.search.search import Rules, Search
from sweep.search.seeds import Panel, Until, further_seeds, is_reference
from sweep.study import Study
from trainables.spec import Request

IsKnown = Callable[[PlannedTrial], bool]
"""Whether nothing of a reported trial is left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All that a study runs.

    Attributes:
        probes: Trials that train nothing.
        searches: Searches of hyper-parameters; none when there is nothing to search.
        cells: Cells, in the order of use.
        panels: Cells that share a reference, where seeds are added as needed.
    """

    probes: tuple[PlannedTrial, ...]
    searches: tuple[Search, ...]
    cells: tuple[Cell, ...]
    panels: tuple[Panel, ...]

    def members(self) -> Iterator[Search | Cell]:
        """Searches, each before the first cell that takes its winner, and cells."""
        seen: set[int] = set()
        for cell in self.cells:
            if cell.search is not None and id(cell.search) not in seen:
                seen.add(id(cell.search))
                yield cell.search
            yield cell

    def trials(self) -> tuple[PlannedTrial, ...]:
        """Every trial once: probes, searches, then seed by seed what is reported.

        A trial of a search that is reported as well counts among the reported ones.
        """
        reported = self.reported()
        own = {trial.trial_id for trial in reported if not trial.is_open}
        searched = [trial for search in self.searches for trial in search.trials()]
        return (
            *self.probes,
            *(trial for trial in searched if trial.trial_id not in own),
            *reported,
        )

    def reported(self) -> tuple[PlannedTrial, ...]:
        """The trials of tables, seed by seed.

        Of a cell without hyper-parameters, the trial that the search will have run is left out.
        """
        by_cell = [(cell, list(cell.trials())) for cell in self.cells]
        longest = max((len(trials) for _, trials in by_cell), default=0)
        found = [
            trials[i]
            for i in range(longest)
            for cell, trials in by_cell
            if i < len(trials) and not _comes_from_search(cell, trials[i])
        ]
        return tuple(found)

    def decide(self, is_known: IsKnown) -> None:
        """Add the seeds that results ask for already."""
        if not self.panels:
            return
        for cell in self.cells:
            for trial in cell.trials():
                if not trial.is_open and is_known(trial):
                    cell.settle(trial)
        for panel in self.panels:
            for _ in panel.widen():
                pass


def _comes_from_search(cell: Cell, trial: PlannedTrial) -> bool:
    """Whether an open trial is one of those that its search runs."""
    search = cell.search
    return (
        trial.is_open
        and search is not None
        and trial.spec.seed == search.rules.seed
        and trial.cell_id == search.cell
    )


def needs_layout(study: Study) -> bool:
    """Whether results decide what a study runs; else its grid says it all."""
    return study.search.is_on or study.seeds.until is not None


def lay_out(study: Study, resolved: Resolved, *, log: Log, results: Results) -> Layout:
    """Find the searches and cells of a study.

    Args:
        study: The study.
        resolved: Its files.
        log: Points that searches have asked for.
        results: Ends of trials.

    Raises:
        StudyError: an ablation is unknown, does not fit the encoder, or is named twice.
    """
    found = templates(study, resolved)
    searches: dict[tuple[str, ...], Search] = {}
    cells = []
    for template in found:
        search = None
        if study.search.is_on:
            key = _scope(study, template)
            if key not in searches:
                searches[key] = _search(study, resolved, template, log, results)
            search = searches[key]
        cells.append(Cell(template, study.seeds.report, search))
    return Layout(
        probes=probes(study, resolved),
        searches=tuple(searches.values()),
        cells=tuple(cells),
        panels=tuple(_panels(study, cells, results)),
    )


def rules_of(study: Study, task: str) -> Rules:
    """How the searches of one task go about."""
    search, space = study.search, study.space(task)
    assert search.method != "none"  # noqa: S101 - callers have asked
    return Rules(
        method=search.method,
        space=space,
        n=search.trials or space.size or 0,
        seed=study.seeds.search,
        at_once=search.at_once,
        prune=search.prune,
        grace=search.grace,
        reduction=search.reduction,
    )


def _scope(study: Study, template: Template) -> tuple[str, ...]:
    spec = template.spec
    ablation = spec.ablation if study.search.scope == "cell" else REFERENCE
    return spec.task, spec.source, ablation


def _search(
    study: Study, resolved: Resolved, template: Template, log: Log, results: Results
) -> Search:
    spec = template.spec
    if study.search.scope == "ref":
        spec = replace(spec, ablation=REFERENCE)
    return Search(
        rules_of(study, spec.task),
        spec,
        cell_id(spec),
        _search_request(study, resolved, template),
        log=log,
        results=results,
    )


def _search_request(study: Study, resolved: Resolved, template: Template) -> Request:
    """What is measured on the trials of a search: what the oracle sees, who chooses nothing.

    Dev files of the targets where there are some, else the targets themselves. If the search's
    seed is reported, all that is reported is measured, too.
    """
    task, source = template.spec.task, template.spec.source
    oracle = tuple(ref for ref in resolved.oracle.get(task, ()) if ref.language != source)
    if not study.seeds.reuse_search:
        return Request(targets=oracle)
    own = {ref.key for ref in template.request.targets}
    extra = tuple(ref for ref in oracle if ref.key not in own)
    return replace(template.request, targets=(*template.request.targets, *extra))


def _panels(study: Study, cells: list[Cell], results: Results) -> Iterator[Panel]:
    wanted, seeds = study.seeds.until, study.seeds
    if wanted is None:
        return
    until = Until(
        first=seeds.report,
        more=further_seeds(seeds.report, seeds.search, wanted.max),
        half_width=wanted.half_width,
        metric=wanted.metric or "",
        targets=wanted.targets,
    )
    sides: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        sides.setdefault((cell.template.spec.task, cell.template.spec.source), []).append(cell)
    for own in sides.values():
        (reference,) = filter(is_reference, own)
        yield Panel(reference, tuple(c for c in own if c is not reference), until, results)
