"""Every Gymnasium id of ours with each of its views, as parameters of tests."""

from importlib.util import find_spec
from typing import get_args

import pytest

from owa_bench.discovery import get
from owa_bench.interfaces import View
from owa_bench.registration import ENV_IDS, FAST_IDS

NEEDS = {"changesurf": "browser", "projforge": "project"}  # extras, by suite


def seated(env_id):
    """Return the option that says who plays the seats of a crew, where there are."""
    _, suite = ENV_IDS.get(env_id, ("", "recall"))
    seats = get("suites", suite).card.seats
    return {"seat_policy": "each_seat"} if seats > 1 else {}


def cards():
    """Yield every id of ours with its card and marks: the extra it needs, and slow."""
    for env_id, (_, suite) in sorted(ENV_IDS.items()):
        plugin = get("suites", suite)
        card, extra = plugin.card, NEEDS.get(suite, "")
        slow = [pytest.mark.slow, pytest.mark.part(3)]
        marks = [getattr(pytest.mark, extra), *slow] if extra else []
        if getattr(plugin, "needs_laboratory", False):
            marks = slow  # tests/envs plays it without a process
        if card.domain == "robosim2real":
            lacks = find_spec("mujoco") is None
            marks = [pytest.mark.skipif(lacks, reason="needs the [robot] extra")]
        yield env_id, card, marks


def views():
    """Yield every id of ours with each of its views, as options of the env."""
    for env_id, card, marks in cards():
        for view in ("",) if card.native else get_args(View):
            options = ({"view": view} if view else {}) | seated(env_id)
            yield pytest.param(env_id, options, marks=marks, id=f"{env_id}-{view}")


def every_view():
    """Yield what `views` does, and the compiled twins."""
    yield from views()
    for env_id in FAST_IDS:
        yield pytest.param(env_id, {}, id=f"{env_id}-")
