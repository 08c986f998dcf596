"""The AAI paper's four archetype rows: levels and index, recomputed beside its own.

    python -m benchmarks.seed_rows          (from the root of the repository)

The rows and every assumed line stand in tests/builders/synthetic_rows.py.
"""

from owa_bench.records.protocol import Protocol
from owa_bench.scoring.gate import LevelPlacement, judge_gates, place
from tests.builders.synthetic_rows import ROWS, SEED_INDEX, SUPPLEMENT, findings, recomputed


def placed(name: str, *, supplied: bool) -> LevelPlacement:
    """Return the level of a row, with or without the supplement."""
    held = findings(name, supplied=supplied)
    protocol: Protocol = held.protocol
    return place(judge_gates(held), protocol)


def main() -> None:
    """Print the supplement, a line a row, and what keeps the highest row down."""
    for line in SUPPLEMENT:
        print(f"supplement: {line}")
    for name in ROWS:
        alone, whole = (placed(name, supplied=supplied) for supplied in (False, True))
        print(
            f"{name}: index printed {SEED_INDEX[name]:.2f}, eq 12 "
            f"{recomputed(name):.3f}; alone: {alone.text}; supplied: {whole.text}"
        )
        lacking = {g.gate for g in alone.gates if g.status == "NO EVIDENCE"}
        print(f"  without it no evidence on: {', '.join(sorted(lacking))}")
    gates = placed("Orchestrator", supplied=True).gates
    short = [g for g in gates if g.level == 3 and g.status != "PASS"]
    print("; ".join(f"Orchestrator, AAI-3: {g.gate} {g.status}" for g in short))


if __name__ == "__main__":
    main()
