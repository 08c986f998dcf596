"""The optional gates of section 3.9: curvature and link steps. No level rests on them.

The paper keeps its first definition of the levels and notes these for readers.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from owa_bench.records.protocol import Improvement
from owa_bench.records.score import CellTable, ClosureResult, KappaScore
from owa_bench.scoring.improvement.curvature import Curvature, window_tests
from owa_bench.scoring.improvement.window import said

_PAIR = 2  # families that must accelerate (AAI-3), steps that must follow (AAI-4)


class Optional(NamedTuple):
    """One optional line; `met` None: no evidence."""

    level: int
    gate: str
    required: str
    measured: str
    met: bool | None


def optional_gates(
    families: Mapping[str, Curvature],
    kappas: Sequence[KappaScore],
    closures: Mapping[str, ClosureResult],
    steps: int | None,
    rules: Improvement,
) -> tuple[Optional, ...]:
    """Return the lines of AAI-2, AAI-3 and AAI-4.

    Formula:
        AAI-2: kappa >= kappa_min, lower bound > 0, on 1 family; maintenance
        AAI-3: the same on 3 families; lower bound of mean c_g > 0 on 2; expansion;
            one link step since the first checkpoint
        AAI-4: lower bound of c_g >= -c_max on every family; two link steps
    Shapes: mappings by family. Units: as each.
    Missing: None where an interval, a closure or the steps are unknown.
    Errors: none. Source: [S] section 3.9 of the AAI paper; numbers [D].
    """
    slopes = [_sloped(k, rules.kappa_min) for k in kappas if k.family is not None]
    tests = [window_tests(bend, rules.curvature_max) for bend in families.values()]
    faster = [test.accelerates for test in tests]
    bound = [test.bounded for test in tests]
    least = f"kappa >= {rules.kappa_min:g}, lower bound > 0"
    counted = "unknown" if steps is None else f"{steps}"
    step = f"of {rules.step:.4g} on the {rules.link} link"
    return (
        Optional(2, "kappa", f"{least}, 1 family", _count(slopes), _least(slopes, 1)),
        _closure(2, "maintenance", closures),
        Optional(3, "kappa", f"{least}, 3 families", _count(slopes), _least(slopes, 3)),
        Optional(
            3,
            "acceleration",
            "c_g > 0 on 2 families",
            _count(faster),
            _least(faster, _PAIR),
        ),
        _closure(3, "expansion", closures),
        Optional(3, "link step", f"1 {step}", counted, _made(steps, 1)),
        Optional(
            4,
            "diminishing returns bounded",
            f"c_g >= -{rules.curvature_max:g} on all",
            _count(bound),
            _least(bound, max(len(bound), 1)),
        ),
        Optional(4, "link steps", f"{_PAIR} {step}", counted, _made(steps, _PAIR)),
    )


def _sloped(score: KappaScore, least: float) -> bool | None:
    if score.slope is None or score.interval.low is None:
        return None
    return score.slope >= least and score.interval.low > 0


def _least(marks: Sequence[bool | None], count: int) -> bool | None:
    """Return whether `count` marks hold, None while the unknown ones could decide."""
    held = sum(mark is True for mark in marks)
    if held >= count:
        return True
    unknown = sum(mark is None for mark in marks)
    return None if not marks or held + unknown >= count else False


def _count(marks: Sequence[bool | None]) -> str:
    held, known = marks.count(True), sum(mark is not None for mark in marks)
    return f"{held} of {known} measured, {len(marks)} families"


def _made(steps: int | None, count: int) -> bool | None:
    return None if steps is None else steps >= count


def _closure(level: int, name: str, closures: Mapping[str, ClosureResult]) -> Optional:
    found = closures.get(name)
    status = found.status if found else "NOT TESTED"
    met = {"PASS": True, "FAIL": False}.get(status)
    return Optional(level, f"{name} closure", "PASS", status, met)


def optional_table(lines: Sequence[Optional]) -> CellTable:
    """Return the lines as a table."""
    return CellTable(
        title="Optional gates of section 3.9",
        columns=("level", "gate", "required", "measured", "met"),
        rows=tuple(
            (x.level, x.gate, x.required, x.measured, said(x.met)) for x in lines
        ),
        note="no level rests on them; steps are counted from the first checkpoint",
    )
