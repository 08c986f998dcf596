"""64 sessions for trainers at once beside one: steps a second, and what opening them takes.

ToolQuest, restock, tier 1, delta .25. Each session is played by a thread of its own with the
oracle's calls, resets among them. A model that answers takes a fixed time for each call; the
row without one is bound by the processor, which threads of Python share.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import speed

import owa_bench
from owa_bench import bounded_json
from owa_bench.drift import timeline as timelines
from owa_bench.runs import assembly
from owa_bench.runs.episode_session import EpisodeSession

SUITE, SEED = "toolquest", 7
OPTIONS = {"tier": 1, "family": "restock", "delta": 0.25}
EPISODES = {0.0: 8, 0.05: 1, 0.5: 1}  # by seconds an answer: episodes of a round with one session


def script() -> list[dict]:
    """Return the oracle's calls in the instance that is played."""
    with owa_bench.open_episode(SUITE, SEED, **OPTIONS) as session:
        timeline = timelines.source(SUITE)(session.instance)
    return [bounded_json.decode(text) for text in assembly.solution(SUITE, timeline).actions]


def play(session: EpisodeSession, calls: Sequence[dict], episodes: int, answer_s: float) -> int:
    """Play episodes; return the steps."""
    for _ in range(episodes):
        session.reset(SEED, instance=session.instance)
        for call in calls:
            if answer_s:
                time.sleep(answer_s)
            session.call(call["tool"], call["arguments"])
        if session.reward != 1.0:
            raise SystemExit(f"an episode has the reward {session.reward}")
    return episodes * len(calls)


def rate(count: int, calls: Sequence[dict], episodes: int, answer_s: float) -> float:
    """Return the steps a second of so many sessions, a thread each; resets are in it."""
    opened = owa_bench.open_group(SUITE, SEED, count, **OPTIONS)
    with opened as group, ThreadPoolExecutor(count) as threads:
        began = time.perf_counter()
        jobs = [threads.submit(play, each, calls, episodes, answer_s) for each in group]
        steps = sum(job.result() for job in jobs)
        return steps / (time.perf_counter() - began)


def opening_ms(make: Callable[[], object]) -> float:
    """Return the milliseconds of an opening."""
    began = time.perf_counter()
    opened = make()
    took = 1e3 * (time.perf_counter() - began)
    opened.close()  # type: ignore[attr-defined]
    return took


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield steps a second by the time of an answer, and the openings."""
    count, rounds = (4, 1) if given.small else (64, 3)
    calls, rows, many = script(), [], f"{count} sessions, steps/s"
    for answer_s, episodes in list(EPISODES.items())[: 2 if given.small else None]:
        ways = {
            "one": partial(rate, 1, calls, episodes, answer_s),
            "all": partial(rate, count, calls, 1, answer_s),
        }
        found = speed.in_turns(ways, rounds)
        figures = {
            "one session, steps/s": max(found["one"]),
            many: max(found["all"]),
            "x one": speed.ratio(found["all"], found["one"]),
        }
        rows.append(speed.Row(f"{answer_s:g} s" if answer_s else "no time", figures))
    yield speed.Table("an answer takes", rows)
    group = f"`open_group` of {count}"
    opened = speed.in_turns(
        {
            "`open_episode`": partial(
                opening_ms, partial(owa_bench.open_episode, SUITE, SEED, **OPTIONS)
            ),
            group: partial(
                opening_ms, partial(owa_bench.open_group, SUITE, SEED, count, **OPTIONS)
            ),
        },
        rounds,
    )
    rows = [
        speed.Row(name, {"ms": min(ms), "ms a session": min(ms) / (count if name == group else 1)})
        for name, ms in opened.items()
    ]
    yield speed.Table("opened", rows)


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
