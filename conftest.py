"""Leaves modules out of the doctest collection whose extra is not installed."""

from importlib.util import find_spec

_NEEDS = {
    "torch": [
        "owa_bench/envs/cartpole3d/batched/*.py",
        "owa_bench/subjects/cartpole*.py",
        "owa_bench/subjects/learning.py",
        "owa_bench/subjects/populations.py",
        "owa_bench/subjects/q_learning.py",
        "owa_bench/subjects/unit_runs.py",
    ],
    "stable_baselines3": ["owa_bench/envs/cartpole3d/batched/sb3*.py"],
}

collect_ignore_glob = [
    pattern
    for module, patterns in _NEEDS.items()
    if find_spec(module) is None
    for pattern in patterns
]
