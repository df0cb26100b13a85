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
from dataclasses import asdict

from bench.machine import machine
from trainables.data.treebanks import data_ref
from trainables.encoders.pretrained import encoder_ref
from trainables.spec import HyperParameters, Request, SimilarityRequest, TrialSpec, Workspace

LANGUAGES = ("en", "fr", "de", "ru", "ar", "tr", "zh", "ko")


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
        seed=1,
    )
    similarity = SimilarityRequest(parallel=parallel, pivots=("en",), null_draws=0)
    return spec, Request(targets=parallel, similarity=similarity)


def one_side(options: argparse.Namespace) -> dict[str, object]:
    """Run one side once, imports left out."""
    import torch

    torch.set_num_threads(options.threads)
    spec, request = work(options)
    if options.side == "trainer":
        from bench import trainer

        began = time.perf_counter()
        scores = trainer.run(spec, request)
        return {"seconds": time.perf_counter() - began, "scores": scores}
    from trainables.trial import run_trial

    with tempfile.TemporaryDirectory() as folder:
        place = Workspace(checkpoints=f"{folder}/c", cache=f"{folder}/d", threads=options.threads)
        began = time.perf_counter()
        result = run_trial(spec, request, place)
        seconds = time.perf_counter() - began
    scores = {s.language: s.value for s in result.scores if s.split == "test"}
    return {"seconds": seconds, "scores": scores, "facts": asdict(result.facts)}


def main() -> None:
    """Both sides in turn; JSON on standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--side", choices=["ours", "trainer"])
    options = parser.parse_args()
    if options.side:
        sys.stdout.write(json.dumps(one_side(options)) + "\n")
        return
    runs: dict[str, list[dict[str, object]]] = {"ours": [], "trainer": []}
    for _ in range(options.repeats):
        for side, done in runs.items():
            command = [sys.executable, "-m", "bench.trial", *sys.argv[1:], "--side", side]
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603 - ourselves
            done.append(json.loads(out.splitlines()[-1]))
    median = {s: statistics.median(float(str(r["seconds"])) for r in d) for s, d in runs.items()}
    report = {
        "ratio": round(median["ours"] / median["trainer"], 3),
        "budget": 0.4,
        "median_s": {side: round(value, 1) for side, value in median.items()},
        "runs_s": {s: [round(float(str(r["seconds"])), 1) for r in d] for s, d in runs.items()},
        "scores": {side: done[0]["scores"] for side, done in runs.items()},
        "ours": runs["ours"][0]["facts"],
        "sentences": options.sentences,
        "threads": options.threads,
        **machine("torch", "transformers", "accelerate"),
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
