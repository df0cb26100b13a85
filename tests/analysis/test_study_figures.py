"""Figures of freezing and of probes: which numbers they hold."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.blocks import blocks, lineups
from analysis.cells import scored
from analysis.evidence import weigh
from analysis.figures import freezing, heatmap, probing, style
from analysis.figures.layer_curves import draw_curves
from analysis.roster import roster


def renamed(tables, ablations):
    """The made-up study with other ablations in the places of its own."""
    column = pa.array([ablations.get(a, a) for a in tables.trials["ablation"].to_pylist()])
    at = tables.trials.schema.get_field_index("ablation")
    trials = tables.trials.set_column(at, tables.trials.schema.field(at), column)
    return type(tables)(trials, tables.scores, tables.similarity, tables.curves)


def laid_out(tables):
    """Roster, and the blocks of accuracy and of each layer's."""
    known = roster(tables.trials)
    found = scored(tables.scores, known)
    shown = lineups(known, found, {"upos": "accuracy"})
    return known, blocks(known, found, shown)


@pytest.fixture
def frozen(make_tables):
    """A study that froze 0, 3, 6 and 9 layers and the whole encoder."""
    names = ("freeze:0", "freeze:3", "freeze:6", "freeze:9", "features")
    before = ("reinit:1-2", "reinit:3-4", "reinit:5-6", "reinit:7-8", "reinit:11-12")
    tables = make_tables(ablations=("ref", *before), similarity=False)
    known, (block,) = laid_out(renamed(tables, dict(zip(before, names, strict=True))))
    return freezing.freezing_data([weigh(block, known)], known), known, block


def test_freezing_shows_depths_in_order(frozen):
    """Columns go from nothing frozen to everything; the best one of the row is marked."""
    data, _, block = frozen
    assert data.columns == ("REF", "0", "3", "6", "9", "feat.")
    assert data.is_best.sum() == 1
    assert data.is_best[0].argmax() == data.values[0].argmax() == 5
    means = np.nanmean(block.values[:, 1:, 0], axis=1)
    assert sorted(data.values[0]) == pytest.approx(sorted(means))
    assert data.shade[0, 0] == 0.0
    assert data.shade[0, 5] == pytest.approx(data.values[0, 5] - data.values[0, 0])


def test_freezing_is_drawn_with_scores_and_a_frame(frozen):
    """Each cell says its score to a tenth of a point, not its difference."""
    text = style.svg(heatmap.draw_heatmap(frozen[0]))
    assert "75.2" in text
    assert text.count("<title>") == 6


def test_a_study_without_freezing_has_no_such_figure(make_tables):
    """Re-initialisation alone makes no row."""
    known, (block,) = laid_out(make_tables(similarity=False))
    assert freezing.freezing_data([weigh(block, known)], known) is None


def by_layer(tables):
    """Add a score a layer: that of the model less its distance to layer 2, in points."""
    rows = tables.scores.to_pylist()
    rows += [
        row | {"metric": f"accuracy@{k}", "value": row["value"] - abs(k - 2) / 100}
        for row in rows
        for k in range(5)
    ]
    scores = pa.Table.from_pylist(rows, schema=tables.scores.schema)
    return type(tables)(tables.trials, scores, tables.similarity, tables.curves)


def test_probes_have_a_line_over_layers(make_tables):
    """Layer k holds the mean of `accuracy@k` over test sets; layer 10 comes after layer 9."""
    _, found = laid_out(by_layer(make_tables(ablations=("ref",), similarity=False)))
    whole = next(block for block in found if block.metric == "accuracy")
    data = probing.probing_data(whole, found)
    assert data.layers == (0, 1, 2, 3, 4)
    mean = whole.values[0, :, 0].mean()
    assert data.lines[0].values == pytest.approx(mean - np.abs(np.arange(5) - 2) / 100)
    assert "<title>" in style.svg(draw_curves(data))
    assert probing.probing_data(whole, [whole]) is None


def test_a_layers_metric_is_told_by_its_name():
    """`accuracy@12` is layer 12's; a plain name is the whole model's."""
    assert probing.of_a_layer("accuracy@12") == ("accuracy", 12)
    assert probing.of_a_layer("accuracy") is None
