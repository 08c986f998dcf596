"""Training: an SB3 algorithm on a registered env, with checkpoints and evaluations.

    DIR/training.json                what is trained and how; a resumed one must agree
    DIR/checkpoints/step-000100000/  policy.zip and what learning goes on from
    DIR/evaluations/step-000100000/  a run of its own: signed plan, hash-chained traces;
                                     the policy it played is beside it, .zip
    DIR/evaluations.csv              steps, mean quality, episodes
    DIR/tensorboard/                 learning curves
    DIR/model.zip                    the newest policy: `owa-bench run --agent sb3:..`

One machine, one seed: the same policy. A resumed training goes on from its last
checkpoint with fresh streams, so it is repeatable too but not what an uninterrupted one
would have become.
"""

import dataclasses
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from owa_bench import discovery
from owa_bench.errors import FieldError, RunDirectoryError, UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.request import Request, RunOptions
from owa_bench.run.play import batch
from owa_bench.run.store import files, keys
from owa_bench.run.train import learners
from owa_bench.run.train.learners import Learner, TrainingOptions
from owa_bench.seeding import derive
from owa_bench.skills.trained import PolicyMetadata, load_policy, read_metadata

_RECORD = "training.json"
_TABLE = "evaluations.csv"
_KEPT = 3  # checkpoints that are left standing
_PLAIN_SEED = 1 << 30  # first seed of an evaluation outside our suites


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides the result of a training.

    `options` go to the env, `settings` to the algorithm; `layers` and `normalise` left
    out take the algorithm's own. 0 for `evaluate_every`: at the end alone.
    """

    env_id: str
    algorithm: str = "ppo"
    steps: int = 1_000_000
    seed: int = 0
    envs: int = 8
    options: TrainingOptions = {}
    settings: TrainingOptions = {}
    layers: tuple[int, ...] = ()
    normalise: bool | None = None
    checkpoint_every: int = 100_000
    evaluate_every: int = 0
    episodes: int = 20
    threads: int = 1
    backend: str = "here"

    def __post_init__(self) -> None:
        """Refuse numbers outside their range."""
        for name in ("steps", "envs", "checkpoint_every", "episodes", "threads"):
            if getattr(self, name) < 1:
                flag = f"--{name.replace('_', '-')}"
                raise FieldError(flag, getattr(self, name), "must be at least 1")
        if self.evaluate_every < 0:
            raise FieldError("--evaluate-every", self.evaluate_every, "must be >= 0")


class Evaluation(NamedTuple):
    """A policy's mean quality; `run` holds the traces, None outside our suites."""

    steps: int
    quality: float
    episodes: int
    run: Path | None


class TrainingCallbacks(NamedTuple):
    """Who is told what: steps so far, each evaluation."""

    steps: Callable[[int], None] = lambda _: None
    evaluated: Callable[[Evaluation], None] = lambda _: None


class TrainingResult(NamedTuple):
    """The policy's file, the steps behind it, and its last evaluation."""

    policy: Path
    steps: int
    evaluation: Evaluation


def train(
    training: Training,
    out: Path,
    run_options: RunOptions,
    *,
    resume: bool = False,
    ears: TrainingCallbacks = TrainingCallbacks(),  # noqa: B008  a tuple of pure functions
) -> TrainingResult:
    """Train a policy in `out`, or go on with it, and return what came of it.

    Errors: UsageError and its kin for what cannot be trained, MissingPartError without
    the learning libraries, RunDirectoryError for a folder that holds something else.
    An interrupted training leaves a checkpoint to resume from.
    """
    kind = learners.recipe(training.algorithm, training.normalise)
    learners.check_machine(training.algorithm)
    learners.env_kwargs(training.env_id, training.options)
    if learners.suite_of(training.env_id) is not None:
        evaluation_draw(
            training
        )  # what cannot be evaluated is said before it is trained
    keys.ensure(run_options.home, run_options.key)  # evaluations are signed
    _refuse_folder(training, out, resume=resume)
    return _Course(training, kind, out, run_options, ears).run()


def _refuse_folder(training: Training, out: Path, *, resume: bool) -> None:
    """Refuse a folder that holds something else than the training that goes on."""
    record = out / _RECORD
    if resume:
        if not record.exists():
            raise RunDirectoryError(
                f"{out} is no training to resume: it has no {_RECORD}."
            )
        _refuse_other(training, msgspec.json.decode(record.read_bytes(), type=Training))
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(
            f"{out} must be new or empty; --resume goes on with a training."
        )


def _refuse_other(training: Training, before: Training) -> None:
    """Refuse to go on with what decides the result changed; more steps are fine."""
    free = {"steps", "checkpoint_every", "evaluate_every", "episodes"}
    other = [
        name
        for name in training.__struct_fields__
        if name not in free and getattr(training, name) != getattr(before, name)
    ]
    if other:
        raise UsageError(
            f"--resume goes on as before, and these differ: {', '.join(other)}."
        )


class _Course:
    """One training while it runs."""

    def __init__(
        self,
        training: Training,
        kind: learners.AlgorithmRecipe,
        out: Path,
        run_options: RunOptions,
        ears: TrainingCallbacks,
    ) -> None:
        self._training = training
        self._kind = kind
        self._out = out
        self._means = run_options
        self._ears = ears
        self._checkpoints = out / "checkpoints"
        self._checkpoint: int = training.checkpoint_every
        self._evaluation: float = training.evaluate_every or math.inf
        self._last: Evaluation | None = None
        self._saved = -1

    def run(self) -> TrainingResult:
        """Train to the last step."""
        import torch

        torch.set_num_threads(self._training.threads)
        done = self._done()
        learner = self._learner(done)
        self._learner_now = learner
        self._write()
        self._checkpoint += done
        self._evaluation += done
        try:
            if done < self._training.steps:
                learner.model.learn(
                    self._training.steps - done,
                    callback=learners.callback(self._ears.steps, self._pause),
                    reset_num_timesteps=done == 0,
                    tb_log_name=self._training.algorithm,
                )
            return self._finish()
        except KeyboardInterrupt:
            self._save()
            raise
        finally:
            learner.envs.close()

    def _write(self) -> None:
        """Write what is trained, once it is known that it can be."""
        self._out.mkdir(parents=True, exist_ok=True)
        record = msgspec.json.encode(self._training)
        files.write_whole(self._out / _RECORD, record)

    def _done(self) -> int:
        """Return the steps of the newest checkpoint, 0 without one."""
        names = [path.name for path in self._checkpoints.glob("step-*")]
        return max((int(name.removeprefix("step-")) for name in names), default=0)

    def _learner(self, done: int) -> Learner:
        training, kind = self._training, self._kind
        seed = derive(training.seed, "training", done) % (1 << 31)
        envs, scaling = learners.make_envs(
            training.env_id,
            training.options,
            count=training.envs,
            seed=seed,
            backend=training.backend,
            scaled=kind.normalises,
        )
        logs = _logs(self._out)
        if done:
            folder = self._folder(done)
            return learners.load(kind, folder, envs, scaling, seed=seed, logs=logs)
        return learners.new(
            kind,
            envs,
            scaling,
            given=training.settings,
            seed=seed,
            layers=training.layers,
            logs=logs,
        )

    def _pause(self, model: Any) -> None:
        """Between rollouts: write a checkpoint, evaluate, when it is time."""
        if model.num_timesteps >= self._checkpoint:
            self._save()
            self._checkpoint += self._training.checkpoint_every
        if model.num_timesteps >= self._evaluation:
            self._evaluate(self._save())
            self._evaluation += self._training.evaluate_every

    def _finish(self) -> TrainingResult:
        policy = self._save()
        steps = int(self._learner_now.model.num_timesteps)
        if self._last is None or self._last.steps != steps:
            self._last = self._evaluate(policy)
        return TrainingResult(self._out / "model.zip", steps, self._last)

    def _folder(self, steps: int) -> Path:
        return self._checkpoints / f"step-{steps:09d}"

    def _save(self) -> Path:
        """Write checkpoint and `model.zip`; the policy's file in the checkpoint."""
        learner = self._learner_now
        steps = int(learner.model.num_timesteps)
        folder = self._folder(steps)
        if steps == self._saved:
            return folder / learners.POLICY
        notes = PolicyMetadata(
            algorithm=self._training.algorithm,
            env_id=self._training.env_id,
            options=self._training.options,
            seed=self._training.seed,
            steps=steps,
            size=int(np.prod(learner.envs.observation_space.shape)),
        )
        learners.save(learner, folder, notes)
        newest = self._out / ".model.zip.part"
        shutil.copyfile(folder / learners.POLICY, newest)
        os.replace(newest, self._out / "model.zip")
        for old in sorted(self._checkpoints.glob("step-*"))[:-_KEPT]:
            shutil.rmtree(old)
        self._saved = steps
        return folder / learners.POLICY

    def _evaluate(self, policy: Path) -> Evaluation:
        """Return how good a policy is, played as any agent and on record."""
        import torch

        steps = read_metadata(policy).steps
        place = self._out / "evaluations" / f"step-{steps:09d}"
        kept = torch.get_rng_state()
        if learners.suite_of(self._training.env_id) is None:
            found = _plain(self._training, policy, steps)
        else:
            found = _recorded(self._training, policy, place, steps, self._means)
        torch.set_rng_state(kept)
        self._last = found
        _append(self._out / _TABLE, found)
        self._ears.evaluated(found)
        return found


def _recorded(
    training: Training, policy: Path, place: Path, steps: int, run_options: RunOptions
) -> Evaluation:
    """Return an evaluation played as a run: planned, signed, traced.

    The policy is kept beside its run, since checkpoints go and `model.zip` changes.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(policy, place.with_suffix(".zip"))
    request = Request(
        agents=(f"sb3:{place.name}.zip",),
        draws=(evaluation_draw(training),),
        name=f"{place.parent.parent.name} after {steps} steps",
    )
    batch.play(request, place, dataclasses.replace(run_options, folder=place.parent))
    layout = RunLayout(place)
    leaves = files.read_leaves(layout)
    ends = [files.read_trace(layout, leaf).end for leaf in leaves]
    quality = float(np.mean([end.q_state for end in ends]))
    return Evaluation(steps, quality, len(ends), place)


def evaluation_draw(training: Training) -> Draw:
    """Return what a training is evaluated on: new instances of what it trains on."""
    name = learners.suite_of(training.env_id) or ""
    card = discovery.get("suites", name).card
    options = training.options
    if card.native:
        family = f"{options.get('spec', 'table1')}/{options.get('level', 0)}"
        return Draw(
            name=name,
            families=(family,),
            tiers=(_tier(options),),
            deltas=(1.0,),
            episodes=training.episodes,
        )
    named = options.get("family")
    return Draw(
        name=name,
        families=(str(named),) if named else (),
        tiers=(int(options.get("tier") or card.tiers[0]),),
        deltas=(float(options.get("delta") or 0.0),),
        episodes=training.episodes,
    )


def _tier(options: TrainingOptions) -> int:
    """Return the tier of a level's magnitude; evaluations are drawn by tier.

    Errors: UsageError for a magnitude between the tiers.
    """
    if not options.get("level"):
        return 1
    tiers = {"easy": 1, "medium": 2, "hard": 3}
    named = options.get("difficulty")
    if named in tiers:
        return tiers[str(named)]
    place = 3.0 * float(options.get("magnitude", 1.0) or 0.0)
    if place not in (1.0, 2.0, 3.0):
        raise UsageError(
            "Training of a level is evaluated at easy, medium or hard: give "
            f"-o difficulty=.., got magnitude {place / 3.0:g}."
        )
    return int(place)


def _plain(training: Training, policy: Path, steps: int) -> Evaluation:
    """Return an evaluation in a plain Gymnasium env: mean return, nothing on record."""
    import gymnasium

    from owa_bench.interfaces import AgentConfig

    agent = load_policy(policy)(AgentConfig())
    kwargs: dict[str, Any] = dict(training.options)
    env = gymnasium.make(training.env_id, **kwargs)
    returns = []
    for number in range(training.episodes):
        observation, info = env.reset(seed=_PLAIN_SEED + number)
        over, total = False, 0.0
        while not over:
            observation, reward, ended, cut, info = env.step(
                agent.act(observation, info)
            )
            total, over = total + float(reward), ended or cut
        returns.append(total)
    env.close()
    return Evaluation(steps, float(np.mean(returns)), len(returns), None)


def _logs(out: Path) -> Path | None:
    """Return where TensorBoard logs go, None where it is not installed."""
    import importlib.util

    known = importlib.util.find_spec("tensorboard") is not None
    return out / "tensorboard" if known else None


def _append(table: Path, found: Evaluation) -> None:
    head = "" if table.exists() else "steps,mean_quality,episodes\n"
    with table.open("a") as file:
        file.write(f"{head}{found.steps},{found.quality:.6f},{found.episodes}\n")
