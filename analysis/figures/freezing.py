"""Tasks by number of frozen layers (Wu and Dredze 2019, Figure 1): which depth transfers best."""

import math
import re
from collections.abc import Sequence

import numpy as np

from analysis import labels
from analysis.evidence import Evidence
from analysis.figures.heatmap import Heatmap
from analysis.roster import Roster
from analysis.sheets import setting_title

_FROZEN = re.compile(r"freeze:(\d+)")
_FEATURES = "features"


def freezing_data(found: Sequence[Evidence], known: Roster) -> Heatmap | None:
    """Mean score on the other languages by task and depth, coloured by the difference to REF.

    Returns:
        None unless some setting has two depths (REF, which freezes nothing, counts as one).
    """
    rows, names = [], set()
    sources = {known.settings[evidence.block.lineup.setting].source for evidence in found}
    several = len({setting.encoder for setting in known.settings}) > 1
    for evidence in found:
        lineup = evidence.block.lineup
        own = {
            name: float(evidence.scores_x.mean[a])
            for a, name in enumerate(lineup.ablations)
            if _depth(name) < math.inf and not math.isnan(evidence.scores_x.mean[a])
        }
        if len(own) > 1 and set(own) - {labels.REFERENCE}:
            setting = known.settings[lineup.setting]
            title = setting_title(setting, several_encoders=several)
            if len(sources) == 1:  # then it need not be said in each row
                title = title.replace(f" from {labels.language(setting.source)}", "")
            rows.append((title, own))
            names |= set(own)
    if not rows:
        return None
    columns = sorted(names, key=_depth)
    values = np.array([[own.get(name, np.nan) for name in columns] for _, own in rows])
    reference = np.array([[own.get(labels.REFERENCE, np.nan)] for _, own in rows])
    return Heatmap(
        "Mean score on the other languages by frozen depth; colour: points against REF",
        tuple(title for title, _ in rows),
        tuple(_column(name) for name in columns),
        "frozen up to layer (0 = embeddings only)",
        values,
        shade=values - reference,
        is_best=values == np.nanmax(values, axis=1, keepdims=True),
    )


def _depth(ablation: str) -> float:
    """Order of the columns: nothing frozen, embeddings, deeper, everything; infinity for others."""
    if ablation == labels.REFERENCE:
        return -1.0
    if ablation == _FEATURES:
        return 1_000.0
    found = _FROZEN.fullmatch(ablation)
    return float(found[1]) if found else math.inf


def _column(ablation: str) -> str:
    if ablation == labels.REFERENCE:
        return "REF"
    return "feat." if ablation == _FEATURES else ablation.partition(":")[2]
