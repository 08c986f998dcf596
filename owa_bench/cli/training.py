"""`owa-bench train`: a policy by reinforcement learning, evaluated on record."""

from pathlib import Path
from typing import cast

import msgspec
import typer
from msgspec.structs import replace
from rich.progress import Progress as Bar

from owa_bench import discovery
from owa_bench.cli.console import ERR, OUT, as_json, progress
from owa_bench.cli.options import Fields, KeyName, Panel, given_names, split
from owa_bench.errors import CheckFailure, FieldError, UsageError
from owa_bench.runs.plan.request import RunOptions
from owa_bench.runs.store import keys
from owa_bench.runs.train import training as trainings
from owa_bench.runs.train.algorithms import RECIPES, OptionValue, Training
from owa_bench.runs.train.recipes import read_recipe, shipped

WHAT = Panel("What is trained")
LEARNING = Panel("How it learns")
KEPT = Panel("What is kept")


def train(
    context: typer.Context,
    out: Path = WHAT(..., "Folder to make, or to resume."),
    recipe: str | None = WHAT(
        None, f"One of {', '.join(shipped())}, or a .yaml file; flags change what it says."
    ),
    env: str = WHAT("owa_bench/CartPole3D-v2", "A registered Gymnasium id with a Box to see."),
    suite: str | None = WHAT(None, "A suite by its name: the same as --env with its id."),
    level: int | None = WHAT(None, "CartPole3D: the same as -o level=N."),
    option: list[str] | None = WHAT(
        None, "What the env is made with: KEY=VALUE.", "--option", "-o"
    ),
    learning: Fields = LEARNING.fields(
        Training,
        algorithm=f"One of {', '.join(RECIPES)}.",
        steps="Steps over all envs together.",
        seed="Decides the policy, per machine.",
        envs="Envs stepped side by side.",
        backend="here: in this process; processes: one each; batched: CartPole3D's "
        "compiled physics.",
        threads="Torch threads.",
        features="ball_forecast: CartPole3D's balls flown ahead, read in place of the observation.",
        actions="leans: CartPole3D's PD rule is told where to lean.",
        trial="Episodes that are one to the algorithm; 0: each is its own.",
        penalty="Taken from the reward where an episode of a trial is terminated.",
        imitation="Steps that are played first to imitate CartPole3D's planner.",
        start="Folder of another training, whose last policy this one begins with.",
        memory="Size of a recurrent network's state; 0: the algorithm's own.",
    ),
    setting: list[str] | None = LEARNING(
        None,
        "A setting of the algorithm: learning_rate=3e-4, or lin_3e-4 to fall to 0.",
        "--set",
        "-s",
    ),
    layers: str | None = LEARNING(None, "Such as 64,64."),
    normalise: bool | None = LEARNING(
        None, "Scale observations and rewards by what was met so far.", "--normalise/--raw"
    ),
    kept: Fields = KEPT.fields(
        Training,
        checkpoint_every="Steps between.",
        evaluate_every="Steps between; 0: at the end.",
        episodes="Episodes an evaluation.",
    ),
    resume: bool = KEPT(False, "Go on from the last checkpoint."),
    key: str = KeyName,
    json: bool = KEPT(False, "Print JSON."),
) -> None:
    """Train a policy; it then plays as any agent: `run --agent sb3:DIR/model.zip`.

    Evaluations are runs of their own in DIR/evaluations, on instances that training
    never met, and are verified as they are written. Learning curves: `tensorboard
    --logdir DIR/tensorboard`. Give the same command with --resume to go on, with more
    --steps if you like.

      owa-bench train --recipe ppo_levels --out runs/forecast

      owa-bench train --algorithm ppo --level 0 --steps 1000000 --out runs/ppo

      owa-bench train --algorithm dqn --level 0 --steps 500000 --out runs/dqn

      owa-bench train --recipe dqn --start runs/dqn --level 9 --steps 200000
      --out runs/dqn-9

      owa-bench train --algorithm maskable_ppo --env owa_bench/ToolQuest-v3
      -o tier=1 --steps 100000 --out runs/macros

      owa-bench train --suite robosim2real -o family=reach --steps 500000 --out runs/arm

      owa-bench train --env CartPole-v1 --steps 50000 --out runs/plain
    """
    given = given_names(context)
    base = read_recipe(recipe).training() if recipe else Training()
    changed = {k: v for k, v in {**learning, **kept}.items() if k in given}
    if "env" in given:
        changed["env_id"] = env
    if suite is not None:
        if "env" in given:
            raise UsageError("Give --suite or --env, not both.")
        changed["env_id"] = discovery.get("suites", suite).card.env_id
    if "layers" in given:
        changed["layers"] = _layers(layers)
    if normalise is not None:
        changed["normalise"] = normalise
    level_option = {} if level is None else {"level": level}
    training = replace(
        base,
        options={**base.options, **_values("--option", option), **level_option},
        settings={**base.settings, **_values("--set", setting)},
        **changed,
    )
    run_options = RunOptions(home=keys.data_folder(), key=key, in_process=True)
    _train(training, out, run_options, resume=resume, json=json)


def _train(
    training: Training, out: Path, run_options: RunOptions, *, resume: bool, json: bool
) -> None:
    """Train behind a progress bar and print the result."""
    with progress() as bar:
        callbacks = _callbacks(bar, training)
        try:
            done = trainings.train(training, out, run_options, resume=resume, callbacks=callbacks)
        except KeyboardInterrupt:
            if any((out / "checkpoints").glob("step-*")):
                ERR.print(f"A checkpoint is in {out}: the same command with --resume.")
            raise
    if json:
        as_json(done)
    else:
        _print(done)


def _callbacks(bar: Bar, training: Training) -> trainings.TrainingCallbacks:
    """Return callbacks that move the bar and verify every evaluation."""
    task = bar.add_task(f"training {training.algorithm}", total=training.steps)

    def evaluated(found: trainings.Evaluation) -> None:
        _verify(found)
        quality = f"mean quality {found.quality:.3f}"
        bar.update(task, description=f"training {training.algorithm}, {quality}")

    def steps(done: int) -> None:
        bar.update(task, completed=done)

    def imitated(done: int) -> None:
        what = f"imitation, {done:,} of {training.imitation:,} steps"
        bar.update(task, description=what)

    return trainings.TrainingCallbacks(steps=steps, imitated=imitated, evaluated=evaluated)


def _verify(found: trainings.Evaluation) -> None:
    """Check an evaluation's evidence, as `owa-bench verify` does."""
    if found.run is None:
        return
    from owa_bench.reports import verify

    failed = [check.name for check in verify.verify(found.run) if not check.ok]
    if failed:
        raise CheckFailure(f"The evaluation {found.run} does not verify: {', '.join(failed)}.")


def _print(done: trainings.TrainingResult) -> None:
    found = done.evaluation
    what = "quality" if found.run else "return"
    OUT.print(
        f"mean {what} {found.quality:.3f} over {found.episodes} episodes after {done.steps} steps"
    )
    OUT.print(f"policy      {done.policy}")
    if found.run:
        OUT.print(f"evaluation  {found.run}")
        ERR.print(f"next: owa-bench run --suite .. --agent sb3:{done.policy} --out ..")


def _values(flag: str, texts: list[str] | None) -> dict[str, OptionValue]:
    """Return KEY=VALUE pairs; a value that reads as JSON is what it reads as."""
    found: dict[str, OptionValue] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign:
            raise FieldError(flag, text, "must read KEY=VALUE")
        found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> OptionValue:
    try:
        return cast("OptionValue", msgspec.json.decode(text, type=OptionValue))
    except msgspec.MsgspecError:
        return text


def _layers(text: str | None) -> tuple[int, ...]:
    parts = split(text)
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise FieldError("--layers", text, "must be sizes above 0, such as 64,64")
    return tuple(int(part) for part in parts)
