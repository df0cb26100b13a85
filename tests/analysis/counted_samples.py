"""Made-up studies whose scores come from counts of single sentences."""

import numpy as np
import pyarrow as pa

from analysis.packed import pack
from analysis.schema import SENTENCES


def counted_study(make, seeds, chance, *, ablations=("ref", "reinit:1-2"), n=40, spans=False):
    """Tables of a study, and the counts that its scores are made from.

    Args:
        make: The fixture `make_tables`.
        seeds: Seeds of every ablation.
        chance: (ablation, seed, language) -> chance of a miss in each sentence, or one for all.
        ablations: Which.
        n: Sentences of each test set.
        spans: Whether scores are F1 of spans in place of accuracies.
    """
    rng = np.random.default_rng(7)
    items = {language: rng.integers(3, 30, n) for language in ("en", "fr", "de", "ar")}
    missed, spurious = {}, {}
    for ablation in ablations:
        for seed in seeds:
            for language, words in items.items():
                key = ablation, seed, language
                missed[key] = rng.binomial(words, chance(*key))
                spurious[key] = rng.integers(0, 3, n)

    def score(*key):
        right, there = (items[key[2]] - missed[key]).sum(), items[key[2]].sum()
        return 2 * right / (there + right + spurious[key].sum()) if spans else right / there

    tables = make(seeds, ablations=ablations, languages=tuple(items), score=score, similarity=False)
    rows = []
    for trial in tables.trials.to_pylist():
        for language, words in items.items():
            key = trial["ablation"], trial["seed"], language
            rows.append(
                {
                    "trial_id": trial["trial_id"],
                    "commit_id": trial["commit_id"],
                    "split": "test",
                    "treebank": f"{language}_pud",
                    "language": language,
                    "data_key": f"sha256:{language}[:500]",
                    "metric": "accuracy",
                    "n": n,
                    "items": pack(words.tolist()),
                    "missed": pack(missed[key].tolist()),
                    "spurious": pack(spurious[key].tolist()) if spans else None,
                }
            )
    return tables, pa.Table.from_pylist(rows, schema=SENTENCES)
