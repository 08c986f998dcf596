"""Operators on the terms of a campaign and on what its subject is played on."""

import re

from msgspec.structs import replace

from owa_bench.drift.operator import operator
from owa_bench.envs.selfrev.world import RevisionWorld

_NOISE = 10  # more items of a hundred that slip, at the start and when careful
_SLIP = ("slip", "slips.py", "noise")  # of settings, a program's files, a model
_INNER_STEPS = 4


@operator(announcement="D0", weight=0.5, targets="pairs")
def shorter_tests(world: RevisionWorld, intensity: float) -> RevisionWorld:
    """Shorten tests by up to a half; the task says how long one may be.

    Announcement: D0. Weight: 0.5.
    Source: docs/selfrev.md#operators.
    """
    return replace(world, pairs=max(20, round(world.pairs * (1 - intensity / 2))))


@operator(announcement="D2", weight=0.8, targets="slip")
def noisier_subject(world: RevisionWorld) -> RevisionWorld:
    """Let the subject slip more often, before and after it is made careful.

    Changes: the option `slip` of the start and of the component that lowers it.
    Announcement: D2 (lower scores show it). Weight: 0.8.
    Source: docs/selfrev.md#operators.
    """
    start = tuple((o, _noisier(v) if o in _SLIP else v) for o, v in world.start)
    components = tuple(
        replace(c, value=_noisier(c.value)) if c.option in _SLIP else c for c in world.components
    )
    return replace(world, start=start, components=components)


def _noisier(value: str) -> str:
    """Return a share, or the line of a program that holds it, with more slips."""
    return re.sub(r"\d+", lambda found: str(int(found[0]) + _NOISE), value, count=1)


@operator(announcement="D2", weight=1.0, targets="inner")
def inner_drift(world: RevisionWorld, intensity: float) -> RevisionWorld:
    """Draw inner instances under the first operators of the inner suite's calendar.

    Announcement: D2 (what the inner suite announces, its attempts see). Weight: 1.
    Source: docs/selfrev.md#operators.
    """
    step = max(1, round(_INNER_STEPS * intensity))
    return replace(world, inner_step=step)
