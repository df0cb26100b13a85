"""How much more one GPU does when trials share it: 1, 2, 4, 8 at a time, without and with MPS.

Run as `python -m bench.packing [--at-once 1 2 4 8 --trials 3 --precision bf16]`; prints JSON. Each
process is held to its share of the card and runs the same real trials one after another (an
encoder of the size of mBERT with random weights, made-up treebanks); its first one is not timed.
With MPS, a daemon of the bench's own is started and stopped: nothing of the card is changed.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.machine import machine
from trainables.spec import HyperParameters, Request, SimilarityRequest, TrialSpec, Workspace

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

LANGUAGES = ("aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh")
MBERT = {
    "vocab_size": 119_547,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
TAGS = ("NOUN", "VERB", "ADJ", "ADV")
PATIENCE_S = 300
CONTROL = "nvidia-cuda-mps-control"


def write_files(root: Path, sentences: int) -> None:
    """Treebanks with sentences of 4 to 40 words, and an encoder of the size of mBERT."""
    import torch
    import transformers

    from trainables.encoders.tiny import tiny_encoder

    rng = random.Random(0)
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lnrstx"]
    folder = tiny_encoder(root / "encoder", vocabulary=words, n_layers=1)
    config = transformers.BertConfig.from_pretrained(folder)
    config.update(MBERT)
    torch.manual_seed(0)
    model = transformers.BertModel(config, add_pooling_layer=False)
    model.save_pretrained(folder)
    files = [("aa_toy", "train", sentences), ("aa_toy", "dev", sentences // 8)]
    files += [(f"{language}_pud", "test", 500) for language in LANGUAGES]
    data = root / "data"
    data.mkdir()
    for code, split, n in files:
        blocks = []
        for number in range(n):
            rows = []
            for place in range(1, rng.randrange(5, 42)):
                at = rng.randrange(len(words))
                head = "0\troot" if place == 1 else "1\tdep"
                rows.append(f"{place}\t{words[at]}\t_\t{TAGS[at % 4]}\t_\t_\t{head}\t_\t_")
            blocks.append("\n".join([f"# sent_id = n{number}", *rows]) + "\n\n")
        (data / f"{code}-ud-{split}.conllu").write_text("".join(blocks), encoding="utf-8")


def work(root: Path, precision: Any) -> tuple[TrialSpec, Request]:  # noqa: ANN401 - one of three words
    """The trial that every process runs, each time with another seed."""
    from trainables.data.treebanks import data_ref
    from trainables.encoders.pretrained import encoder_ref

    data = root / "data"
    spec = TrialSpec(
        task="upos",
        encoder=encoder_ref(str(root / "encoder")),
        source="aa",
        train=data_ref(data, "aa_toy", "train"),
        dev=data_ref(data, "aa_toy", "dev"),
        ablation="ref",
        hyper=HyperParameters(learning_rate=5e-5, batch_size=16, epochs=2),
        seed=1,
        precision=precision,
    )
    parallel = tuple(data_ref(data, f"{code}_pud", "test") for code in LANGUAGES)
    similarity = SimilarityRequest(parallel=parallel, pivots=("aa",), null_draws=0)
    return spec, Request(targets=parallel, similarity=similarity)


def one_process(  # noqa: PLR0917 - what a process is handed
    root: Path,
    number: int,
    share: float,
    n_trials: int,
    precision: str,
    gate: Barrier,
    out: "Queue[dict[str, Any] | str]",
) -> None:
    """Run one trial, wait for the others, run the rest; hand over when each ended, and what of."""
    try:
        out.put(_seen(root, number, share, n_trials, precision, gate))
    except BaseException as error:
        gate.abort()
        out.put(f"{type(error).__name__}: {error}")
        raise


def _seen(  # noqa: PLR0917 - as above
    root: Path, number: int, share: float, n_trials: int, precision: str, gate: Barrier
) -> dict[str, Any]:
    import torch

    from trainables.trial import run_trial

    spec, request = work(root, precision)
    free_before = torch.cuda.mem_get_info()[0]
    results = []
    began = 0.0
    for at in range(n_trials + 1):
        place = Workspace(
            checkpoints=str(root / f"checkpoints-{number}-{at}"),
            cache=str(root / "cache"),
            device="cuda",
            gpus=share,
            memory_fraction=share,
        )
        results.append(run_trial(replace(spec, seed=100 * number + at), request, place))
        if at == 0:
            gate.wait(PATIENCE_S)
            began = time.monotonic()  # of the machine: comparable between its processes
    facts = [result.facts for result in results[1:]]
    return {
        "began": began,
        "ended": time.monotonic(),
        "train_s": sum(f.train_s for f in facts) / len(facts),
        "trial_s": (time.monotonic() - began) / len(facts),
        "peak_memory": max(f.peak_memory for f in facts),
        "reserved": torch.cuda.max_memory_reserved(),
        "taken": free_before - torch.cuda.mem_get_info()[0],
        "micro_batch": min((f.micro_batch or 0 for f in facts), default=0),
        "has_mps": facts[0].has_mps,
        "device": facts[0].device,
    }


def at_once(root: Path, n: int, n_trials: int, precision: str) -> dict[str, Any]:
    """Trials per minute of `n` processes that share the card."""
    context = get_context("spawn")
    gate, out = context.Barrier(n), context.Queue()
    processes = [
        context.Process(
            target=one_process, args=(root, number, 1 / n, n_trials, precision, gate, out)
        )
        for number in range(n)
    ]
    for process in processes:
        process.start()
    found = [out.get(timeout=2 * PATIENCE_S) for _ in processes]
    for process in processes:
        process.join()
    broken = [seen for seen in found if isinstance(seen, str)]
    if broken:
        return {"at_once": n, "failed": broken[0]}
    took = max(seen["ended"] for seen in found) - min(seen["began"] for seen in found)
    return {
        "at_once": n,
        "trials_per_minute": round(60 * n * n_trials / took, 1),
        "trial_s": round(sum(seen["trial_s"] for seen in found) / n, 2),
        "train_s": round(sum(seen["train_s"] for seen in found) / n, 2),
        "peak_gb": round(max(seen["peak_memory"] for seen in found) / 1e9, 2),
        "reserved_gb": round(max(seen["reserved"] for seen in found) / 1e9, 2),
        "micro_batch": min(seen["micro_batch"] for seen in found),
        "has_mps": found[0]["has_mps"],
        "device": found[0]["device"],
    }


@contextmanager
def mps() -> Iterator[None]:
    """A daemon of our own, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        added = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        os.environ.update(added)
        control = str(shutil.which(CONTROL))
        try:
            subprocess.run([control, "-d"], check=True)  # noqa: S603 - NVIDIA's own
            yield
        finally:
            subprocess.run([control], input="quit\n", text=True, check=False, timeout=60)  # noqa: S603 - as above
            for name in added:
                del os.environ[name]


def main() -> None:
    """All numbers of processes, without and with MPS; JSON on standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--mps", choices=["both", "without", "with"], default="both")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="bf16")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_files(root, options.sentences)
        found: dict[str, list[dict[str, Any]]] = {"without_mps": [], "with_mps": []}
        for name, how in (("without_mps", nullcontext), ("with_mps", mps)):
            if options.mps not in {"both", name.removesuffix("_mps")}:
                continue
            if how is mps and not shutil.which(CONTROL):
                sys.stderr.write(f"there is no {CONTROL} here: nothing is measured with MPS\n")
                continue
            with how():
                for n in options.at_once:
                    found[name].append(at_once(root, n, options.trials, options.precision))
                    sys.stderr.write(f"{name}: {found[name][-1]}\n")
    runs = [run for both in found.values() for run in both if "trials_per_minute" in run]
    for run in runs:
        run["times_the_first"] = round(run["trials_per_minute"] / runs[0]["trials_per_minute"], 2)
    report = {**found, **vars(options)}
    print(json.dumps(report | machine("torch", "transformers"), indent=1))  # noqa: T201 - its output


if __name__ == "__main__":
    main()
