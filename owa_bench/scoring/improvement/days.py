"""AAI_dyn day by day: each checkpoint measured as if it were the whole run."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Floats, Observables
from owa_bench.records.plan import BootstrapSpec
from owa_bench.scoring.axis import Axis, Sample
from owa_bench.scoring.closures.maintenance import Day
from owa_bench.scoring.measure import measure

DYNAMIC, WHOLE = "AAI_dyn", "AAI"
_POINT = BootstrapSpec(resamples=1)


class Daily(NamedTuple):
    """Both indices at each checkpoint, NaN where not computable."""

    dynamic: Floats
    whole: Floats


class Days:
    """Measures single checkpoint days of one arm."""

    def __init__(
        self,
        table: Observables,
        axes: Sequence[Axis],
        sample_of: Callable[[Observables], Sample],
        spec: BootstrapSpec,
        root: str,
    ) -> None:
        self._table, self._axes, self._sample_of = table, axes, sample_of
        self._spec, self._root = spec, root

    def _sample(self, day: int) -> Sample:
        rows = (self._table.phase == "checkpoint") & (self._table.day == day)
        return self._sample_of(self._table.take(rows))

    def points(self, days: Sequence[int]) -> Daily:
        """Return the indices of every day."""
        found: list[dict[str, float]] = []
        for day in days:
            sample = self._sample(day)
            if not len(sample.table):
                found.append({})
                continue
            measured = measure(sample, self._axes, _POINT, self._root, seeds=False)
            found.append(dict(measured.point))
        return Daily(
            *(
                np.array([point.get(name, np.nan) for point in found], dtype=float)
                for name in (DYNAMIC, WHOLE)
            )
        )

    def day(self, day: int) -> Day | None:
        """Return one day's AAI_dyn with resamples, None where not computable.

        Equal instances give equal weights, so that days are compared in pairs.
        """
        sample = self._sample(day)
        if not len(sample.table):
            return None
        found = measure(sample, self._axes, self._spec, self._root, seeds=False)
        if DYNAMIC not in found.point or DYNAMIC not in found.tasks:
            return None
        table = sample.table
        rows = zip(table.pair.tolist(), table.repeat.tolist(), strict=True)
        units = tuple(sorted({f"{pair}/{repeat}" for pair, repeat in rows}))
        draws = found.tasks[DYNAMIC]
        return Day(found.point[DYNAMIC], draws, found.by_tasks, units)
