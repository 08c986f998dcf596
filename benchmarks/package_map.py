"""The rooms of the package and the imports between them, measured from the code.

    python benchmarks/package_map.py            # rewrites its part of docs/map.md
    python benchmarks/package_map.py --check    # exit 1 if that part is out of date

A room is a package folder, or a module at the top of `owa_bench`. An arrow says that
one room imports another; arrows that follow from others are left out of the picture.
"""

import ast
import itertools
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "map.md"
BEGIN, END = "<!-- made by `make map` -->", "<!-- end of what `make map` makes -->"
PACKAGE = "owa_bench"
# Rows of the picture, from what starts everything to what everything rests on.
ROWS = (
    ("top", ("cli", "bridges", "subjects", "contract_checks")),
    ("acting", ("runs", "hosting", "envs", "agents", "repositories", "shells", "sandbox", "drift")),
    ("judging", ("reports", "measures", "scoring")),
    ("shared", ("interfaces", "records", "discovery")),
    ("ground", ("seeding", "canonical", "errors")),
)
TITLES = {
    "top": "on top",
    "acting": "acting half: makes traces",
    "judging": "judging half: reads traces",
    "shared": "what both read",
    "ground": "ground",
}


def room_of(module: str) -> str:
    """Return the room a module belongs to: the part below the package's name."""
    return module.split(".")[1] if "." in module else ""


def arrows(graph: grimp.ImportGraph) -> dict[tuple[str, str], int]:
    """Return how many modules of one room import another, by (importer, imported)."""
    counts: dict[tuple[str, str], int] = {}
    for importer in graph.modules:
        rooms = {room_of(m) for m in graph.find_modules_directly_imported_by(importer)}
        for room in rooms - {room_of(importer), ""}:
            key = room_of(importer), room
            counts[key] = counts.get(key, 0) + 1
    return counts


def direct(counts: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    """Return the arrows that no way over a third room stands for."""
    ahead: dict[str, set[str]] = {}
    for importer, imported in counts:
        ahead.setdefault(importer, set()).add(imported)

    def reached(room: str) -> set[str]:
        near = ahead.get(room, set())
        return near.union(*(reached(other) for other in near))

    return [
        (importer, imported)
        for importer, imported in sorted(counts)
        if not any(imported in reached(o) for o in ahead[importer] - {imported})
    ]


def picture(counts: dict[tuple[str, str], int]) -> list[str]:
    """Return the Mermaid lines of the picture."""
    lines = ["```mermaid", "flowchart TB"]
    for row, rooms in ROWS:
        lines.append(f'  subgraph {row}["{TITLES[row]}"]')
        lines += [f"    {room}" for room in rooms]
        lines.append("  end")
    lines += [f"  {importer} --> {imported}" for importer, imported in direct(counts)]
    return [*lines, "```"]


def table() -> list[str]:
    """Return one line a room, from the first paragraph of its docstring."""
    lines = ["| room | what it is |", "|---|---|"]
    for room in itertools.chain.from_iterable(rooms for _, rooms in ROWS):
        lines.append(_table_line(room, PACKAGE))
        folder = ROOT / PACKAGE / room
        for inner in sorted(p for p in folder.glob("*/__init__.py")):
            lines.append(_table_line(f"{room}/{inner.parent.name}", PACKAGE))
    return lines


def _table_line(room: str, package: str) -> str:
    place = ROOT / package / room
    head = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    said = (ast.get_docstring(ast.parse(head.read_text())) or "").split("\n\n")[0]
    return f"| `{room}` | {' '.join(said.split())} |"


def generated() -> str:
    """Return the generated part of the page."""
    counts = arrows(grimp.build_graph(PACKAGE, exclude_type_checking_imports=True))
    counts = {
        key: count for key, count in counts.items() if not {"__main__", "registration"} & set(key)
    }
    return "\n".join([BEGIN, "", *picture(counts), "", *table(), "", END])


def main() -> int:
    """Write or check the generated part of docs/map.md."""
    before = PAGE.read_text()
    head, rest = before.split(BEGIN)
    page = head + generated() + rest.split(END)[1]
    if "--check" in sys.argv:
        return int(page != before)
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
