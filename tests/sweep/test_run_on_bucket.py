"""A whole run whose store is a bucket: killed, guarded, resumed, compacted, and read again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the driver imports the made-up jobs, too
import run_samples as made
from test_run import made_up, run

from sweep.ledger import Ledger
from sweep.lock import NAME, StoreLockedError
from sweep.opened import open_study
from sweep.storage import Store

__all__ = ["made_up"]  # a fixture of the other file that serves every test here

pytestmark = pytest.mark.slow

DRIVER = """
import sys
sys.path.insert(0, {folder!r})
import run_samples as made
import sweep.opened
from sweep.run import run_study
sweep.opened.resolve = made.resolve
run_study(made.study_of({store!r}, [1, 6]), workers=1, worker=made.WORKER)
"""


@pytest.fixture
def held(bucket: str, tmp_path: Path) -> subprocess.Popen[bytes]:
    """A driver in the middle of its study, that stays there until it is killed."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "hold").touch()
    os.mkfifo(cache / "held")
    code = DRIVER.format(folder=str(Path(__file__).parent), store=bucket)
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)


def test_a_killed_driver_on_a_bucket_loses_nothing(
    bucket: str, held: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """A second driver is refused while the first lives; after its death the run goes on from it."""
    cache = tmp_path / "cache"
    study = made.study_of(bucket, [1, 6])
    (cache / "held").open("rb").close()  # opens once the driver's job opens it, too
    with pytest.raises(StoreLockedError, match=f"process {held.pid} on"):
        run(study)
    committed = {f.path for f in Store(bucket).files("commits")}
    begun = made.runs(cache)
    assert len(begun) == 4  # the probe, two of seed 1, and the one that is held
    assert len(committed) == 3

    os.kill(held.pid, signal.SIGKILL)
    held.communicate()
    (cache / "hold").unlink()
    assert Store(bucket).exists(NAME)  # the dead driver's lock
    assert len(open_study(study).plan().left) == 2

    summary, _ = run(study)
    assert (summary.already, summary.done, summary.left) == (3, 2, 0)
    assert made.runs(cache)[4:] == [begun[3], *set(made.runs(cache)[4:]) - set(begun)]

    store = Store(bucket)
    assert not store.exists(NAME)
    assert store.files("commits") == []  # all of them in tables now
    assert Ledger(bucket).table("trials").num_rows == 5
    run(made.study_of(tmp_path / "folder", [1, 6]))
    for name in ("scores", "curves", "similarity"):
        rows = [Ledger(where).table(name).to_pylist() for where in (bucket, tmp_path / "folder")]
        assert sorted(map(str, rows[0])) == sorted(map(str, rows[1])) != []
    again, said = run(study)
    assert (again.already, again.done, said) == (5, 0, "")
