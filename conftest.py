"""Leaves modules out of the doctest collection whose extra is not installed.

That a machine is busy is nothing that a property test should fail of. Of a sweep marked
`part(n)` one cell of n is played, drawn by the commit (`tests/builders/slices.py`); all
tests without parameters that are marked with one n are the cells of one sweep. With
`OWA_SLOW_PARTS=n` (`.ci/run`) each slow test without a mark of its own is marked so.
"""

import gc
import os
import zlib
from collections import defaultdict
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

# Without a deadline, and the same examples in every run: what fails, fails again.
settings.register_profile(
    "busy",
    deadline=None,
    derandomize=os.environ.get("OWA_LONG_TESTS") != "1",
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy")

_NEEDS = {
    "inspect_ai": ["owa_bench/bridges/inspect.py"],
    "nemo_gym": ["owa_bench/bridges/nemo_gym.py"],
    "numba": ["owa_bench/envs/cartpole3d/batched/*.py", "owa_bench/envs/robosim2real/*.py"],
    "openenv": ["owa_bench/bridges/openenv.py"],
    "skyrl_gym": ["owa_bench/bridges/skyrl.py"],
    "stable_baselines3": ["owa_bench/bridges/crew_learning.py"],
    "torch": ["owa_bench/subjects/cartpole*.py", "owa_bench/subjects/learning.py"],
    "verifiers": ["owa_bench/bridges/verifiers.py"],
}

# Tests with this mark are left out where the module of their extra is not installed.
_MARKED = {"rl": "stable_baselines3"}

collect_ignore_glob = [
    pattern
    for module, patterns in _NEEDS.items()
    if find_spec(module) is None
    for pattern in patterns
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cells of marked sweeps that another commit plays."""
    sweeps: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    slow_parts = int(os.environ.get("OWA_SLOW_PARTS", "1"))
    for item in items:
        for mark, module in _MARKED.items():
            if item.get_closest_marker(mark) and find_spec(module) is None:
                item.add_marker(pytest.mark.skip(reason=f"{module} is not installed"))
        mark = item.get_closest_marker("part")
        slow = slow_parts if item.get_closest_marker("slow") else 1
        parts = mark.args[0] if mark else slow
        if parts > 1:
            name, cell, _ = item.nodeid.partition("[")
            sweeps[name if cell else "", parts].append(item)
    if not sweeps:
        return
    from tests.builders.slices import by_commit

    left_out: set[pytest.Item] = set()
    for (_, parts), cells in sweeps.items():
        # By a hash of the name: the place alone would go along with the last parameter.
        mixed = sorted(cells, key=lambda item: zlib.crc32(item.nodeid.encode()))
        left_out |= {*cells} - {*by_commit(mixed, min(parts, len(cells)))}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=[*left_out])


def pytest_collection_finish() -> None:
    """Take what collection made out of every later garbage collection."""
    gc.collect()
    gc.freeze()
