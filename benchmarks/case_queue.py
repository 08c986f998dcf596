"""Which look-ups pay in a queue of credit requests: MaskablePPO beside fixed orders.

    python benchmarks/case_queue.py [--steps N] [--cases N] [--tests N] [--small]

Trains on `owa_bench/CaseQueueFast-v1` at level 2, cases from seed 0 on, and plays held-out cases
from seed 10,000 on with the best action. Fixed orders are found by search on training cases: one
order for all requests, and one for each ground. The policy first imitates the best fixed order for
all, then goes on by MaskablePPO. "Knows what changes" makes the cheapest look-ups that give the
right answer, which nobody can know before. Writes docs/tables/case_queue.md: mean quality with 95 %
t intervals over cases; differences are paired by case.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from owa_bench.company.kinds.contract import LEVELS
from owa_bench.company.language.credits_policy import GROUNDS
from owa_bench.envs.casework.queue.env import (
    HAND_IN,
    LOOK_AGAIN,
    MINUTES,
    NEXT,
    SETTLE,
    CaseQueueEnv,
)
from owa_bench.envs.casework.queue.look_ups import LOOK_UPS, SHARED
from owa_bench.scoring.statistics.distributions import t_quantile
from owa_bench.seeding import stream

TABLE = Path(__file__).parents[1] / "docs" / "tables" / "case_queue.md"
LEVEL, HELD_OUT = 2, 10_000
NUMBERS = range(len(LOOK_UPS))
GAMMA, SCALE, LANES = 0.997, 20.0, 32  # SCALE: of rewards, for the network's value
OWN = [n for n in NUMBERS if not SHARED >> n & 1]
Order = tuple[int, ...]
Player = Callable[[CaseQueueEnv, np.ndarray], int]


class Orders(NamedTuple):
    """Look-ups in a fixed order by the ground of the request.

    A reserve of time is kept for what is not settled and for the hand-in. With `careless_first`
    every request is settled at once before the first look-up.
    """

    by_ground: tuple[Order, ...]
    careless_first: bool = False
    reserve: bool = True

    def __call__(self, env: CaseQueueEnv, _: np.ndarray) -> int:
        """Return the next action."""
        masks, left = env.action_masks(), env.minutes_left
        if left <= MINUTES[HAND_IN] + 1:
            return HAND_IN if masks[HAND_IN] else NEXT
        if self.careless_first and env.unsettled:
            return SETTLE if masks[SETTLE] else NEXT
        free = left - MINUTES[HAND_IN] - (env.unsettled if self.reserve else 0)
        if env.unread and free >= MINUTES[LOOK_AGAIN]:
            return LOOK_AGAIN
        ground = GROUNDS.index(env.case.requests[env.place].letter.ground)
        for number in self.by_ground[ground]:
            if masks[number] and free >= MINUTES[number]:
                return number
        if masks[SETTLE]:
            return SETTLE
        if env.waiting:
            return NEXT
        if self.careless_first and self._left_over(env):
            return NEXT
        return HAND_IN

    def _left_over(self, env: CaseQueueEnv) -> bool:
        """Return whether a request lacks a look-up of its order."""
        return any(
            not env.looked(place) >> number & 1
            for place, request in enumerate(env.case.requests)
            for number in self.by_ground[GROUNDS.index(request.letter.ground)]
        )


def for_all(order: Iterable[int], **options: bool) -> Orders:
    """Return one order for requests of every ground."""
    return Orders((tuple(order),) * len(GROUNDS), **options)


class KnowsWhatChanges:
    """Makes the cheapest look-ups that give the right answer and the right exceptions."""

    def __init__(self) -> None:
        self._plans: dict[int, list[int]] = {}

    def __call__(self, env: CaseQueueEnv, _: np.ndarray) -> int:
        """Return the next action."""
        masks, left, case = env.action_masks(), env.minutes_left, env.case
        if id(case) not in self._plans:
            self._plans = {id(case): [self._plan(case, n) for n in range(len(case.requests))]}
        if left <= MINUTES[HAND_IN] + 1:
            return HAND_IN if masks[HAND_IN] else NEXT
        free = left - MINUTES[HAND_IN] - env.unsettled
        if env.unread and free >= MINUTES[LOOK_AGAIN]:
            return LOOK_AGAIN
        wanted = self._plans[id(case)][env.place] | SHARED
        for number in NUMBERS:
            if wanted >> number & 1 and masks[number] and free >= MINUTES[number]:
                return number
        if masks[SETTLE]:
            return SETTLE
        return NEXT if env.waiting else HAND_IN

    def _plan(self, case, place: int) -> int:
        known = frozenset(event.name for event in case.world.events)
        every = sum(1 << n for n in NUMBERS)
        right, found = case.answer(place, known, every), case.exceptions(place, every)
        for own in SETS:
            mask = own | SHARED
            if case.answer(place, known, mask) == right and case.exceptions(place, mask) == found:
                return own
        return every


SETS = sorted(
    (
        sum(1 << n for n in chosen)
        for k in range(len(OWN) + 1)
        for chosen in itertools.combinations(OWN, k)
    ),
    key=lambda mask: sum(MINUTES[n] for n in OWN if mask >> n & 1),
)


def play(player: Player, env: CaseQueueEnv, seeds: Iterable[int]) -> np.ndarray:
    """Return the quality of each case."""
    found = []
    for seed in seeds:
        seen, total, over = env.reset(options={"case": seed})[0], 0.0, False
        while not over:
            seen, reward, over, _, _ = env.step(player(env, seen))
            total += reward
        found.append(total)
    return np.array(found)


# --- search of fixed orders -----------------------------------------------------------


def neighbours(order: Order) -> Iterator[Order]:
    """Yield the orders with one look-up more, less or moved to another place."""
    for number in NUMBERS:
        rest = tuple(n for n in order if n != number)
        yield from ((*rest[:at], number, *rest[at:]) for at in range(len(rest) + 1))
        yield rest


def best_order(env: CaseQueueEnv, seeds: Sequence[int], rounds: int) -> Orders:
    """Return the best order for all requests: greedy both ways, then by its neighbours."""

    def value(orders: Orders) -> float:
        return play(orders, env, seeds).mean()

    found = [for_all((), careless_first=first) for first in (False, True)]
    for place, best in enumerate(found):
        for _ in NUMBERS:
            order = best.by_ground[0]
            more = [for_all((*order, n), careless_first=bool(place)) for n in NUMBERS]
            tried = {one: value(one) for one in more if len(set(one.by_ground[0])) > len(order)}
            top = max(tried, key=tried.__getitem__)
            if tried[top] <= value(best):
                break
            best = top
        found[place] = best
    best = max(found, key=value)
    least = value(best)
    for _ in range(rounds):
        for order in list(neighbours(best.by_ground[0])):
            one = for_all(order, careless_first=best.careless_first)
            if (gained := value(one)) > least:
                best, least = one, gained
    return best


def best_by_ground(
    env: CaseQueueEnv, seeds: Sequence[int], start: Orders, rounds: int = 1
) -> Orders:
    """Return the best order for each ground: a look-up is added or left out where that gains."""
    best, least = start, play(start, env, seeds).mean()
    for _ in range(rounds):
        for ground, number in itertools.product(range(len(GROUNDS)), NUMBERS):
            old = best.by_ground[ground]
            new = tuple(n for n in old if n != number) if number in old else (*old, number)
            changed = (*best.by_ground[:ground], new, *best.by_ground[ground + 1 :])
            one = best._replace(by_ground=changed)
            if (gained := play(one, env, seeds).mean()) > least:
                best, least = one, gained
    return best


# --- training -------------------------------------------------------------------------


class Lessons(NamedTuple):
    """What a teacher did: observations, masks, actions and discounted rewards, by step."""

    seen: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    returns: np.ndarray


def lessons(teacher: Player, env: CaseQueueEnv, seeds: Iterable[int]) -> Lessons:
    """Return what a teacher does in cases in which one action in ten is drawn at random."""
    rng = stream(0, "lessons")
    rows, returns = [], []
    for seed in seeds:
        seen, over, rewards = env.reset(options={"case": seed})[0], False, []
        while not over:
            masks, action = env.action_masks(), teacher(env, seen)
            rows.append((seen, masks, action))
            others = np.flatnonzero(masks[:HAND_IN])  # a hand-in would end it
            drawn = len(others) and rng.random() < 0.1
            played = int(rng.choice(others)) if drawn else action
            seen, reward, over, _, _ = env.step(played)
            rewards.append(SCALE * reward)
        total, back = 0.0, []
        for reward in reversed(rewards):
            total = reward + GAMMA * total
            back.append(total)
        returns += reversed(back)
    return Lessons(*map(np.array, zip(*rows, strict=True)), np.array(returns, np.float32))


def imitate(model: Any, taught: Lessons, updates: int) -> None:
    """Let a policy do as a teacher did, nine times of ten, and value what came of it."""
    import torch

    policy, rng = model.policy, stream(0, "imitation")
    optimiser = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for _ in range(updates):
        rows = rng.integers(len(taught.actions), size=256)
        seen, masks = torch.as_tensor(taught.seen[rows]), taught.masks[rows]
        actions = torch.as_tensor(taught.actions[rows])
        values, likely, _ = policy.evaluate_actions(seen, actions, action_masks=masks)
        chances = policy.get_distribution(seen, action_masks=masks).distribution.logits
        open_ones = torch.as_tensor(masks, dtype=torch.float32)
        open_ones[:, HAND_IN] = 0.0
        even = (chances.clamp(min=-20.0) * open_ones).sum(1) / open_ones.sum(1).clamp(min=1.0)
        misses = (values[:, 0] - torch.as_tensor(taught.returns[rows])) ** 2
        loss = (0.1 * misses - 0.9 * likely - 0.1 * even).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def pupil_of(teacher: Player, options: dict[str, int], steps: int) -> Any:
    """Return a MaskablePPO model whose policy imitates a teacher, to be trained for some steps."""
    import torch
    from gymnasium.wrappers import TransformReward
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)

    def lane() -> TransformReward:
        return TransformReward(CaseQueueEnv(**options), lambda reward: SCALE * reward)

    lanes = DummyVecEnv([lane] * LANES)
    lanes.seed(0)
    model = MaskablePPO(
        "MlpPolicy",
        lanes,
        n_steps=max(8, min(128, steps // LANES)),
        batch_size=256,
        n_epochs=6,
        gamma=GAMMA,
        gae_lambda=0.95,
        learning_rate=lambda left: 5e-4 * left,
        ent_coef=0.002,
        seed=0,
        device="cpu",
    )
    taught = lessons(teacher, CaseQueueEnv(**options), range(options["cases"]))
    imitate(model, taught, 1_500 if steps > 10_000 else 20)
    return model


def best_action(policy: Any) -> Player:
    """Return the player of a policy's likeliest open action."""

    def player(env: CaseQueueEnv, seen: np.ndarray) -> int:
        return int(policy.predict(seen, action_masks=env.action_masks(), deterministic=True)[0])

    return player


# --- the table ------------------------------------------------------------------------


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return a mean and its 95 % t interval."""
    half = t_quantile(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean(), values.mean() - half, values.mean() + half


def words(values: np.ndarray) -> str:
    """Return a mean with its interval."""
    return "{:.3f} [{:.3f}, {:.3f}]".format(*interval(values))


def named(order: Order) -> str:
    """Return an order in words."""
    return ", ".join(LOOK_UPS[n].name for n in order) or "nothing"


def table(given: argparse.Namespace) -> str:
    """Search, train and play; return the table."""
    options = {"level": given.level, "cases": given.cases}
    env = CaseQueueEnv(**options)
    began = time.process_time()
    seeds = range(min(given.search, given.cases))
    fixed = best_order(env, seeds, given.rounds)
    grounds = best_by_ground(env, seeds, fixed, 2 * given.rounds)
    searched = time.process_time() - began
    held_out = range(HELD_OUT, HELD_OUT + given.tests)
    learnt = f"MaskablePPO, {given.steps:,} steps"
    players: dict[str, Player] = {
        "settle at once": for_all(()),
        "every look-up, until time is out": for_all(NUMBERS, reserve=False),
        "every look-up, with a reserve to settle": for_all(NUMBERS),
        "best fixed order": fixed,
        "best order for each ground": grounds,
        "knows what changes": KnowsWhatChanges(),
    }
    found = {name: play(player, env, held_out) for name, player in players.items()}
    began = time.process_time()
    model = pupil_of(fixed, options, given.steps)
    player = best_action(model.policy)
    found["a network that imitates the best fixed order"] = play(player, env, held_out)
    model.learn(given.steps)
    found[learnt] = play(player, env, held_out)
    trained = time.process_time() - began
    ours = found[learnt]
    lines = [
        f"`python benchmarks/case_queue.py`: level {given.level}, {given.tests} held-out cases; "
        f"{given.cases} cases to train on, {len(seeds)} of them to search on; "
        f"{searched:.0f} CPU seconds of search, {trained:.0f} of training, one core.",
        "",
        "| who | quality | MaskablePPO less this one, paired |",
        "|---|---|---|",
        *(
            f"| {name} | {words(values)} | {'' if values is ours else words(ours - values)} |"
            for name, values in found.items()
        ),
        "",
        f"Best fixed order: {named(fixed.by_ground[0])}"
        f"{', after all were settled at once' if fixed.careless_first else ''}.",
        "",
        "Best order for each ground: "
        + "; ".join(f"{g}: {named(o)}" for g, o in zip(GROUNDS, grounds.by_ground, strict=True))
        + ".",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--cases", type=int, default=48)
    parser.add_argument("--search", type=int, default=24, help="training cases to search on")
    parser.add_argument("--rounds", type=int, default=1, help="of neighbours in the search")
    parser.add_argument("--tests", type=int, default=80)
    parser.add_argument("--level", type=int, default=LEVEL, choices=LEVELS)
    parser.add_argument("--small", action="store_true", help="to see that it works; writes nothing")
    given = parser.parse_args()
    least = min(given.steps, given.cases, given.search, given.rounds + 1, given.tests)
    if least < 1:
        parser.error("--steps, --cases, --search and --tests must be at least 1, --rounds 0")
    if find_spec("sb3_contrib") is None:  # before the search, which takes minutes
        parser.error("sb3-contrib is missing: pip install 'owa_bench[rl]'")
    if given.small:
        given.steps, given.cases, given.search, given.tests = 1_024, 2, 2, 3
        given.level, given.rounds = 1, 0
    text = table(given)
    print(text)
    if not given.small:
        TABLE.write_text("# Which look-ups pay\n\n" + text)


if __name__ == "__main__":
    main()
