"""Teach an arm to push or to pick: demonstrations, then correction where it errs (DAgger).

    python examples/teach_an_arm.py runs/taught [--family pick_place] [--minutes 12] [--units 12]

Needs `pip install "owa_bench[robot,rl]"`. A teacher that is told the body's numbers plays MuJoCo
simulations under the published law; a network that is shown what an agent is shown learns what the
teacher would do, on the states that the network itself comes to. Then both play held-out tasks in
simulation and on the guarded surrogate device. Writes the network and `results.json`.
**Surrogate device, not hardware.**
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student
from torch import nn

from owa_bench.agents.solvers.arm.policies import ArmView, MarkReader
from owa_bench.envs.robosim2real import tasks, units
from owa_bench.envs.robosim2real.episode import BodySide, RobotEpisode
from owa_bench.envs.robosim2real.oracle import LAYOUT, oracle
from owa_bench.seeding import stream

COMMANDS, VIEWS = 8, 12  # that the network reads: its last commands, and of the thing
LAGS = (1, 2, 3, 5, 8, 13, 21)  # ticks before now, of places of the tool
FIRST, ROUND = 80, 24  # episodes of the teacher alone, then of each round
BATCH, EPOCHS = 512, 12
HELD_OUT = 1 << 30  # first seed of the tests
FLEET = 43  # no other table draws from it


class Student:
    """What an agent of the network does: reads an observation, keeps a short history."""

    def __init__(self, network: nn.Module | None) -> None:
        self._network = network
        self._marks = MarkReader(LAYOUT.marks, {})
        self._tools: list[np.ndarray] = []
        self._things: list[np.ndarray] = []
        self._commands = [np.zeros(4)] * COMMANDS
        self._shut = self._open = 0

    def features(self, observation: np.ndarray) -> np.ndarray:
        """Return what the network reads of an observation and of those before."""
        view = ArmView.of(observation, LAYOUT)
        self._marks.look(view)
        view = self._marks.right(view)
        tool, thing = view.tool, view.things[0]
        self._tools = [*(self._tools or [tool] * (LAGS[-1] + 1))[1:], tool]
        self._things = [*self._things, thing][-VIEWS:]
        still = np.mean(self._things, axis=0)  # the camera jumps; what lies still does not
        moved = (np.array([self._tools[-1 - lag] for lag in LAGS]) - tool) / LAYOUT.full
        grip = np.minimum(np.array([self._shut, self._open]), 40) / 20.0
        parts = (
            (still - tool) * 8.0,
            (thing - tool) * 8.0,
            (view.goal - still) * 8.0,
            (view.goal - tool) * 8.0,
            tool * 3.0,
            observation[LAYOUT.at["gripper_width"]] * 20.0,
            grip,
            np.clip(moved, -8.0, 8.0).ravel() / 2.0,
            np.array(self._commands).ravel(),
        )
        return np.concatenate(parts).astype(np.float32)

    def remember(self, command: np.ndarray) -> None:
        """Take note of the command that was sent."""
        self._commands = [*self._commands[1:], np.array([*command[:3], command[4]])]
        opens = bool(command[4] > 0)
        self._shut, self._open = (0, self._open + 1) if opens else (self._shut + 1, 0)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the command of the network."""
        assert self._network is not None
        with torch.no_grad():
            out = self._network(torch.from_numpy(features)[None])[0].numpy()
        grip = 1.0 if out[3] > 0 else -1.0
        return np.array([*np.clip(out[:3], -1.0, 1.0), 0.0, grip, 0.0])


def episode_of(family: str, seed: int, side: BodySide, unit: int = 0) -> RobotEpisode:
    """Return an episode of tier 1: in simulation under the law, or on a unit of the fleet."""
    world = tasks.draw(family, 1, stream(seed, "base"))
    body = units.simulated(seed, 1) if side == "sim" else units.unit(FLEET, unit)
    return RobotEpisode(world, body, seed, side=side)


def rollout(
    family: str, seed: int, network: nn.Module | None, share: float
) -> tuple[list[np.ndarray], list[np.ndarray], bool]:
    """Play an episode; return what was read, what the teacher would do, and success.

    Args:
        family: Of the task.
        seed: Of the task, the body and who acts when.
        network: The student's; None: the teacher acts throughout.
        share: Of stretches of half a second in which the teacher acts.
    """
    episode, rng = episode_of(family, seed, "sim"), stream(seed, "who")
    teacher, pupil = oracle(episode), Student(network)
    read, wanted, leads = [], [], True
    while not episode.over:
        if episode.ticks % 10 == 0:
            leads = network is None or rng.random() < share
        observation = episode.observation()
        features, right = pupil.features(observation), teacher(observation)
        read.append(features)
        wanted.append(np.array([*right[:3], right[4]], dtype=np.float32))
        command = right if leads else pupil(features)
        pupil.remember(command)
        episode.tick(command)
    return read, wanted, episode.success


def fit(network: nn.Module, read: torch.Tensor, wanted: torch.Tensor, epochs: int) -> float:
    """Train the network on all that was collected; return the last mean loss."""
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(0)
    mean = 0.0
    for _ in range(epochs):
        order, total = torch.randperm(len(read), generator=generator), 0.0
        for rows in order.split(BATCH):
            out = network(read[rows])
            loss = nn.functional.smooth_l1_loss(out[:, :3], wanted[rows, :3], beta=0.1)
            grip = nn.functional.binary_cross_entropy_with_logits(
                out[:, 3], (wanted[rows, 3] > 0).float()
            )
            optimiser.zero_grad()
            (loss + 0.3 * grip).backward()
            optimiser.step()
            total += float(loss.detach()) * len(rows)
        mean = total / len(read)
    return mean


def teach(family: str, minutes: float) -> nn.Module:
    """Return a network that was taught for some minutes."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    began, seed = time.monotonic(), 0
    read: list[np.ndarray] = []
    wanted: list[np.ndarray] = []
    network: nn.Module | None = None
    while time.monotonic() - began < 60.0 * minutes:
        won, share = 0, 0.0 if network is None else max(0.0, 0.5 - seed / 600.0)
        played = FIRST if network is None else ROUND
        for _ in range(played):
            more, right, success = rollout(family, seed, network, share)
            read, wanted, seed, won = read + more, wanted + right, seed + 1, won + success
        if network is None:
            width = len(read[0])
            network = nn.Sequential(
                *(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()),
                nn.Linear(256, 4),
            )
        rows = torch.from_numpy(np.stack(read)), torch.from_numpy(np.stack(wanted))
        epochs = EPOCHS if len(read) < 60_000 else EPOCHS // 3
        loss = fit(network, *rows, epochs)
        minute = (time.monotonic() - began) / 60.0
        print(f"{minute:.1f} min, {seed} episodes: {won / played:.2f} solved, loss {loss:.4f}")
    assert network is not None
    return network


def test(family: str, network: nn.Module, played: int) -> dict[str, Any]:
    """Return success on held-out tasks, in simulation and by unit on the device."""
    found: dict[str, Any] = {"simulation": [], "device": [], "incidents": 0}
    for unit in range(played):
        for side in ("sim", "surrogate"):
            won = []
            for number in range(3):
                episode = episode_of(family, HELD_OUT + 100 * unit + number, side, unit)
                pupil = Student(network)
                while not episode.over:
                    features = pupil.features(episode.observation())
                    command = pupil(features)
                    pupil.remember(command)
                    episode.tick(command)
                won.append(episode.success)
                if side == "surrogate":
                    found["incidents"] += len(episode.guard.incidents)
            found["simulation" if side == "sim" else "device"].append(float(np.mean(won)))
    return found


def words(shares: list[float]) -> str:
    """Return a mean over units with 95 percent by Student's t."""
    values = np.array(shares)
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    mean = values.mean()
    return f"{mean:.2f} [{max(0.0, mean - half):.2f}, {min(1.0, mean + half):.2f}]"


def main() -> None:
    """Teach, test, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--family", default="pick_place", choices=("push", "pick_place"))
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--units", type=int, default=12)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    network = teach(given.family, given.minutes)
    torch.save(network.state_dict(), given.out / f"{given.family}.pt")
    found = test(given.family, network, given.units) | {"minutes": given.minutes}
    (given.out / f"{given.family}.json").write_text(json.dumps(found, indent=1))
    print(f"{given.family}: simulation {words(found['simulation'])}", end=", ")
    print(f"device {words(found['device'])}, {found['incidents']} incidents")


if __name__ == "__main__":
    main()
