"""Budget: one trial against the Hugging Face Trainer doing the same work: <= 0.4 of its time.

Run as `python -m bench.trial --data UD --encoder FOLDER [--sentences 256 --repeats 3]`; prints
JSON. Each side runs in a process of its own, in turn, so that both meet the same machine; medians
are compared.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from scipy import stats

from bench.machine import machine
from trainables.data.treebanks import data_ref
from trainables.encoders.pretrained import encoder_ref
from trainables.spec import HyperParameters, Request, SimilarityRequest, TrialSpec, Workspace

LANGUAGES = ("en", "fr", "de", "ru", "ar", "tr", "zh", "ko")


PARTS = ("load", "train", "evaluate", "similarity")
"""Loading and tokenising; training with dev after each epoch; predicting; states and CKA.

Ours pools states while it predicts, so that what the Trainer's side spends on a second pass is
nearly nothing in our last part.
"""


class Clocks:
    """Wall and processor time from here on; the second does not count what others run beside."""

    def __init__(self) -> None:
        """Start."""
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def since(self) -> dict[str, float]:
        """Seconds since the start."""
        return {
            "seconds": time.perf_counter() - self._wall,
            "cpu_seconds": time.process_time() - self._cpu,
        }


def work(options: argparse.Namespace) -> tuple[TrialSpec, Request]:
    """The trial that both sides run."""
    parallel = tuple(
        data_ref(options.data, f"{language}_pud", "test", options.sentences)
        for language in LANGUAGES
    )
    spec = TrialSpec(
        task="upos",
        encoder=encoder_ref(options.encoder),
        source="en",
        train=data_ref(options.data, "en_ewt", "train", options.sentences),
        dev=data_ref(options.data, "en_ewt", "dev", options.sentences),
        ablation="ref",
        hyper=HyperParameters(learning_rate=4e-4, batch_size=16, epochs=2),
        seed=options.seed,
    )
    similarity = SimilarityRequest(parallel=parallel, pivots=("en",), null_draws=0)
    return spec, Request(targets=parallel, similarity=similarity)


def one_side(options: argparse.Namespace) -> dict[str, object]:
    """Run one side once, imports left out."""
    import torch

    torch.set_num_threads(options.threads)
    spec, request = work(options)
    from bench import trainer  # on both sides: neither is timed while it imports transformers
    from trainables.accounting import Stopwatch

    if options.side == "trainer":
        began, watch = Clocks(), Stopwatch()
        scores = trainer.run(spec, request, watch)
        return {**began.since(), "scores": scores, "parts": watch.laps}
    from trainables.trial import run_trial

    with tempfile.TemporaryDirectory() as folder:
        place = Workspace(checkpoints=f"{folder}/c", cache=f"{folder}/d", threads=options.threads)
        began = Clocks()
        result = run_trial(spec, request, place)
        taken = began.since()
    tested = [s for s in result.scores if (s.split, s.metric) == ("test", "accuracy")]
    scores = {s.language: s.value for s in tested}
    parts = {part: getattr(result.facts, f"{part}_s") for part in PARTS}
    return {**taken, "scores": scores, "parts": parts, "peak_memory": result.facts.peak_memory}


def main() -> None:
    """Both sides in turn; JSON on standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--side", choices=["ours", "trainer"])
    options = parser.parse_args()
    if options.side:
        sys.stdout.write(json.dumps(one_side(options)) + "\n")
        return
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "trainer": []}
    for seed in range(1, options.repeats + 1):
        for side, done in runs.items():
            command = [sys.executable, "-m", "bench.trial", *sys.argv[1:]]
            command += ["--side", side, "--seed", str(seed)]
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603 - ourselves
            done.append(json.loads(out.splitlines()[-1]))
    report = {
        "ratio": ratio(runs, lambda run: run["seconds"]),
        "ratio_of_processor_time": ratio(runs, lambda run: run["cpu_seconds"]),
        "budget": 0.4,
        "parts_s": {
            part: {
                side: round(statistics.median(run["parts"][part] for run in done), 1)
                for side, done in runs.items()
            }
            for part in PARTS
        },
        "runs_s": {side: [round(run["seconds"], 1) for run in d] for side, d in runs.items()},
        "accuracy_by_seed": {
            side: {
                language: [round(run["scores"][language], 3) for run in done]
                for language in LANGUAGES
            }
            for side, done in runs.items()
        },
        "accuracy_ours_less_theirs": differences(runs),
        "peak_memory_of_ours": runs["ours"][0]["peak_memory"],
        "sentences": options.sentences,
        "threads": options.threads,
        **machine("torch", "transformers", "accelerate"),
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


def ratio(
    runs: dict[str, list[dict[str, Any]]], seconds: Callable[[dict[str, Any]], float]
) -> float:
    """Median of ours over median of theirs."""
    ours, theirs = (statistics.median(map(seconds, runs[side])) for side in ("ours", "trainer"))
    return round(ours / theirs, 3)


def differences(runs: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, object]]:
    """Are the scores the same within what seeds do? By language, and their mean.

    Returns:
        Mean difference of accuracy, in points, with Welch's 95 % interval over seeds and its p;
        the mean alone where there are fewer than two seeds.
    """
    found = {}
    for name in (*LANGUAGES, "mean"):
        ours, theirs = (
            [
                100 * (statistics.mean(scores.values()) if name == "mean" else scores[name])
                for scores in (run["scores"] for run in runs[side])
            ]
            for side in ("ours", "trainer")
        )
        found[name] = {"points": round(statistics.mean(ours) - statistics.mean(theirs), 1)}
        if len(ours) > 1:
            test = stats.ttest_ind(ours, theirs, equal_var=False)
            ends = test.confidence_interval()
            found[name] |= {
                "interval": [round(float(ends.low), 1), round(float(ends.high), 1)],
                "p": round(float(test.pvalue), 2),
            }
    return found


if __name__ == "__main__":
    main()
