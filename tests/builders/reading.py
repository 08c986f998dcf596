"""Readers by script: a thread that sees the files of `owa-bench play --folder`."""

import json
import os
import threading
from pathlib import Path


class ScriptedReader(threading.Thread):
    """Answers each `next.txt` in the open folder with what a function returns.

    Args:
        door: The folder of `--folder`.
        answer: Called with the sitting's folder and the text of `next.txt`; returns
            what `act.json` will hold (None: the function wrote it itself).
    """

    def __init__(self, door, answer):
        super().__init__(daemon=True)
        self.door, self.answer = Path(door), answer
        self.error = None
        self.stop = threading.Event()
        self._seen = {}

    def end(self):
        """Stop, and say what went wrong."""
        self.stop.set()
        self.join(10)
        assert self.error is None, self.error

    def run(self):
        try:
            while not self.stop.wait(0.005):
                self._turn()
        except BaseException as error:  # noqa: BLE001  shown by the test
            self.error = error

    def _turn(self):
        where = _text(self.door / "where.txt").split()
        if where[:1] != ["open"]:
            return
        folder = self.door / where[1]
        text = _text(folder / "next.txt")
        if text and self._seen.get(folder) != text and "has ended" not in text:
            self._seen[folder] = text
            act = self.answer(folder, text)
            if act is not None:
                write_whole(folder, act)


def write_whole(folder, act):
    """Write `act.json` as the brief advises: under another name, then renamed."""
    text = act if isinstance(act, str) else json.dumps(act)
    (folder / "mine.tmp").write_text(text)
    os.replace(folder / "mine.tmp", folder / "act.json")


def call(tool, **arguments):
    """Return a tool call."""
    return {"tool": tool, "arguments": arguments}


def _text(path):
    try:
        return path.read_text()
    except OSError:
        return ""
