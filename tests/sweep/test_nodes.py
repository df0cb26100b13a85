"""What a worker looks at before it begins a job on a cluster."""

from dataclasses import replace
from pathlib import Path

import store_samples as samples

from sweep.lock import DriverLock
from sweep.nodes import blindness
from sweep.storage import Store
from trainables.spec import Request


def job(tmp_path: Path, *, store: str | None = None):
    """A job whose encoder and data are there."""
    files = {name: tmp_path / name for name in ("encoder", "train", "test")}
    for file in files.values():
        file.touch()
    made = samples.job(store or str(tmp_path / "results"), Request())

    def there(ref, name):
        return replace(ref, location=str(files[name]))

    spec = replace(
        made.spec,
        encoder=there(made.spec.encoder, "encoder"),
        train=there(made.spec.train, "train"),
        dev=there(made.spec.dev, "train"),
    )
    return replace(
        made, spec=spec, request=Request(targets=(there(samples.ref("de_pud"), "test"),))
    )


def test_a_node_that_sees_the_drivers_lock_and_all_files_takes_the_job(tmp_path):
    """Nothing is said while the driver holds the store under this very path."""
    wanted = job(tmp_path)
    with DriverLock(Store(wanted.store)) as lock:
        assert blindness(wanted, lock.token, wait_s=0) == ""


def test_a_folder_of_that_name_without_the_driver_is_another_store(tmp_path):
    """An empty folder, and one with an older driver's lock, are told apart from the driver's."""
    wanted = job(tmp_path)
    assert "does not see the driver's store" in blindness(wanted, "token", wait_s=0)
    with DriverLock(Store(wanted.store)):
        told = blindness(wanted, "another", wait_s=0)
    assert wanted.store in told
    assert "--storage s3://" in told


def test_a_bucket_is_seen_from_everywhere(tmp_path):
    """A store that is no folder needs no mark."""
    assert blindness(job(tmp_path, store="s3://bucket/x"), "token", wait_s=0) == ""


def test_a_file_that_is_not_here_is_named(tmp_path):
    """A test set, training data or an encoder that this machine lacks are told by their path."""
    wanted = job(tmp_path)
    for name in ("test", "train", "encoder"):
        (tmp_path / name).unlink()
        told = blindness(wanted, "")
        assert str(tmp_path / name) in told
        assert "file_mounts" in told


def test_an_encoder_of_the_hub_is_no_file(tmp_path):
    """A hub id is fetched by each node itself."""
    wanted = job(tmp_path)
    encoder = replace(wanted.spec.encoder, location="bert-base-multilingual-cased")
    assert blindness(replace(wanted, spec=replace(wanted.spec, encoder=encoder)), "") == ""
