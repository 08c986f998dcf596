"""`owa-bench export --to minari`: episodes with a view of numbers as Minari datasets.

An arm is one dataset of a suite: its counted attempts in plan order. A native suite's observations
are those of the trace (float32, checked against the digest of each step). A tool suite's are its
vector view's: the recorded actions are played again, so the run must be revealed, and an arm has a
dataset only if all its actions are macros.

A dataset names its env: `dataset.recover_environment()` returns one with the same spaces, on the
family, tier and drift of the run where it played one of each.
"""

import copy
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from owa_bench import discovery
from owa_bench.bridges.episode_arrays import MacroReader, Steps, native_steps
from owa_bench.errors import MissingPartError, UsageError, extra
from owa_bench.interfaces.values import SuiteCard
from owa_bench.records.dated import seed_names
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import Transcripts
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import Trace, counted_leaves
from owa_bench.runs.plan.escrow import revealed_root
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from owa_bench.shells.seat_policy import EACH_SEAT
from owa_bench.shells.views import NO_MACRO

_FOLDER = "MINARI_DATASETS_PATH"
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


class ExportedDataset(NamedTuple):
    """An arm's dataset of a suite: its id, the folder to load it from, what it holds.

    `left_out` counted episodes are not in it: without a step, or ended by a clock. `refused` says
    why there is no dataset; `dataset` is empty then.
    """

    dataset: str
    folder: Path
    suite: str
    arm: str
    episodes: int = 0
    steps: int = 0
    left_out: int = 0
    refused: str = ""


class _Form(NamedTuple):
    """How a suite's episodes become arrays, and the env that has their spaces."""

    read: Callable[[PlanEntry, Trace], Steps]
    env: Any  # a gymnasium EnvSpec
    observations: Any
    actions: Any
    timed: bool  # whether an episode that a clock ended can be read


def export(run_dir: Path, folder: Path) -> tuple[ExportedDataset, ...]:
    """Write a dataset per suite and arm of a run, and return what came of each.

    Load one with `MINARI_DATASETS_PATH=folder` and `minari.load_dataset(dataset)`.

    Args:
        run_dir: the run directory; revealed if it holds tool suites.
        folder: of the datasets.
    Returns: What was written, and which arms were refused; at least one was written.
    Raises:
        MissingPartError: the extra is not installed.
        UsageError: the run has nothing to export, or the folder has the dataset.
        TraceError: a trace is broken.
        CheckFailure: an episode is not as recorded when it is played again.
    """
    layout = RunLayout(run_dir)
    plan = read_plan(layout)
    suites = suites_with_numbers(run_dir, plan)
    _require()
    came: list[ExportedDataset] = []
    for suite in suites:
        with ExitStack() as stack:
            form = _form(layout, plan, suite, stack)
            for arm in plan.arms:
                came += _dataset(layout, plan, suite, arm.name, form, folder)
    if not any(one.dataset for one in came):
        reason = came[0].refused if came else "it holds no complete episode yet"
        raise UsageError(f"{run_dir} has nothing to export: {reason}.")
    return tuple(came)


def suites_with_numbers(run_dir: Path, plan: Plan) -> list[str]:
    """Return the names of a plan's suites that have a view of numbers.

    Args:
        run_dir: the run directory.
        plan: its plan.
    Raises: UsageError: there is none, or a native suite's observations were not kept.
    """
    native = [suite.name for suite in plan.suites if suite.native]
    if native and not plan.transcripts:
        raise UsageError(f"{run_dir} was played with --no-transcripts: observations are not kept.")
    names = [suite.name for suite in plan.suites]
    macros = [n for n in names if discovery.get("suites", n).card.macros]
    if not native and not macros:
        raise UsageError(
            f"{run_dir} holds no suite with a view of numbers: {', '.join(names)} "
            "has a view of text alone."
        )
    return native + macros


def _form(layout: RunLayout, plan: Plan, suite: str, stack: ExitStack) -> _Form:
    """Return how a suite's episodes are read; `stack` closes what that opens."""
    card = discovery.get("suites", suite).card
    if card.macros:
        names = seed_names(layout, plan, files.plan_digest(layout))
        reader = MacroReader(plan, suite, revealed_root(layout, plan), names)
        view = stack.enter_context(reader).view
        spec = _spec(card, {"view": "vector", **_single_values(plan, suite)})
        return _Form(reader.read, spec, view.observation_space, view.action_space, timed=False)
    import gymnasium

    spec = _spec(card, {})
    env = gymnasium.make(spec)
    stack.callback(env.close)
    transcripts = Transcripts(layout)
    return _Form(
        lambda _, trace: native_steps(transcripts, trace),
        *(spec, env.observation_space, env.action_space),
        timed=True,
    )


def _spec(card: SuiteCard, options: dict[str, Any]) -> Any:
    """Return the Gymnasium spec of a suite's env under options; seats are played one by one."""
    import gymnasium

    spec = copy.deepcopy(gymnasium.spec(card.env_id))
    seated = {"seat_policy": EACH_SEAT} if card.seats > 1 else {}
    spec.kwargs.update(seated | options)
    return spec


def _single_values(plan: Plan, suite: str) -> dict[str, Any]:
    """Return family, tier and magnitude of a suite's entries: each only if there is but one."""
    entries = [entry for entry in plan.entries if entry.suite == suite]
    values: dict[str, set[Any]] = {
        "family": {entry.family for entry in entries},
        "tier": {entry.tier for entry in entries},
        "delta": {entry.delta for entry in entries},
    }
    return {name: found.pop() for name, found in values.items() if len(found) == 1}


def _attempts(
    layout: RunLayout, plan: Plan, suite: str, arm: str
) -> Iterator[tuple[PlanEntry, Trace]]:
    """Yield an arm's counted attempts in plan order."""
    for leaf in counted_leaves(plan, files.leaves_of_shards(layout)):
        if leaf is None or leaf.status == "unreadable":
            continue
        entry = plan.entries[leaf.index]
        if (entry.arm, entry.suite) == (arm, suite):
            yield entry, files.read_trace(layout, leaf)


def _dataset(
    layout: RunLayout, plan: Plan, suite: str, arm: str, form: _Form, folder: Path
) -> Iterator[ExportedDataset]:
    """Write one arm's dataset; nothing comes of it where it has played nothing."""
    episodes: list[Steps] = []
    left_out = 0
    for entry, trace in _attempts(layout, plan, suite, arm):
        if not trace.end.steps or (trace.end.timed and not form.timed):
            left_out += 1
            continue
        steps = form.read(entry, trace)
        if NO_MACRO in steps.actions:
            at = steps.actions.tolist().index(NO_MACRO) + 1
            yield ExportedDataset(
                *("", folder, suite, arm),
                refused=f"{arm} played a call that is no macro of the vector view of "
                f"{suite} (attempt {trace.leaf.attempt_id}, step {at})",
            )
            return
        episodes.append(steps)
    if not episodes:
        return
    name = f"{suite}/{_plain(plan.name)}-{_plain(arm)}-v0"
    if (folder / name).exists():
        raise UsageError(f"{folder / name} is there already: choose another folder.")
    card = discovery.get("suites", suite).card
    about = f"{card.title}, recorded by owa-bench; plan {files.plan_digest(layout)}"
    _write(name, episodes, form, folder, algorithm_name=arm, description=about)
    total = sum(len(steps.actions) for steps in episodes)
    yield ExportedDataset(name, folder, suite, arm, len(episodes), total, left_out)


def _write(name: str, episodes: list[Steps], form: _Form, folder: Path, **about: str) -> None:
    """Write a dataset."""
    from minari import create_dataset_from_buffers
    from minari.data_collector import EpisodeBuffer

    buffers = [
        EpisodeBuffer(
            id=number,
            observations=steps.observations,
            actions=steps.actions,
            rewards=steps.rewards,
            terminations=steps.terminations,
            truncations=steps.truncations,
            infos={} if steps.masks is None else {"action_mask": steps.masks},
        )
        for number, steps in enumerate(episodes)
    ]
    size = episodes[0].observations.shape[1]
    with _datasets_in(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fields that are left out, such as an author
        create_dataset_from_buffers(
            name,
            buffers,
            env=form.env,
            observation_space=_cut(form.observations, size),
            action_space=form.actions,
            data_format="arrow",
            **about,
        )


def _cut(box: Any, size: int) -> Any:
    """Return a space of observations, cut to what was recorded."""
    import gymnasium

    return gymnasium.spaces.Box(box.low[:size], box.high[:size], dtype=np.float32)


@contextmanager
def _datasets_in(folder: Path) -> Iterator[None]:
    """Let Minari write below `folder`."""
    before = os.environ.get(_FOLDER)
    os.environ[_FOLDER] = str(folder.resolve())
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FOLDER]
        else:
            os.environ[_FOLDER] = before


def _plain(text: str) -> str:
    return _UNSAFE.sub("_", text).strip("_") or "run"


def _require() -> None:
    try:
        import minari
        import pyarrow
    except ImportError as error:
        raise MissingPartError("`minari` (for `owa-bench export`)", extra("minari")) from error
    del minari, pyarrow
