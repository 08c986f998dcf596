"""A stand-in for a chat model on Recall: the exact store, fed by the messages alone.

Its notes are the bytes of the store's file in base64.
"""

import base64
import json
import re
import tempfile
from pathlib import Path

from owa_bench.agents.solvers.recall.induction import ListMemory
from owa_bench.agents.solvers.recall.player import RecallPlayer
from owa_bench.agents.solvers.recall.stores import FILE, FactStore
from owa_bench.interfaces import Brief
from tests.builders.stub_server import completion

_GOAL = re.compile(r"The same goal as JSON:\n(.*)")
_CLAIM = re.compile(r"^- (\w+/\d+): (.*)$", re.M)
_NOTES = re.compile(r"Your notes from before the break:\n(\S+)")
_ANSWERED = ("kept, ", "error: the notes", "error: `text`")  # by remember


class Conversation:
    """The player of one conversation and its last action."""

    def __init__(self, brief):
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name)
        if notes := _NOTES.search(brief):
            (path / FILE).write_bytes(base64.b64decode(notes[1]))
        self._path = path / FILE
        self._player = RecallPlayer(
            lambda goal, quota, seed: FactStore(goal, 3 * goal["quota"] // 4 - 64),
            ListMemory(),
            lambda prompt, pages: None,
        )
        goal = json.loads(_GOAL.search(brief)[1])
        claims = dict(_CLAIM.findall(brief))
        self._player.reset(Brief(text="", goal=goal, propositions=claims), (), path)

    def calls(self, text):
        """Return the calls that answer a text; each page goes into the notes."""
        action = json.loads(self._player.act({"text": text}, {}))
        call = (action["tool"], action["arguments"])
        if ", page.\n" not in text or call[0] != "go_on":
            return (call,)
        self._player.close()
        notes = base64.b64encode(self._path.read_bytes()).decode()
        return ("remember", {"text": notes}), call


class Model:
    """The policy of a stub server; conversations are told apart by what was said."""

    def __init__(self):
        self._known = {}

    def __call__(self, messages):
        if len(messages) < 2:  # the preflight
            return completion(("finish", {}))
        brief = messages[1]["content"]
        said = [
            message["content"]
            for message in messages[2:]
            if message["role"] == "tool" and not message["content"].startswith(_ANSWERED)
        ]
        texts = (brief, *said)
        conversation = self._known.pop(texts[:-1], None)
        if conversation is None:
            conversation = Conversation(brief)
            for text in texts[:-1]:
                conversation.calls(text)
        calls = conversation.calls(texts[-1])
        self._known[texts] = conversation
        if calls[-1][0] == "finish":
            del self._known[texts]
        return completion(*calls)
