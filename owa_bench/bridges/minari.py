"""`owa-bench export --to minari`: episodes of a native suite as Minari datasets.

An arm is one dataset: its counted attempts in plan order, observations as the trace
holds them (float32, checked against the digest of each step), actions and rewards.
"""

import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.errors import MissingPartError, TraceError, UsageError
from owa_bench.records.events import Action, Artifact
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import Transcripts
from owa_bench.records.plan import Plan
from owa_bench.records.trace import Trace, counted_leaves
from owa_bench.run.plan.plan import read_plan
from owa_bench.run.store import files
from owa_bench.shells.native_env import OBSERVATIONS

INSTALL = 'pip install "owa_bench[minari]"'
_FOLDER = "MINARI_DATASETS_PATH"
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


class Steps(NamedTuple):
    """One episode as arrays: observations (T + 1, n), the others (T,)."""

    observations: npt.NDArray[np.float32]
    actions: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]


class ExportedDataset(NamedTuple):
    """A dataset: its id, the folder to load it from, and how much it holds."""

    dataset: str
    folder: Path
    episodes: int
    steps: int


def export(run_dir: Path, folder: Path) -> tuple[ExportedDataset, ...]:
    """Write a dataset per arm of a run into `folder`, and return what was written.

    Load one with `MINARI_DATASETS_PATH=folder` and `minari.load_dataset(dataset)`.

    Args:
        run_dir: the run directory.
        folder: of the datasets.

    Returns:
        The datasets, one an arm.

    Raises:
        MissingPartError: the extra is not installed.
        UsageError: the run has nothing to export, or the folder has the dataset.
        TraceError: a trace is broken.
    """
    layout = RunLayout(run_dir)
    plan = read_plan(layout)
    suites = [suite.name for suite in plan.suites if suite.native]
    if not suites:
        raise UsageError(
            f"{run_dir} holds no native suite (CartPole3D): tool suites are text, "
            "which has no Minari form here."
        )
    if not plan.transcripts:
        raise UsageError(
            f"{run_dir} was played with --no-transcripts: observations are not kept."
        )
    _require()
    datasets = [
        _dataset(layout, plan, suite, arm.name, folder)
        for suite in suites
        for arm in plan.arms
    ]
    written = tuple(one for one in datasets if one is not None)
    if not written:
        raise UsageError(f"{run_dir} holds no complete episode yet: nothing to export.")
    return written


def steps_of(transcripts: Transcripts, trace: Trace) -> Steps:
    """Return an episode's arrays.

    Args:
        transcripts: of the run directory.
        trace: of the episode.

    Returns:
        The arrays.

    Raises:
        TraceError: the arrays contradict the trace.
    """
    blobs = [e.blob for e in trace.of(Artifact) if e.name == OBSERVATIONS]
    actions = list(trace.of(Action))
    name = trace.leaf.attempt_id
    if len(blobs) != 1:
        raise TraceError(
            f"Attempt {name} must hold one array of observations, got {len(blobs)}."
        )
    table = np.load(io.BytesIO(transcripts.read(blobs[0])), allow_pickle=False)
    digests = [sha256(row.tobytes()) for row in table[1:]]
    if digests != [action.observation for action in actions]:
        raise TraceError(
            f"Attempt {name}: its observations are not those of its steps."
        )
    return Steps(
        table,
        np.array([_action_number(action) for action in actions], dtype=np.int64),
        np.array([action.reward for action in actions]),
        np.array([action.terminated for action in actions]),
        np.array([action.truncated for action in actions]),
    )


def _action_number(action: Action) -> int:
    """Return the number that was played; 0 where the action was refused."""
    return 0 if action.error is not None else int(action.action)


def _episodes(layout: RunLayout, plan: Plan, suite: str, arm: str) -> Iterator[Steps]:
    """Yield an arm's counted episodes that have a step, in plan order."""
    transcripts = Transcripts(layout)
    for leaf in counted_leaves(plan, files.leaves_of_shards(layout)):
        if leaf is None:
            continue
        entry = plan.entries[leaf.index]
        if (entry.arm, entry.suite) == (arm, suite):
            trace = files.read_trace(layout, leaf)
            if trace.end.steps:
                yield steps_of(transcripts, trace)


def _dataset(
    layout: RunLayout, plan: Plan, suite: str, arm: str, folder: Path
) -> ExportedDataset | None:
    """Write one arm's dataset; None where it has played nothing."""
    from minari import create_dataset_from_buffers
    from minari.data_collector import EpisodeBuffer

    episodes = list(_episodes(layout, plan, suite, arm))
    if not episodes:
        return None
    name = f"{suite}/{_plain(plan.name)}-{_plain(arm)}-v0"
    if (folder / name).exists():
        raise UsageError(f"{folder / name} is there already: choose another folder.")
    card = discovery.get("suites", suite).card
    observation_space, action_space = _spaces(
        card.env_id, episodes[0].observations.shape[1]
    )
    buffers = [
        EpisodeBuffer(
            id=number,
            observations=played.observations,
            actions=played.actions,
            rewards=played.rewards,
            terminations=played.terminations,
            truncations=played.truncations,
            infos={},
        )
        for number, played in enumerate(episodes)
    ]
    with _datasets_in(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no env is kept: a run names its own
        create_dataset_from_buffers(
            name,
            buffers,
            env=None,
            observation_space=observation_space,
            action_space=action_space,
            algorithm_name=arm,
            description=f"{card.title}, recorded by owa-bench; plan "
            f"{files.plan_digest(layout)}",
            data_format="arrow",
        )
    steps = sum(len(played.actions) for played in episodes)
    return ExportedDataset(name, folder, len(episodes), steps)


def _spaces(env_id: str, size: int) -> tuple[Any, Any]:
    """Return the env's spaces, observations cut to what was recorded."""
    import gymnasium

    env = gymnasium.make(env_id)
    try:
        box: Any = env.observation_space
        cut = gymnasium.spaces.Box(box.low[:size], box.high[:size], dtype=np.float32)
        return cut, env.action_space
    finally:
        env.close()


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
        raise MissingPartError("`minari` (for `owa-bench export`)", INSTALL) from error
    del minari, pyarrow
