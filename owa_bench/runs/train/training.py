"""Training: an SB3 algorithm on a registered env, with checkpoints and evaluations.

    DIR/training.json                what is trained and how; a resumed one must agree
    DIR/checkpoints/step-000100000/  policy.zip and what learning goes on from
    DIR/evaluations/step-000100000/  a run of its own: signed plan, hash-chained traces;
                                     the policy it played is beside it, .zip
    DIR/evaluations.csv              steps, mean quality, episodes
    DIR/tensorboard/                 learning curves, evaluations among them
    DIR/model.zip                    the newest policy: `owa-bench run --agent sb3:..`

One machine, one seed: the same policy. A resumed training goes on from its last checkpoint with
fresh streams, so it is repeatable too but not what an uninterrupted one would have become.
"""

import dataclasses
import importlib.util
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import msgspec
import numpy as np

from owa_bench import discovery
from owa_bench.agents.solvers.trained import PolicyMetadata, load_policy, read_metadata
from owa_bench.errors import RunDirectoryError, UsageError
from owa_bench.interfaces import AgentConfig
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys
from owa_bench.runs.train import learners
from owa_bench.runs.train.algorithms import (
    Training,
    TrainingOptions,
    env_kwargs,
    recipe_of,
    refuse_other,
    refuse_start,
    suite_of,
)
from owa_bench.runs.train.imitation import check_imitation, imitate
from owa_bench.runs.train.learners import Learner
from owa_bench.seeding import derive

_RECORD = "training.json"
_TABLE = "evaluations.csv"
_CHECKPOINTS = "step-*"
_KEPT = 3  # checkpoints that are left standing
_PLAIN_SEED = 1 << 30  # first seed of an evaluation outside our suites


class Evaluation(NamedTuple):
    """A policy's mean quality; `run` holds the traces, None outside our suites."""

    steps: int
    quality: float
    episodes: int
    run: Path | None


class TrainingCallbacks(NamedTuple):
    """Functions to call: with the steps so far, with each evaluation.

    `imitated` is called with the steps of imitation, which come first.
    """

    steps: Callable[[int], None] = lambda _: None
    imitated: Callable[[int], None] = lambda _: None
    evaluated: Callable[[Evaluation], None] = lambda _: None


class TrainingResult(NamedTuple):
    """The policy's file, the steps behind it, and its last evaluation."""

    policy: Path
    steps: int
    evaluation: Evaluation


def train(
    training: Training,
    out: Path,
    options: RunOptions,
    *,
    resume: bool = False,
    callbacks: TrainingCallbacks = TrainingCallbacks(),  # noqa: B008  pure functions
) -> TrainingResult:
    """Train a policy, or go on with its training.

    An interrupted training leaves a checkpoint to resume from.

    Args:
        training: What is trained and how.
        out: The folder.
        options: How evaluations are played.
        resume: Whether the training in the folder goes on.
        callbacks: Functions to call on the way.
    Returns: The policy and its last evaluation.
    Raises:
        UsageError: It cannot be trained so.
        MissingPartError: The learning libraries are not installed.
        RunDirectoryError: The folder holds something else.
    """
    learners.check_machine(recipe_of(training))
    env_kwargs(training)
    if training.imitation:
        check_imitation(training)
    if training.start and not resume:  # else it has begun, wherever that folder is now
        newest_checkpoint(Path(training.start))
        refuse_start(training, _recorded(Path(training.start)))
    if suite_of(training.env_id) is not None:
        evaluation_draw(training)  # refuses now what cannot be evaluated later
    keys.ensure(options.home, options.key)  # evaluations are signed
    _refuse_folder(training, out, resume=resume)
    return _TrainingRun(training, out, options, callbacks).run()


def _recorded(folder: Path) -> Training:
    return msgspec.json.decode((folder / _RECORD).read_bytes(), type=Training)


def newest_checkpoint(folder: Path) -> Path:
    """Return the last checkpoint of a training.

    Raises: UsageError: the folder holds none.
    """
    checkpoints = sorted(folder.glob(f"checkpoints/{_CHECKPOINTS}"))
    if not checkpoints:
        raise UsageError(
            f"--start takes the folder of a training, and {folder} holds no checkpoint."
        )
    return checkpoints[-1]


def _refuse_folder(training: Training, out: Path, *, resume: bool) -> None:
    """Refuse a folder that holds something else than the training that goes on."""
    if resume:
        if not (out / _RECORD).exists():
            raise RunDirectoryError(f"{out} is no training to resume: it has no {_RECORD}.")
        refuse_other(training, _recorded(out))
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} must be new or empty; --resume goes on with a training.")


class _TrainingRun:
    """One training while it runs."""

    def __init__(
        self, training: Training, out: Path, options: RunOptions, callbacks: TrainingCallbacks
    ) -> None:
        self._training = training
        self._out = out
        self._options = options
        self._callbacks = callbacks
        self._checkpoints = out / "checkpoints"
        self._checkpoint: int = training.checkpoint_every
        self._evaluation: float = training.evaluate_every or math.inf
        self._last: Evaluation | None = None
        self._saved = -1

    def run(self) -> TrainingResult:
        """Train to the last step."""
        import torch

        training = self._training
        torch.set_num_threads(training.threads)
        names = [path.name for path in self._checkpoints.glob(_CHECKPOINTS)]
        before = max((int(name.removeprefix("step-")) for name in names), default=0)
        self._learner = self._start(before)
        # Written only now that the training is known to be possible.
        self._out.mkdir(parents=True, exist_ok=True)
        files.write_whole(self._out / _RECORD, msgspec.json.encode(training))
        self._checkpoint += before
        self._evaluation += before
        try:
            if training.imitation and not before:
                seed = derive(training.seed, "imitation") % (1 << 31)
                imitate(self._learner.model, training, seed=seed, on_step=self._callbacks.imitated)
            if before < training.steps:
                self._learner.model.learn(
                    training.steps - before,
                    callback=learners.callback(self._callbacks.steps, self._pause),
                    reset_num_timesteps=before == 0,
                    tb_log_name=training.algorithm,
                )
            policy = self._save()
            steps = int(self._learner.model.num_timesteps)
            if self._last is None or self._last.steps != steps:
                self._last = self._evaluate(policy)
            return TrainingResult(self._out / "model.zip", steps, self._last)
        except KeyboardInterrupt:
            self._save()
            raise
        finally:
            self._learner.envs.close()

    def _start(self, before: int) -> Learner:
        """Return a learner: new, or as the checkpoint after `before` steps left it."""
        seed = derive(self._training.seed, "training", before) % (1 << 31)
        board = importlib.util.find_spec("tensorboard") is not None
        logs = self._out / "tensorboard" if board else None
        training = self._training
        if before:
            folder = self._folder(before)
            return learners.load_learner(training, folder, seed=seed, logs=logs)
        if not training.start:
            return learners.new_learner(training, seed=seed, logs=logs)
        folder = newest_checkpoint(Path(training.start))
        return learners.load_learner(training, folder, seed=seed, logs=logs, replayed=False)

    def _pause(self, model: Any) -> None:
        """Between rollouts: write a checkpoint, evaluate, when it is time."""
        if model.num_timesteps >= self._checkpoint:
            self._save()
            self._checkpoint += self._training.checkpoint_every
        if model.num_timesteps >= self._evaluation:
            self._evaluate(self._save())
            self._evaluation += self._training.evaluate_every

    def _folder(self, steps: int) -> Path:
        return self._checkpoints / f"step-{steps:09d}"

    def _save(self) -> Path:
        """Write checkpoint and `model.zip`; the policy's file in the checkpoint."""
        learner = self._learner
        steps = int(learner.model.num_timesteps)
        folder = self._folder(steps)
        if steps == self._saved:
            return folder / learners.POLICY
        metadata = PolicyMetadata(
            algorithm=self._training.algorithm,
            env_id=self._training.env_id,
            options=self._training.options,
            seed=self._training.seed,
            steps=steps,
            size=int(np.prod(learner.envs.observation_space.shape)),
            features=self._training.features,
            actions=self._training.actions,
            trial=self._training.trial,
        )
        learners.save_learner(learner, folder, metadata)
        newest = self._out / ".model.zip.part"
        shutil.copyfile(folder / learners.POLICY, newest)
        os.replace(newest, self._out / "model.zip")
        for old in sorted(self._checkpoints.glob(_CHECKPOINTS))[:-_KEPT]:
            shutil.rmtree(old)
        self._saved = steps
        return folder / learners.POLICY

    def _evaluate(self, policy: Path) -> Evaluation:
        """Return how good a policy is, played as any agent and on record."""
        import torch

        steps = read_metadata(policy).steps
        place = self._out / "evaluations" / f"step-{steps:09d}"
        state = torch.get_rng_state()
        training, options = self._training, self._options
        if suite_of(training.env_id) is None:
            evaluation = _play_plainly(training, policy, steps)
        else:
            evaluation = _play_on_record(training, policy, place, steps, options)
        torch.set_rng_state(state)
        self._last = evaluation
        table = self._out / _TABLE
        head = "" if table.exists() else "steps,mean_quality,episodes\n"
        with table.open("a") as file:
            file.write(f"{head}{steps},{evaluation.quality:.6f},{evaluation.episodes}\n")
        if hasattr(self._learner.model, "logger"):  # not before something was learned
            logger = self._learner.model.logger
            logger.record("evaluation/mean_quality", evaluation.quality)
            logger.dump(steps)
        self._callbacks.evaluated(evaluation)
        return evaluation


def _play_on_record(
    training: Training, policy: Path, place: Path, steps: int, options: RunOptions
) -> Evaluation:
    """Return an evaluation played as a run: planned, signed, traced.

    The policy is kept beside its run, since checkpoints go and `model.zip` changes.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(policy, place.with_suffix(".zip"))
    draw = evaluation_draw(training)
    request = Request(
        agents=(f"sb3:{place.name}.zip",),
        draws=(draw,),
        name=f"{place.parent.parent.name} after {steps} steps",
    )
    apart = discovery.get("suites", draw.name).card.isolated  # sittings, seats
    options = dataclasses.replace(
        options, folder=place.parent, in_process=options.in_process and not apart
    )
    batch.play(request, place, options)
    layout = RunLayout(place)
    leaves = files.read_leaves(layout)
    ends = [files.read_trace(layout, leaf).end for leaf in leaves]
    quality = float(np.mean([end.q_state for end in ends]))
    return Evaluation(steps, quality, len(ends), place)


def evaluation_draw(training: Training) -> Draw:
    """Return what a training is evaluated on: new instances of what it trains on."""
    name = suite_of(training.env_id) or ""
    card = discovery.get("suites", name).card
    options = training.options
    family = options.get("family")
    families = (str(family),) if family else ()
    tiers: tuple[int, ...] = (int(options.get("tier") or card.tiers[0]),)
    delta = float(options.get("delta") or 0.0)
    if card.native and not card.embodied:
        spec, levels = options.get("spec", "table1"), options.get("level") or 0
        families = tuple(
            family
            for family in card.families
            if levels == "all" or family.partition("/")[2] in str(levels).split(",")
            if family.startswith(f"{spec}/")
        )
        tiers, delta = _tiers(options, len(families)), 1.0
    return Draw(
        name=name, families=families, tiers=tiers, deltas=(delta,), episodes=training.episodes
    )


def _tiers(options: TrainingOptions, families: int) -> tuple[int, ...]:
    """Return the tiers that are trained on; UsageError for a magnitude between them."""
    if not options.get("level"):
        return (1,)
    if families > 1 and not {"difficulty", "magnitude"} & set(options):
        return (1, 2, 3)
    tiers = {"easy": 1, "medium": 2, "hard": 3}
    difficulty = options.get("difficulty")
    if difficulty in tiers:
        return (tiers[str(difficulty)],)
    place = 3.0 * float(options.get("magnitude", 1.0) or 0.0)
    if place not in (1.0, 2.0, 3.0):
        raise UsageError(
            "Training of a level is evaluated at easy, medium or hard: give "
            f"-o difficulty=.., got magnitude {place / 3.0:g}."
        )
    return (int(place),)


def _play_plainly(training: Training, policy: Path, steps: int) -> Evaluation:
    """Return an evaluation in a plain Gymnasium env: mean return, nothing on record."""
    agent = load_policy(policy)(AgentConfig())
    kwargs: dict[str, Any] = dict(training.options)
    env = gymnasium.make(training.env_id, **kwargs)
    returns = []
    for number in range(training.episodes):
        observation, info = env.reset(seed=_PLAIN_SEED + number)
        over, total = False, 0.0
        while not over:
            observation, reward, ended, cut, info = env.step(agent.act(observation, info))
            total, over = total + float(reward), ended or cut
        returns.append(total)
    env.close()
    return Evaluation(steps, float(np.mean(returns)), len(returns), None)
