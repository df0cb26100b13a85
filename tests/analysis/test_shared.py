"""Subword overlap against the scores of a study."""

import pyarrow as pa
import pytest
from scipy import stats

from analysis.report import write_report
from analysis.schema import OVERLAP

SEEN = {"fr": 0.6, "de": 0.55, "ru": 0.3, "ar": 0.2, "hi": 0.18, "tr": 0.4, "zh": 0.15, "en": 1.0}


def rows(fingerprint="sha256:me5-small", train="sha256:aa[:2000]"):
    """Overlaps of eight of the ten test sets, English included."""
    return pa.Table.from_pylist(
        [
            {
                "encoder_fingerprint": fingerprint,
                "train_key": train,
                "data_key": f"sha256:{language}[:500]",
                "types": types,
                "tokens": types**0.5,
                "n_types": 900,
                "n_tokens": 9_000,
            }
            for language, types in SEEN.items()
        ],
        schema=OVERLAP,
    )


def test_report_correlates_overlap_with_transfer(make_tables, tmp_path):
    """Page, CSV and figures hold Pearson's r over the seven targets that are not the source."""
    tables = make_tables((1, 2), noise=0.3, similarity=False, ablations=("ref", "reinit:1-2"))
    report = write_report(tables, tmp_path, title="t", overlaps=rows())
    names = {path.name for path in report.files}
    for kind in ("types", "tokens"):
        assert {f"upos-en-pud-500-overlap-{kind}.{end}" for end in ("png", "svg", "csv")} <= names
    lines = (tmp_path / "tables/overlap.csv").read_text(encoding="utf-8").splitlines()
    head = lines[0].split(",")
    found = [dict(zip(head, line.split(","), strict=True)) for line in lines[1:]]
    assert {row["target"] for row in found} == set(SEEN) - {"en"}
    assert len(head) == len(set(head))
    scores = [float(row["score"]) for row in found]
    expected = stats.pearsonr([SEEN[row["target"]] for row in found], scores)
    assert float(found[0]["r_of_types"]) == pytest.approx(expected.statistic)
    assert float(found[0]["p_of_types"]) == pytest.approx(expected.pvalue)
    page = report.page.read_text(encoding="utf-8")
    assert "share more subwords with the English training set score higher" in page
    assert f"<td>{expected.statistic:.2f}</td>" in page


@pytest.mark.parametrize("changed", [{"fingerprint": "sha256:x"}, {"train": "sha256:aa"}])
def test_overlap_of_other_files_or_tokenizers_is_not_used(make_tables, tmp_path, changed):
    """Counts of another tokenizer, or of more training data, say nothing about these trials."""
    tables = make_tables((1,), similarity=False, ablations=("ref",))
    report = write_report(tables, tmp_path, title="t", overlaps=rows(**changed), n_figures=0)
    assert not any("overlap" in path.name for path in report.files)
    assert "Pearson" not in report.page.read_text(encoding="utf-8")
