"""Training: repeatable, resumable, evaluated on record, played as any agent."""

import shutil
import zipfile

import msgspec
import numpy as np
import pytest

from owa_bench.agents.solvers import trained
from owa_bench.agents.solvers.trained import (
    MEMBER,
    Normalisation,
    PolicyMetadata,
    load_policy,
    read_metadata,
)
from owa_bench.bridges import minari
from owa_bench.errors import (
    AgentSpecError,
    FieldError,
    MissingPartError,
    RunDirectoryError,
    UnknownNameError,
    UsageError,
)
from owa_bench.hosting.spec import load_agent
from owa_bench.reports import verify
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request
from owa_bench.runs.play import batch
from owa_bench.runs.store import files
from owa_bench.runs.train import learners, recipes, training, vector_envs
from owa_bench.runs.train.algorithms import Training, recipe_of
from owa_bench.runs.train.imitation import check_imitation
from owa_bench.runs.train.training import TrainingCallbacks

PLAIN = Training(
    env_id="CartPole-v1",
    steps=512,
    envs=2,
    settings={"n_steps": 64, "batch_size": 64, "n_epochs": 2},
    layers=(8,),
    checkpoint_every=256,
    episodes=2,
)


def changed(**changes):
    return msgspec.structs.replace(PLAIN, **changes)


@pytest.fixture
def libraries():
    pytest.importorskip("stable_baselines3")


def weights(policy):
    """Return a policy's numbers as one digestible text."""
    from stable_baselines3 import PPO

    state = PPO.load(policy, device="cpu").policy.state_dict()
    return np.concatenate([state[name].numpy().ravel() for name in sorted(state)])


# --- without the libraries ----------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"steps": 0}, "--steps"),
        ({"envs": 0}, "--envs"),
        ({"checkpoint_every": 0}, "--checkpoint-every"),
        ({"evaluate_every": -1}, "--evaluate-every"),
    ],
)
def test_numbers_outside_their_range_are_refused(changes, flag):
    with pytest.raises(FieldError, match=f"`{flag}`"):
        changed(**changes)


def test_an_unknown_algorithm_gets_the_nearest_name(tmp_path, run_options):
    with pytest.raises(UnknownNameError, match="Did you mean `ppo`"):
        training.train(changed(algorithm="pppo"), tmp_path / "t", run_options)


def test_without_the_libraries_the_install_line_is_said(tmp_path, run_options, monkeypatch):
    monkeypatch.setattr(learners.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match=r"owa_bench\[rl\]"):
        training.train(PLAIN, tmp_path / "t", run_options)
    assert not (tmp_path / "t").exists()


def test_normalisation_is_what_was_met_in_training():
    scale = Normalisation(mean=(1.0, 0.0), variance=(4.0, 1e-12), clip=5.0)
    seen = scale.apply(np.array([3.0, 1.0], dtype=np.float32))
    assert seen.tolist() == pytest.approx([1.0, 5.0], rel=1e-4)


def test_a_file_that_is_no_policy_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("data", "{}")
    with pytest.raises(AgentSpecError, match="owa-bench train"):
        read_metadata(tmp_path / "other.zip")


def test_a_policy_is_named_by_its_folder_and_known_by_its_bytes(tmp_path):
    for name, content in (("one", b"1"), ("two", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.zip").write_bytes(content)
    one = load_agent("sb3:one/model.zip", folder=tmp_path)
    two = load_agent("two/model.zip", folder=tmp_path)
    assert (one.name, one.origin.kind, one.view) == ("one", "model", "vector")
    assert one.fingerprint != two.fingerprint
    with pytest.raises(AgentSpecError, match="no such file"):
        load_agent("sb3:three/model.zip", folder=tmp_path)


# --- with them ----------------------------------------------------------------------


@pytest.mark.rl
def test_one_seed_gives_one_policy(tmp_path, run_options, libraries):
    one = training.train(PLAIN, tmp_path / "one", run_options)
    same = training.train(PLAIN, tmp_path / "same", run_options)
    other = training.train(changed(seed=1), tmp_path / "other", run_options)
    assert np.array_equal(weights(one.policy), weights(same.policy))
    assert not np.array_equal(weights(one.policy), weights(other.policy))
    assert one.evaluation.run is None  # no suite of ours: nothing on record


@pytest.mark.rl
def test_a_stopped_training_goes_on_from_its_checkpoint(tmp_path, run_options, libraries):
    out = tmp_path / "t"

    def stop(steps):
        if steps >= 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(PLAIN, out, run_options, callbacks=TrainingCallbacks(steps=stop))
    left = read_metadata(out / "model.zip").steps
    assert 256 <= left < 512
    done = training.train(PLAIN, out, run_options, resume=True)
    assert done.steps >= 512
    names = sorted(path.name for path in (out / "checkpoints").iterdir())
    assert names[0] >= f"step-{256:09d}"
    assert not list((out / "checkpoints").glob(".*"))
    notes = read_metadata(done.policy)
    assert notes.normalisation.count > done.steps - 1  # it went on counting


@pytest.mark.rl
def test_the_table_of_evaluations_and_tensorboard_say_the_same(tmp_path, run_options, libraries):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    out = tmp_path / "t"
    training.train(changed(evaluate_every=256), out, run_options)
    table = (out / "evaluations.csv").read_text()
    rows = [row.split(",") for row in table.splitlines()[1:]]
    (logs,) = (out / "tensorboard").iterdir()
    curves = accumulator.EventAccumulator(str(logs)).Reload()
    shown = curves.Scalars("evaluation/mean_quality")
    assert [(one.step, one.value) for one in shown] == [
        (int(steps), pytest.approx(float(quality), abs=1e-6)) for steps, quality, _ in rows
    ]
    assert len(shown) >= 2


@pytest.mark.rl
def test_resume_refuses_another_training(tmp_path, run_options, libraries):
    training.train(PLAIN, tmp_path / "t", run_options)
    with pytest.raises(UsageError, match="these differ: seed"):
        training.train(changed(seed=3), tmp_path / "t", run_options, resume=True)
    with pytest.raises(UsageError, match="must be new or empty"):
        training.train(PLAIN, tmp_path / "t", run_options)
    with pytest.raises(RunDirectoryError, match="no training to resume"):
        training.train(PLAIN, tmp_path / "u", run_options, resume=True)


@pytest.mark.rl
def test_a_training_begins_with_the_policy_of_another(tmp_path, run_options, libraries):
    first = training.train(PLAIN, tmp_path / "first", run_options)
    begun = changed(start=str(tmp_path / "first"))
    checkpoint = training.newest_checkpoint(tmp_path / "first")
    learner = learners.load_learner(begun, checkpoint, seed=0)
    learner.model.save(tmp_path / "taken")
    assert np.array_equal(weights(tmp_path / "taken"), weights(first.policy))
    done = training.train(begun, tmp_path / "second", run_options)
    assert done.steps == first.steps  # counted from 0
    assert not np.array_equal(weights(first.policy), weights(done.policy))
    notes = read_metadata(done.policy)
    assert notes.normalisation.count > 2 * done.steps - 1  # it went on counting


@pytest.mark.rl
def test_a_begun_training_goes_on_without_the_folder(tmp_path, run_options, libraries):
    """It was refused, though its own checkpoint holds all that it needs."""
    training.train(changed(steps=256), tmp_path / "first", run_options)
    begun = changed(steps=256, start=str(tmp_path / "first"))
    training.train(begun, tmp_path / "second", run_options)
    shutil.rmtree(tmp_path / "first")
    longer = changed(steps=512, start=str(tmp_path / "first"))
    done = training.train(longer, tmp_path / "second", run_options, resume=True)
    assert done.steps >= 512


@pytest.mark.rl
def test_what_a_training_cannot_begin_with_is_refused(tmp_path, run_options, libraries):
    with pytest.raises(UsageError, match="holds no checkpoint"):
        training.train(changed(start=str(tmp_path)), tmp_path / "a", run_options)
    training.train(PLAIN, tmp_path / "first", run_options)
    for changes, said in (
        ({"algorithm": "dqn", "settings": {}}, "is of ppo"),
        ({"env_id": "Acrobot-v1"}, "cannot go on here"),
        ({"layers": (16,)}, "differ from those of .*: layers"),
        ({"settings": {**PLAIN.settings, "gamma": 0.9}}, ": settings"),
        ({"normalise": False}, ": normalise"),
        ({"memory": 8}, ": memory"),
    ):
        begun = changed(start=str(tmp_path / "first"), **changes)
        with pytest.raises(UsageError, match=said):
            training.train(begun, tmp_path / "b", run_options)
        assert not (tmp_path / "b").exists()


@pytest.mark.rl
def test_a_setting_falls_to_0_by_the_last_step(libraries):
    chosen = changed(settings={"learning_rate": "lin_1e-3", "batch_size": 64})
    made = learners.new_learner(chosen, seed=0, logs=None)
    rates = [made.model.lr_schedule(rest) for rest in (1.0, 0.5, 0.0)]
    assert rates == pytest.approx([1e-3, 5e-4, 0.0])


@pytest.mark.rl
def test_what_cannot_be_trained_is_said(tmp_path, run_options, libraries):
    with pytest.raises(UnknownNameError, match="Did you mean `CartPole-v1`"):
        training.train(changed(env_id="CartPol-v1"), tmp_path / "a", run_options)
    typo = changed(settings={"lerning_rate": 1e-3})
    with pytest.raises(UnknownNameError, match="Did you mean `learning_rate`"):
        training.train(typo, tmp_path / "b", run_options)
    with pytest.raises(UsageError, match="cannot be made with"):
        training.train(changed(options={"colour": 1}), tmp_path / "c", run_options)
    with pytest.raises(FieldError, match="`--backend`"):
        training.train(changed(backend="there"), tmp_path / "d", run_options)


@pytest.mark.slow
@pytest.mark.rl
def test_macros_of_a_tool_suite_are_played_in_the_language_trace(tmp_path, run_options, libraries):
    asked = Training(
        env_id="owa_bench/ToolQuest-v3",
        algorithm="maskable_ppo",
        steps=128,
        envs=1,
        options={"tier": 1, "family": "restock", "step_limit": 30},
        settings={"n_steps": 64, "batch_size": 64, "n_epochs": 1},
        episodes=1,
    )
    done = training.train(asked, tmp_path / "t", run_options)
    assert all(check.ok for check in verify.verify(done.evaluation.run))
    draw = Draw(name="toolquest", families=("restock",), tiers=(1,), deltas=(0.0,))
    request = Request(agents=(f"sb3:{done.policy}",), draws=(draw,))
    batch.play(request, tmp_path / "run", run_options)
    layout = batch.RunLayout(tmp_path / "run")
    (leaf,) = files.read_leaves(layout)
    trace = files.read_trace(layout, leaf)
    actions = [event.action for event in trace.events if hasattr(event, "action")]
    assert actions
    assert all(action.startswith('{"tool":') for action in actions)
    pytest.importorskip("minari")
    pytest.importorskip("pyarrow")
    escrow.reveal(run_options.home, layout)
    (made,) = minari.export(layout.root, tmp_path / "sets")
    assert (made.episodes, made.steps, made.left_out) == (1, len(actions), 0)


@pytest.mark.slow
@pytest.mark.rl
def test_a_recurrent_policy_learns_on_n_back_and_is_played_with_its_state(
    tmp_path, run_options, libraries
):
    asked = Training(
        env_id="owa_bench/Recall-v2",
        algorithm="recurrent_ppo",
        steps=128,
        envs=1,
        options={"tier": 1, "family": "n_back"},
        settings={"n_steps": 64, "batch_size": 64, "n_epochs": 1},
        layers=(8,),
        episodes=1,
    )
    done = training.train(asked, tmp_path / "t", run_options)
    assert all(check.ok for check in verify.verify(done.evaluation.run))
    agent = load_policy(done.policy)(None)
    agent.reset(None, (), None)
    seen = np.zeros(22, dtype=np.float32)
    assert agent._state is None
    agent.act(seen, {})
    first = np.array(agent._state)
    agent.act(seen, {})
    assert not np.array_equal(first, agent._state)
    agent.reset(None, (), None)
    agent.act(seen, {})
    assert np.array_equal(first, agent._state)


@pytest.mark.slow
@pytest.mark.rl
@pytest.mark.physics
def test_dqn_trains_on_cartpole3d_and_its_evaluation_verifies(tmp_path, run_options, libraries):
    pytest.importorskip("pybullet")
    asked = Training(
        env_id="owa_bench/CartPole3D-v2",
        algorithm="dqn",
        steps=300,
        envs=2,
        options={"level": 0, "obs": "core"},
        settings={"learning_starts": 100, "buffer_size": 500, "batch_size": 32},
        layers=(16,),
        episodes=2,
        evaluate_every=0,
    )
    done = training.train(asked, tmp_path / "t", run_options)
    found = done.evaluation
    assert (found.episodes, found.steps) == (2, done.steps)
    assert all(check.ok for check in verify.verify(found.run))
    policy = found.run.with_suffix(".zip")
    assert policy.read_bytes() == done.policy.read_bytes()
    with zipfile.ZipFile(policy) as archive:
        assert MEMBER in archive.namelist()
    notes = read_metadata(policy)
    assert (notes.size, notes.algorithm) == (11, "dqn")
    agent = load_policy(policy)(None)
    full = np.zeros(39, dtype=np.float32)  # what the loop shows is longer: cut
    assert agent.act(full, {}) in range(5)


@pytest.mark.part(3)
@pytest.mark.slow
@pytest.mark.rl
@pytest.mark.physics
def test_the_batched_backend_trains_what_the_engine_then_plays(tmp_path, run_options, libraries):
    pytest.importorskip("pybullet")
    asked = Training(
        env_id="owa_bench/CartPole3D-v2",
        steps=256,
        envs=4,
        options={"level": 9, "difficulty": "easy", "obs": "core"},
        settings={"n_steps": 32, "batch_size": 64, "n_epochs": 1},
        layers=(8,),
        episodes=1,
        backend="batched",
    )
    one = training.train(asked, tmp_path / "one", run_options)
    same = training.train(asked, tmp_path / "same", run_options)
    assert np.array_equal(weights(one.policy), weights(same.policy))
    assert one.evaluation.run is not None
    with pytest.raises(UsageError, match="is CartPole3D's"):
        training.train(changed(backend="batched"), tmp_path / "other", run_options)


@pytest.mark.parametrize(
    ("options", "family", "tier"),
    [
        ({"level": 9, "difficulty": "hard"}, "table1/9", 3),
        ({"level": 0}, "table1/0", 1),
        ({"spec": "released", "level": 4}, "released/4", 3),
    ],
)
def test_an_evaluation_draws_what_was_trained(options, family, tier):
    asked = Training(env_id="owa_bench/CartPole3D-v2", options=options)
    draw = training.evaluation_draw(asked)
    assert (draw.families, draw.tiers, draw.deltas) == ((family,), (tier,), (1.0,))


def test_an_evaluation_of_several_levels_draws_them_at_every_grade():
    asked = Training(options={"level": "0,9"}, backend="batched")
    draw = training.evaluation_draw(asked)
    assert (draw.families, draw.tiers) == (("table1/0", "table1/9"), (1, 2, 3))


# --- recipes ------------------------------------------------------------------------


def test_every_shipped_recipe_is_a_training_that_says_what_it_is_for():
    for name in recipes.shipped():
        found = recipes.read_recipe(name)
        assert found.about, name
        assert recipe_of(found.training()).name, name
        assert training.evaluation_draw(found.training()).episodes > 0


def test_a_file_that_is_no_recipe_is_said(tmp_path):
    (tmp_path / "a.yaml").write_text("stepps: 3")
    with pytest.raises(UsageError, match="unknown field `stepps`"):
        recipes.read_recipe(str(tmp_path / "a.yaml"))
    with pytest.raises(UsageError, match="No such file"):
        recipes.read_recipe(str(tmp_path / "b.yaml"))
    with pytest.raises(UnknownNameError, match="Did you mean `ppo_levels`"):
        recipes.read_recipe("ppo_level")


# --- trials -------------------------------------------------------------------------


@pytest.mark.rl
def test_a_trial_is_one_episode_to_the_learner_and_says_where_each_begins(libraries):
    asked = changed(trial=3, penalty=0.5, envs=2, normalise=False)
    envs, _ = vector_envs.make_envs(asked, 0, scaled=False)
    rows = envs.reset()
    assert rows[:, 0].tolist() == [1.0, 1.0]
    begun, ends, costs = np.ones(2), np.zeros(2), 0
    for _ in range(300):
        rows, rewards, over, infos = envs.step(np.ones(2, int))
        begun += rows[:, 0]
        ends += over
        costs += int((rewards == 0.5).sum())
        assert (rows[:, :3].sum(axis=1) == 1.0).all()
        assert all(infos[i]["terminal_observation"][2] for i in np.flatnonzero(over))
    assert (begun // 3 >= ends).all()
    assert ends.min() > 3
    assert costs == begun.sum() - 2  # each episode fell


@pytest.mark.rl
def test_a_policy_of_trials_keeps_its_state_from_episode_to_episode(
    tmp_path, run_options, libraries
):
    asked = changed(
        algorithm="recurrent_ppo",
        steps=128,
        trial=2,
        settings={"n_steps": 64, "batch_size": 64, "n_epochs": 1},
        episodes=1,
    )
    done = training.train(asked, tmp_path / "t", run_options)
    seen = np.zeros(4, dtype=np.float32)
    states = []
    for folder in ("one", "one", "two"):
        (tmp_path / folder).mkdir(exist_ok=True)
        agent = load_policy(done.policy)(None)
        agent.reset(None, (), tmp_path / folder)
        agent.act(seen, {})
        states.append(np.array(agent._state))
        agent.close()
    assert not np.array_equal(states[0], states[1])
    assert np.array_equal(states[0], states[2])


# --- imitation ----------------------------------------------------------------------


@pytest.mark.part(3)
@pytest.mark.slow
@pytest.mark.rl
@pytest.mark.physics
def test_a_policy_begins_from_what_the_planner_does(tmp_path, run_options, libraries):
    pytest.importorskip("pybullet")
    asked = msgspec.structs.replace(
        recipes.read_recipe("ppo_evasion").training(),
        steps=4096,
        envs=64,
        imitation=60_000,
        options={"level": 0, "obs": "full", "starts": 512},
        settings={"n_steps": 32, "batch_size": 2048, "learning_rate": 1e-5},
        episodes=8,
    )
    told = []
    callbacks = TrainingCallbacks(imitated=told.append)
    done = training.train(asked, tmp_path / "t", run_options, callbacks=callbacks)
    assert told[-1] <= 60_000
    assert done.evaluation.quality > 0.7  # the plain rule's part alone gives about .9
    assert read_metadata(done.policy).actions == "leans"


@pytest.mark.parametrize(
    "changes", [{"algorithm": "dqn"}, {"backend": "here"}, {"actions": ""}, {"trial": 2}]
)
def test_imitation_needs_what_it_fits(changes):
    asked = recipes.read_recipe("ppo_evasion").training()
    with pytest.raises(UsageError, match="`imitation` is for ppo"):
        check_imitation(msgspec.structs.replace(asked, **changes))
    with pytest.raises(UsageError, match="normalise: false"):
        check_imitation(msgspec.structs.replace(asked, normalise=None))


@pytest.mark.rl
def test_a_lean_is_held_by_the_agent_as_in_training(libraries):
    from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D

    asked = msgspec.structs.replace(
        recipes.read_recipe("ppo_evasion").training(),
        envs=1,
        options={"level": 0, "obs": "full", "starts": 4},
    )
    envs, _ = vector_envs.make_envs(asked, 0, scaled=False)
    envs.seed(5)
    rows, leans = envs.reset(), [3, 0, 11, 0]
    seen = [rows[0]]
    for lean in leans:
        seen.append(envs.step(np.array([lean]))[0][0])
    metadata = PolicyMetadata(
        algorithm="ppo",
        env_id="owa_bench/CartPole3D-v2",
        seed=0,
        steps=0,
        size=len(rows[0]),
        features="ball_forecast",
        actions="leans",
    )

    class Model:
        def predict(self, seen, state, start, deterministic):
            self.seen = seen
            return leans[len(shown)], None

    model, shown = Model(), []
    agent = trained._TrainedPolicy(model, metadata)
    agent.reset(None, (), None)
    env = BatchedCartPole3D(1, starts=4)
    rows, _ = env.reset(seed=5)
    for tick in range(20):
        action = agent.act(rows[0], {})
        if tick % 5 == 0:
            assert np.array_equal(model.seen, seen[len(shown)])
            shown.append(tick)
        rows, *_ = env.step(np.array([action]))
