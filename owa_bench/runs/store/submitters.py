"""A verifier's list of submitters: names, and the keys that sign their plans.

Kept by hand, or by `owa-bench verifier register`. Anybody can sign each plan with a fresh key, so a
verifier counts plans by the names on its own list.

Source: docs/check-a-report.md#whose-plan-it-is.
"""

import json
import re
from pathlib import Path

from owa_bench.errors import FieldError
from owa_bench.records.plan import KEY
from owa_bench.records.toml import TomlRecord, decode, in_file
from owa_bench.runs.store.files import write_whole

_NAME = re.compile(r"[^\W_][\w .@&'-]{0,63}")


class Submitter(TomlRecord, frozen=True):
    """A submitter on a verifier's list: a name, and the keys that sign its plans."""

    name: str
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse a name that no page could show on a line, and what is no key."""
        if not _NAME.fullmatch(self.name):
            rule = "must be at most 64 letters, digits, blanks and .@&'-"
            raise FieldError("submitter", self.name, rule)
        for key in self.keys:
            if not key or not KEY.fullmatch(key):
                raise FieldError(f"{self.name}: key", key, "must be 64 hex digits")


class SubmitterList(TomlRecord, frozen=True):
    """The submitters that a verifier knows; a key stands under one name."""

    submitter: tuple[Submitter, ...] = ()

    def name_of(self, key: str) -> str:
        """Return the name of the submitter with a key in hex, "" for none."""
        return next((one.name for one in self.submitter if key in one.keys), "")

    def keys_of(self, name: str) -> frozenset[str]:
        """Return the keys of a submitter."""
        keys = (key for one in self.submitter if one.name == name for key in one.keys)
        return frozenset(keys)

    def with_key(self, name: str, key: str) -> "SubmitterList":
        """Return the list with a key under a name, new or there already.

        Args:
            name: The submitter.
            key: 64 hex digits.
        Raises: FieldError: The key stands under another name.
        """
        if not key or not KEY.fullmatch(key):
            raise FieldError("--submitter", key, "must be 64 hex digits")
        owner = self.name_of(key)
        if owner and owner != name:
            raise FieldError("--submitter", key, f"must be no key of {owner!r}")
        keys = (*sorted(self.keys_of(name) - {key}), key)
        others = [one for one in self.submitter if one.name != name]
        return SubmitterList(submitter=(*others, Submitter(name=name, keys=keys)))


def read_submitters(path: Path) -> SubmitterList:
    """Return the list that a file holds, an empty one without the file."""
    if not path.exists():
        return SubmitterList()
    with in_file(path.name):
        return decode(path.read_bytes(), SubmitterList, FieldError)


def write_submitters(path: Path, submitters: SubmitterList) -> None:
    """Write a list to its file.

    Args:
        path: The file; its folder is made where it is missing.
        submitters: The list.
    """
    rows = (
        f"[[submitter]]\nname = {json.dumps(one.name, ensure_ascii=False)}\n"
        f"keys = {json.dumps(one.keys)}\n"
        for one in submitters.submitter
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "\n".join(rows).encode())
