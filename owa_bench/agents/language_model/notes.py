"""Notes of a chat model that outlast its process: one text, rewritten by a tool."""

import json
from pathlib import Path

from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.shells.standard_tools import tool_spec

TOOL = "remember"
_FILE = "notes.txt"
_NO_LIMIT = 256 << 20
_ABOUT = """\
Replace your notes by this text. It costs no step. Only the notes are left to you when \
the task goes on after a break, in which everything else is forgotten."""


class Notes:
    """The notes in a memory folder, within its quota.

    Args:
        folder: The folder.
        brief: Its budget `memory_bytes` is the quota, names of files included.
    """

    def __init__(self, folder: Path, brief: Brief) -> None:
        self._path = folder / _FILE
        quota = int(brief.budgets.get("memory_bytes", _NO_LIMIT))
        self._most = max(0, quota - len(_FILE))

    @property
    def tool(self) -> ToolSpec:
        """The tool that rewrites them."""
        text = {"type": "string", "description": f"At most {self._most} bytes."}
        return tool_spec(TOOL, _ABOUT, "text", text=text)

    @property
    def prompt(self) -> str:
        """What stands below the brief."""
        text = self._path.read_text("utf-8") if self._path.exists() else ""
        return f"Your notes from before the break:\n{text}" if text else ""

    def take(self, action: str) -> str:
        """Keep what a call gives, and return the answer to it; `action` is its JSON."""
        text = json.loads(action)["arguments"].get("text")
        if not isinstance(text, str):
            return "error: `text` must be a string; the notes stay as they were."
        size = len(text.encode())
        if size > self._most:
            return (
                f"error: the notes may have {self._most} bytes, got {size}; they stay as they were."
            )
        self._path.write_text(text, "utf-8")
        return f"kept, {size} of {self._most} bytes"
