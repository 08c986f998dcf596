"""The way of a plan entry through the package, measured by profiling one real episode.

    python benchmarks/ways.py

Plays one ToolQuest episode in this process, from the drafted plan to the recorded line, and
follows the plan entry. A call is on its way if it enters another module of the package and an
argument is the entry or what it becomes: work item, attempt, instance, timeline, the first
and the last event, the leaf; or a record that holds one of them. Repeats are merged; the
suite's own modules are left out. Prints the functions in order, and:

    functions   entered on the way
    rooms       (packages) they lie in
    returns     how often the way comes back to a module that it had left
    files       of the package that execute code while the episode is played
    lookups     of the suite in the registry
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import msgspec

import owa_bench
from owa_bench import discovery
from owa_bench.records.events import EpisodeEnd, EpisodeStart
from owa_bench.records.instance import Instance, Timeline
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import Leaf
from owa_bench.reports import statement
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.play.work_items import Attempt, WorkItem
from owa_bench.runs.store import keys

PACKAGE = Path(owa_bench.__file__).parent
DEPTH = 1  # of records that hold the entry
ENTRY = (PlanEntry, WorkItem, Attempt, EpisodeStart, EpisodeEnd, Leaf)
SUITES = ("envs/", "agents/")


class Ways(NamedTuple):
    """What one episode executed."""

    functions: tuple[tuple[str, str], ...]  # (module, function) on the entry's way, in order
    returns: int
    entered: tuple[str, ...]  # every module, each time that it is entered from another
    files: tuple[str, ...]
    lookups: tuple[str, ...]  # who asked for the suite

    @property
    def rooms(self) -> tuple[str, ...]:
        """The packages on the way, in order."""
        return tuple(dict.fromkeys(module.rpartition("/")[0] for module, _ in self.functions))


class Profile:
    """Follows calls while it is set as the profile function."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.entered: list[str] = []
        self.files: dict[str, None] = {}
        self.lookups: list[str] = []
        self._names: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take one event of `sys.setprofile`."""
        if event != "call":
            return
        module = self._module(frame.f_code)
        if not module:
            return
        self.files[module] = None
        if self.entered[-1:] != [module]:
            self.entered.append(module)
        caller = self._caller(frame)
        name = frame.f_code.co_qualname
        if module == "discovery.py" and name in ("get", "find") and caller != module:
            kind = frame.f_locals.get("kind")
            if kind == "suites":
                self.lookups.append(caller)
        if module.startswith(SUITES) or caller.startswith(SUITES):
            return
        if caller and caller != module and holds_entry(arguments(frame)):
            self.calls.append((module, name))

    def _module(self, code: CodeType) -> str:
        """Return the file of a code below the package, "" for others."""
        if code not in self._names:
            path = Path(code.co_filename)
            inside = path.is_relative_to(PACKAGE)
            self._names[code] = path.relative_to(PACKAGE).as_posix() if inside else ""
        return self._names[code]

    def _caller(self, frame: FrameType) -> str:
        """Return the nearest module of the package below a call."""
        below = frame.f_back
        while below is not None:
            if module := self._module(below.f_code):
                return module
            below = below.f_back
        return ""

    def ways(self) -> Ways:
        """Return what was followed, repeats merged."""
        functions = tuple(dict.fromkeys(self.calls))
        seen: list[str] = []
        returns = 0
        for module, _ in functions:
            returns += module in seen and seen[-1] != module
            seen.append(module)
        return Ways(functions, returns, tuple(self.entered), tuple(self.files), tuple(self.lookups))


def arguments(frame: FrameType) -> Iterator[Any]:
    """Yield the arguments of a call that has just begun."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    for name in code.co_varnames[:count]:
        if name in frame.f_locals:
            yield frame.f_locals[name]


def holds_entry(values: Iterable[Any], depth: int = DEPTH) -> bool:
    """Return whether a value is the entry or what it becomes, or a record of it."""
    for value in values:
        instance = value.instance if isinstance(value, Timeline) else value
        if isinstance(instance, Instance):
            held = instance.seed != 0  # an env asks its tools of an instance of its own
        elif isinstance(value, Plan):
            held = False
        else:
            held = isinstance(value, ENTRY)
            held = held or (depth > 0 and holds_entry(fields(value), depth - 1))
        if held:
            return True
    return False


def fields(value: Any) -> Iterator[Any]:
    """Yield the fields of a frozen record; an object that keeps something is none."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from value
    elif isinstance(value, msgspec.Struct):
        yield from (getattr(value, name) for name in value.__struct_fields__)
    elif hasattr(value, "__dataclass_params__") and value.__dataclass_params__.frozen:
        for name in value.__dataclass_fields__:
            yield getattr(value, name, None)


def measured(*, reported: bool = False) -> Ways:
    """Play one episode and return the ways.

    Args:
        reported: Also draft and sign the plan and report the run under the profile, with the
            agent in this process: then the ways begin and end as docs/how-it-flows.md says.
    """
    for kind in ("suites", "operators", "agents"):
        discovery.find(kind)
    draw = Draw(
        name="toolquest", families=("restock",), tiers=(1,), deltas=(0.5,), interventions=(0,)
    )
    request = Request(agents=("agentic",), draws=(draw,))
    profile = Profile()
    with tempfile.TemporaryDirectory() as folder:
        home, run = Path(folder) / "home", Path(folder) / "run"
        keys.ensure(home, keys.DEFAULT)
        options = RunOptions(home=home, folder=Path(folder), in_process=reported)
        if not reported:
            batch.play(request, run, options, plan_only=True)
        sys.setprofile(profile)
        try:
            if reported:
                batch.play(request, run, options)
                statement.write(run, keys.load(home, keys.DEFAULT))
            else:
                batch.resume(run, options)
        finally:
            sys.setprofile(None)
    return profile.ways()


def main() -> int:
    """Print the ways."""
    ways = measured()
    for module, name in ways.functions:
        print(f"{module:44} {name}")
    print(f"\nfunctions {len(ways.functions)}, rooms {len(ways.rooms)}, returns {ways.returns}")
    print(f"files {len(ways.files)}, lookups {len(ways.lookups)}")
    print("files:", *sorted(ways.files), sep="\n  ")
    print("lookups by:", *ways.lookups, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
