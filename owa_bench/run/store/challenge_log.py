"""A verifier's log of the plans that it challenged, and its list of submitters.

    verifier/KEY.jsonl             a line a plan, in the order of their challenges
    verifier/KEY.submitters.toml   names of submitters with their keys, kept by hand or
                                   by `owa-bench verifier register`

Anybody can sign each plan with a fresh key, so plans are counted by the names on the
verifier's own list. A plan that was challenged before its key was on the list has no
number and gets none later: else one could have many challenged and register the best.
"""

import datetime
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from owa_bench.errors import CheckFailure, FieldError
from owa_bench.records.plan import KEY, Plan
from owa_bench.records.toml import TomlRecord, decode, in_file
from owa_bench.run.store import disk
from owa_bench.run.store.files import write_whole

FOLDER = "verifier"  # in a data folder
# Plans of keys that are not on the list, together: more are refused, so that whoever
# asks for many fills no disk and takes no place from a submitter on the list.
MOST_UNLISTED = 10_000
_MOST_NAME = 64  # characters of a battery's name in the log
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

        Returns:
            The new list.

        Raises:
            FieldError: The key stands under another name.
        """
        owner = self.name_of(key)
        if owner and owner != name:
            raise FieldError("--submitter", key, f"must be no key of {owner!r}")
        added = Submitter(name=name, keys=(key,))
        others = [one for one in self.submitter if one.name != name]
        kept = [one.keys for one in self.submitter if one.name == name]
        keys = dict.fromkeys((*(key for keys in kept for key in keys), *added.keys))
        return SubmitterList(
            submitter=(*others, msgspec.structs.replace(added, keys=tuple(keys)))
        )


class ChallengedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log: a plan that was challenged, and the key that signed it.

    `name` is that of its submitter on the list then, "" for none, and `number` the
    count of their plans with this one.
    """

    plan_digest: str
    submitter: str
    commitment: str
    battery: str | None
    episodes: int
    time: str
    name: str = ""
    number: int = 0


class ChallengeLog:
    """The log and the list of one verifier, shared by processes of this machine.

    Args:
        home: The verifier's data folder.
        key: Name of its key.
    """

    def __init__(self, home: Path, key: str) -> None:
        self.path = home / FOLDER / f"{key}.jsonl"
        self.list_path = home / FOLDER / f"{key}.submitters.toml"
        self._plans: dict[str, ChallengedPlan] = {}
        self._read = 0
        self._refresh()

    @property
    def submitters(self) -> SubmitterList:
        """The list as its file has it now."""
        if not self.list_path.exists():
            return SubmitterList()
        with in_file(self.list_path.name):
            return decode(self.list_path.read_bytes(), SubmitterList, FieldError)

    def register(self, name: str, key: str) -> SubmitterList:
        """Put a key under a submitter's name.

        Args:
            name: The submitter, new or known.
            key: 64 hex digits.

        Returns:
            The new list.

        Raises:
            FieldError: The name or the key breaks a rule, or is another's.
        """
        changed = self.submitters.with_key(name, key)
        self.list_path.parent.mkdir(parents=True, exist_ok=True)
        rows = (
            f"[[submitter]]\nname = {json.dumps(one.name, ensure_ascii=False)}\n"
            f"keys = {json.dumps(one.keys)}\n"
            for one in changed.submitter
        )
        write_whole(self.list_path, "\n".join(rows).encode())
        return changed

    def note(self, plan: Plan, digest: str) -> ChallengedPlan:
        """Return the line of a plan, written before its challenge is told.

        Args:
            plan: The signed plan.
            digest: Of the plan, in hex.

        Returns:
            The same line however often it is asked for.

        Raises:
            CheckFailure: Its key is not on the list, and too many such plans are there.
        """
        with self._locked() as file:
            self._take_new(file)
            if digest in self._plans:
                return self._plans[digest]
            line = self._line(plan, digest)
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            disk.sync(file.fileno(), self.path)
            self._read = file.tell()
            self._plans[digest] = line
            return line

    def plans_of(self, key: str) -> int:
        """Return how many plans of a key's submitter were challenged.

        Args:
            key: 64 hex digits; of one on the list all keys of its submitter count.
        """
        self._refresh()
        return self._count(self.submitters, key)

    def _refresh(self) -> None:
        """Read what other processes have added."""
        if self.path.exists():
            with self._locked() as file:
                self._take_new(file)

    def _line(self, plan: Plan, digest: str) -> ChallengedPlan:
        known = self.submitters
        name, key = known.name_of(plan.public_key), plan.public_key
        if not name and self._unlisted() >= MOST_UNLISTED:
            raise CheckFailure(
                f"This verifier has challenged {MOST_UNLISTED:,} plans of keys that are"
                f" not on its list of submitters: ask it to register key {key}."
            )
        return ChallengedPlan(
            plan_digest=digest,
            submitter=key,
            commitment=plan.commitment[:_MOST_NAME],
            battery=plan.battery and plan.battery[:_MOST_NAME],
            episodes=len(plan.entries),
            time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            name=name,
            number=self._count(known, key) + 1 if name else 0,
        )

    def _count(self, known: SubmitterList, key: str) -> int:
        name = known.name_of(key)
        keys = known.keys_of(name) | {key}
        return sum(
            plan.submitter in keys or (bool(name) and plan.name == name)
            for plan in self._plans.values()
        )

    def _unlisted(self) -> int:
        return sum(not plan.name for plan in self._plans.values())

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """Hold the log against other processes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            disk.lock(file.fileno(), self.path)
            yield file

    def _take_new(self, file: IO[bytes]) -> None:
        """Read the lines that were added since; cut off one that was not finished."""
        file.seek(self._read)
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(self._read)
                break
            plan = msgspec.json.decode(line, type=ChallengedPlan)
            self._plans[plan.plan_digest] = plan
            self._read += len(line)
        file.seek(self._read)
