"""Bodies kept whole under handles, and the local tools that read them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from owa_bench.envs.toolquest import table
from owa_bench.envs.toolquest.table import DataTable, TableError

_SLICE = 3_500  # characters that `read` shows at once


class StoredBody(NamedTuple):
    """A body as it came, or a table that was made; `steps` say from where."""

    content: bytes | DataTable
    steps: tuple[int, ...]


class Handles:
    """The handles of an episode, `art:1` onwards."""

    def __init__(self) -> None:
        self._kept: dict[str, StoredBody] = {}

    def keep(self, content: bytes | DataTable, *steps: int) -> str:
        """Return a new handle for a body or table."""
        handle = f"art:{len(self._kept) + 1}"
        self._kept[handle] = StoredBody(content, steps)
        return handle

    def _get(self, handle: str) -> StoredBody:
        if handle not in self._kept:
            last = f"art:1 to art:{len(self._kept)}" if self._kept else "none yet"
            raise TableError(f"There is no handle `{handle}`; there are {last}.")
        return self._kept[handle]

    def steps_of(self, handles: Sequence[str]) -> set[int]:
        """Return the steps whose replies the handles hold."""
        return {step for handle in handles for step in self._get(handle).steps}

    def rows_of(self, source: str | Sequence[str]) -> DataTable:
        """Return the rows behind one handle, or behind several stacked."""
        names = [source] if isinstance(source, str) else source
        parts = []
        for name in names:
            kept = self._get(name)
            if isinstance(kept.content, DataTable):
                parts.append(kept.content)
            else:
                parts.append(table.find_rows(_parsed(name, kept.content), kept.steps))
        return table.stack(parts)

    def table(self, request: Mapping[str, Any], *, room: int) -> str:
        """Carry out a table request; return the text of the new handle's rows."""
        other = self.rows_of(request["join"]["source"]) if "join" in request else None
        made = table.work(self.rows_of(request["source"]), other, request)
        handle = self.keep(made, *made.steps)
        return table.view(
            made,
            handle,
            request.get("offset", 0),
            request.get("limit", len(made.rows)),
            room,
        )

    def read(self, handle: str, *, offset: int, pointer: str, room: int) -> str:
        """Return the next characters of a body, whole or from a JSON pointer on."""
        kept = self._get(handle)
        if isinstance(kept.content, DataTable):
            whole = msgspec.json.encode(kept.content._asdict()).decode()
        else:
            whole = kept.content.decode("utf-8", "replace")
        if pointer:
            part = _at(_parsed(handle, whole.encode()), pointer)
            whole = msgspec.json.encode(part).decode()
        size = _SLICE
        while True:
            text = _slice(handle, whole, offset, size)
            if len(text) <= room or size < 100:
                return text
            size -= max(50, len(text) - room)


def _slice(handle: str, whole: str, offset: int, size: int) -> str:
    end = min(offset + size, len(whole))
    answer = {
        "handle": handle,
        "characters": len(whole),
        "offset": offset,
        "next_offset": end if end < len(whole) else None,
        "text": whole[offset:end],
    }
    return msgspec.json.encode(answer).decode()


def _parsed(handle: str, content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise TableError(f"What `{handle}` holds is not JSON.") from error


def _at(document: Any, pointer: str) -> Any:
    """Return the part of a document at an RFC 6901 pointer."""
    for step in pointer.removeprefix("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif (
            isinstance(document, list) and name.isdigit() and int(name) < len(document)
        ):
            document = document[int(name)]
        else:
            raise TableError(f"There is nothing at the pointer `{pointer}`.")
    return document
