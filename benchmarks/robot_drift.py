"""Dose and response of the arm's policies to drift, in all and by group of operators.

    python benchmarks/robot_drift.py [--units 8] [--print-only]

On the surrogate device, tier 1 of each family, an instance a unit; the adaptive policy measures its
unit before anything drifts and keeps what it found. Writes docs/tables/robot_drift.md.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from owa_bench.agents.solvers.arm.policies import Adaptive
from owa_bench.discovery import get
from owa_bench.drift.calendar import parse
from owa_bench.drift.timeline import SuiteTimelines
from owa_bench.envs.robosim2real.engine import load_engine
from owa_bench.envs.robosim2real.oracle import LAYOUT
from owa_bench.envs.robosim2real.session import ArmOracle, ArmSession
from owa_bench.envs.robosim2real.world import FAMILIES
from owa_bench.interfaces import Setting
from owa_bench.records.instance import Instance

TABLE = Path(__file__).resolve().parents[1] / "docs" / "tables" / "robot_drift.md"
FLEET = 47  # no other table draws from it
DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
GROUPS = ("", "sensor", "dynamics", "firmware", "cell", "wear")


def play(timelines: SuiteTimelines, family: str, unit: int, dose: float, memory: object) -> bool:
    """Return whether a policy solves an instance on a unit at a dose.

    Args:
        timelines: Of the suite under the drift of a group.
        family: Of the task.
        unit: Of the fleet.
        dose: The magnitude.
        memory: What the adaptive policy knows of the unit; None: the oracle plays.
    """
    made = Instance(suite="robosim2real", version=1, family=family, tier=1, seed=900 + unit)
    made = timelines.at_magnitude(made, dose) if dose else made
    session = ArmSession(timelines(made), Setting(side="surrogate", unit=unit, fleet=FLEET))
    if isinstance(memory, dict):
        policy = Adaptive(LAYOUT, family, memory)
        while not session.over:
            session.tick(policy(session.observation()))
    else:
        oracle = ArmOracle(session)
        while not session.over:
            session.tick(np.array(oracle.act(session.observation(), {})))
    return session.success


def interval(shares: np.ndarray) -> str:
    """Return a mean over units with 95 percent by Student's t."""
    half = student.ppf(0.975, len(shares) - 1) * shares.std(ddof=1) / len(shares) ** 0.5
    mean = shares.mean()
    return f"{mean:.2f} [{max(0.0, mean - half):.2f}, {min(1.0, mean + half):.2f}]"


def lines(units: int) -> Iterator[str]:
    """Yield the page."""
    suite = get("suites", "robosim2real")
    yield "# Drift of the arm: dose and response"
    yield ""
    yield (
        f"Made by `python benchmarks/robot_drift.py --units {units}`. **Surrogate device, not "
        "hardware.** Success of the adaptive policy on the device (tier 1 of five families, an "
        f"instance on each of {units} units, 95 percent by Student's t over units), which knows "
        "its unit from before the drift; in the last column the oracle, which is told every "
        "number, at full dose. A group's drift is all of its operators, or the part of them that "
        "makes the dose."
    )
    yield ""
    yield f"| drift | {' | '.join(f'{dose:g}' for dose in DOSES)} | oracle at 1 |"
    yield "|---" * (len(DOSES) + 2) + "|"
    for group in GROUPS:
        calendar = parse(f"nested:{group}" if group else "nested", "robosim2real")
        timelines = SuiteTimelines(suite, calendar)
        shown = []
        for dose in (*DOSES, None):
            won = np.zeros((units, len(FAMILIES)))
            for unit in range(units):
                memory: dict[str, float] = {}
                plain = SuiteTimelines(suite, parse("nested", "robosim2real"))
                if dose is not None:  # the unit is measured undrifted
                    play(plain, "reach", unit, 0.0, memory)
                for place, family in enumerate(FAMILIES):
                    known = None if dose is None else dict(memory)
                    won[unit, place] = play(
                        timelines, family, unit, 1.0 if dose is None else dose, known
                    )
            shown.append(interval(won.mean(axis=1)))
        row = f"| {group or 'all'} | {' | '.join(shown)} |"
        print(row, flush=True)
        yield row


def main() -> None:
    """Write the table, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=8)
    parser.add_argument("--print-only", action="store_true")
    given = parser.parse_args()
    load_engine()
    text = "\n".join(lines(given.units)) + "\n"
    if not given.print_only:
        TABLE.write_text(text)


if __name__ == "__main__":
    main()
