"""`python -m bench.toy --storage results`: what the demo saw, beside what is true by construction.

For each invented language: its distance from the source, part by part; the gap to the source of the
reference trials of the study `demo`; its similarity to the source. Then how well their ranks agree.
"""

import argparse
import statistics
import sys
from collections import defaultdict

from scipy.stats import spearmanr

from analysis.tables import Tables, read_tables
from trainables.toy.languages import LANGUAGES, SOURCE, distances

METRICS = {"upos": "accuracy", "parsing": "las"}

PARTS = ("order", "lexicon", "script", "affixes", "visible", "total")


def gaps(tables: Tables, task: str) -> dict[str, float]:
    """Language -> mean over seeds of the source's score minus its own, in points."""
    reported = {
        row["trial_id"]
        for row in tables.trials.to_pylist()
        if row["task"] == task and row["ablation"] == "ref" and row["seed"] > 0
    }
    scores = defaultdict(list)
    for row in tables.scores.to_pylist():
        if (
            row["trial_id"] in reported
            and row["split"] == "test"
            and row["metric"] == METRICS[task]
        ):
            scores[row["language"]].append(row["value"])
    means = {code: statistics.mean(values) for code, values in scores.items()}
    return {code: 100 * (means[SOURCE] - means[code]) for code in LANGUAGES if code in means}


def similarities(tables: Tables, state: str) -> dict[str, float]:
    """Language -> mean CKA with the source over layers 1 to 12 and all trials."""
    values = defaultdict(list)
    for row in tables.similarity.to_pylist():
        if row["state"] == state and row["layer"] > 0 and row["measure"] == "linear-cka":
            values[row["target"]].append(row["value"])
    return {code: statistics.mean(found) for code, found in values.items()}


def main() -> None:
    """Print the table and the correlations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", default="results")
    tables = read_tables(parser.parse_args().storage)
    far = distances(SOURCE)
    seen = {task: gaps(tables, task) for task in METRICS}
    alike = similarities(tables, "pretrained")
    others = [code for code in LANGUAGES if code != SOURCE]
    _say("\t".join(("language", *PARTS, *(f"gap {task}" for task in METRICS), "CKA")))
    for code in others:
        parts = (f"{getattr(far[code], part):.2f}" for part in PARTS)
        found = (f"{seen[task][code]:.1f}" for task in METRICS)
        _say("\t".join((code, *parts, *found, f"{alike[code]:.2f}")))
    for task in METRICS:
        gap = [seen[task][code] for code in others]
        for part in PARTS:
            rho = spearmanr(gap, [getattr(far[code], part) for code in others]).statistic
            _say(f"Spearman of the gap in {task} with the distance in {part}: {rho:+.2f}")
        rho = spearmanr(gap, [alike[code] for code in others]).statistic
        _say(f"Spearman of the gap in {task} with CKA: {rho:+.2f}")
    for part in PARTS:
        rho = spearmanr(
            [alike[c] for c in others], [getattr(far[c], part) for c in others]
        ).statistic
        _say(f"Spearman of CKA with the distance in {part}: {rho:+.2f}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
