"""What searches found, and when it ran: winners, oracles, slots."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from analysis import winners
from analysis.enough import seeds_wanted, two_stage_interval
from analysis.figures import style
from analysis.figures.timeline import draw_timeline, timeline_data
from analysis.schema import SCORES, TRIALS

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def points(*rows: tuple[str, float, float, str, bool]) -> pa.Table:
    """A search of one cell: (trial, learning rate, dev, state, whether it won)."""
    return pa.Table.from_pylist(
        [
            {
                "search": "s",
                "method": "tpe",
                "scope": "cell",
                "task": "upos",
                "source": "en",
                "ablation": "ref",
                "order": k + 1,
                "trial_id": trial,
                "point": f'{{"learning_rate": {rate}}}',
                "state": state,
                "metric": "accuracy",
                "dev": dev,
                "epochs": 3,
                "is_winner": won,
            }
            for k, (trial, rate, dev, state, won) in enumerate(rows)
        ],
        schema=winners.SEARCHED,
    )


def scores(*rows: tuple[str, str, str, float]) -> pa.Table:
    """(trial, language, split, value) of one metric, and a second metric that says otherwise."""
    return pa.Table.from_pylist(
        [
            {
                "trial_id": trial,
                "commit_id": trial,
                "split": split,
                "treebank": f"{language}_gsd",
                "language": language,
                "data_key": f"{language}-{split}",
                "metric": metric,
                "value": value if metric == "accuracy" else 1 - value,
                "n": 10,
            }
            for trial, language, split, value in rows
            for metric in ("accuracy", "macro_f1")
        ],
        schema=SCORES,
    )


SEARCHED = points(
    ("a", 1e-4, 0.90, "done", False),
    ("b", 1e-3, 0.95, "done", True),
    ("c", 1e-2, 0.99, "pruned", False),
)
SCORED = scores(
    ("a", "en", "dev", 0.90),
    ("a", "fr", "dev", 0.70),
    ("a", "fi", "test", 0.60),
    ("b", "en", "dev", 0.95),
    ("b", "fr", "dev", 0.66),
    ("b", "fi", "test", 0.50),
)


def test_the_oracle_reads_other_languages_and_chooses_nothing():
    """B wins on source dev; on the others a is better: 65 against 58, so the choice cost 7."""
    (winner,) = winners.winners(SEARCHED, SCORED)
    assert (winner.trial_id, winner.dev) == ("b", 0.95)
    assert winner.others == pytest.approx(0.58)
    assert winner.oracle == '{"learning_rate": 0.0001}'
    assert winner.oracle_others == pytest.approx(0.65)
    assert dict(winner.sets) == {"dev": 1, "test": 1}
    (line,) = winners.lines([winner])
    assert line[3:] == (
        "3 by tpe: 2 done, 1 pruned", "learning_rate 0.001", "95.00", "58.00",
        "learning_rate 0.0001", "65.00", "7.00",
    )  # fmt: skip
    assert "1 dev files, 1 test files" in winners.note([winner])


def test_a_trial_that_lacks_a_language_has_no_mean():
    """A mean over other languages than those of the other trials is another quantity."""
    rows = SCORED.to_pylist()
    kept = [row for row in rows if (row["trial_id"], row["data_key"]) != ("a", "fi-test")]
    lacking = pa.Table.from_pylist(kept, schema=SCORES)
    (winner,) = winners.winners(SEARCHED, lacking)
    assert winner.oracle == '{"learning_rate": 0.001}'
    assert winner.oracle_others == winner.others


def test_a_search_under_way_has_no_winner_yet():
    """The table says so, and the files of the table can be written all the same."""
    running = points(("a", 1e-4, 0.9, "done", False), ("b", 1e-3, float("nan"), "missing", False))
    found = winners.winners(running, SCORES.empty_table())
    (line,) = winners.lines(found)
    assert line[4] == "none yet"
    assert "no oracle" in winners.markdown(found)
    assert winners.latex(found).count(" & ") == 9 * 2
    assert winners.csv(running, SCORES.empty_table()).count("\n") == 3


def ran(name: str, pid: int, start: float, end: float, phase: str = "search", **fields) -> dict:
    """A row of the trials table: what ran in which process, seconds after noon."""
    blank = {field.name: "" for field in TRIALS if not field.nullable}
    return blank | {
        "trial_id": name,
        "commit_id": name,
        "status": "done",
        "cell": "c",
        "seed": 1,
        "attempt": 1,
        "host": "h",
        "pid": pid,
        "phase": phase,
        "started": NOON + timedelta(seconds=start),
        "finished": NOON + timedelta(seconds=end),
    } | fields  # fmt: skip


def laid(*rows: dict) -> pa.Table:
    """As a table."""
    return pa.Table.from_pylist(list(rows), schema=TRIALS)


def test_idle_time_is_what_no_trial_fills():
    """Two slots for 20 s, filled for 10 + 8 and 20 - 4: 34 of 40, so 15 % idle."""
    data = timeline_data(
        laid(
            ran("a", 1, 0, 10),
            ran("b", 1, 12, 20, "report"),
            ran("c", 2, 0, 8),
            ran("d", 2, 12, 20, "report", status="pruned"),
        )
    )
    assert data.lanes == ("h 1", "h 2")
    assert data.seconds == 20
    assert data.idle == pytest.approx(1 - 34 / 40)
    assert data.ends == {"c": 10}
    assert "idle 15.0 %" in data.title
    assert data.csv().splitlines()[1].startswith("h 1,0.0,10.0,search,0,c,a")


def test_a_process_that_took_another_ones_place_is_in_its_slot():
    """A worker that died and the one started for it are one slot, not two."""
    data = timeline_data(laid(ran("a", 1, 0, 10), ran("b", 2, 0, 10), ran("c", 3, 11, 20)))
    assert len(data.lanes) == 2
    assert [bar.lane for bar in data.bars if bar.trial_id == "c"] == [0]


def test_a_pause_between_two_runs_is_no_idle_time():
    """An hour in which nothing ran, longer than any trial, is cut out and marked."""
    data = timeline_data(laid(ran("a", 1, 0, 10), ran("b", 2, 3610, 3620)))
    assert data.seconds == 20
    assert data.cuts == (10.0,)
    assert data.idle == 0


def test_rows_that_say_no_process_are_left_aside():
    """A store from before the column was there has no timeline."""
    assert timeline_data(laid(ran("a", None, 0, 10))) is None
    assert timeline_data(laid(ran("a", None, 0, 10), ran("b", 1, 0, 5))).n_apart == 1


def test_a_timeline_is_drawn_with_a_bar_a_trial():
    """Each bar says what it is; the stopped one is hatched, and the end of the search marked."""
    rows = [ran("a", 1, 0, 10, status="pruned", task="upos"), ran("b", 1, 12, 20, "report")]
    text = style.svg(draw_timeline(timeline_data(laid(*rows))))
    assert text.count("<title>") == 2
    assert "upos: search, 10 s, stopped early" in text
    assert "the search of a cell has ended" in text


def test_seeds_wanted_by_hand():
    """Spread 0.01 of three: t = 4.3027, (4.3027 * 0.01 / 0.02)^2 = 4.63, so five seeds."""
    first = np.array([-0.01, 0.0, 0.01])
    assert seeds_wanted(first, 0.02, 20) == 5
    assert seeds_wanted(first, 0.02, 4) == 4
    assert seeds_wanted(first, 0.05, 20) == 3
    assert seeds_wanted(np.zeros(3), 0.001, 20) == 3
    assert seeds_wanted(first, 1e-300, 20) == 20


def test_one_first_seed_says_nothing_about_spread():
    """Where all but one of the first seeds failed, none is added and there is no interval."""
    first = np.array([0.01, np.nan, np.nan])
    assert seeds_wanted(first, 0.001, 20) == 3
    assert np.isnan(two_stage_interval(first, np.array([True] * 3))).all()


def test_the_two_stage_interval_by_hand():
    """Five values of mean 0.01, the first three of spread 0.01: 0.01 +- 4.3027 * 0.01 / sqrt(5)."""
    values = np.array([0.0, 0.01, 0.02, 0.05, -0.03])
    low, high = two_stage_interval(values, np.array([True, True, True, False, False]))
    assert low == pytest.approx(0.01 - 4.302653 * 0.01 / 5**0.5, abs=1e-8)
    assert high == pytest.approx(0.01 + 4.302653 * 0.01 / 5**0.5, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("n_first", [2, 3])
@pytest.mark.parametrize("half", [0.8, 2.0])
def test_the_two_stage_interval_holds_what_it_promises(n_first, half):
    """Over 4,000 studies without effect, of spread 1, zero is missed by 5 % of the intervals.

    So 5 % is the error rate of calling a difference real, and 95 % the coverage whatever the true
    difference is, as nothing in the rule depends on it. Plain t intervals of the same seeds miss
    more often. The bound is four standard errors.
    """
    rng = np.random.default_rng(n_first * 10 + int(half * 10))
    draws, most = 4_000, 10
    missed = plain = 0
    for values in rng.standard_normal((draws, most)):
        n = seeds_wanted(values[:n_first], half, most)
        own = values[:n]
        low, high = two_stage_interval(own, np.arange(n) < n_first)
        missed += not low <= 0 <= high
        reach = stats.t.ppf(0.975, n - 1) * own.std(ddof=1) / n**0.5
        plain += abs(own.mean()) > reach
    error = 4 * (0.05 * 0.95 / draws) ** 0.5
    assert abs(missed / draws - 0.05) < error
    assert plain > missed
