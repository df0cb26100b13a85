"""The report: tables in their printed shape, files, one page that can be trusted."""

import csv
import io
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from analysis import findings, formats
from analysis.report import write_report
from analysis.roster import roster

GOLDEN = Path(__file__).parent.parent / "golden" / "report"
ORDER = ("en_pud", "fr_pud", "de_pud", "ru_pud", "ar_pud", "hi_pud", "tr_pud", "zh_pud", "th_pud")


class Outline(HTMLParser):
    """Collects what the tests ask of a page, as a browser would read it."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.sources, self.text = [], [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Remember an opening tag."""
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        self.sources += [values["src"]] if "src" in values else []

    def handle_data(self, data):
        """Remember text."""
        self.text += data


@pytest.fixture
def written(make_tables, tmp_path):
    """Writes a report of made-up tables without figures, and gives (report, page's text)."""

    def write(*args, tables=None, options=None, **made):
        settings = {"title": "first-align-small", "n_figures": 0} | (options or {})
        report = write_report(tables or make_tables(*args, **made), tmp_path / "out", **settings)
        return report, report.page.read_text(encoding="utf-8")

    return write


@pytest.fixture(scope="module")
def drawn(make_tables, tmp_path_factory):
    """A report with its figures, and its page's text."""
    report = write_report(make_tables(), tmp_path_factory.mktemp("report"), title="drawn")
    return report, report.page.read_text(encoding="utf-8")


def golden(name, text):
    """Compare with a golden file; RENEW_GOLDEN=1 in the environment rewrites it."""
    path = GOLDEN / name
    if os.environ.get("RENEW_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["main.md", "main.tex", "upos-en-pud-500.md", "upos-en-pud-500.tex"]
)
def test_tables_look_as_they_did(written, name):
    """Markdown and LaTeX of the first real numbers, with a failed seed, are the golden ones."""
    report, _ = written((0, 1), noise=0.3, failed=[("reinit:5-6", 1)], options={"targets": ORDER})
    golden(name, (report.page.parent / "tables" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["numbers.csv", "effects.csv", "correlation.csv"])
def test_numbers_are_as_they_were(written, name):
    """CSV files of one seed, every digit, are the golden ones (to 12 digits across machines)."""
    report, _ = written()
    text = (report.page.parent / "tables" / name).read_text(encoding="utf-8")
    golden(name, re.sub(r"-?\d+\.\d+(e-\d+)?", lambda m: f"{float(m[0]):.10g}", text))


def test_main_table_has_the_published_shape(written):
    """REF in percent, six differences in points: source, then the mean of the others."""
    report, _ = written()
    lines = [line for line in report.main_table.splitlines() if line.startswith("| POS")]
    assert [line.split("|")[3:6] for line in lines] == [
        [" 95.10 ", " *-2.30* ", " -1.70 "],
        [" 75.17 ", " **-11.78** ", " *-4.32* "],
    ]


def test_every_number_leads_to_its_trials(written):
    """Each link inside the page has a target, and each number names its trial in the CSV."""
    report, text = written((0, 1), noise=0.2)
    page = Outline(text)
    inner = {link[1:] for link in page.links if link.startswith("#")}
    assert inner <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    numbers = (report.page.parent / "tables/numbers.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(io.StringIO(numbers)):
        assert len(row["trial_ids"].split()) == int(row["n"]) == 2
        assert len(row["reference_trial_ids"].split()) == (0 if row["kind"] == "score" else 2)
        assert all(trial in text for trial in row["trial_ids"].split())


def test_data_are_never_markup(written, make_tables):
    """Script in the title, the study file, an encoder's name or an error message stays text."""
    bad = "<script>alert(1)</script>"
    tables = make_tables(encoder=bad, study=bad, failed=[("reinit:1-2", 0)])
    index = tables.trials.column_names.index("failure")
    field = tables.trials.schema.field(index)
    failure = pa.array([f"{bad} & \"'"] * len(tables.trials), pa.string())
    trials = tables.trials.set_column(index, field, failure)
    tables = type(tables)(trials, tables.scores, tables.similarity, tables.curves)
    options = {"title": bad, "study_text": f"# {bad}"}
    _, text = written(tables=tables, options=options)
    page = Outline(text)
    assert "script" not in page.tags
    assert page.text.count(bad) >= 4


def test_only_web_addresses_become_links(written, make_tables):
    """A tracking link is shown when it is http(s), and dropped when it is not."""
    tables = make_tables()
    good, evil = (trial for trial in tables.trials["trial_id"].to_pylist()[1:3])
    links = {good: "http://127.0.0.1:5000/#/runs/1?a=1&b=2", evil: "javascript:alert(1)"}
    _, text = written(tables=tables, options={"links": links})
    found = Outline(text).links
    assert "http://127.0.0.1:5000/#/runs/1?a=1&b=2" in found
    assert not any(link.startswith("javascript") for link in found)


def test_page_needs_no_network_and_no_script(drawn):
    """Nothing is loaded: no script, no source attribute, a policy that forbids the rest."""
    _, text = drawn
    page = Outline(text)
    assert "script" not in page.tags
    assert page.sources == []
    assert "default-src 'none'" in text
    assert not [link for link in page.links if re.match(r"\w+:", link)]
    assert "@import" not in text


def test_page_is_accessible(drawn):
    """Tables have scoped heads and captions, figures an alternative text, the page a language."""
    _, text = drawn
    assert text.count("<th") - text.count("<thead") == text.count('scope="')
    assert (
        text.count('role="img" aria-label="') == text.count("<svg") == text.count("<figure>") == 9
    )
    assert '<html lang="en">' in text
    assert 'name="viewport"' in text


def test_figures_are_files_beside_the_page(drawn):
    """Each figure is there as PNG, SVG and CSV; the page links to them."""
    report, text = drawn
    names = {path.relative_to(report.page.parent).as_posix() for path in report.files}
    figures = {name for name in names if name.startswith("figures/")}
    assert len(figures) == 27
    assert figures <= set(Outline(text).links)


def test_without_figures_their_data_remain(written):
    """Beyond n_figures only the CSV is written, and the page says so."""
    report, text = written()
    suffixes = {path.suffix for path in report.files if path.parent.name == "figures"}
    assert suffixes == {".csv"}
    assert "Figures are drawn for the first 0 of 1 settings" in text


def test_equal_tables_give_equal_bytes(make_tables, tmp_path):
    """Two reports of the same tables, rows in another order, are the same in every file."""
    tables = make_tables((0, 1), noise=0.4, ablations=("ref", "reinit:1-2"))
    turned = type(tables)(
        *(table.take(pa.array(range(len(table))[::-1])) for table in tables.by_name().values())
    )
    first, second = (
        write_report(rows, tmp_path / name, title="t", n_figures=0)
        for name, rows in (("a", tables), ("b", turned))
    )
    assert [path.read_bytes() for path in first.files] == [p.read_bytes() for p in second.files]


def test_names_of_a_study_never_become_paths(make_tables, tmp_path):
    """A task called ../../x writes below the folder like any other."""
    report = write_report(
        make_tables(tasks=("../../x",)), tmp_path / "deep" / "out", title="../t", n_figures=0
    )
    assert all(path.is_relative_to(tmp_path / "deep" / "out") for path in report.files)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_failures_are_shown_with_their_reason(written):
    """A failed ablation is a dash with its reason in the table, and a row among the failures."""
    report, text = written(failed=[("reinit:1-2", 0)])
    assert "seed 0: failed (out-of-memory): CUDA out of memory: tried \\<2.5 GiB\\>" in (
        report.main_table
    )
    assert "1 of 8 trials has no numbers (1 failed)" in Outline(text).text
    assert text.count("CUDA out of memory: tried &lt;2.5 GiB&gt;") >= 3


def test_trials_that_lack_numbers_for_one_reason_share_a_row(written):
    """The row names the cell, its seeds and their trials; another cell has a row of its own."""
    _, text = written((0, 1), failed=[("reinit:1-2", 0), ("reinit:1-2", 1), ("reinit:11-12", 1)])
    section = text[text.index('<section id="failures">') :]
    section = section[: section.index("</section>")]
    rows = [row for row in section.split("<tr>") if "CUDA out of memory" in row]
    assert len(rows) == 2
    assert "reinit:1-2" in rows[0]
    assert "<td>0, 1</td><td>failed</td>" in rows[0]
    assert "reinit:11-12" in rows[1]
    assert "<td>1</td><td>failed</td>" in rows[1]


def test_a_declared_target_that_nobody_scored_is_reported(written):
    """SRC-X is a dash that names the language, not a mean over the others."""
    report, _ = written(options={"targets": (*ORDER, "pl_pud")})
    assert "no score on Polish" in report.main_table
    assert "75.17" not in report.main_table


def test_one_other_language_is_named(written, make_tables):
    """Its line is its own and no "mean of 1 others"; the curves say whose they are."""
    tables = make_tables(languages=("en", "de"))
    report, text = written(tables=tables, options={"targets": ("en_pud", "de_pud")})
    assert "English → German" in report.main_table
    assert "mean of" not in report.main_table.partition("\n")[2]
    assert "mean of 1 " not in text


def test_a_study_without_results_has_a_page(written, make_tables):
    """All trials failed: the page says that there is nothing, and why."""
    tables = make_tables(ablations=("ref",), failed=[("ref", 0)], similarity=False)
    _, text = written(tables=tables)
    assert "No scores yet" in text
    assert "CUDA out of memory" in text


def test_an_empty_store_has_a_page(written, make_tables):
    """No row at all is no error."""
    _, text = written(tables=make_tables(ablations=(), similarity=False))
    assert "No scores yet" in text


def test_without_similarity_there_are_tables_only(written):
    """A study that measured no similarity gets its tables and the heatmap of differences."""
    report, text = written(similarity=False, options={"n_figures": 1})
    assert text.count("<figure>") == 1
    assert "tables/similarity.csv" not in text
    assert "-11.78" in report.main_table


def test_the_head_says_what_the_numbers_say(written):
    """The sentences hold the numbers of the main table, and admit to one seed."""
    _, text = written()
    said = " ".join(Outline(text).text.split())
    assert "The reference scores 95.1 on English and 75.2 on average over the 9 other" in said
    assert (
        "Re-initialising layers 1-2 costs English 2.3 points and the 9 other languages 11.8" in said
    )
    assert "5.1 times as much" in said
    assert (
        "Re-initialising layers 11-12 costs neither: +0.9 on English, +1.0 on the others." in said
    )
    assert "One seed: these numbers carry no interval over seeds" in said


def test_the_head_does_not_find_what_is_not_there(written):
    """Noise without an effect is called no effect, and no correlation is claimed."""
    _, text = written(
        (0, 1, 2),
        ablations=("ref", "reinit:1-2"),
        languages=("en", "fr", "de", "ru"),
        score=lambda _ablation, _seed, language: 0.9 if language == "en" else 0.7,
    )
    said = " ".join(Outline(text).text.split())
    assert "No ablation costs the other languages half a point on average" in said
    assert "With 3 languages none could: the least p is 0.25." in said
    assert "No ablation can be shown to cost the other languages more than English" in said
    assert "transfer better:" not in said


def test_weak_correlation_is_called_weak(written):
    """With four targets no rho can be told from chance, and the head says so."""
    _, text = written(languages=("en", "fr", "de", "ru", "ko"))
    said = " ".join(Outline(text).text.split())
    assert "cannot be told from chance: Spearman's rho = " in said
    assert "(n = 4 languages, p = " in said


def test_two_encoders_are_told_apart(written, make_tables):
    """Rows of two encoders name theirs and are compared with their own reference."""
    first, second = make_tables(), make_tables(encoder="other", score=lambda *_: 0.5)
    pairs = zip(first.by_name().values(), second.by_name().values(), strict=True)
    both = type(first)(*(pa.concat_tables(pair) for pair in pairs))
    report, _ = written(tables=both)
    lines = [line for line in report.main_table.splitlines() if line.startswith("| POS")]
    assert [(", other, pud" in line, line.split("|")[3].strip()) for line in lines] == [
        (False, "95.10"), (False, "75.17"), (True, "50.00"), (True, "50.00")
    ]  # fmt: skip


def test_markup_of_the_formats_is_escaped():
    """Names with Markdown or LaTeX in them stay names."""
    assert formats.plain("a|b*c[d]") == "a\\|b\\*c\\[d\\]"
    assert formats.escaped("50% of a_b & {c}") == r"50\% of a\_b \& \{c\}"


def test_no_failures_no_sentence(make_tables):
    """When all trials are done there is nothing to say of failures."""
    assert findings.failures(roster(make_tables().trials)) == ""
