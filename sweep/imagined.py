"""A study's grid before anything is downloaded: its cells and trials, counted from the file alone.

Nothing is looked at but the study: neither data nor encoder nor store. So ids mean nothing, all
trials count as left, and an ablation is checked for its spelling only, not against the encoder.
"""

import re
from dataclasses import replace

import pyarrow as pa

from analysis.schema import TABLES
from sweep.grid import PlannedTrial, planned
from sweep.plan import Plan, make_plan
from sweep.resolve import Resolved, assembled, wanted_files
from sweep.search.layout import lay_out, needs_layout
from sweep.search.log import MemoryLog
from sweep.search.results import NoResults
from sweep.study import Study
from trainables.data.treebanks import language_of
from trainables.spec import DataRef, EncoderRef, Request, TrialSpec

_MOST_LAYERS = 1000
"""More layers than this are a slip of the pen, not an encoder."""


class _Nothing:
    """A store in which nothing is known."""

    def missing(self, trial_id: str, spec: TrialSpec, request: Request) -> Request | None:  # noqa: ARG002 - as a ledger
        """Everything."""
        return request

    def has_trained(self, trial_id: str) -> bool:  # noqa: ARG002 - as a ledger
        """Nothing was."""
        return False

    def has_weights(self, trial_id: str) -> bool:  # noqa: ARG002 - as a ledger
        """Nothing has."""
        return False

    def table(self, name: str) -> pa.Table:
        """No rows."""
        return pa.Table.from_batches([], TABLES[name])  # an array would load pandas


def counted(study: Study) -> Plan:
    """All cells and trials of a study.

    Raises:
        StudyError: an ablation is unknown, misspelt, or named twice.
        DataError: the name of a target says no language.
    """
    return make_plan(study, trials_of(study), _Nothing())


def trials_of(study: Study) -> tuple[PlannedTrial, ...]:
    """All its trials, with stand-ins for those that a search has still to decide.

    Raises:
        StudyError: an ablation is unknown, misspelt, or named twice.
    """
    if not needs_layout(study):
        return planned(study, imagined(study))
    return lay_out(study, imagined(study), log=MemoryLog(), results=NoResults()).trials()


def imagined(study: Study) -> Resolved:
    """The files and the encoder that a study names, as if they were there."""
    files = {
        file: DataRef(
            code=file[0],
            language=language_of(file[0]),
            split=file[1],
            location="",
            fingerprint=f"imagined:{file}",
        )
        for file in wanted_files(study)
    }
    name = study.encoder.model
    encoder = EncoderRef(
        name=name, location="", fingerprint=f"imagined:{name}", n_layers=_layers_named(study)
    )
    found = assembled(study, encoder, files)
    return replace(found, oracle=found.targets) if study.search.is_on else found


def _layers_named(study: Study) -> int:
    """The highest layer that an ablation names: the least that the encoder must have."""
    numbers = (int(text) for name in study.grid.ablation for text in re.findall(r"\d+", name)[:99])
    return max((number for number in numbers if number <= _MOST_LAYERS), default=1)
