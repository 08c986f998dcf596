"""Leaves modules out of the doctest collection whose extra is not installed.

That a machine is busy is nothing that a property test should fail of.
"""

from importlib.util import find_spec

from hypothesis import HealthCheck, settings

settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

_NEEDS = {
    "inspect_ai": ["owa_bench/bridges/inspect.py"],
    "torch": [
        "owa_bench/envs/cartpole3d/batched/*.py",
        "owa_bench/subjects/cartpole*.py",
        "owa_bench/subjects/learning.py",
    ],
}

collect_ignore_glob = [
    pattern
    for module, patterns in _NEEDS.items()
    if find_spec(module) is None
    for pattern in patterns
]
