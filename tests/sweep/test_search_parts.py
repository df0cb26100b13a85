"""The small parts of a search: spaces, stopping rules, logs, the window of Optuna."""

import math
from pathlib import Path

import pytest
import search_samples as made
from hypothesis import given
from hypothesis import strategies as st

from analysis.rowfiles import TableError
from sweep.search.log import StoreLog
from sweep.search.mirror import Mirror
from sweep.search.pruning import FEWEST, rungs, survives_halving, survives_median
from sweep.search.seeds import further_seeds
from sweep.space import Choices, Range, Space
from sweep.storage import Store


def test_a_grid_is_all_points_the_last_axis_fastest():
    """Two by three points, each once."""
    space = Space({"learning_rate": Choices((1e-5, 5e-5)), "batch_size": Choices((8, 16, 32))})
    points = list(space.grid())
    assert len(points) == space.size == 6
    assert points[1] == {"learning_rate": 1e-5, "batch_size": 16}
    assert points[-1] == {"learning_rate": 5e-5, "batch_size": 32}


@given(
    low=st.floats(1e-6, 1.0), factor=st.floats(1.01, 1e4), log=st.booleans(), seed=st.integers(0)
)
def test_what_is_drawn_lies_in_its_range(low, factor, log, seed):
    """Every draw is within both ends, rounding included."""
    axis = Range(low, low * factor, log)
    value = Space({"x": axis}).draw(seed)["x"]
    assert axis.low <= value <= axis.high


def test_a_logarithmic_range_counts_ratios():
    """Half way from 1e-5 to 1e-1 is 1e-3; of a plain range from 0 to 8 it is 4."""
    assert Range(1e-5, 1e-1, log=True).at(0.5) == pytest.approx(1e-3)
    assert Range(0, 8).at(0.5) == 4.0
    assert [Range(1, 3, is_whole=True).at(part) for part in (0.0, 0.34, 0.99)] == [1, 2, 3]


def test_rungs_multiply_and_stop_before_the_end():
    """From 1 by threes: 1, 3, 9; with nothing at the last epoch, where nothing is left to stop."""
    assert rungs(15, 1, 3) == (1, 3, 9)
    assert rungs(9, 1, 3) == (1, 3)
    assert rungs(3, 2, 2) == (2,)
    assert rungs(2, 2, 2) == ()


def test_halving_keeps_the_best_third_rounded_up():
    """The first always goes on; of two the better; of four the best two; ties go on."""
    assert survives_halving(0.1, [], 3)
    assert not survives_halving(0.1, [0.2], 3)
    assert survives_halving(0.2, [0.2], 3)
    assert survives_halving(0.3, [0.4, 0.1, 0.2], 3)
    assert not survives_halving(0.2, [0.4, 0.3, 0.1], 3)


def test_what_is_no_number_counts_as_worst():
    """A score that is NaN does not go on beside a real one, and stops nobody."""
    assert not survives_halving(math.nan, [0.1], 3)
    assert survives_halving(0.1, [math.nan], 3)


def test_the_median_rule_waits_for_some_others():
    """Below the median of three others at this epoch a trial stops; two others stop nobody."""
    others = [{1: 0.5}, {1: 0.6}, {1: 0.7}]
    assert len(others) == FEWEST
    assert survives_median({1: 0.1}, 1, others[:2])
    assert not survives_median({1: 0.55}, 1, others)
    assert survives_median({1: 0.6}, 1, others)
    assert survives_median({1: 0.6, 2: 0.1}, 2, [{2: 0.5}, {2: 0.6}, {2: 0.6}])


def test_seeds_go_on_after_the_first_ones():
    """The next whole numbers, without the seed of the search."""
    assert further_seeds((1, 2, 3), 0, 6) == (4, 5, 6)
    assert further_seeds((1, 2, 3), 5, 6) == (4, 6, 7)
    assert further_seeds((42,), 0, 3) == (43, 44)


def test_a_log_is_read_as_it_was_written(tmp_path: Path):
    """Numbers keep their type and all their digits."""
    log = StoreLog(Store(str(tmp_path)))
    points = [{"learning_rate": 3.162e-05, "batch_size": 16, "schedule": "linear"}]
    assert log.read("0123456789abcdef") == ()
    log.write("0123456789abcdef", points)
    assert log.read("0123456789abcdef") == tuple(points)


def test_a_log_that_is_not_ours_is_named(tmp_path: Path):
    """The error says which file, and that deleting it costs no result."""
    (tmp_path / "searches").mkdir()
    (tmp_path / "searches" / "x.json").write_text("{")
    with pytest.raises(TableError, match=r"searches/x\.json: not a list of points .* Delete it"):
        StoreLog(Store(str(tmp_path))).read("x")


def test_optuna_shows_each_search_as_it_stands(tmp_path: Path):
    """What the journal says of each point: its parameters, its curve, how it ended."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    search = made.TPE | {"prune": "asha"}
    rehearsal = made.Rehearsal(made.study_of(tmp_path, search))
    journal = tmp_path / "optuna.journal"
    warnings: list[str] = []
    with Mirror(journal, warnings.append) as mirror:
        rehearsal.schedule._show = mirror.show
        rehearsal.run(slots=2)
    assert warnings == []
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(journal)))
    names = optuna.get_all_study_names(storage)
    assert names == ["upos en ref", "upos en reinit:1"]
    study = optuna.load_study(study_name="upos en ref", storage=storage)
    own = rehearsal.layout.searches[0]
    ends = {"done": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}
    assert [t.state.name for t in study.trials] == [ends[told.state] for _, _, told in own.tried]
    assert [t.params for t in study.trials] == [point for _, point, _ in own.tried]
    assert [t.intermediate_values for t in study.trials] == [told.curve for *_, told in own.tried]
    assert study.best_trial.number == own.best


def test_a_mirror_that_cannot_write_warns_and_lets_go(tmp_path: Path):
    """The search runs to its end; there is one warning, which says what is missing."""
    rehearsal = made.Rehearsal(made.study_of(tmp_path, made.GRID))
    (tmp_path / "file").touch()
    warnings: list[str] = []
    with Mirror(tmp_path / "file" / "optuna.journal", warnings.append) as mirror:
        rehearsal.schedule._show = mirror.show
        rehearsal.run()
    assert rehearsal.schedule.is_done()
    assert len(warnings) == 1
    assert "optuna-dashboard will not show" in warnings[0]
