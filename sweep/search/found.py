"""What searches have found so far, as rows for the report."""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import pyarrow as pa

from analysis.winners import SEARCHED
from sweep.search.search import Search


def searched_rows(searches: Iterable[Search], scope: Literal["cell", "ref"]) -> pa.Table:
    """Every point that was asked for, in the order of the searches.

    Args:
        searches: Of one study.
        scope: Who takes their winners.
    """
    rows = [row for search in searches for row in _rows(search, scope)]
    return pa.Table.from_pylist(rows, schema=SEARCHED)


def _rows(search: Search, scope: str) -> Iterator[dict[str, Any]]:
    best, spec = search.best, search.template
    for k, (trial, point, told) in enumerate(search.tried):
        has_value = told is not None and told.value > -math.inf
        yield {
            "search": search.search_id,
            "method": search.rules.method,
            "scope": scope,
            "task": spec.task,
            "source": spec.source,
            "ablation": spec.ablation,
            "order": k + 1,
            "trial_id": trial.trial_id,
            "point": json.dumps(dict(point), sort_keys=True),
            "state": "missing" if told is None else told.state,
            "metric": "" if told is None else told.metric,
            "dev": told.value if told is not None and has_value else math.nan,
            "epochs": 0 if told is None else len(told.curve),
            "is_winner": k == best,
        }
