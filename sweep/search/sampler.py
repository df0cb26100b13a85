"""The next point of a search: a function of what was tried, and of a seed. Only here is Optuna.

Optuna is asked anew each time, with all that is known laid before it, so that it is no matter
whether the driver lives on or was started again. Settings that changed between versions are given,
but for two (gamma, weights) that Optuna no longer lets one give without a warning.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

from sweep.search.results import Told
from sweep.space import Axis, Choices, Point, Range, Space

N_STARTUP = 4
"""Random points before a model is trusted. Optuna's ten would be all of a small search."""

Method = Literal["random", "tpe", "gp"]

Tried = tuple[Point, Told | None]
"""A point, and what its trial came to; None while it runs."""


def propose(method: Method, space: Space, tried: Sequence[Tried], seed: int) -> Point:
    """The next point to try.

    Args:
        method: `random`, `tpe` (Bergstra et al. 2011) or `gp` (a Gaussian process).
        space: Where to look.
        tried: What was asked before, in order.
        seed: Of this very proposal, as a sampler that is made anew would repeat its first draws.
    """
    if method == "random":
        return space.draw(seed)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = distributions_of(space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(direction="maximize", sampler=_sampler(method, seed))
        study.add_trials([frozen(point, told, distributions) for point, told in tried])
        found = study.ask(distributions).params
    return {name: _tidy(axis, found[name]) for name, axis in space.axes.items()}


def distributions_of(space: Space) -> dict[str, Any]:
    """A space as Optuna writes it."""
    return {name: _distribution(axis) for name, axis in space.axes.items()}


def frozen(point: Point, told: Told | None, distributions: dict[str, Any]) -> Any:  # noqa: ANN401 - Optuna has no types
    """A tried point as Optuna's trial; one that runs is marked so, for its constant liar."""
    import optuna

    return optuna.trial.create_trial(
        state=state_of(told),
        value=told.value if told is not None and told.state == "done" else None,
        params=dict(point),
        distributions=distributions,
        intermediate_values=dict(told.curve) if told is not None else {},
    )


def state_of(told: Told | None) -> Any:  # noqa: ANN401 - Optuna has no types
    """What Optuna calls the end of a trial."""
    import optuna

    states = optuna.trial.TrialState
    if told is None:
        return states.RUNNING
    return {"done": states.COMPLETE, "pruned": states.PRUNED, "failed": states.FAIL}[told.state]


def _sampler(method: str, seed: int) -> Any:  # noqa: ANN401 - Optuna has no types
    import optuna

    if method == "gp":
        return optuna.samplers.GPSampler(
            seed=seed,
            independent_sampler=optuna.samplers.RandomSampler(seed=seed),
            n_startup_trials=N_STARTUP,
            deterministic_objective=False,
            constraints_func=None,
            warn_independent_sampling=False,
        )
    return optuna.samplers.TPESampler(
        n_startup_trials=N_STARTUP,
        n_ei_candidates=24,
        seed=seed,
        multivariate=True,
        group=False,
        constant_liar=True,
        constraints_func=None,
    )


def _distribution(axis: Axis) -> Any:  # noqa: ANN401 - Optuna has no types
    import optuna

    if isinstance(axis, Choices):
        return optuna.distributions.CategoricalDistribution(axis.values)
    if axis.is_whole:
        return optuna.distributions.IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return optuna.distributions.FloatDistribution(axis.low, axis.high, log=axis.log)


def _tidy(axis: Axis, value: Any) -> Any:  # noqa: ANN401 - a value of that axis
    return axis.tidy(value) if isinstance(axis, Range) else value
