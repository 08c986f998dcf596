"""Cache of completions: a folder with a file for each request."""

import asyncio
import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.canonical import sha256
from owa_bench.hosting.gateway.session import GatewaySession, ModelRequest


class ReplyCache:
    """Completions by request; other replies are not kept.

    Args:
        folder: Where they lie; "" keeps none.
        api: The provider's interface, "" for chat.
    """

    def __init__(self, folder: str, api: str) -> None:
        self._folder = folder
        self._api = api

    def path(
        self, session: GatewaySession, record: ModelRequest, terms: Mapping[str, Any]
    ) -> Path | None:
        """Return the file of a request's reply, None where none is kept.

        No session reads what another asked. Within one, a request with a seed is the same wherever
        it is asked, and one without is another at each place.

        Args:
            session: Who asks.
            record: The request.
            terms: Its body.
        Returns: The path; there may be no file yet.
        """
        unkept = terms.get("stream") is True or not session.reads_cache
        if not self._folder or unkept:
            return None
        seeded = type(terms.get("seed")) is int
        place = "" if seeded else f"{record.ordinal}\n"
        head = f"{session.scope}\n{place}{self._api}{record.path}\n"
        digest = sha256(head.encode() + record.body)
        return Path(self._folder) / digest[:2] / f"{digest}.json"

    async def keep(self, path: Path | None, record: ModelRequest) -> None:
        """Keep a reply, if it is a completion.

        Args:
            path: Its file, None where none is kept.
            record: The request and its reply.
        """
        if path is not None and record.is_completion:
            with contextlib.suppress(OSError):  # a reply that is not kept is paid twice
                await asyncio.to_thread(_write, path, record.reply)


def _write(path: Path, data: bytes) -> None:
    """Write a file; it appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
        draft.write(data)
    Path(draft.name).replace(path)


def folder_fault(folder: Path) -> str:
    """Return why no cache can lie in a folder, "" if one can; it is made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"must be a folder that can be written: {error.strerror}"
