"""What code leaves in its folder leads the harness nowhere else."""

import os

import pytest

from owa_bench.errors import FieldError
from owa_bench.sandbox.desk_files import read_file, write_file


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("secret")
    return path


def test_what_is_written_is_read(work):
    write_file(work, "a.json", b"[1]")
    assert read_file(work, "a.json") == b"[1]"
    write_file(work, "a.json", b"[2]")
    assert (work / "a.json").read_bytes() == b"[2]"
    assert os.listdir(work) == ["a.json"]


def test_no_link_is_followed(work, secret):
    (work / "a").symlink_to(secret)
    with pytest.raises(FieldError, match="plain file"):
        read_file(work, "a")
    (work / ".a.part").symlink_to(secret)
    write_file(work, "a", b"mine")
    assert secret.read_text() == "secret"
    assert read_file(work, "a") == b"mine"
    assert not (work / "a").is_symlink()


def test_a_folder_that_is_a_link_is_refused(work, secret):
    (work / "link").symlink_to(secret.parent)
    with pytest.raises(OSError, match="link"):
        read_file(work / "link", "secret")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_refused_at_once(work, make):
    make(work / "a")
    with pytest.raises(FieldError, match="plain file"):
        read_file(work, "a")


def test_a_name_is_free_or_a_file_s(work):
    os.mkfifo(work / "a")
    write_file(work, "a", b"mine")
    assert read_file(work, "a") == b"mine"
    (work / "b").mkdir()
    (work / ".c.part").mkdir()
    for name in "bc":
        with pytest.raises(FieldError, match="remove what has the name"):
            write_file(work, name, b"")


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/hosts", "", ".", "..", ".a", "a/b", "a\0", "é"]
)
def test_a_name_outside_is_refused(work, secret, name):
    with pytest.raises(FieldError, match="must be up to 100"):
        read_file(work, name)
    with pytest.raises(FieldError, match="must be up to 100"):
        write_file(work, name, b"")


def test_a_long_file_is_refused_by_its_length(work):
    (work / "a").write_bytes(bytes(11))
    assert len(read_file(work, "a", 11)) == 11
    with pytest.raises(FieldError, match="10 bytes or fewer"):
        read_file(work, "a", 10)


def test_a_missing_file_is_named(work):
    with pytest.raises(FieldError, match="write it first"):
        read_file(work, "a")
