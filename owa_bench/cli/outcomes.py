"""How the episodes that a command played came out, arm by arm."""

from collections import Counter
from typing import Any

from owa_bench.cli.console import ERR, table
from owa_bench.run.plan.request import Progress

_FAILED = ("agent_raised", "agent_timeout", "infrastructure")
_WORDS = 160


class Outcomes:
    """Hears of every closed attempt and sums up per arm."""

    def __init__(self) -> None:
        self._ends: dict[str, Counter[str]] = {}
        self._quality: dict[str, list[float]] = {}
        self._first: dict[str, str] = {}

    def take(self, news: Progress) -> None:
        """Count one closed attempt."""
        arm, end = news.entry.arm, news.end
        self._ends.setdefault(arm, Counter())[end.outcome] += 1
        if news.leaf.status == "complete":
            self._quality.setdefault(arm, []).append(end.q_state)
        if end.outcome in _FAILED:
            reason = " ".join(end.reason.split())
            self._first.setdefault(arm, f"{end.outcome}: {reason}"[:_WORDS])

    @property
    def mean(self) -> float | None:
        """Mean quality of all that counted, None before the first."""
        values = [value for each in self._quality.values() for value in each]
        return sum(values) / len(values) if values else None

    def as_data(self) -> list[dict[str, Any]]:
        """Return a row per arm, for machines."""
        return [
            {
                "arm": arm,
                "episodes": len(self._quality.get(arm, [])),
                "mean_quality": _mean(self._quality.get(arm, [])),
                "outcomes": dict(ends),
                "first_failure": self._first.get(arm),
            }
            for arm, ends in self._ends.items()
        ]

    def show(self) -> None:
        """Print the table, and the first failure of every arm that has one."""
        if not self._ends:
            return
        rows = [
            (
                row["arm"],
                row["episodes"],
                "" if row["mean_quality"] is None else f"{row['mean_quality']:.2f}",
                ", ".join(f"{n} {name}" for name, n in row["outcomes"].items()),
            )
            for row in self.as_data()
        ]
        columns = ("agent", "episodes", "mean quality", "how they ended")
        table("played now", columns, rows)
        for arm, words in self._first.items():
            ERR.print(f"first failure of {arm}: {words}")


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
