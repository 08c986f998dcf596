"""Gymnasium ids with string entry points; registering imports no env, nor gymnasium.

A suite of another package has the id `owa_bench/NAME`, by its entry point's name.
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

ENV_IDS = {
    "owa_bench/ArmTools-v1": ("owa_bench.runs.assembly:make_env", "armtools"),
    "owa_bench/CartPole3D-v2": ("owa_bench.runs.assembly:make_native_env", "cartpole3d"),
    "owa_bench/Casework-v1": ("owa_bench.runs.assembly:make_env", "casework"),
    "owa_bench/ChangeSurf-v3": ("owa_bench.runs.assembly:make_env", "changesurf"),
    "owa_bench/MultiCrew-v2": ("owa_bench.runs.assembly:make_env", "multicrew"),
    "owa_bench/ProjForge-v2": ("owa_bench.runs.assembly:make_env", "projforge"),
    "owa_bench/ProjForgeFast-v2": ("owa_bench.runs.assembly:make_env", "projforge_fast"),
    "owa_bench/Recall-v2": ("owa_bench.runs.assembly:make_env", "recall"),
    "owa_bench/RoboSim2Real-v1": ("owa_bench.runs.assembly:make_native_env", "robosim2real"),
    "owa_bench/SelfRev-v2": ("owa_bench.runs.assembly:make_env", "selfrev"),
    "owa_bench/ToolQuest-v3": ("owa_bench.runs.assembly:make_env", "toolquest"),
}
# Twins for training that no run records, and their env of many lanes where there is one.
_FAST = "owa_bench.envs.cartpole3d.batched"
FAST_IDS: dict[str, tuple[str, str | None]] = {
    "owa_bench/CartPole3DFast-v2": (
        f"{_FAST}.single_env:CartPole3DFastEnv",
        f"{_FAST}.vector_env:BatchedCartPole3D",
    ),
    "owa_bench/CaseQueueFast-v1": ("owa_bench.envs.casework.queue.env:CaseQueueEnv", None),
}


_REGISTRY = "gymnasium.envs.registration"


def register_ids() -> None:
    """Register every id, once."""
    from importlib.metadata import entry_points

    from gymnasium.envs.registration import register, registry

    others = {
        f"owa_bench/{point.name}": ("owa_bench.runs.assembly:make_suite_env", point.name)
        for point in entry_points(group="owa_bench.suites")
    }
    for env_id, (entry_point, suite) in (ENV_IDS | others).items():
        if env_id not in registry:
            register(id=env_id, entry_point=entry_point, kwargs={"suite": suite})
    for env_id, (entry_point, vector_entry_point) in FAST_IDS.items():
        if env_id not in registry:
            register(id=env_id, entry_point=entry_point, vector_entry_point=vector_entry_point)


class _RegistryFinder:
    """Finder of gymnasium's registry, whose import then registers our ids too."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _REGISTRY:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)  # by the finders after this one
        loader: Any = spec and spec.loader
        if loader is None:
            return spec
        execute = loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            del loader.exec_module  # the loader's own method again
            execute(module)
            register_ids()

        loader.exec_module = execute_and_register
        return spec


def register_when_imported() -> None:
    """Register every id as soon as gymnasium is imported: now, where it is already.

    Most commands never need it, and it takes longer to import than they run.
    """
    if sys.modules.get(_REGISTRY):
        register_ids()
    else:
        sys.meta_path.insert(0, _RegistryFinder())
