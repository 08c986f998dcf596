"""Memory of an agent across episodes: facts by subject, in one JSON file."""

import json
from pathlib import Path
from typing import Any

FILE = "facts.json"


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

        Returns:
            The JSON value.
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
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".tmp")
        draft.write_text(json.dumps(self._facts, sort_keys=True, indent=1) + "\n")
        draft.replace(self._path)

    def apart(self) -> "FactMemory":
        """Return a memory of the same facts that this one will know nothing of."""
        other = FactMemory(self._path.parent)
        other._facts = {name: dict(facts) for name, facts in self._facts.items()}
        return other


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


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the facts at `path`; nothing when it is not there or not readable."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
