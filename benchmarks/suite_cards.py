"""Writes the cards of our suites beside them, so that a list of suites imports none.

Run: python benchmarks/suite_cards.py
"""

import sys
from pathlib import Path

import msgspec

from owa_bench import discovery

ENVS = Path(__file__).resolve().parent.parent / "owa_bench" / "envs"


def main() -> None:
    """Write a file a folder of suites."""
    folders: dict[Path, list[object]] = {}
    for entry in discovery.find("suites").values():
        if not entry.package:
            module = sys.modules[type(entry.plugin).__module__]
            folders.setdefault(Path(str(module.__file__)).parent, []).append(entry.plugin.card)
    for folder, cards in folders.items():
        lines = b",\n".join(map(msgspec.json.encode, cards))  # a card a line
        (folder / discovery.CARDS_FILE).write_bytes(b"[\n" + lines + b"\n]\n")
    print(f"{discovery.CARDS_FILE}: {', '.join(sorted(folder.name for folder in folders))}")


if __name__ == "__main__":
    main()
