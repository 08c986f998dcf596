"""`owa-bench train`: a policy by reinforcement learning, evaluated on record."""

import contextlib
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import Progress as Bar

from owa_bench.cli.console import ERR, OUT, as_json, data_folder, progress
from owa_bench.cli.evidence import KeyName
from owa_bench.errors import CheckFailure, FieldError
from owa_bench.run.plan.request import RunOptions
from owa_bench.run.store import keys
from owa_bench.run.train import learners
from owa_bench.run.train.learners import OptionValue
from owa_bench.run.train.training import (
    Evaluation,
    Training,
    TrainingCallbacks,
    TrainingResult,
)

ALGORITHMS = ", ".join(learners.RECIPES)


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(train)


def _panel(name: str) -> dict[str, Any]:
    return {"rich_help_panel": name}


WHAT = _panel("What is trained")
LEARNING = _panel("How it learns")
KEPT = _panel("What is kept")


def train(
    out: Annotated[
        Path, typer.Option("--out", help="Folder to make, or to resume.", **WHAT)
    ],
    env: Annotated[
        str,
        typer.Option(
            "--env", help="A registered Gymnasium id with a Box to see.", **WHAT
        ),
    ] = "owa_bench/CartPole3D-v1",
    level: Annotated[
        int | None,
        typer.Option("--level", help="CartPole3D: the same as -o level=N.", **WHAT),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", help="What the env is made with: KEY=VALUE.", **WHAT
        ),
    ] = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", help=f"One of {ALGORITHMS}.", **LEARNING)
    ] = "ppo",
    steps: Annotated[
        int, typer.Option("--steps", help="Steps over all envs together.", **LEARNING)
    ] = 1_000_000,
    seed: Annotated[
        int, typer.Option("--seed", help="Decides the policy, per machine.", **LEARNING)
    ] = 0,
    envs: Annotated[
        int, typer.Option("--envs", help="Envs stepped side by side.", **LEARNING)
    ] = 8,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            help="A setting of the algorithm: learning_rate=3e-4.",
            **LEARNING,
        ),
    ] = None,
    layers: Annotated[
        str | None, typer.Option("--layers", help="Such as 64,64.", **LEARNING)
    ] = None,
    normalise: Annotated[
        bool | None,
        typer.Option(
            "--normalise/--raw",
            help="Scale observations and rewards by what was met so far.",
            **LEARNING,
        ),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            "--backend",
            help="here: in this process; processes: one each; batched: CartPole3D's "
            "torch physics.",
            **LEARNING,
        ),
    ] = "here",
    threads: Annotated[
        int, typer.Option("--threads", help="Torch threads.", **LEARNING)
    ] = 1,
    checkpoint_every: Annotated[
        int, typer.Option("--checkpoint-every", help="Steps between.", **KEPT)
    ] = 100_000,
    evaluate_every: Annotated[
        int,
        typer.Option("--evaluate-every", help="Steps between; 0: at the end.", **KEPT),
    ] = 0,
    episodes: Annotated[
        int, typer.Option("--episodes", help="Episodes an evaluation.", **KEPT)
    ] = 20,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint.", **KEPT)
    ] = False,
    key: KeyName = keys.DEFAULT,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.", **KEPT)] = False,
) -> None:
    """Train a policy; it then plays as any agent: `run --agent sb3:DIR/model.zip`.

    Evaluations are runs of their own in DIR/evaluations, on instances that training
    never met, and are verified as they are written. Learning curves: `tensorboard
    --logdir DIR/tensorboard`. Give the same command with --resume to go on, with more
    --steps if you like.

      owa-bench train --algorithm ppo --level 0 --steps 1000000 --out runs/ppo

      owa-bench train --algorithm dqn --level 0 --steps 500000 --out runs/dqn

      owa-bench train --algorithm maskable_ppo --env owa_bench/ToolQuest-v1
      -o tier=1 --steps 100000 --out runs/macros

      owa-bench train --env CartPole-v1 --steps 50000 --out runs/plain
    """
    options = _values("--option", option)
    if level is not None:
        options["level"] = level
    training = Training(
        env_id=env,
        algorithm=algorithm,
        steps=steps,
        seed=seed,
        envs=envs,
        options=options,
        settings=_values("--set", setting),
        layers=_layers(layers),
        normalise=normalise,
        checkpoint_every=checkpoint_every,
        evaluate_every=evaluate_every,
        episodes=episodes,
        threads=threads,
        backend=backend,
    )
    run_options = RunOptions(home=data_folder(), key=key, in_process=True)
    _show(training, out, run_options, resume=resume, json=json)


def _show(
    training: Training, out: Path, run_options: RunOptions, *, resume: bool, json: bool
) -> None:
    """Train behind a progress bar and say what came of it."""
    from owa_bench.run.train import training as trainings

    with contextlib.ExitStack() as open_now:
        bar = open_now.enter_context(progress())
        ears = _ears(bar, training)
        try:
            done = trainings.train(training, out, run_options, resume=resume, ears=ears)
        except KeyboardInterrupt:
            if any((out / "checkpoints").glob("step-*")):
                ERR.print(f"A checkpoint is in {out}: the same command with --resume.")
            raise
    if json:
        as_json(done)
        return
    _say(done)


def _ears(bar: Bar, training: Training) -> TrainingCallbacks:
    """Return what moves the bar and checks every evaluation as it comes."""
    task = bar.add_task(f"training {training.algorithm}", total=training.steps)

    def evaluated(found: Evaluation) -> None:
        _verify(found)
        bar.update(
            task,
            description=f"training {training.algorithm}, mean quality "
            f"{found.quality:.3f}",
        )

    def steps(done: int) -> None:
        bar.update(task, completed=done)

    return TrainingCallbacks(steps=steps, evaluated=evaluated)


def _verify(found: Evaluation) -> None:
    """Check an evaluation's evidence, as `owa-bench verify` does."""
    if found.run is None:
        return
    from owa_bench.report import verify

    failed = [check.name for check in verify.verify(found.run) if not check.ok]
    if failed:
        raise CheckFailure(
            f"The evaluation {found.run} does not verify: {', '.join(failed)}."
        )


def _say(done: TrainingResult) -> None:
    found = done.evaluation
    what = "quality" if found.run else "return"
    OUT.print(
        f"mean {what} {found.quality:.3f} over {found.episodes} episodes after "
        f"{done.steps} steps"
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
        value: OptionValue = msgspec.json.decode(text, type=OptionValue)
    except msgspec.MsgspecError:
        return text
    return value


def _layers(text: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise FieldError("--layers", text, "must be sizes above 0, such as 64,64")
    return tuple(int(part) for part in parts)
