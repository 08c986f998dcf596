"""Memory: what is kept, how it is digested, sealed and brought back."""

import os
import tarfile

import pytest

from owa_bench.errors import RunDirectoryError
from owa_bench.records.layout import RunLayout
from owa_bench.runs.store.memory import (
    CopiedMemory,
    FreshMemory,
    LaneMemory,
    SnapshotFiles,
    lane_key,
)
from owa_bench.runs.store.memory_folder import MemoryQuota, folder_digest, read_folder

MASTER = b"m" * 32
QUOTA = MemoryQuota()


def lane(tmp_path, digest=None, master=MASTER, quota=QUOTA):
    layout = RunLayout(tmp_path / "run")
    key = lane_key(master, "agentic")
    return LaneMemory(SnapshotFiles(layout, "agentic"), key, digest, quota)


def test_fresh_memory_goes_with_its_episode():
    with FreshMemory() as memory:
        assert list(memory.path.iterdir()) == []
        assert memory.settle() is None
        path = memory.path
    assert not path.exists()


def test_a_lane_goes_on_from_its_snapshot(tmp_path):
    first = lane(tmp_path)
    (first.path / "folder").mkdir()
    (first.path / "folder" / "note").write_text("day 0")
    digest = first.settle()
    first.close()
    again = lane(tmp_path, digest)
    assert (again.path / "folder" / "note").read_text() == "day 0"
    assert again.digest == digest
    again.close()


def fifo(folder):
    os.mkfifo(folder / "pipe")


def link_out(folder):
    (folder / "away").symlink_to("/etc/hostname")


def sparse(folder):
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)


def deep(folder):
    back = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    for _ in range(2500):
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(back)
    os.close(back)


def many(folder):
    for number in range(60):
        (folder / str(number)).touch()


def removed(folder):
    (folder / "note").unlink()
    folder.rmdir()


def replaced(folder):
    removed(folder)
    folder.symlink_to("/")


def secret(folder):
    (folder / "locked").mkdir()
    (folder / "locked" / "x").touch()
    (folder / "locked").chmod(0)


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (fifo, "'pipe', which is no plain file"),
        (link_out, "'away', which is no plain file"),
        (sparse, "more than 1048576 bytes"),
        (deep, "more than 8 deep"),
        (many, "more than 50 files"),
        (removed, "cannot be read: No such file"),
        (replaced, "cannot be read"),
    ],
)
def test_a_folder_that_cannot_be_kept_goes_back(tmp_path, attack, words):
    kept = lane(tmp_path, quota=MemoryQuota(size=1 << 20, entries=50, depth=8))
    (kept.path / "note").write_text("day 0")
    before = kept.settle()
    assert kept.fault() == ""
    attack(kept.path)
    assert words in kept.fault()
    assert kept.settle() == before
    assert [path.name for path in kept.path.iterdir()] == ["note"]
    assert kept.fault() == ""
    kept.close()
    assert not kept.path.exists()


@pytest.mark.parametrize("attack", [fifo, link_out, sparse, deep, many, secret])
def test_a_fresh_folder_goes_whatever_is_in_it(attack):
    with FreshMemory() as memory:
        attack(memory.path)
    assert not memory.path.parent.exists()


def test_a_python_without_extraction_filters(tmp_path, monkeypatch):
    """Debian 12 has 3.11.2, whose `extractall` takes no `filter`."""
    whole = tarfile.TarFile.extractall

    def old(archive, path=".", members=None, *, numeric_owner=False):
        whole(archive, path, members, numeric_owner=numeric_owner)

    monkeypatch.setattr(tarfile.TarFile, "extractall", old)
    first = lane(tmp_path)
    (first.path / "note").write_text("day 0")
    digest = first.settle()
    first.close()
    again = lane(tmp_path, digest)
    assert (again.path / "note").read_text() == "day 0"
    again.close()


def test_the_run_directory_holds_no_plain_memory(tmp_path):
    kept = lane(tmp_path)
    (kept.path / "token").write_text("canary-secret-value")
    kept.settle()
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"canary" not in path.read_bytes()
    kept.close()


def test_only_the_last_snapshots_are_kept(tmp_path):
    kept = lane(tmp_path)
    for day in range(4):
        (kept.path / "day").write_text(str(day))
        kept.settle()
    assert len(list((tmp_path / "run" / "lanes" / "agentic").iterdir())) == 2
    kept.close()


def test_the_last_leafs_snapshot_outlives_many_kills(tmp_path):
    kept = lane(tmp_path)
    (kept.path / "note").write_text("closed")
    base = kept.settle()
    kept.close()
    for attempt in range(3):  # each settles and is killed before its leaf is closed
        again = lane(tmp_path, base)
        (again.path / "note").write_text(f"attempt {attempt}")
        again.settle()
        again.close()
    last = lane(tmp_path, base)
    assert (last.path / "note").read_text() == "closed"
    last.close()


def test_a_failed_attempt_is_taken_back(tmp_path):
    kept = lane(tmp_path)
    (kept.path / "note").write_text("before")
    kept.settle()
    (kept.path / "note").write_text("half done")
    (kept.path / "more").write_text("half done")
    kept.rewind()
    assert [path.name for path in kept.path.iterdir()] == ["note"]
    assert (kept.path / "note").read_text() == "before"
    kept.close()


def test_a_first_attempt_that_failed_leaves_nothing(tmp_path):
    kept = lane(tmp_path)
    (kept.path / "note").write_text("half done")
    kept.rewind()
    assert list(kept.path.iterdir()) == []
    kept.close()


def test_a_checkpoint_plays_on_a_copy(tmp_path):
    kept = lane(tmp_path)
    (kept.path / "note").write_text("practice")
    digest = kept.settle()
    with CopiedMemory(kept) as copy:
        assert (copy.path / "note").read_text() == "practice"
        (copy.path / "note").write_text("learned in a checkpoint")
        assert copy.settle() == digest
    assert (kept.path / "note").read_text() == "practice"
    kept.close()


@pytest.mark.parametrize("fault", ["missing", "other key", "cut"])
def test_a_snapshot_that_is_not_the_one_is_refused(tmp_path, fault):
    kept = lane(tmp_path)
    (kept.path / "note").write_text("day 0")
    digest = kept.settle()
    kept.close()
    (path,) = (tmp_path / "run" / "lanes" / "agentic").iterdir()
    if fault == "missing":
        path.unlink()
    if fault == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    master = b"x" * 32 if fault == "other key" else MASTER
    with pytest.raises(RunDirectoryError, match="cannot be restored"):
        lane(tmp_path, digest, master)


def digest_of(folder):
    return folder_digest(read_folder(folder, MemoryQuota()))


def test_the_digest_is_of_names_kinds_and_contents(tmp_path):
    digests = {digest_of(tmp_path)}
    (tmp_path / "a").write_text("x")
    digests.add(digest_of(tmp_path))
    (tmp_path / "a").rename(tmp_path / "b")
    digests.add(digest_of(tmp_path))
    (tmp_path / "b").unlink()
    (tmp_path / "b").mkdir()
    digests.add(digest_of(tmp_path))
    assert len(digests) == 4


def test_a_name_that_is_no_text_does_not_stop_a_run(tmp_path):
    first = lane(tmp_path)
    folder = os.fsencode(first.path)
    with open(os.path.join(folder, b"\xff\n"), "wb") as file:
        file.write(b"kept")
    digest = first.settle()
    first.close()
    again = lane(tmp_path, digest)
    assert again.digest == digest
    assert b"\xff\n" in os.listdir(os.fsencode(again.path))
    again.close()


def test_lanes_of_nearly_one_name_keep_apart(tmp_path):
    names = ("my agent", "my_agent", "my/agent", "é" * 200, "è" * 200)
    layout = RunLayout(tmp_path / "run")
    digests = {}

    def lane(name):
        return LaneMemory(SnapshotFiles(layout, name), lane_key(MASTER, name), digests.get(name))

    for name in names:
        made = lane(name)
        (made.path / "note").write_text(name)
        digests[name] = made.settle()
        made.close()
    for name in names:
        again = lane(name)
        assert (again.path / "note").read_text() == name
        again.close()
