"""The table of attacks: who does what, and what catches it, as the tests saw it.

`pytest tests/attacks --attack-table` prints it. A row is a test that passed, its cases
together; what caught the attack are the checks of `verify` and `recompute` that failed
in it, else what the tables of docs/check-a-report.md and docs/isolation.md say of it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
OUTSIDER, INSIDER, AGENT = "outsider", "insider", "agent"
# Who attacks, by the file of the test; an agent in all others.
BY_FILE = {
    "test_outsider": OUTSIDER,
    "test_insider": INSIDER,
    "test_replayed": INSIDER,
    "test_hostile_directories": INSIDER,
    "test_malformed": INSIDER,
    "test_challenge": INSIDER,
}
PRINTED = "nothing: page one of the report says so"


class AttackRow(NamedTuple):
    """One attack: by whom, what, and what caught it."""

    who: str
    attack: str
    caught: str


def attack_rows(tests: Iterable[tuple[str, Sequence[str]]]) -> list[AttackRow]:
    """Return a row a test function.

    Args:
        tests: Name and failed checks of every test that passed.
    """
    checks: dict[str, set[str]] = {}
    for node, found in tests:
        checks.setdefault(node.partition("[")[0], set()).update(found)
    return [attack_row(node, found) for node, found in checks.items()]


def attack_row(node: str, checks: Iterable[str]) -> AttackRow:
    """Return the row of a test that passed.

    Args:
        node: Its name, such as "tests/attacks/test_outsider.py::test_drop_an_event".
        checks: Names of the checks that failed in it.
    """
    file, _, test = node.partition("::")
    name = test.rpartition("::")[2]
    words = name.removeprefix("test_").replace("_", " ")
    found = sorted(checks)
    if found:
        caught = ", ".join(found)
    elif "not_detected" in name or "limits_stand" in name:
        caught = PRINTED
    else:
        caught = said().get(f"{file}::{name}", "the test's own assertion")
    return AttackRow(BY_FILE.get(Path(file).stem, AGENT), words, caught)


@cache
def said() -> Mapping[str, str]:
    """Return what the tables of the docs say of each test: the column before it."""
    found = {}
    for page in ("check-a-report.md", "isolation.md"):
        for line in (DOCS / page).read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if len(cells) >= 3:
                for test in re.findall(r"(tests/[\w/]+\.py::\w+)", cells[-1]):
                    found[test] = cells[-2]
    return found


def table(rows: Iterable[AttackRow]) -> str:
    """Return rows as text, by attacker, in columns."""
    order = (OUTSIDER, INSIDER, AGENT)
    ordered = sorted(rows, key=lambda row: (order.index(row.who), row.attack))
    wide = max((len(row.attack) for row in ordered), default=0)
    return "\n".join(f"{r.who:8}  {r.attack:{wide}}  {r.caught}" for r in ordered)
