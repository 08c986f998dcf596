"""64 sessions for trainers at once beside one: steps a second, and what opening them takes.

    python benchmarks/open_sessions.py             writes docs/tables/open_sessions.md
    python benchmarks/open_sessions.py --dry-run   printed only

Each session is played by a thread of its own with the oracle's calls. A model that answers takes a
fixed time for each call; the row without one is bound by the processor, which threads of Python
share. Rounds of one and of 64 sessions take turns; the best of some.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import owa_bench
from owa_bench import bounded_json
from owa_bench.drift import timeline as timelines
from owa_bench.runs import assembly
from owa_bench.runs.episode_session import EpisodeSession

TABLE = Path(__file__).resolve().parents[1] / "docs" / "tables" / "open_sessions.md"
SUITE, SEED = "toolquest", 7
OPTIONS = {"tier": 1, "family": "restock", "delta": 0.25}
SESSIONS = 64
ROUNDS = 3
EPISODES = {0.0: 8, 0.05: 1, 0.5: 1}  # by seconds an answer: episodes of a round with one session


class Row(NamedTuple):
    """Steps a second of one session and of all, at one time for an answer."""

    answer_s: float
    one: float
    all: float


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


def speed(count: int, calls: Sequence[dict], episodes: int, answer_s: float) -> float:
    """Return the steps a second of so many sessions, a thread each; resets are in it."""
    opened = owa_bench.open_group(SUITE, SEED, count, **OPTIONS)
    with opened as group, ThreadPoolExecutor(count) as threads:
        began = time.perf_counter()
        jobs = [threads.submit(play, each, calls, episodes, answer_s) for each in group]
        steps = sum(job.result() for job in jobs)
        return steps / (time.perf_counter() - began)


def rows(calls: Sequence[dict]) -> Iterable[Row]:
    """Yield a row for each time that an answer takes."""
    for answer_s, episodes in EPISODES.items():
        pairs = [
            (speed(1, calls, episodes, answer_s), speed(SESSIONS, calls, 1, answer_s))
            for _ in range(ROUNDS)
        ]
        yield Row(answer_s, max(one for one, _ in pairs), max(many for _, many in pairs))


def opening_ms(make: Callable[[], object]) -> float:
    """Return the milliseconds of an opening, best of some."""
    seen = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        opened = make()
        seen.append(1e3 * (time.perf_counter() - began))
        opened.close()  # type: ignore[attr-defined]
    return min(seen)


def page() -> str:
    """Return the page of the table."""
    calls = script()
    one_ms = opening_ms(lambda: owa_bench.open_episode(SUITE, SEED, **OPTIONS))
    all_ms = opening_ms(lambda: owa_bench.open_group(SUITE, SEED, SESSIONS, **OPTIONS))
    lines = [
        f"# {SESSIONS} sessions at once",
        "",
        "Made by `python benchmarks/open_sessions.py`: ToolQuest, restock, tier 1, delta .25; the "
        f"oracle's {len(calls)} calls in",
        "each session, a thread each, resets among them; both columns from one run. Read the "
        "ratios: machines differ.",
        "",
        f"| an answer takes | steps/s, one session | steps/s, {SESSIONS} sessions | ratio |",
        "|---|---|---|---|",
    ]
    for row in rows(calls):
        took = f"{row.answer_s:g} s" if row.answer_s else "no time"
        ratio = row.all / row.one
        lines.append(f"| {took} | {row.one:,.1f} | {row.all:,.1f} | {ratio:.2f} |")
    lines += [
        "",
        "| opened | ms | ms a session |",
        "|---|---|---|",
        f"| `open_episode` | {one_ms:.1f} | {one_ms:.1f} |",
        f"| `open_group` of {SESSIONS} | {all_ms:.1f} | {all_ms / SESSIONS:.1f} |",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the page, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args()
    text = page()
    print(text)
    if not given.dry_run:
        TABLE.write_text(text)


if __name__ == "__main__":
    main()
