"""Parts of a run's site: texts and lists of events in files that a page reads offline.

A page opened from a disk may load scripts but no data, so a file of parts is a script
that hands a compressed text to the page: `owaParts(FILE, "base64 of deflated JSON")`.
Parts are numbered through all files; a text is stored once, whoever refers to it.
"""

import base64
import io
import json
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.errors import TraceError
from owa_bench.records.events import (
    ENCODER,
    AnyEvent,
    Artifact,
    EpisodeStart,
    Evidence,
)
from owa_bench.records.packs import Transcripts

FILE_BYTES = 1 << 21  # of JSON, before it is compressed
_DECIMALS = 4  # of recorded observations
_PICTURES = {"image/jpeg": "jpg", "image/png": "png"}
_NUMBERS = "application/x-npy"
# Fields that hold the SHA-256 of a blob, or of something that is no blob.
_DIGESTS = frozenset(
    {
        *("blob", "observation", "request", "response", "prompt", "reply", "output"),
        *("digest", "before", "after", "world", "fingerprint", "played"),
        *("question", "answer", "manifest"),
    }
)


class SiteParts:
    """Writes parts; `firsts` are the numbers of each file's first part.

    Args:
        folder: The site's folder; files go to `data/`, pictures to `pictures/`.
        transcripts: The blobs of the run.
    """

    def __init__(self, folder: Path, transcripts: Transcripts) -> None:
        self.firsts: list[int] = []
        self._folder = folder
        self._transcripts = transcripts
        self._waiting: list[bytes] = []
        self._size = 0  # bytes that wait
        self._count = 0
        self._places: dict[str, int | str | None] = {}  # by digest
        for name in ("data", "pictures"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def add(self, part: bytes) -> int:
        """Take a part as JSON and return its number."""
        self._waiting.append(part)
        self._count += 1
        self._size += len(part)
        if self._size >= FILE_BYTES:
            self.flush()
        return self._count - 1

    def flush(self) -> None:
        """Write the parts that wait as a file."""
        if not self._waiting:
            return
        number = len(self.firsts)
        self.firsts.append(self._count - len(self._waiting))
        text = deflated(b"[" + b",".join(self._waiting) + b"]")
        path = self._folder / "data" / f"{number:05d}.js"
        path.write_text(f'owaParts({number},"{text}")\n')
        self._waiting.clear()
        self._size = 0

    def add_events(self, events: tuple[AnyEvent, ...]) -> int:
        """Take the events of an attempt and return their part's number.

        A digest becomes the number of the part with its text, or the name of a
        picture's file; what the run does not hold is left out.
        """
        rows = []
        for event in events:
            row = msgspec.json.decode(ENCODER.encode(event))
            if isinstance(event, EpisodeStart):  # a script's numbers have 53 bits
                row["instance"]["seed"] = str(event.instance.seed)
            media = event.media if isinstance(event, Artifact | Evidence) else ""
            for name in _DIGESTS & row.keys():
                place = self._place(row.pop(name), media)
                if place is not None:
                    row[name] = place
            rows.append(row)
        return self.add(msgspec.json.encode(rows))

    def _place(self, digest: Any, media: str) -> int | str | None:
        """Return where the page finds a blob, None for what the run does not hold."""
        if not isinstance(digest, str):
            return None
        if digest not in self._places:
            self._places[digest] = self._stored(digest, media)
        return self._places[digest]

    def _stored(self, digest: str, media: str) -> int | str | None:
        try:
            data = self._transcripts.read(digest)
        except TraceError:
            return None
        if media in _PICTURES:
            name = f"pictures/{len(self._places):06d}.{_PICTURES[media]}"
            (self._folder / name).write_bytes(data)
            return name
        if media == _NUMBERS:
            return self.add(_array_json(data))
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = f"{len(data)} bytes that are no text"
        return self.add(json.dumps(text).encode())


def deflated(data: bytes) -> str:
    """Return bytes as the page's script reads them: raw deflate, then base64."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode()


def _array_json(data: bytes) -> bytes:
    """Return a recorded array as JSON rows; null for what is no finite table."""
    try:
        table = np.load(io.BytesIO(data), allow_pickle=False)
        rows = np.round(table.astype(np.float64), _DECIMALS)
    except (ValueError, TypeError, EOFError):
        return b"null"
    if rows.ndim != 2 or not np.isfinite(rows).all():
        return b"null"
    return msgspec.json.encode(rows.tolist())
