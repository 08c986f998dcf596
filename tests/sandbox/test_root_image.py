"""Root images: what is in them, what they cost, and that none is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from owa_bench.errors import InfrastructureFailure
from owa_bench.sandbox import root_image
from owa_bench.sandbox.image_keeper import CopyOrder
from owa_bench.sandbox.root_image import ImageReference
from tests.builders.sandboxes import needs_sandbox

pytestmark = needs_sandbox
HOLDER = """
import time
from owa_bench.sandbox import root_image
keeper = root_image._Keeper(1 << 20)
print(keeper.pid, keeper._folder, flush=True)
time.sleep(60)
"""


@pytest.fixture
def keeper():
    made = root_image._Keeper(1 << 20)
    yield made
    made.close()


def shell(keeper, words):
    command = ImageReference(keeper.pid, ()).command(["/bin/sh", "-c", words])
    return subprocess.run(command, capture_output=True, text=True)


def test_an_image_holds_contents_modes_times_and_links(keeper, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "program").write_text("text")
    (tree / "program").chmod(0o755)
    os.utime(tree / "program", (5, 5))
    os.link(tree / "program", tree / "again")
    (tree / "link").symlink_to("program")
    (tree / "gone").write_text("left out")
    os.mkfifo(tree / "pipe")
    order = CopyOrder("layer", (str(tree),), (str(tree / "gone"),), shown=True)
    keeper.make_layer(order)
    seen = shell(keeper, f"cd {tree}; ls; cat link; stat -c '%a %Y %h' program")
    assert seen.stdout == "again\nlink\nprogram\ntext755 5 2\n"
    assert (tree / "gone").exists()  # nothing of the machine is changed
    assert shell(keeper, f"stat -f -c %T {tree}").stdout == "tmpfs\n"


def test_what_does_not_fit_is_refused(keeper, tmp_path):
    (tmp_path / "large").write_bytes(b"1" * (2 << 20))
    with pytest.raises(InfrastructureFailure, match="No space left"):
        keeper.make_layer(CopyOrder("layer", (str(tmp_path),), (), shown=False))


def test_nothing_is_left_of_an_image_whose_maker_was_killed():
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        pid, folder = holder.stdout.readline().split()
        assert Path(folder).is_dir()
        holder.send_signal(signal.SIGKILL)
    until = time.monotonic() + 10
    while Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(folder).exists()
    while Path(f"/proc/{pid}/ns/mnt").exists() and time.monotonic() < until:
        time.sleep(0.02)
    with pytest.raises(OSError, match="No such file"):
        os.stat(f"/proc/{pid}/root/usr")


def test_an_image_leaves_out_what_no_program_needs():
    content = root_image.system_content()
    assert "/usr" in content.paths
    assert "/usr/include" in content.left_out
    kept = ("/usr/bin", "/usr/lib", "/usr/lib/python3", "/usr/share/zoneinfo")
    assert not set(kept) & set(content.left_out)
    assert content.size > 0
