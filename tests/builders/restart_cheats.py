"""Agents that try to carry a register over a restart by other ways than their quota."""

import os
from pathlib import Path

from owa_bench.skills.recall.lists import ListMemory
from owa_bench.skills.recall.player import RecallPlayer
from owa_bench.skills.recall.stores import FILE, FactStore

KEPT = {}
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/home", ".", "..")
HEX = 120  # hexadecimal digits of a file's name


class OutsideStore(FactStore):
    """Writes wherever it may but into its folder."""

    def save(self, folder):
        for place in (*PLACES, os.path.expanduser("~"), folder.parent):
            try:
                path = Path(place) / f"owa-{FILE}"
                path.write_bytes(self._packed())
            except OSError:
                continue

    def load(self, folder):
        for place in (*PLACES, os.path.expanduser("~"), folder.parent):
            path = Path(place) / f"owa-{FILE}"
            if path.exists():
                path.rename(folder / FILE)
                super().load(folder)
                (folder / FILE).unlink()


class GlobalStore(FactStore):
    """Keeps its facts in the module."""

    def save(self, folder):
        KEPT["facts"] = self.facts

    def load(self, folder):
        self.facts = KEPT.get("facts", [])


class NameStore(FactStore):
    """Keeps them in names of empty files, as if it had no quota."""

    def save(self, folder):
        text = self._packed().hex()
        for number, at in enumerate(range(0, len(text), HEX)):
            (folder / f"{number:04d}-{text[at : at + HEX]}").touch()

    def load(self, folder):
        names = sorted(path.name for path in folder.iterdir())
        if names:
            packed = bytes.fromhex("".join(name[5:] for name in names))
            for path in folder.iterdir():
                path.unlink()
            (folder / FILE).write_bytes(packed)
            super().load(folder)
            (folder / FILE).unlink()


class _Cheat(RecallPlayer):
    store = FactStore

    def __init__(self, config=None):
        kind = type(self).store
        super().__init__(
            lambda goal, quota, seed: kind(goal, 1 << 30),
            ListMemory(),
            lambda prompt, pages: None,
        )


class Outside(_Cheat):
    store = OutsideStore


class Global(_Cheat):
    store = GlobalStore


class Names(_Cheat):
    store = NameStore


class Honest(_Cheat):
    store = FactStore


class Notes(_Cheat):
    """Asks for notes, for search and for the supervisor before each answer."""

    store = type("Nothing", (FactStore,), {"save": lambda *_: None})
    calls = (
        '{"tool": "note", "arguments": {"text": "x"}}',
        '{"tool": "recall", "arguments": {}}',
        '{"tool": "search", "arguments": {"query": "the"}}',
        '{"tool": "ask_supervisor", "arguments": {}}',
    )
    at = 0

    def act(self, observation, info):
        self.at += 1
        if self.at <= len(self.calls):
            return self.calls[self.at - 1]
        return super().act(observation, info)
