"""Jobs and results made by hand, for the tests of storage, commits, ledger, compaction, worker."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sweep.commit import commit_failure, commit_result
from sweep.identity import request_hash, trial_id
from trainables.spec import (
    CurvePoint,
    DataRef,
    EncoderRef,
    Facts,
    HyperParameters,
    Job,
    Request,
    Score,
    Similarity,
    SimilarityRequest,
    TrialResult,
    TrialSpec,
    Workspace,
)

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
ONE = datetime(2026, 1, 2, 13, 0, tzinfo=UTC)
TWO = datetime(2026, 1, 2, 14, 0, tzinfo=UTC)

ENCODER = EncoderRef(name="tiny", location="/m/tiny", fingerprint="sha256:aa", n_layers=2)

FACTS = Facts(
    device="cpu",
    threads=1,
    load_s=1.0,
    train_s=2.0,
    evaluate_s=3.0,
    similarity_s=4.0,
    peak_memory=5,
    train_words_per_s=6.0,
    resumed_epochs=0,
    n_train=7,
    n_parameters=8,
    n_reinitialised=0,
    n_frozen=0,
)


def ref(code: str, split: str = "test") -> DataRef:
    return DataRef(
        code=code,
        language=code[:2],
        split=split,
        location=f"/data/{code}",
        fingerprint=f"sha256:{code}-{split}",
    )


def spec(seed: int = 1) -> TrialSpec:
    return TrialSpec(
        task="upos",
        encoder=ENCODER,
        source="en",
        train=ref("en_ewt", "train"),
        dev=ref("en_ewt", "dev"),
        ablation="ref",
        hyper=HyperParameters(learning_rate=1e-4, batch_size=16, epochs=2),
        seed=seed,
    )


def probe() -> TrialSpec:
    return replace(
        spec(),
        task="probe",
        train=None,
        dev=None,
        hyper=HyperParameters(learning_rate=0.0, batch_size=1, epochs=0),
    )


def targets(*codes: str) -> Request:
    return Request(targets=tuple(ref(code) for code in codes))


def similarity(*codes: str, pivots: tuple[str, ...] = ("en",), **options) -> Request:
    parallel = tuple(ref(code) for code in codes)
    return Request(similarity=SimilarityRequest(parallel=parallel, pivots=pivots, **options))


def job(store: Path | str, asked: Request, what: TrialSpec | None = None, **fields) -> Job:
    what = what or spec()
    trial = trial_id(what)
    return Job(
        **{
            "job_id": trial,
            "trial_id": trial,
            "study": "demo",
            "spec": what,
            "request": asked,
            "workspace": Workspace(checkpoints=f"{store}/checkpoints/{trial}", cache="/cache"),
            "store": str(store),
        }
        | fields
    )


def more(first: Job, asked: Request) -> Job:
    """A job that measures more on the trial of another one."""
    return replace(first, job_id=f"{first.trial_id}+{request_hash(asked)}", request=asked)


def scores(asked: Request, value: float = 0.5) -> tuple[Score, ...]:
    return tuple(
        Score(
            split=target.split,
            treebank=target.code,
            language=target.language,
            data_key=target.key,
            metric="upos",
            value=value,
            n=10,
        )
        for target in asked.targets
    )


def similarities(asked: Request, state: str = "fine-tuned") -> tuple[Similarity, ...]:
    wanted = asked.similarity
    if wanted is None:
        return ()
    keys = {one.language: one.key for one in wanted.parallel}
    return tuple(
        Similarity(
            state=state,
            source=pivot,
            target=language,
            source_key=keys[pivot],
            target_key=keys[language],
            layer=layer,
            measure=measure,
            value=0.25,
            n=3,
            null_mean=0.1,
            null_95=0.2,
            options="{}",
        )
        for measure in wanted.measures
        for pivot in wanted.pivots
        for language in keys
        if language != pivot
        for layer in (0, 1, 2)
    )


def result(asked: Request, value: float = 0.5, state: str = "fine-tuned", **fields) -> TrialResult:
    dev = scores(Request(targets=(ref("en_ewt", "dev"),)), value)
    curve = tuple(
        CurvePoint(
            step=4 * epoch,
            epoch=epoch,
            loss=1 / epoch,
            dev_metric="upos",
            dev_value=value,
            learning_rate=1e-4,
        )
        for epoch in (1, 2)
    )
    return TrialResult(
        **{
            "best_epoch": 2,
            "scores": (*dev, *scores(asked, value)),
            "similarity": similarities(asked, state),
            "curve": curve,
            "facts": FACTS,
        }
        | fields
    )


def commit(what: Job, value: float = 0.5, finished: datetime = ONE, **fields) -> str:
    state = "pretrained" if what.spec.train is None else "fine-tuned"
    return commit_result(what, result(what.request, value, state, **fields), NOON, finished)


def fail(what: Job, kind: str = "unknown", message: str = "boom", at: datetime = ONE) -> str:
    return commit_failure(what, kind, message, traceback="tb", started=NOON, finished=at)
