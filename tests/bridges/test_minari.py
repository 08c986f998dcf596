"""The Minari export: it loads, and equals the trace."""

import io
import shutil

import gymnasium
import msgspec
import numpy as np
import pytest

from owa_bench.bridges import minari as bridge
from owa_bench.bridges.episode_arrays import MacroReader, native_steps
from owa_bench.canonical import sha256
from owa_bench.errors import CheckFailure, TraceError, UsageError
from owa_bench.records.events import Action, Artifact
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import PackEncoder, Transcripts
from owa_bench.reports import composition
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch, episode_setup
from owa_bench.runs.resolve import Resolver
from owa_bench.runs.store import files
from owa_bench.seeding import instance_seed


@pytest.fixture
def layout(tmp_path):
    pytest.importorskip("pybullet")
    draw = Draw(
        name="cartpole3d", families=("table1/9",), tiers=(3,), deltas=(0.0, 1.0), episodes=2
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
        recovered = dataset.recover_environment()
        assert recovered.observation_space == dataset.observation_space
        assert recovered.action_space == dataset.action_space
        assert dataset.observation_space.contains(recovered.reset(seed=1)[0])
        recovered.close()
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
        native_steps(Transcripts(layout), type(trace)(leaf, events))


def played(folder, agents, draw):
    """Return the layout of a revealed run of a tool suite."""
    options = RunOptions(home=folder / "home")
    request = Request(agents=agents, draws=(draw,), name="a run!")
    batch.play(request, folder / "run", options)
    layout = RunLayout(folder / "run")
    escrow.reveal(options.home, layout)
    return layout


PROJECTS = Draw(name="projforge_fast", families=("billing",), tiers=(1,), deltas=(0.0, 1.0))
DRAWS = {
    "toolquest": Draw(name="toolquest", families=("restock",), tiers=(1,), deltas=(0.0,)),
    "recall": Draw(name="recall", families=("n_back",), tiers=(1,)),
    "changesurf": Draw(name="changesurf", families=("permit/lookup",), tiers=(1,), episodes=1),
}


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    return played(tmp_path_factory.mktemp("projects"), ("codemod", "noop"), PROJECTS)


def test_a_tool_suites_datasets_are_what_its_vector_env_gives(projects, tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    pytest.importorskip("pyarrow")
    layout = projects
    made, refused = bridge.export(layout.root, tmp_path / "sets")
    assert made.dataset == "projforge_fast/a_run-codemod-v0"
    assert (refused.arm, refused.dataset) == ("noop", "")
    assert "no macro of the vector view of projforge_fast" in refused.refused
    verdict = composition.score(layout.root)["codemod"]
    assert (made.episodes, made.left_out) == (verdict.counted, 0) == (2, 0)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    dataset = minari.load_dataset(made.dataset)
    assert dataset.total_steps == made.steps
    plan = read_plan(layout)
    root = escrow.revealed_root(layout, plan)
    entries = [entry for entry in plan.entries if entry.arm == "codemod"]
    resolver = Resolver(plan)
    env = episode_setup.env_for(plan, resolver.drifted_suite("projforge_fast", ""), view="vector")
    for episode, entry in zip(dataset.iterate_episodes(), entries, strict=True):
        seed = instance_seed(root, entry.pair)
        instance = resolver(entry, seed).instance
        options = {"instance": instance, "interventions": 0}
        seen, info = env.reset(options=options)
        assert np.array_equal(episode.observations[0], seen)
        for step, action in enumerate(episode.actions):
            assert episode.infos["action_mask"][step][action] == 1
            assert np.array_equal(episode.infos["action_mask"][step], env.action_masks())
            seen, reward, terminated, truncated, info = env.step(action)
            assert np.array_equal(episode.observations[step + 1], seen)
            assert episode.rewards[step] == reward
            assert episode.terminations[step] == terminated
            assert episode.truncations[step] == truncated
        assert "outcome" in info
        assert not episode.infos["action_mask"][-1].any()
        assert dataset.action_space.n == env.action_space.n
    env.close()
    recovered = dataset.recover_environment()
    assert recovered.spec.kwargs == {
        "suite": "projforge_fast",
        "view": "vector",
        "family": "billing",
        "tier": 1,
    }
    seen, info = recovered.reset(seed=3)
    assert dataset.observation_space == recovered.observation_space
    assert dataset.observation_space.contains(seen)
    assert dataset.action_space == recovered.action_space
    recovered.close()


def test_a_record_that_plays_otherwise_is_no_dataset(projects):
    plan = read_plan(projects)
    codemod = [e.index for e in plan.entries if e.arm == "codemod"]
    (leaf, *_) = [x for x in files.read_leaves(projects) if x.index in codemod]
    trace = files.read_trace(projects, leaf)
    better = [
        msgspec.structs.replace(event, reward=1.0) if isinstance(event, Action) else event
        for event in trace.events
    ]
    forged = type(trace)(trace.leaf, tuple(better))
    root = escrow.revealed_root(projects, plan)
    entry = plan.entries[trace.leaf.index]
    with MacroReader(plan, "projforge_fast", root) as reader:
        assert (reader.read(entry, trace).actions >= 0).all()
        with pytest.raises(CheckFailure, match="not as recorded"):
            reader.read(entry, forged)


@pytest.mark.parametrize("suite", ["toolquest", "recall"])
def test_the_oracles_actions_are_read_as_macros_or_none(suite, tmp_path):
    read_as_macros(played(tmp_path, ("oracle",), DRAWS[suite]), suite)


CLICKER = """
def act(observation, info):
    number = 0.5 if info["step"] else 2
    name, word = ("finish", "p") if info["step"] else ("click", "ref")
    return {"tool": name, "arguments": {word: number}}
"""


@pytest.mark.slow
@pytest.mark.browser
def test_clicks_in_a_browser_are_read_as_macros(tmp_path):
    (tmp_path / "clicker.py").write_text(CLICKER)
    agent = str(tmp_path / "clicker.py")
    read_as_macros(played(tmp_path, (agent,), DRAWS["changesurf"]), "changesurf")


def read_as_macros(layout, suite):
    """Assert that every counted episode is read, and that some steps are macros."""
    plan = read_plan(layout)
    found = []
    with MacroReader(plan, suite, escrow.revealed_root(layout, plan)) as reader:
        for leaf in files.read_leaves(layout):
            trace = files.read_trace(layout, leaf)
            steps = reader.read(plan.entries[leaf.index], trace)
            assert len(steps.actions) == trace.end.steps
            assert steps.observations.shape[0] == steps.masks.shape[0]
            assert steps.rewards.sum() == pytest.approx(trace.end.quality)
            found += [
                steps.masks[step][action]
                for step, action in enumerate(steps.actions)
                if action >= 0
            ]
    assert found
    assert all(found)


def test_runs_that_cannot_be_exported_are_refused_with_the_reason(projects, tmp_path):
    pytest.importorskip("minari")
    pytest.importorskip("pyarrow")
    shutil.copytree(projects.root, tmp_path / "run")
    layout = RunLayout(tmp_path / "run")
    layout.reveal.unlink()
    with pytest.raises(UsageError, match="escrow reveal"):
        bridge.export(layout.root, tmp_path / "sets")
    plan = read_plan(layout)
    crew = msgspec.structs.replace(plan.suites[0], name="multicrew")
    text_alone = msgspec.structs.replace(plan, suites=(crew,))
    with pytest.raises(UsageError, match="multicrew has a view of text alone"):
        bridge.suites_with_numbers(layout.root, text_alone)


@pytest.mark.filterwarnings("ignore")  # of what Minari imports
@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
@pytest.mark.parametrize(
    ("env_id", "options"),
    [("owa_bench/CartPole3DFast-v2", {}), ("owa_bench/Recall-v2", {"view": "vector"})],
)
def test_minaris_own_collector_records_an_env(env_id, options, data_format, tmp_path, monkeypatch):
    """It needs h5py and jax, which the extra `minari` brings."""
    minari = pytest.importorskip("minari")
    for part in ("h5py", "pyarrow", "jax"):
        pytest.importorskip(part)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    made = gymnasium.make(env_id, **options)
    env = minari.DataCollector(made, data_format=data_format)
    env.action_space.seed(1)
    env.reset(seed=1)
    steps, over = 0, False
    while not over and steps < 20:
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        steps, over = steps + 1, terminated or truncated
    dataset = env.create_dataset(dataset_id="collected-v0", description="a test")
    assert dataset.total_steps == steps
    env.close()
