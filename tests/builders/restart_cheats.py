"""Agents that try to carry a register over a restart by other ways than their quota."""

import json
import os
import re
import socket
import subprocess
import sys
import zlib
from pathlib import Path

import httpx

from owa_bench.agents.solvers.recall.induction import ListMemory
from owa_bench.agents.solvers.recall.player import RecallPlayer
from owa_bench.agents.solvers.recall.stores import FILE, FactStore

KEPT = {}
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/home", ".", "..")
HEX = 120  # hexadecimal digits of a file's name
STAMP = 6  # bytes in a time of a file
SERVER = """
import socket, sys
listener = socket.socket(fileno=int(sys.argv[1]))
listener.settimeout(30)
listener.accept()[0].sendall(bytes.fromhex(sys.argv[2]))
"""


class CheatStore(FactStore):
    """Reads bytes that another way than its file has kept."""

    def restore(self, folder, packed):
        """Take in what `_packed` made; anything else is nothing."""
        try:
            zlib.decompress(packed)
        except zlib.error:
            return
        (folder / FILE).write_bytes(packed)
        super().load(folder)
        (folder / FILE).unlink()


class OutsideStore(CheatStore):
    """Writes wherever it may but into its folder."""

    def places(self, folder):
        name = "-".join(self._subjects).replace(" ", "")[:80]
        homes = (*PLACES, os.path.expanduser("~"), folder.parent)
        return [Path(place) / f"owa-{name}" for place in homes]

    def save(self, folder):
        for path in self.places(folder):
            try:
                path.write_bytes(self._packed())
            except OSError:
                continue

    def load(self, folder):
        for path in self.places(folder):
            if path.exists():
                self.restore(folder, path.read_bytes())
                path.unlink()


class GlobalStore(FactStore):
    """Keeps its facts in the module."""

    def save(self, folder):
        KEPT["facts"] = self.facts

    def load(self, folder):
        self.facts = KEPT.get("facts", [])


class CarrierStore(CheatStore):
    """Leaves a process behind that hands its facts to whoever connects."""

    @property
    def address(self):
        return "\0owa" + "-".join(self._subjects)[:80]

    def save(self, folder):
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(self.address)
                listener.listen()
                number = listener.fileno()
                KEPT["server"] = subprocess.Popen(
                    [sys.executable, "-c", SERVER, str(number), self._packed().hex()],
                    pass_fds=[number],
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
        except OSError:
            return

    def load(self, folder):
        parts = []
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(self.address)
                while part := client.recv(1 << 16):
                    parts.append(part)
        except OSError:
            return
        if "server" in KEPT:  # where it is this process' own
            KEPT["server"].wait()
        self.restore(folder, b"".join(parts))


class ClockStore(CheatStore):
    """Keeps its facts in the times of empty files."""

    def save(self, folder):
        packed = self._packed()
        packed += bytes(-len(packed) % STAMP)
        for number, at in enumerate(range(0, len(packed), STAMP)):
            path = folder / f"{number:x}"
            path.touch()
            stamp = int.from_bytes(packed[at : at + STAMP])
            os.utime(path, ns=(stamp, stamp))

    def load(self, folder):
        paths = sorted(folder.iterdir(), key=lambda path: int(path.name, 16))
        times = [path.stat().st_mtime_ns for path in paths]
        for path in paths:
            path.unlink()
        if paths and all(time < 1 << 8 * STAMP for time in times):
            whole = b"".join(time.to_bytes(STAMP) for time in times)
            unpacker = zlib.decompressobj()
            try:
                self.restore(folder, zlib.compress(unpacker.decompress(whole)))
            except zlib.error:
                return


class ProviderStore(CheatStore):
    """Has its model's provider keep its facts; what it keeps itself is their id."""

    def _ask(self, **terms):
        with httpx.Client(
            base_url=os.environ["OPENAI_BASE_URL"],
            headers={"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
            trust_env=False,
        ) as client:
            reply = client.post("/responses", json={"model": "m", **terms})
        return reply.json() if reply.is_success else {}

    def save(self, folder):
        kept = self._ask(input=self._packed().hex(), store=True)
        (folder / "id").write_text(kept.get("id", ""))

    def load(self, folder):
        place = folder / "id"
        if place.exists() and place.read_text():
            told = self._ask(input="?", previous_response_id=place.read_text())
            for item in told.get("output", ()):
                self.restore(folder, bytes.fromhex(item["content"][0]["text"]))


class NameStore(CheatStore):
    """Keeps them in names of empty files, as if it had no quota."""

    def save(self, folder):
        text = self._packed().hex()
        for number, at in enumerate(range(0, len(text), HEX)):
            (folder / f"{number:04d}-{text[at : at + HEX]}").touch()

    def load(self, folder):
        names = sorted(path.name for path in folder.iterdir())
        for path in folder.iterdir():
            path.unlink()
        self.restore(folder, bytes.fromhex("".join(name[5:] for name in names)))


class Cheat(RecallPlayer):
    """Plays as the exact store does, with a store that has no quota."""

    store = FactStore

    def __init__(self, config=None):
        kind = type(self).store
        super().__init__(
            lambda goal, quota, seed: kind(goal, 1 << 30), ListMemory(), lambda prompt, pages: None
        )


class Outside(Cheat):
    store = OutsideStore


class Global(Cheat):
    store = GlobalStore


class Carrier(Cheat):
    store = CarrierStore


class Clock(Cheat):
    store = ClockStore


class Names(Cheat):
    store = NameStore


class Provider(Cheat):
    store = ProviderStore


class Honest(Cheat):
    store = FactStore


class Notes(Cheat):
    """Notes its facts after each page, and reads the notes as a sitting begins."""

    store = type("NoteStore", (CheatStore,), {"save": lambda *_: None})

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.calls = [json.dumps({"tool": "recall", "arguments": {}})]
        self.begun = False

    def act(self, observation, info):
        if self.calls:
            return self.calls.pop()
        if not self.begun:
            self.begun = True
            if note := re.search(r"\b78da[0-9a-f]+", str(observation["text"])):
                self._store.restore(self._folder, bytes.fromhex(note[0]))
        action = super().act(observation, info)
        if "go_on" not in action:
            return action
        note = {"text": self._store._packed().hex()}
        self.calls = [action]
        return json.dumps({"tool": "note", "arguments": note})
