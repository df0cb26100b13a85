"""Figure data, and figures that say what their data say."""

import csv
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from analysis.blocks import blocks, lineups
from analysis.cells import scored
from analysis.evidence import align, weigh
from analysis.figures import gap_similarity, heatmap, layer_curves, style
from analysis.profiles import FINE_TUNED, PRETRAINED, profiles
from analysis.roster import roster


@pytest.fixture
def study(make_tables):
    """Evidence, profile and alignment of the made-up study."""
    tables = make_tables()
    known = roster(tables.trials)
    found = scored(tables.scores, known)
    shown = lineups(known, found, {"upos": "accuracy"})
    (block,) = blocks(known, found, shown)
    (profile,) = profiles(tables.similarity, known, shown)
    return weigh(block, known), profile, align(block, profile, known)


def rows_of(text):
    """A CSV file as dictionaries."""
    return list(csv.DictReader(io.StringIO(text)))


def test_curves_by_ablation_are_means_over_targets(study):
    """Each line is the unweighted mean over languages; the band is that of shuffled pairs."""
    data = layer_curves.by_ablation_data(study[1], "en")
    assert [line.key for line in data.lines][:2] == ["ref", "reinit:1-2"]
    assert data.lines[-1].kind == "pretrained"
    assert data.lines[0].values == pytest.approx(study[1].values[0, :, :, 0].mean(axis=0))
    assert data.null[:, 4] == pytest.approx([0.28, 0.29])


def test_curves_by_target_are_ordered_by_transfer(study):
    """The language that transfers best comes first (darkest)."""
    evidence, profile, _ = study
    scores = list(zip(evidence.block.targets, evidence.scores.mean[0], strict=True))
    data = layer_curves.by_target_data(profile, "en", scores)
    assert [line.key for line in data.lines] == [
        "ru",
        "de",
        "fr",
        "tr",
        "ar",
        "hi",
        "zh",
        "th",
        "ko",
    ]


def test_curves_by_target_are_of_the_models_asked_for(study):
    """Before training and under an ablation: their own numbers, no band of the reference's null."""
    _, profile, _ = study
    before = layer_curves.by_target_data(profile, "en", [], PRETRAINED)
    lower = layer_curves.by_target_data(profile, "en", [], "reinit:1-2")
    for data, values in ((before, profile.pretrained), (lower, profile.values[1, :, :, 0])):
        assert [line.key for line in data.lines] == list(profile.targets)
        assert np.array([line.values for line in data.lines]) == pytest.approx(values)
        assert data.null is None
    assert layer_curves.by_target_data(profile, "en", [], "reinit:5") is None


def test_a_target_missing_in_one_ablation_leaves_no_line_of_fewer(study):
    """A mean over fewer languages is not drawn beside means over all."""
    profile = study[1]
    profile.values[1, 0] = np.nan
    assert "reinit:1-2" not in {
        line.key for line in layer_curves.by_ablation_data(profile, "en").lines
    }


def test_points_are_gap_and_similarity(study):
    """One point a language without the source; English less Korean is 30 points."""
    data = gap_similarity.gap_similarity_data(study[2], FINE_TUNED, "en")
    assert len(data.languages) == 9
    assert data.gap[data.languages.index("ko")] == pytest.approx(0.30)
    assert gap_similarity.gap_similarity_data(study[2], "elsewhere", "en") is None


def test_heatmaps_hold_the_numbers(study):
    """Languages by layers of the reference; languages by ablations of the differences."""
    evidence, profile, _ = study
    near = heatmap.similarity_data(profile, "en")
    assert near.values == pytest.approx(profile.values[0, :, :, 0])
    lost = heatmap.delta_data(evidence)
    assert lost.columns == ("1-2", "3-4", "5-6", "7-8", "9-10", "11-12")
    assert lost.values[0, 0] == pytest.approx(-0.023)


def test_csv_beside_a_figure_holds_every_digit(study):
    """Reading the CSV back gives the plotted numbers exactly."""
    data = heatmap.similarity_data(study[1], "en")
    values = [float(row["value"]) for row in rows_of(data.csv())]
    assert values == data.values.ravel().tolist()


def drawings(study):
    """One drawing of each kind."""
    evidence, profile, alignment = study
    return [
        layer_curves.draw_curves(layer_curves.by_ablation_data(profile, "en")),
        layer_curves.draw_curves(layer_curves.correlation_data(alignment)),
        gap_similarity.draw_gap_similarity(
            gap_similarity.gap_similarity_data(alignment, FINE_TUNED, "en")
        ),
        heatmap.draw_heatmap(heatmap.delta_data(evidence)),
    ]


def test_equal_data_give_equal_bytes(study):
    """Drawing twice gives the same SVG and the same PNG."""
    first, second = ([(style.svg(d), style.png(d)) for d in drawings(study)[:1]] for _ in range(2))
    assert first == second


def test_svg_is_xml_with_a_tip_for_each_mark(study):
    """Every tip is in the file, on an element of its own; no date is."""
    for drawing in drawings(study):
        text = style.svg(drawing)
        ET.fromstring(text[text.index("<svg") :])  # noqa: S314 - our own output
        assert text.count("<title>") == len(drawing.tips) > 0
        assert "dc:date" not in text


def test_names_are_text_not_markup():
    """A language called `<b>$x$` is drawn as it is."""
    data = heatmap.Heatmap("t", ("<b>$x$",), ("0",), "layer", np.array([[0.5]]))
    text = style.svg(heatmap.draw_heatmap(data))
    assert "<b>" not in text
    assert text.count("&lt;b&gt;$x$") == 2  # the row's name, and the tip


def test_inline_figures_share_a_page_without_sharing_ids(study):
    """Ids and references to them carry the figure's prefix."""
    text = style.inline(style.svg(drawings(study)[0]), "fig-1", 'an "alt" text')
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert ids
    assert all(name.startswith("fig-1-") for name in ids)
    used = re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', text)
    assert {a or b for a, b in used} <= set(ids)
    assert text.startswith("<svg viewBox=")
    assert 'aria-label="an &quot;alt&quot; text"' in text


@pytest.mark.parametrize("places", [[0.0, 0.0, 0.0], [0.0, 0.05, 1.0, 1.01], [3.0, 1.0, 2.0]])
def test_spread_labels_keep_order_and_distance(places):
    """Labels stay in order, at least the least distance apart, and centred on their lines."""
    moved = style.spread(places, 0.2)
    order = np.argsort(places, kind="stable")
    assert (np.diff(np.array(moved)[order]) >= 0.2 - 1e-9).all()
    assert np.mean(moved) == pytest.approx(np.mean(places))


def test_empty_values_do_not_stop_a_figure(study):
    """Missing numbers leave a hole, not an error."""
    evidence, _, _ = study
    data = heatmap.delta_data(evidence)
    data.values[:] = np.nan
    assert style.png(heatmap.draw_heatmap(data)).startswith(b"\x89PNG")
