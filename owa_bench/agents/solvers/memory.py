"""Memory of an agent across episodes: facts by subject, in one JSON file."""

import json
import math
from pathlib import Path
from typing import Any

from owa_bench import seeding

FILE = "facts.json"
AGES = "ages.json"


class FactMemory:
    """Facts by subject (a vendor's title) and name, kept in `folder` on `save`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._facts: dict[str, dict[str, Any]] = _read(self._path)

    def recall(self, subject: str, name: str) -> Any:
        """Return what is known of `name` about `subject`, None if nothing.

        Args:
            subject: A vendor's title or the like.
            name: Name of the fact.
        """
        return self._facts.get(subject, {}).get(name)

    def knows(self, subject: str) -> bool:
        """Return whether anything is known about `subject`."""
        return bool(self._facts.get(subject))

    def learn(self, subject: str, name: str, value: Any) -> None:
        """Remember a JSON value; it replaces what was known before.

        Args:
            subject: A vendor's title or the like.
            name: Name of the fact.
            value: A JSON value.
        """
        self._facts.setdefault(subject, {})[name] = value

    def save(self) -> None:
        """Write the facts whole or not at all, sorted, so equal facts are equal."""
        if not self._facts:
            return
        _write(self._path, self._facts)

    def apart(self) -> "FactMemory":
        """Return a memory of the same facts that this one will know nothing of."""
        other = FactMemory(self._path.parent)
        other._facts = {name: dict(facts) for name, facts in self._facts.items()}
        return other


class FadingMemory(FactMemory):
    """A memory that loses facts: half of them within `half_life` episodes.

    A fact learned in episode n is lost from the first later episode m with u >= 2^(-(m - n) /
    half_life), u drawn once from the fact and n.
    """

    def __init__(self, folder: Path, half_life: float) -> None:
        super().__init__(folder)
        self._ages_path = folder / AGES
        ages = _read(self._ages_path)
        self._learned: dict[str, Any] = dict(ages.get("learned", {}))
        self._episode = int(ages.get("episodes", {}).get("number", 0)) + 1
        for subject, facts in self._facts.items():
            for name in [n for n in facts if self._is_lost(subject, n, half_life)]:
                del facts[name]

    def learn(self, subject: str, name: str, value: Any) -> None:
        """Remember a JSON value, as old as this episode.

        Args:
            subject: A vendor's title or the like.
            name: Name of the fact.
            value: A JSON value.
        """
        super().learn(subject, name, value)
        self._learned.setdefault(subject, {})[name] = self._episode

    def save(self) -> None:
        """Write the facts and when each was learned."""
        super().save()
        number: dict[str, Any] = {"number": self._episode}
        ages = {"episodes": number, "learned": self._learned}
        _write(self._ages_path, ages)

    def _is_lost(self, subject: str, name: str, half_life: float) -> bool:
        learned = int(self._learned.get(subject, {}).get(name, 0))
        draw = seeding.stream(learned, "memory", subject, name).random()
        return bool(draw >= math.exp2(-(self._episode - learned) / half_life))


def open_memory(folder: Path, half_life: float) -> FactMemory:
    """Return the memory in a folder.

    Args:
        folder: Where its files are.
        half_life: Episodes within which half of it is lost; infinite: nothing is.
    """
    if half_life == math.inf:
        return FactMemory(folder)
    return FadingMemory(folder, half_life)


class WriteOnlyMemory(FactMemory):
    """A memory that is written to and never read."""

    def __init__(self, memory: FactMemory) -> None:
        self._memory = memory

    def recall(self, subject: str, name: str) -> None:
        """Return None, whatever is known.

        Args:
            subject: A vendor's title or the like.
            name: Name of the fact.
        """
        return

    def learn(self, subject: str, name: str, value: Any) -> None:
        """Let the memory behind this one learn.

        Args:
            subject: A vendor's title or the like.
            name: Name of the fact.
            value: A JSON value.
        """
        self._memory.learn(subject, name, value)

    def save(self) -> None:
        """Let the memory behind this one save."""
        self._memory.save()


def _write(path: Path, document: dict[str, dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(document, sort_keys=True, indent=1) + "\n")
    draft.replace(path)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the facts at `path`; nothing when it is not there or not readable."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
