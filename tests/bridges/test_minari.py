"""The Minari export: it loads, and equals the trace."""

import io

import msgspec
import numpy as np
import pytest

from owa_bench.bridges import minari as bridge
from owa_bench.canonical import sha256
from owa_bench.errors import TraceError, UsageError
from owa_bench.records.events import Action, Artifact
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import PackEncoder, Transcripts
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.request import Request, RunOptions
from owa_bench.run.play import batch
from owa_bench.run.store import files


@pytest.fixture
def layout(tmp_path):
    pytest.importorskip("pybullet")
    draw = Draw(
        name="cartpole3d",
        families=("table1/9",),
        tiers=(3,),
        deltas=(0.0, 1.0),
        episodes=2,
    )
    request = Request(agents=("random", "nothing"), draws=(draw,), name="a run!")
    options = RunOptions(home=tmp_path / "home", in_process=True)
    batch.play(request, tmp_path / "run", options)
    return RunLayout(tmp_path / "run")


@pytest.mark.physics
def test_the_dataset_loads_and_equals_the_trace(layout, tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    pytest.importorskip("pyarrow")
    made = bridge.export(layout.root, tmp_path / "sets")
    assert [one.dataset for one in made] == [
        "cartpole3d/a_run-random-v0",
        "cartpole3d/a_run-nothing-v0",
    ]
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    leaves = files.read_leaves(layout)
    traces = [files.read_trace(layout, leaf) for leaf in leaves]
    for one in made:
        arm = one.dataset.split("-")[-2]
        own = sorted(
            (trace for trace in traces if trace.start.arm == arm),
            key=lambda trace: trace.start.index,
        )
        dataset = minari.load_dataset(one.dataset)
        assert dataset.total_episodes == one.episodes == len(own) == 4
        for episode, trace in zip(dataset.iterate_episodes(), own, strict=True):
            actions = list(trace.of(Action))
            (kept,) = trace.of(Artifact)
            seen = np.load(io.BytesIO(Transcripts(layout).read(kept.blob)))
            assert np.array_equal(episode.observations, seen)
            assert episode.actions.tolist() == [int(a.action) for a in actions]
            assert episode.rewards.tolist() == [a.reward for a in actions]
            assert episode.terminations.tolist() == [a.terminated for a in actions]
            assert episode.truncations.tolist() == [a.truncated for a in actions]
            assert dataset.observation_space.contains(episode.observations[0])
    with pytest.raises(UsageError, match="is there already"):
        bridge.export(layout.root, tmp_path / "sets")


@pytest.mark.physics
def test_observations_that_are_not_the_steps_are_refused(layout, tmp_path):
    leaf = files.read_leaves(layout)[0]
    trace = files.read_trace(layout, leaf)
    (kept,) = trace.of(Artifact)
    seen = np.load(io.BytesIO(Transcripts(layout).read(kept.blob)))
    seen[1, 0] += 1.0
    buffer = io.BytesIO()
    np.save(buffer, seen)
    name = sha256(buffer.getvalue())
    encoder = PackEncoder()
    encoder.add(buffer.getvalue())
    layout.pack(9).write_bytes(encoder.finish())
    forged = msgspec.structs.replace(kept, blob=name)
    events = tuple(forged if event is kept else event for event in trace.events)
    with pytest.raises(TraceError, match="not those of its steps"):
        bridge.steps_of(Transcripts(layout), type(trace)(leaf, events))


def test_a_tool_suites_run_is_refused(tmp_path):
    draw = Draw(name="toolquest", families=("restock",), tiers=(1,), deltas=(0.0,))
    request = Request(agents=("noop",), draws=(draw,))
    options = RunOptions(home=tmp_path / "home", in_process=True)
    batch.play(request, tmp_path / "run", options)
    with pytest.raises(UsageError, match="no native suite"):
        bridge.export(tmp_path / "run", tmp_path / "sets")
