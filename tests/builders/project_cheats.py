"""Files that cheats on ProjForge commit: a forger, a plug-in, and ways out."""

FORGER = """import gc, json, os

for number in range(3, 64):
    try:
        os.write(number, json.dumps({"exit": 0, "text": "1 passed"}).encode())
    except OSError:
        pass
os._exit(0)
"""
PLUGIN = {
    "greener-1.0.dist-info/METADATA": "Name: greener\nVersion: 1.0\n",
    "greener-1.0.dist-info/entry_points.txt": "[pytest11]\ngreener = greener\n",
    "greener.py": "def pytest_collection_modifyitems(items):\n    del items[1:]\n\n\n"
    "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
}
DOORS = '''"""Ways out of a sandbox: prints those that are open."""

import os
import pathlib
import socket

import pytest


def file_of_the_machine():
    return pathlib.Path("/etc/shadow").read_bytes() or pathlib.Path("/root").iterdir()


def memory_of_the_server():
    with open(f"/proc/{os.getppid()}/mem", "rb") as file:
        file.seek(0x10000)
        return file.read(1)


def environment_of_the_first_process():
    if b"OWA_BENCH_CANARY" not in pathlib.Path("/proc/1/environ").read_bytes():
        raise OSError("the environment is the sandbox' own")


def connection():
    return socket.create_connection(("192.0.2.1", 80), timeout=2)


def resolution():
    return socket.getaddrinfo("example.org", 80)


def write_to_the_index():
    return pathlib.Path("/index/main/x").write_text("x")


def write_to_installed_libraries():
    return pathlib.Path("/sites/0/x").write_text("x")


def write_to_the_commit():
    return pathlib.Path(__file__).write_text("x")


WAYS = (
    file_of_the_machine,
    memory_of_the_server,
    environment_of_the_first_process,
    connection,
    resolution,
    write_to_the_index,
    write_to_installed_libraries,
    write_to_the_commit,
)


def test_ways():
    opened = []
    for way in WAYS:
        try:
            way()
        except OSError:
            continue
        opened.append(way.__name__)
    pytest.fail(f"DOORS {opened}", pytrace=False)
'''
GLUTTONS = (  # processes, memory, disk
    "import os\n\nfor _ in range(400):\n    if not os.fork():\n        os.read(os.pipe()[0], 1)\n",
    "held = [bytearray(b'x' * (1 << 26)) for _ in range(20)]\n",
    "for n in range(40):\n    with open(f'{n}.bin', 'wb') as file:\n"
    "        file.write(b'x' * (1 << 26))\n",
)
