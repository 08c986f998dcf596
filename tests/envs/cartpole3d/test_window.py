"""render_mode="human" in a virtual screen, where the machine has one to offer."""

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.physics, pytest.mark.slow]

CODE = """
import pybullet
from owa_bench.runs.assembly import make_native_env

def trajectory(mode):
    env = make_native_env("cartpole3d", render_mode=mode, level=2)
    seen = [env.reset(seed=1)[0]] + [env.step(i % 5)[0] for i in range(5)]
    kind = pybullet.getConnectionInfo(env.scene.client)["connectionMethod"]
    picture = env.render()
    env.close()
    return b"".join(one.tobytes() for one in seen), kind, picture

plain, window = trajectory(None), trajectory("human")
print("connections", plain[1] == pybullet.DIRECT, window[1] == pybullet.GUI)
print("same bytes", plain[0] == window[0])
print("picture", window[2])
"""


@pytest.fixture
def screen():
    """Return the DISPLAY of a virtual screen of its own."""
    server = shutil.which("Xvfb")
    if server is None:
        pytest.skip("no virtual screen here: apt-get install xvfb")
    told, tell = os.pipe()
    size = ["-screen", "0", "640x480x24"]
    command = [server, "-displayfd", str(tell), *size, "-nolisten", "tcp"]
    running = subprocess.Popen(command, pass_fds=[tell], stderr=subprocess.DEVNULL)
    os.close(tell)
    with os.fdopen(told) as answer:
        yield ":" + answer.readline().strip()
    running.terminate()
    running.wait()


def test_a_window_shows_the_same_episode_and_closes(screen):
    pytest.importorskip("pybullet")
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "DISPLAY": screen},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    if "Failed to" in done.stdout + done.stderr:
        pytest.skip("the virtual screen has no OpenGL 3")
    assert done.returncode == 0, done.stderr
    assert "connections True True" in done.stdout
    assert "same bytes True" in done.stdout
    assert "picture None" in done.stdout
