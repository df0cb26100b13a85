import errno
import sys
import types
from dataclasses import replace

import pytest
import store_samples as make

from analysis.tables import read_tables
from sweep.storage import StorageError, Store
from sweep.worker import failure_kind, start, work
from trainables.data.sentence import DataError
from trainables.registry import UnknownName
from trainables.spec import CurvePoint

pytestmark = pytest.mark.usefixtures("quick_disk")


GO_ON = True


def point(epoch):
    return CurvePoint(
        step=epoch, epoch=epoch, loss=1.0, dev_metric="upos", dev_value=0.5, learning_rate=1e-4
    )


@pytest.fixture
def trial(monkeypatch):
    """Stands for `trainables.trial`; `trial(error)` makes it fail after its first epoch."""
    calls = []

    def install(error=None):
        def trial_epochs(spec, request, workspace):
            calls.append((spec, request, workspace))
            go_on = yield point(1)
            if error is not None:
                raise error
            if not go_on:
                return make.result(request, scores=(), pruned_at=1)
            yield point(2)
            return make.result(request)

        module = types.ModuleType("trainables.trial")
        module.trial_epochs = trial_epochs
        monkeypatch.setitem(sys.modules, "trainables.trial", module)
        return calls

    return install


def states(tmp_path):
    return read_tables(tmp_path).trials.column("status").to_pylist()


def test_work_runs_and_commits(tmp_path, trial):
    """A job that succeeds is given what it asked for, committed, and reported as done."""
    calls = trial()
    job = make.job(tmp_path, make.targets("de_pud"))
    outcome = work(job)
    assert calls == [(job.spec, job.request, job.workspace)]
    assert (outcome.status, outcome.job_id, outcome.trial_id) == ("done", job.job_id, job.trial_id)
    assert (outcome.failure_kind, outcome.message) == (None, "")
    assert states(tmp_path) == ["done"]


def test_start_pauses_after_every_epoch(tmp_path, trial):
    """The generator yields the curve as it grows, and returns the outcome."""
    trial()
    steps = start(make.job(tmp_path, make.targets("de_pud")))
    assert next(steps) == point(1)
    assert steps.send(GO_ON) == point(2)
    with pytest.raises(StopIteration) as end:
        steps.send(GO_ON)
    assert end.value.value.status == "done"


def test_false_prunes(tmp_path, trial):
    """A report that answers False ends the trial, which is committed as pruned."""
    trial()
    seen = []
    job = make.job(tmp_path, make.targets("de_pud"))
    outcome = work(job, lambda one: seen.append(one.epoch) is not None)
    assert seen == [1]
    assert outcome.status == "pruned"
    assert states(tmp_path) == ["pruned"]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (DataError("en.conllu", 7, "head 9 of 7", "Mend it."), "user", "en.conllu:7: head 9 of 7"),
        (UnknownName("unknown task 'pos'."), "user", "unknown task 'pos'."),
        (MemoryError(), "out-of-memory", "MemoryError"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out-of-memory", "allocate"),
        (RuntimeError("boom"), "unknown", "RuntimeError: boom"),
        (ValueError("bad"), "unknown", "ValueError: bad"),
    ],
)
def test_failure_is_a_row_with_its_reason(tmp_path, trial, error, kind, message):
    """A trial that raises ends as an outcome and a committed row, with kind, words and place."""
    trial(error)
    outcome = work(make.job(tmp_path, make.targets("de_pud"), attempt=2))
    assert (outcome.status, outcome.failure_kind) == ("failed", kind)
    assert message in outcome.message
    (row,) = read_tables(tmp_path).trials.to_pylist()
    assert (row["status"], row["failure_kind"], row["attempt"]) == ("failed", kind, 2)
    assert row["failure"] == outcome.message
    assert "trial_epochs" in row["traceback"]


def test_torch_running_out_of_memory_is_that():
    """Torch's own error counts as out of memory, and another RuntimeError does not."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert failure_kind(torch.OutOfMemoryError("CUDA")) == "out-of-memory"
    assert failure_kind(RuntimeError("CUDA error: an illegal memory access")) == "unknown"


def test_errors_of_torch_modules_that_repeat_are_the_users():
    """An ablation that does not fit and a loss that is no number are not worth a retry."""
    pytest.importorskip("torch", reason="torch is not installed")
    from trainables.ablations.base import AblationError
    from trainables.training import Diverged

    assert failure_kind(AblationError("reinit:9", "no such layer")) == "user"
    assert failure_kind(Diverged("loss")) == "user"


def test_store_that_fails_is_an_outcome(tmp_path, trial):
    """When the result cannot be stored, the outcome says so; nothing is raised or half there."""
    trial()
    (tmp_path / "commits").write_text("a file in place of the folder")
    outcome = work(make.job(tmp_path, make.targets("de_pud")))
    assert (outcome.status, outcome.failure_kind) == ("failed", "storage")
    assert "commits" in outcome.message


def test_failure_that_cannot_be_stored_keeps_its_own_words(tmp_path, trial):
    """When neither the trial nor the store works, the outcome tells both reasons."""
    trial(RuntimeError("boom"))
    (tmp_path / "commits").write_text("a file in place of the folder")
    outcome = work(make.job(tmp_path, make.targets("de_pud")))
    assert (outcome.status, outcome.failure_kind) == ("failed", "unknown")
    assert outcome.message.startswith("RuntimeError: boom (and the failure could not be stored:")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_interruption_is_no_failure(tmp_path, trial, interruption):
    """Ctrl-C and exit come out as they are, and leave neither row nor lost checkpoint."""
    trial(interruption())
    job = make.job(tmp_path, make.targets("de_pud"))
    Store(job.workspace.checkpoints).publish("step-1.safetensors", b"state")
    with pytest.raises(interruption):
        work(job)
    assert not (tmp_path / "commits").exists()
    assert Store(job.workspace.checkpoints).exists("step-1.safetensors")


def test_closed_job_leaves_its_checkpoint(tmp_path, trial):
    """A job that its executor closes commits nothing and can be resumed."""
    trial()
    job = make.job(tmp_path, make.targets("de_pud"))
    Store(job.workspace.checkpoints).publish("step-1.safetensors", b"state")
    steps = start(job)
    next(steps)
    steps.close()
    assert [file.path for file in Store(tmp_path).files()] == [
        f"checkpoints/{job.trial_id}/step-1.safetensors"
    ]


def leave(job):
    folder = Store(job.workspace.checkpoints)
    folder.publish("step-1.safetensors", b"state")
    folder.publish("best.safetensors", b"weights")
    return folder


def test_checkpoints_go_once_committed(tmp_path, trial):
    """After a commit the trial's folder is gone when its weights were not to be kept."""
    trial()
    job = make.job(tmp_path, make.targets("de_pud"))
    leave(job)
    work(job)
    assert not (tmp_path / "checkpoints" / job.trial_id).exists()


def test_kept_weights_stay(tmp_path, trial):
    """Weights that were asked for stay, say so in the row, and are all that stays."""
    trial()
    job = make.job(tmp_path, replace(make.targets("de_pud"), keep="best"))
    folder = leave(job)
    work(job)
    assert [file.path for file in folder.files()] == ["best.safetensors"]
    assert read_tables(tmp_path).trials.column("kept").to_pylist() == [True]


def test_measuring_more_does_not_delete_the_weights(tmp_path, trial):
    """A job on a finished trial leaves the weights it used, though it asks to keep none."""
    trial()
    job = make.more(make.job(tmp_path, make.targets()), make.targets("de_pud"))
    folder = leave(job)
    assert work(job).status == "done"
    assert [file.path for file in folder.files()] == ["best.safetensors"]


def test_checkpoints_stay_after_a_failure(tmp_path, trial):
    """A trial that failed keeps its checkpoints for the next attempt."""
    trial(RuntimeError("boom"))
    job = make.job(tmp_path, make.targets("de_pud"))
    folder = leave(job)
    work(job)
    assert len(folder.files()) == 2


def test_folder_that_cannot_be_removed_is_only_a_warning(tmp_path, trial, monkeypatch, caplog):
    """A committed trial is done even if its checkpoints cannot be deleted."""
    trial()

    def refuse(*_):
        raise StorageError("busy")

    monkeypatch.setattr(Store, "delete_folder", refuse)
    assert work(make.job(tmp_path, make.targets("de_pud"))).status == "done"
    assert "left behind: busy" in caplog.text


def test_disk_that_fills_up_is_the_stores_failure(tmp_path, trial, monkeypatch):
    """A full disk at commit time ends as a storage failure with the remedy in its words."""
    trial()

    def full(*_):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("os.link", full)
    outcome = work(make.job(tmp_path, make.targets("de_pud")))
    assert outcome.failure_kind == "storage"
    assert "Free space" in outcome.message
