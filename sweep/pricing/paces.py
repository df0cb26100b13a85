"""How fast machines were while trials ran there, from the product that each trial timed; pure."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from jaxtyping import Float

_DRIFT = 0.05
"""Standard deviation of a machine's pace over a study, log scale, before it was measured."""

_DRIFT_WEIGHT = 4.0
"""Trials that `_DRIFT` counts for against the measured spread."""

_HALF_LIFE_S = 1800.0
"""Seconds after which a trial's pace counts half for the pace to come."""

_NEAR_S = 60.0
"""Seconds over which the pace of a machine is taken to be much the same."""


def paces_of(trials: pa.Table) -> tuple[dict[str, float], float]:
    """How slow the machine was beside each trial, and how much that varied.

    What one trial says of its machine is noisy: all that ran there at about that time are heard.
    Times of the product are comparable between trials with as many threads. A host that is slow for
    good counts as slow: a trial there would have been faster elsewhere. It is not unsteady for
    that: the spread is that around the mean of each host.

    Returns:
        Commit -> seconds there over seconds at the pace to come; and the standard deviation of its
        logarithm over the time of one host, 0 where nothing was timed.
    """
    columns = ("commit_id", "finished", "threads", "host", "matmul_s")
    timed: dict[int, dict[str, list[tuple[float, str, float]]]] = defaultdict(dict)
    for row in trials.select(columns).to_pylist():
        if row["matmul_s"] and row["finished"] is not None:
            told = row["finished"].timestamp(), row["commit_id"], float(np.log(row["matmul_s"]))
            timed[row["threads"]].setdefault(row["host"] or "", []).append(told)
    paces: dict[str, float] = {}
    square, n = 0.0, 0
    for hosts in timed.values():
        found = [sorted(told) for told in hosts.values()]
        ended = np.concatenate([[at for at, _, _ in told] for told in found])
        smooth = [_smooth([(at, log) for at, _, log in told]) for told in found]
        square += sum(float(np.sum((of_host - of_host.mean()) ** 2)) for of_host in smooth)
        n += sum(len(of_host) - 1 for of_host in smooth)
        logs = np.concatenate(smooth)
        weights = 0.5 ** ((ended.max() - ended) / _HALF_LIFE_S)
        slower = np.exp(logs - np.average(logs, weights=weights))
        commits = (commit for told in found for _, commit, _ in told)
        paces.update(zip(commits, slower.tolist(), strict=True))
    if not paces:
        return {}, 0.0
    drift = np.sqrt((_DRIFT_WEIGHT * _DRIFT**2 + square) / (_DRIFT_WEIGHT + n))
    return paces, float(drift)


def _smooth(series: Sequence[tuple[float, float]]) -> Float[np.ndarray, " n"]:
    """Mean of (time, value) around each time, with weights that fall by `_NEAR_S`."""

    def passed(series: Sequence[tuple[float, float]]) -> Float[np.ndarray, "n 2"]:
        total, weight, before = 0.0, 0.0, series[0][0]
        found = []
        for at, value in series:
            kept = float(np.exp(-abs(at - before) / _NEAR_S))
            total, weight, before = total * kept + value, weight * kept + 1.0, at
            found.append((total, weight))
        return np.array(found)

    values = np.array([value for _, value in series])
    both = passed(series) + passed(series[::-1])[::-1] - np.stack([values, np.ones(len(values))], 1)
    means: Float[np.ndarray, " n"] = both[:, 0] / both[:, 1]
    return means
