"""One pyarrow schema a table; the truth that all numbers come from.

Scores are fractions in [0, 1], durations seconds, memory bytes, times UTC. `commit_id` names the
committed file a row came from. Adding a nullable column keeps the version; anything else raises it.
"""

import pyarrow as pa

VERSION = 1

TRIALS = pa.schema(
    [
        pa.field("trial_id", pa.string(), nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),  # train | measure | failed
        pa.field("status", pa.string(), nullable=False),  # done | pruned | failed
        pa.field("study", pa.string(), nullable=False),  # that asked first
        pa.field("task", pa.string(), nullable=False),
        pa.field("encoder", pa.string(), nullable=False),  # name, for people
        pa.field("encoder_fingerprint", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("train", pa.string(), nullable=False),  # treebank code; empty for a probe
        pa.field("ablation", pa.string(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("cell", pa.string(), nullable=False),  # hash of the spec less hyper and seed
        pa.field("hyper", pa.string(), nullable=False),  # JSON
        pa.field("spec", pa.string(), nullable=False),  # JSON of the whole resolved spec
        pa.field("attempt", pa.int32(), nullable=False),
        pa.field("failure_kind", pa.string()),  # user | out-of-memory | preempted | unknown
        pa.field("failure", pa.string()),  # the error's message
        pa.field("traceback", pa.string()),
        pa.field("kept", pa.bool_()),  # the best weights lie beside the checkpoints
        pa.field("best_epoch", pa.int32()),
        pa.field("pruned_at", pa.int32()),
        pa.field("device", pa.string()),
        pa.field("threads", pa.int32()),
        # Sentences per forward pass where memory forced fewer than a batch: same numbers
        # to rounding (but on a GPU fused attention draws other dropout). Null for whole batches.
        pa.field("micro_batch", pa.int32()),
        pa.field("device_memory", pa.int64()),  # of the GPU; null on the CPU, as the next two
        pa.field("gpu_share", pa.float64()),  # of one GPU
        pa.field("has_mps", pa.bool_()),  # processes shared its cores through the MPS daemon
        pa.field("matmul_s", pa.float64()),  # of a fixed product: the CPU's speed; null on a GPU
        pa.field("host", pa.string()),
        pa.field("pid", pa.int64()),  # of the worker process, which takes one trial at a time
        pa.field("phase", pa.string()),  # probe | search | report: what asked first; null: not said
        pa.field("started", pa.timestamp("us", tz="UTC")),
        pa.field("finished", pa.timestamp("us", tz="UTC")),
        pa.field("load_s", pa.float64()),
        pa.field("train_s", pa.float64()),
        pa.field("evaluate_s", pa.float64()),
        pa.field("similarity_s", pa.float64()),
        pa.field("peak_memory", pa.int64()),
        pa.field("train_words_per_s", pa.float64()),
        pa.field("resumed_epochs", pa.int32()),
        pa.field("n_train", pa.int64()),  # training sentences
        pa.field("n_parameters", pa.int64()),
        pa.field("n_reinitialised", pa.int64()),
        pa.field("n_frozen", pa.int64()),
        pa.field("git_commit", pa.string()),
        pa.field("versions", pa.string()),  # JSON: package -> version
    ]
)

SCORES = pa.schema(
    [
        pa.field("trial_id", pa.string(), nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),  # dev | test
        pa.field("treebank", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("data_key", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),  # fraction
        pa.field("n", pa.int64(), nullable=False),  # items in the denominator
    ]
)

SIMILARITY = pa.schema(
    [
        pa.field("trial_id", pa.string(), nullable=False),  # the probe's for `pretrained`
        pa.field("commit_id", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),  # pretrained | fine-tuned
        pa.field("source", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("source_key", pa.string(), nullable=False),
        pa.field("target_key", pa.string(), nullable=False),
        pa.field("layer", pa.int32(), nullable=False),  # state index: 0 = embeddings
        pa.field("measure", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),  # NaN where undefined
        pa.field("n", pa.int64(), nullable=False),  # sentence pairs
        pa.field("null_mean", pa.float64(), nullable=False),
        pa.field("null_95", pa.float64(), nullable=False),
        pa.field("options", pa.string(), nullable=False),  # JSON
    ]
)

CURVES = pa.schema(
    [
        pa.field("trial_id", pa.string(), nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("loss", pa.float64(), nullable=False),
        pa.field("dev_metric", pa.string(), nullable=False),
        pa.field("dev_value", pa.float64(), nullable=False),
        pa.field("learning_rate", pa.float64(), nullable=False),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "trials": TRIALS,
    "scores": SCORES,
    "similarity": SIMILARITY,
    "curves": CURVES,
}

SENTENCES = pa.schema(
    [
        pa.field("trial_id", pa.string(), nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("treebank", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("data_key", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),  # the one that the trial was selected by
        pa.field("n", pa.int64(), nullable=False),  # sentences
        # Unsigned integers, little-endian, len(column) / n bytes each; right = items - missed.
        pa.field("items", pa.binary(), nullable=False),  # words, spans, or 1 for a whole text
        pa.field("missed", pa.binary(), nullable=False),  # of these, got wrong
        pa.field("spurious", pa.binary()),  # predicted beside the right ones; null for accuracies
    ]
)

ASIDE: dict[str, pa.Schema] = {"sentences": SENTENCES}
"""Tables of bulk that nobody reads but who asks for them by name; a store may lack them."""

EVERY: dict[str, pa.Schema] = TABLES | ASIDE
"""All that a commit may hold."""

_UNREAD = {"similarity": {"options"}}

LEAN: dict[str, pa.Schema] = {
    name: schema
    if name == "trials"
    else pa.schema(
        [
            field.with_type(pa.dictionary(pa.int32(), pa.string()))
            if field.type == pa.string()
            else field
            for field in schema
            if field.name not in _UNREAD.get(name, set())
        ]
    )
    for name, schema in TABLES.items()
}
"""The same tables as the analysis takes them, a sixth of the memory: a text is stored once and
named by number in the rows, and what no number depends on is left out."""

OVERLAP = pa.schema(
    [
        pa.field("encoder_fingerprint", pa.string(), nullable=False),  # whose tokenizer
        pa.field("train_key", pa.string(), nullable=False),
        pa.field("data_key", pa.string(), nullable=False),  # of the test set
        pa.field("types", pa.float64(), nullable=False),  # fraction of its pieces seen in training
        pa.field("tokens", pa.float64(), nullable=False),  # the same, each as often as it occurs
        pa.field("n_types", pa.int64(), nullable=False),  # distinct pieces of the test set
        pa.field("n_tokens", pa.int64(), nullable=False),
    ]
)
"""Subword overlap of a training and a test set; files below `overlap/` of a store, not commits."""
