"""Sessions that are closed when a test ends."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from owa_bench.envs.toolquest.world import ApiWorld
from owa_bench.records.instance import Timeline
from tests.builders.api_worlds import Caller, small_world, still


@pytest.fixture
def caller() -> Iterator[Callable[..., Caller]]:
    """Make sessions over small or given worlds; they are closed at the end."""
    made: list[Caller] = []

    def make(
        world: ApiWorld | Timeline | None = None, *, wire: bool = False, **options: Any
    ) -> Caller:
        if not isinstance(world, Timeline):
            world = still(world or small_world(**options))
        made.append(Caller(world, wire=wire))
        return made[-1]

    yield make
    for each in made:
        each.session.close()
