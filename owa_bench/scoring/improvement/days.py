"""AAI_dyn day by day: each checkpoint measured as if it were the whole run."""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Floats, Observables
from owa_bench.records.plan import BootstrapSpec
from owa_bench.scoring.axis import Axis
from owa_bench.scoring.estimates import estimate
from owa_bench.scoring.maintenance import Day
from owa_bench.scoring.sample import Sample
from owa_bench.scoring.superhuman import FamilyQuality, family_qualities

DYNAMIC, AREA = "AAI_dyn", "AUF"
_POINT = BootstrapSpec(resamples=1)


class Daily(NamedTuple):
    """Each checkpoint by itself, NaN where not computable.

    `values` maps an axis symbol, AAI_dyn and AUF to its series, `frontier` holds the
    fitted frontier of a day, `families` mean and error of each family's quality.
    """

    values: Mapping[str, Floats]
    frontier: tuple[tuple[float, ...], ...]
    families: tuple[Mapping[str, FamilyQuality], ...]

    @property
    def dynamic(self) -> Floats:
        """AAI_dyn at each checkpoint."""
        return self.values[DYNAMIC]


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
        """Return the axes, AAI_dyn and the frontier of every day."""
        samples = [self._sample(day) for day in days]
        found = [self._point(sample) for sample in samples]
        names = (DYNAMIC, AREA, *(axis.symbol for axis in self._axes))
        return Daily(
            values={
                name: np.array([p.get(name, np.nan) for p in found], dtype=float)
                for name in names
            },
            frontier=tuple(_fitted(point) for point in found),
            families=tuple(family_qualities(sample) for sample in samples),
        )

    def _point(self, sample: Sample) -> Mapping[str, float]:
        if not len(sample.table):
            return {}
        return estimate(sample, self._axes, _POINT, self._root, seeds=False).point

    def day(self, day: int) -> Day | None:
        """Return one day's AAI_dyn with resamples, None where not computable.

        Equal instances give equal weights, so that days are compared in pairs.
        """
        sample = self._sample(day)
        if not len(sample.table):
            return None
        found = estimate(sample, self._axes, self._spec, self._root, seeds=False)
        if DYNAMIC not in found.point or DYNAMIC not in found.tasks:
            return None
        table = sample.table
        rows = zip(table.pair.tolist(), table.repeat.tolist(), strict=True)
        units = tuple(sorted({f"{pair}/{repeat}" for pair, repeat in rows}))
        draws = found.tasks[DYNAMIC]
        return Day(found.point[DYNAMIC], draws, found.by_tasks, units)


def _fitted(point: Mapping[str, float]) -> tuple[float, ...]:
    """Return the fitted frontier by rising demand, nothing without one."""
    places = (f"F/fit/{i}" for i in range(len(point)))
    return tuple(point[name] for name in takewhile(point.__contains__, places))
