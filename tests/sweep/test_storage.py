import errno
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from sweep.storage import ASIDE, StorageError, Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_published_bytes_come_back(store):
    """What was published is read back byte for byte, and no other file is left."""
    store.publish("a/b.bin", b"\x00one")
    assert store.read("a/b.bin") == b"\x00one"
    assert [file.path for file in store.files()] == ["a/b.bin"]


def test_publish_replaces(store):
    """Publishing under a name that is taken replaces the content."""
    store.publish("a", b"one")
    store.publish("a", b"two")
    assert store.read("a") == b"two"


def test_publish_new_keeps_the_first(store):
    """The second of two writers of one name is told so, and the first one's bytes stay."""
    assert store.publish_new("a/b", b"one")
    assert not store.publish_new("a/b", b"two")
    assert store.read("a/b") == b"one"
    assert [file.path for file in store.files()] == ["a/b"]


def test_publish_new_without_hard_links(store, monkeypatch):
    """Where the filesystem has no hard links, a new file still appears and an old one stays."""

    def refuse(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert store.publish_new("a/b", b"one")
    assert not store.publish_new("a/b", b"two")
    assert store.read("a/b") == b"one"


def test_lost_answer_of_a_link_counts_as_made(store, monkeypatch):
    """A link that was made but answered "exists", as NFS may, counts as ours."""
    link = os.link

    def twice(source, target):
        link(source, target)
        raise FileExistsError(errno.EEXIST, "exists")

    monkeypatch.setattr(os, "link", twice)
    assert store.publish_new("a/b", b"one")


def test_empty_store_lists_nothing(store):
    """A store that does not exist yet has no files, and reading from it is FileNotFoundError."""
    assert store.files() == []
    assert not store.exists("a")
    store.delete("a")
    store.delete_folder("a")
    with pytest.raises(FileNotFoundError):
        store.read("a")


def test_file_in_place_of_the_store_is_a_clear_error(tmp_path):
    """A file where the store's folder should be gives an error with the path and what to do."""
    (tmp_path / "store").write_text("in the way")
    with pytest.raises(StorageError, match=r"store/a/b: .*choose another --storage"):
        Store(tmp_path / "store").publish("a/b", b"one")
    assert (tmp_path / "store").read_text() == "in the way"


def test_unknown_kind_of_uri_is_refused():
    """A URI that pyarrow does not know is refused with the kinds that can be given."""
    with pytest.raises(ValueError, match=r"'htp://x/y'.*s3://"):
        Store("htp://x/y")


def test_file_uri_and_path_are_one_store(tmp_path):
    """`file://` and the plain path name the same files."""
    Store(tmp_path.as_uri()).publish("a", b"one")
    assert Store(tmp_path).read("a") == b"one"


def test_relative_path_becomes_absolute(tmp_path, monkeypatch):
    """A relative store is absolute once opened, as workers have other working folders."""
    monkeypatch.chdir(tmp_path)
    assert Store("results").where == str(tmp_path / "results")


def test_move_keeps_the_bytes(store):
    """A file that is moved out of the way is whole at its new place."""
    store.publish("a/b", b"one")
    store.move("a/b", "torn/b")
    assert [file.path for file in store.files()] == ["torn/b"]
    assert store.read("torn/b") == b"one"


def test_only_old_leftovers_are_swept(store):
    """What a killed writer left goes once it is old, and what is being written now stays."""
    store.publish(f"{ASIDE}/left-by-somebody", b"half")
    (leftover,) = store.files(ASIDE)
    assert store.sweep_aside(timedelta(hours=1), leftover.modified + timedelta(minutes=59)) == 0
    assert store.sweep_aside(timedelta(hours=1), leftover.modified + timedelta(minutes=61)) == 1
    assert store.files(ASIDE) == []


FULL_DISK = """
import resource, sys
from sweep.storage import StorageError, Store
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    Store(sys.argv[1]).publish("a/big", bytes(5000))
except StorageError as error:
    print(error)
"""


def test_disk_that_is_full_mid_file_shows_nothing(store):
    """When the disk takes only part of a file, the error says so and no name is visible."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, store.where], capture_output=True, text=True, check=True
    )
    assert "cannot write" in done.stdout
    assert "a/big" in done.stdout
    assert store.files() == []


def test_no_space_left_names_the_remedy(store, monkeypatch):
    """ENOSPC becomes an error that says to free space, and the old file stays whole."""
    store.publish("a", b"one")

    def full(_):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device\. Free space"):
        store.publish("a", b"two")
    assert store.read("a") == b"one"
    assert [file.path for file in store.files()] == ["a"]


WRITE_ON = """
import sys
from sweep.storage import Store
store = Store(sys.argv[1])
print("ready", flush=True)
for number in range(10**6):
    store.publish(f"files/{number % 7}", bytes([number % 251]) * 200_000)
"""


@pytest.mark.slow
def test_killed_writer_leaves_no_torn_file(tmp_path):
    """However often a writer is killed with -9, every visible file is whole."""
    store = Store(tmp_path)
    for turn in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE_ON, store.where], stdout=subprocess.PIPE
        )
        writer.stdout.readline()
        while len(store.files("files")) < min(7, turn + 1):
            pass
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        for file in store.files("files"):
            data = store.read(file.path)
            assert len(data) == 200_000
            assert data == data[:1] * 200_000


@pytest.mark.slow
def test_object_store_does_the_same(bucket):
    """On S3, publish, publish_new, list, move and delete keep the promises of a local store."""
    store = Store(bucket)
    assert store.files() == []
    store.publish("a/b", b"one")
    store.publish("a/b", b"two")
    assert not store.publish_new("a/b", b"three")
    assert store.publish_new("a/c", b"four")
    assert [(file.path, store.read(file.path)) for file in store.files()] == [
        ("a/b", b"two"),
        ("a/c", b"four"),
    ]
    store.move("a/c", "torn/c")
    store.delete("a/b")
    assert [file.path for file in store.files()] == ["torn/c"]
    store.delete("a/b")
    store.delete_folder("torn")
    assert not store.exists("torn/c")
    with pytest.raises(FileNotFoundError):
        store.read("torn/c")


@pytest.mark.slow
@pytest.mark.usefixtures("bucket")
def test_object_store_that_is_not_there_is_a_clear_error():
    """Writing into a bucket that does not exist is an error with the path, not a silent loss."""
    with pytest.raises(StorageError, match="no-such-bucket"):
        Store("s3://no-such-bucket/x").publish("a", b"one")


def test_local_store_is_a_pyarrow_filesystem(store):
    """Readers of other parts may open the store with pyarrow alone."""
    store.publish("a", b"one")
    fs, root = pafs.FileSystem.from_uri(Path(store.where).as_uri())
    assert fs.open_input_file(f"{root}/a").read() == b"one"
