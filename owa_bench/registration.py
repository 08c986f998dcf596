"""Gymnasium ids with string entry points; registering imports no env.

A suite of another package has the id `owa_bench/NAME`, by its entry point's name.
"""

from importlib.metadata import entry_points

ENV_IDS = {
    "owa_bench/CartPole3D-v2": ("owa_bench.runs.assembly:make_native_env", "cartpole3d"),
    "owa_bench/ChangeSurf-v3": ("owa_bench.runs.assembly:make_env", "changesurf"),
    "owa_bench/MultiCrew-v2": ("owa_bench.runs.assembly:make_env", "multicrew"),
    "owa_bench/ProjForge-v2": ("owa_bench.runs.assembly:make_env", "projforge"),
    "owa_bench/ProjForgeFast-v2": ("owa_bench.runs.assembly:make_env", "projforge_fast"),
    "owa_bench/Recall-v2": ("owa_bench.runs.assembly:make_env", "recall"),
    "owa_bench/SelfRev-v2": ("owa_bench.runs.assembly:make_env", "selfrev"),
    "owa_bench/ToolQuest-v3": ("owa_bench.runs.assembly:make_env", "toolquest"),
}
# Twins for training that no run records: each with an env of many lanes, too.
_FAST = "owa_bench.envs.cartpole3d.batched"
FAST_IDS = {
    "owa_bench/CartPole3DFast-v2": (
        f"{_FAST}.single_env:CartPole3DFastEnv",
        f"{_FAST}.vector_env:BatchedCartPole3D",
    )
}


def register_ids() -> None:
    """Register every id, once; do nothing where gymnasium is not installed."""
    try:
        from gymnasium.envs.registration import register, registry
    except ImportError:
        return
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
