"""What a report says where counts of single sentences are known."""

import csv
import sys
from pathlib import Path

from analysis.report import write_report

sys.path.insert(0, str(Path(__file__).parent))
from counted_samples import counted_study


def test_sentences_widen_what_is_said(make_tables, tmp_path):
    """With counts of sentences page, Markdown and CSV show the interval over both; none without."""
    tables, rows = counted_study(make_tables, (1, 2), lambda a, *_: 0.2 + 0.1 * (a != "ref"))
    with_counts = write_report(tables, tmp_path / "a", title="a", sentences=rows, n_figures=0)
    page = with_counts.page.read_text(encoding="utf-8")
    assert "over seeds and sentences</th>" in page
    assert "95 % interval over seeds and sentences" in page
    folder = with_counts.page.parent / "tables"
    assert "| over seeds and sentences |" in (folder / "effects.md").read_text(encoding="utf-8")
    for name in ("effects.csv", "gaps.csv", "numbers.csv"):
        with (folder / name).open(encoding="utf-8") as file:
            shown = list(csv.DictReader(file))
        assert shown
        assert all(float(row["low_both"]) < float(row["high_both"]) for row in shown)
    without = write_report(tables, tmp_path / "b", title="b", n_figures=0)
    assert "seeds and sentences" not in without.page.read_text(encoding="utf-8")


def test_one_seed_says_that_its_intervals_are_over_sentences(make_tables, tmp_path):
    """With one seed the interval is over sentences alone, and is called so."""
    tables, rows = counted_study(make_tables, (1,), lambda a, *_: 0.2 + 0.1 * (a != "ref"))
    report = write_report(tables, tmp_path, title="a", sentences=rows, n_figures=0)
    page = report.page.read_text(encoding="utf-8")
    assert "over sentences, one seed</th>" in page
    assert "seeds and sentences" not in page
