"""`train`, trials, `measure novelty` and `export` at the command line."""

import json

import pytest


def test_help_teaches_with_commands_that_can_be_copied(owa):
    said = owa("train --help")
    assert said.code == 0
    for words in ("--algorithm", "--resume", "maskable_ppo", "sb3:DIR/model.zip"):
        assert words in said.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train --algorithm ppoo --out t", "Did you mean `ppo`"),
        ("train --steps 0 --out t", "`--steps` must be at least 1"),
        ("train -o level --out t", "must read KEY=VALUE"),
        ("train --layers 64,x --out t", "must be sizes above 0"),
        ("train --suite recall --env CartPole-v1 --out t", "Give --suite or --env, not both"),
        ("train --suite recal --out t", "`recall`"),
        ("train --layers ² --out t", "must be sizes above 0"),
        ("run --suite cartpole3d --agent pd --trials 1 --out t", "`before` must be"),
        ("run --suite toolquest --agent noop --before 1,2 --out t", "--trials"),
        ("run --suite cartpole3d --agent sb3:no.zip --out t", "no such file"),
    ],
)
def test_wrong_use_is_said_in_one_line(owa, place, arguments, words):
    said = owa(arguments)
    assert said.code == 2
    assert words in said.err
    assert not (place / "t").exists()


@pytest.mark.rl
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("-s learning_rate=abc", "PPO cannot learn here with learning_rate=abc"),
        ("-s learning_rate=-1", "Invalid learning rate: -1.0"),
        ("--algorithm maskable_ppo", "needs an env with `action_masks`"),
        ("--algorithm dqn --env Pendulum-v1", "only supports"),
        ("--key a/b", "`key name` must be letters"),
        ("-s foo=1", "No setting of PPO is called `foo`"),
    ],
)
def test_what_cannot_be_trained_leaves_the_folder_free(owa, place, flags, words):
    pytest.importorskip("stable_baselines3")
    said = owa(f"train --env CartPole-v1 --steps 32 --out t {flags}")
    assert said.code == 2
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not (place / "t").exists()


@pytest.mark.rl
def test_a_suite_whose_actions_are_numbers_is_trained_and_evaluated_on_both_sides(owa, place):
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("mujoco")
    said = owa(
        "train --suite robosim2real -o family=reach --steps 64 --envs 2 -s n_steps=16 "
        "-s batch_size=16 --episodes 1 --out t"
    )
    assert said.code == 0, said.err
    assert "over 4 episodes" in said.out


@pytest.mark.rl
def test_a_training_from_the_shell(owa, place):
    pytest.importorskip("stable_baselines3")
    said = owa(
        "train --env CartPole-v1 --steps 128 --envs 2 -s n_steps=32 -s batch_size=32 "
        "-s n_epochs=1 --layers 8 --episodes 1 --out t --json"
    )
    assert said.code == 0, said
    assert json.loads(said.out)["steps"] == 128
    again = owa("train --env CartPole-v1 --steps 128 --out t")
    assert (again.code, "must be new or empty" in again.err) == (2, True)


@pytest.mark.physics
def test_trials_are_played_measured_and_exported(owa, place):
    pytest.importorskip("pybullet")
    said = owa(
        "run --suite cartpole3d --family table1/9 --tier 3 --trials 1 --episodes 4 "
        "--before 2,2 --agent nothing --agent random --in-process --out trials"
    )
    assert said.code == 0, said
    found = owa("measure novelty trials --last 2 --figure novelty.svg --json")
    rows = json.loads(found.out)["table"]
    assert [(row["agent"], row["count"]) for row in rows] == [("nothing", 1), ("random", 1)]
    assert rows[0]["APTI"] == 0.5
    assert 0.1 < rows[1]["APTI"] < 0.9  # two episodes of a fresh master's draw
    assert (place / "novelty.svg").stat().st_size > 1000
    assert owa("measure novelty trials --baseline nobody").code == 2
    assert owa("measure novelty trials --last 3").code == 2
    shown = owa("measure novelty trials --last 2")
    assert "mean quality around the introduction" in shown.out
    assert owa("report trials").code == 0
    assert owa("verify trials").code == 0


@pytest.mark.physics
def test_export_says_what_it_wrote(owa, place):
    pytest.importorskip("pybullet")
    pytest.importorskip("minari")
    owa("run --suite cartpole3d --family table1/0 --tier 1 --agent nothing --in-process --out one")
    said = owa("export one --to minari --out sets")
    assert said.code == 0, said
    assert "cartpole3d/one-nothing-v0: 1 episodes" in said.out
