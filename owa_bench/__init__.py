"""OWA-Bench: changing environments, hash-chained evidence, signed level reports.

    make                                 a Gymnasium env
    open_episode, open_group, list_tasks episodes for trainers of language models
    run, resume                          agents played, recorded as evidence
    place                                an agent played until its level is decided
    report, verify, recompute, compare   what a run shows, and whether it holds
    open_run                             a run as tables
    Agent, Suite, operator, Axis         what an extension is made of

Importing the package loads nothing heavy: each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from owa_bench.registration import register_when_imported

if TYPE_CHECKING:
    from owa_bench.api import compare, make, place, recompute, report, resume, run, verify
    from owa_bench.drift.operator import operator
    from owa_bench.interfaces import Agent, Suite
    from owa_bench.reports.read.run_tables import open_run
    from owa_bench.runs.episode_session import open_episode, open_group
    from owa_bench.runs.episode_tasks import list_tasks
    from owa_bench.scoring.axis import Axis

__version__ = "0.1.0"
__all__ = [
    "Agent", "Axis", "Suite", "compare", "list_tasks", "make", "open_episode", "open_group",
    "open_run", "operator", "place", "recompute", "report", "resume", "run", "verify",
]  # fmt: skip

_PLACES = {
    "Agent": "interfaces",
    "Axis": "scoring.axis",
    "Suite": "interfaces",
    "list_tasks": "runs.episode_tasks",
    "open_episode": "runs.episode_session",
    "open_group": "runs.episode_session",
    "open_run": "reports.read.run_tables",
    "operator": "drift.operator",
}

register_when_imported()


def __getattr__(name: str) -> Any:
    # By name: modules of the acting half import this one, and judging brings SciPy.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PLACES.get(name, 'api')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
