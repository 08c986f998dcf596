"""Output of runs: the plan before it is played, progress, how attempts ended."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owa_bench import discovery
from owa_bench.cli.console import ERR, OUT, as_json, figure_text, note, progress, table
from owa_bench.drift.calendar import Calendar
from owa_bench.drift.timeline import own_schedule
from owa_bench.records import price_card, protocol
from owa_bench.records.price_card import INPUT, OUTPUT, PriceCard
from owa_bench.runs.plan.budget import USD
from owa_bench.runs.plan.request import (
    PlanDraft,
    Progress,
    Request,
    RunEstimate,
    RunOptions,
    draft_plan,
    estimate,
)
from owa_bench.runs.plan.sample_sizes import sample_sizes
from owa_bench.runs.plan.tokens import CHARACTERS, DETOURS, THOUGHT, episode_tokens, total

if TYPE_CHECKING:
    from owa_bench.reports.read.pilot import PilotEstimate, RangedAmount
    from owa_bench.scoring.validation.power import GatePower, LevelPower


# --- dry run --------------------------------------------------------------------------


_MICRO = 10**6
_HOUR_S = 3600.0
_TIME = "time"  # what the table of a pilot calls hours


def print_estimate(
    request: Request, run_options: RunOptions, *, json: bool, like: Path | None = None
) -> None:
    """Print episodes, time, the most a request can cost, and the power of gates and levels.

    Nothing is played. Power is shown of batteries that give a level.

    Args:
        request: What would be played; a wrong one raises as in `draft_plan`.
        run_options: How it would be played.
        json: Whether it is printed as JSON.
        like: A pilot, by which requests, tokens, money and hours are reckoned; None: none.
    """
    draft = draft_plan(request, run_options.folder, in_process=run_options.in_process)
    found = estimate(draft, run_options)
    powers, levels = _powers(draft)
    pilot = None if like is None else _by_pilot(draft, run_options, like)
    if json:
        gates = [power._asdict() for power in powers]
        places = [level._asdict() for level in levels]
        operators = _installed_operators(draft)
        tokens = [one._asdict() | {"each": one.each and one.each._asdict()} for one in found.tokens]
        beside: dict[str, Any] = {
            "tokens": tokens,
            "gates": gates,
            "levels": places,
            "operators": operators,
        }
        if pilot is not None:
            beside["like"] = pilot
        as_json({**found._asdict(), **beside})
        return
    record, texts = found.record_bytes / _MICRO, found.transcript_bytes / _MICRO
    table("would be played", ("agent", "episodes"), [*found.by_arm.items()])
    apart = ", tokens left out" if found.unknown else ""
    rows = [
        ("episodes", found.episodes),
        ("agents that answer at once", f"about {_duration(found.scripted_s)}"),
        ("every deadline used up", f"{_duration(found.longest_s)} at most"),
        ("calls and ceilings", _money(found.cost_micro_usd, f"USD at most{apart}")),
        ("run directory", f"{record:,.1f} MB, with transcripts {texts:,.1f} more"),
    ]
    table("would take", ("", ""), rows)
    if pilot is not None:
        _print_pilot(pilot, draft, run_options)
    if pilot is None or pilot.unknown:
        _print_tokens(found)
    if found.unknown:
        OUT.print(
            f"No ceiling bounds {', '.join(found.unknown)}: "
            f"--budget {found.unknown[0]}=AMOUNT sets one."
        )
    if found.supervisor_min:
        price = _money(found.supervisor_micro_usd, "USD on the card")
        OUT.print(
            f"The supervisor is simulated and paid by nobody: {found.supervisor_min:,.0f} minutes "
            f"at most, {price}. They are in no sum above; axis $ counts those that an agent takes."
        )
    for suite, by_key in _installed_operators(draft).items():
        names = ", ".join(f"{key} ({package})" for key, package in by_key.items())
        OUT.print(f"Operators of other packages in nested drift of {suite}: {names}")
    if powers:
        _print_powers(powers, levels, protocol.load(draft.protocol))


def announce(found: RunEstimate) -> None:
    """Say in a line how many episodes a run will play, and what they take, before the first.

    Args:
        found: The estimate of the run.
    """
    arms = ", ".join(f"{count:,} of {arm}" for arm, count in found.by_arm.items())
    words = [f"playing {_with_noun(found.episodes, 'episode')}: {arms}"]
    tasks = f"{_with_noun(found.tasks, 'task')} of {_with_noun(found.families, 'family')}"
    settings = [_with_noun(found.tiers, "tier")]
    settings.append(_with_noun(found.magnitudes, "drift magnitude"))
    settings.append(_with_noun(found.budgets, "budget") + " of help")
    words.append(", ".join((tasks, *settings)))
    words.append(f"about {_duration(found.scripted_s)} if agents answer at once")
    known = [use for use in found.tokens if use.each]
    tokens = sum(use.episodes * (use.each.input + use.each.output) for use in known if use.each)
    cost = total(use.cached_micro_usd for use in known)
    if known:
        words.append(
            f"as chat models about {tokens / _MICRO:,.1f} million tokens, {_money(cost, 'USD')}"
        )
    ERR.print(f"{'; '.join(words)} (--dry-run says more)")


def _with_noun(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 family" and "2 families"."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"


def _installed_operators(draft: PlanDraft) -> dict[str, dict[str, str]]:
    """Return the packages of other people's operators, by suite that drifts and key."""
    operators: dict[str, dict[str, str]] = {}
    for name in sorted({e.suite for e in draft.plan.entries if e.delta != 0.0}):
        suite = discovery.get("suites", name)
        own = isinstance(own_schedule(suite), Calendar)
        if own and (by_key := discovery.installed_operators(suite.card.domain)):
            operators[name] = by_key
    return operators


def _powers(draft: PlanDraft) -> "tuple[tuple[GatePower, ...], tuple[LevelPower, ...]]":
    """Return the power of gates and of levels, nothing where the plan gives no level."""
    if draft.plan.battery is None:
        return (), ()
    from owa_bench.scoring.validation.power import gate_powers, level_powers  # brings SciPy

    rules = protocol.load(draft.protocol)
    powers = gate_powers(rules, sample_sizes(draft.plan, rules.projects.suite))
    return powers, level_powers(rules, powers)


def _print_powers(
    powers: "tuple[GatePower, ...]", levels: "tuple[LevelPower, ...]", rules: protocol.Protocol
) -> None:
    numbers = rules.statistics
    decided = [one for one in powers if one.power is not None]
    table(
        f"power of the gates, for an agent at required + {numbers.power_margin:g}",
        ("level", "gate", "required", "true", "planned", "power"),
        [
            (
                f"AAI-{one.level}",
                one.gate,
                figure_text(one.required),
                figure_text(one.true),
                str(one.planned),
                f"{one.power:.2f}",
            )
            for one in decided
        ],
    )
    weak = [f"AAI-{one.level} {one.gate}" for one in decided if (one.power or 0.0) < numbers.power]
    OUT.print(
        "planned: tasks; families for G; instances of SelfRev for R; episodes a family-day for "
        "kappa; tasks a lane for maintenance. Gates that no count decides are left out."
    )
    if weak:
        OUT.print(f"Below {numbers.power:g}: {', '.join(weak)}.")
    OUT.print("Power of the levels, their gates taken as independent:")
    for level in levels:
        OUT.print(f"  {level.words()}")


def _print_tokens(found: RunEstimate) -> None:
    """Print what the run would cost if the agents were chat models, by suite and tier."""
    rows = []
    for use in found.tokens:
        each = use.each
        shown = [f"{part:,.0f}" for part in each[:3]] if each else ["?"] * 3
        costs = (use.cached_micro_usd, use.plain_micro_usd)
        steps = f"{each.steps:.0f}" if each else "?"
        money = [_money(cost, "") for cost in costs]
        rows.append((f"{use.suite} {use.tier}", f"{use.episodes:,}", steps, *shown, *money))
    head = ("suite, tier", "episodes", "steps", "read", "cached", "written", "USD", "no cache")
    table("tokens an episode, if the agents were chat models", head, rows)
    known = [use for use in found.tokens if use.each]
    cached = total(use.cached_micro_usd for use in known)
    plain = total(use.plain_micro_usd for use in known)
    left = ", ".join(f"{use.suite} {use.tier}" for use in found.tokens if use.each is None)
    if left:
        OUT.print(f"Not estimated, because the card does not say what an episode is: {left}.")
    OUT.print(
        f"In all {_money(cached, 'USD')} with the provider's cache, {_money(plain, 'USD')} "
        "without. An estimate: brief, tools and conversation are resent at each step. What the "
        "answer key was shown and wrote is measured (the suites' cards), and set are "
        f"{CHARACTERS:g} characters a token, {DETOURS:g} steps of a model for each of the answer "
        f"key's, and {THOUGHT:g} tokens of thought a step."
    )


def _by_pilot(draft: PlanDraft, run_options: RunOptions, pilot: Path) -> "PilotEstimate":
    """Return what a plan takes by a pilot, with the cards for tiers that it did not play."""
    from owa_bench.reports.read.pilot import pilot_estimate  # brings SciPy

    prices = price_card.load(draft.price_card)
    lanes = run_options.workers * run_options.concurrency
    return pilot_estimate(
        draft.plan, pilot, lanes=lanes, card=lambda *cell: _card_amounts(prices, *cell)
    )


def _card_amounts(prices: PriceCard, suite: str, tier: int) -> dict[str, float] | None:
    """Return what a card says that an episode takes, by the measure it stands for."""
    from owa_bench.reports.read import pilot

    each = episode_tokens(suite, tier)
    if each is None:
        return None
    spent = [prices.cost(INPUT, each.input), prices.cost(OUTPUT, each.output)]
    by_steps = (pilot.REQUESTS, pilot.HOURS, pilot.SUPERVISOR)
    return {
        **dict.fromkeys(by_steps, each.steps),
        pilot.READ: each.input,
        pilot.WRITTEN: each.output,
        pilot.DOLLARS: float(total(spent) or each.steps),
    }


def _print_pilot(found: "PilotEstimate", draft: PlanDraft, run_options: RunOptions) -> None:
    """Print what a plan takes by a pilot, by suite and in all, each with its range."""
    from owa_bench.reports.read import pilot

    # A measure that nobody has any of is a row of zeros.
    used = {name for row in found.rows for name, it in row.amounts.items() if it.estimate != 0}
    measures = [name for name in pilot.MEASURES if name in used]
    shown = found.rows[:1] if len(found.rows) == 2 else found.rows  # of one suite all is the same
    rows = []
    for row in shown:
        of = [row.suite, f"{row.episodes:,}"]
        for name in measures:
            rows.append((*of, _TIME if name == pilot.HOURS else name, *_ranged(name, row.amounts)))
            of = ["", ""]
    columns = ("suite", "episodes", "takes", "about", "95 percent")
    table(f"would take, by {found.pilot}", columns, rows)
    lanes = run_options.workers * run_options.concurrency
    at_once = "one episode at a time" if lanes == 1 else f"{lanes} episodes at once"
    OUT.print(
        "95 percent: over the pilot's tasks and those that are drawn. Time: "
        f"{at_once}, at the pilot's pace. USD: the agents' own, by the pilot's price card"
        + ("; the supervisor is simulated and paid by nobody." if pilot.SUPERVISOR in used else ".")
    )
    if any(entry.lane is not None for entry in draft.plan.entries):
        OUT.print("Episodes of a lane follow each other: it takes longer where lanes are few.")
    if found.unknown:
        OUT.print(f"Not known from the pilot, and in no sum: {', '.join(found.unknown)}.")
    bare = {
        amount.reason: f"{row.suite}, {name}"
        for row in shown
        for name, amount in row.amounts.items()
        if amount.low is None and name in measures
    }
    for reason, where in bare.items():
        note(f"no range, such as of {where}: {reason}", OUT)
    for words in found.notes:
        note(words, OUT)


def _ranged(measure: str, amounts: "Mapping[str, RangedAmount]") -> tuple[str, str]:
    """Return the estimate of a measure, and its range."""
    from owa_bench.reports.read.pilot import HOURS

    def words(value: float) -> str:
        return _duration(value * _HOUR_S) if measure == HOURS else _short(value)

    amount = amounts[measure]
    if amount.estimate is None:
        return "unknown", ""
    if amount.low is None or amount.high is None:
        return words(amount.estimate), "no range"
    return words(amount.estimate), f"{words(amount.low)} to {words(amount.high)}"


def _short(value: float) -> str:
    """Return an amount in two digits behind the point, more where it is small, none where large."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.2g}"


def _money(cost: int | None, unit: str) -> str:
    """Return micro-USD in words."""
    if cost is None:
        return "unknown"
    return f"{cost / _MICRO:,.2f} {unit}".rstrip()


def _duration(seconds: float) -> str:
    """Return seconds as a time that people read."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


# --- progress -------------------------------------------------------------------------


_FAILED = ("agent_raised", "agent_timeout", "infrastructure")
_MINUTE_S = 60.0


@contextmanager
def run_progress(outcomes: "Outcomes") -> Iterator[Callable[[Progress], None]]:
    """Show how far a run is, as long as it is played.

    A terminal has a bar; anything else, such as a log, gets a line a minute.

    Args:
        outcomes: Takes every closed attempt.
    Yields: The callback of closed attempts.
    """
    if not ERR.is_terminal:
        with _minute_lines(outcomes):
            yield outcomes.take
        return
    with progress() as bar:
        task = bar.add_task("playing", total=None)

        def report(news: Progress) -> None:
            outcomes.take(news)
            mean = "" if outcomes.mean is None else f"mean quality {outcomes.mean:.2f}"
            text = f"{news.entry.arm} {news.entry.family} T{news.entry.tier}  {mean}"
            bar.update(task, completed=news.done, total=news.total, description=text)

        yield report


@contextmanager
def _minute_lines(outcomes: "Outcomes") -> Iterator[None]:
    """Print a line on standard error every minute."""
    ended, begun = threading.Event(), time.monotonic()

    def tell() -> None:
        while not ended.wait(_MINUTE_S):
            ERR.print(outcomes.line(time.monotonic() - begun))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Outcomes:
    """Outcomes and qualities of the attempts that closed, arm by arm."""

    def __init__(self) -> None:
        self._ends: dict[str, Counter[str]] = {}
        self._quality: dict[str, list[float]] = {}
        self._first: dict[str, str] = {}
        self._unplayed = Counter[str]()
        self._helped = Counter[str]()
        self._last: Progress | None = None
        self._before = 0  # episodes that were complete when this call began

    def take(self, news: Progress) -> None:
        """Count one closed attempt."""
        arm, end = news.entry.arm, news.end
        complete = news.leaf.status == "complete"
        if self._last is None:
            self._before = news.done - complete
        self._last = news
        if complete and end.outcome == "truncated" and not end.steps:
            self._unplayed[end.reason.removeprefix("budget:")] += 1
        self._ends.setdefault(arm, Counter())[end.outcome] += 1
        values = self._quality.setdefault(arm, [])
        if complete:
            values.append(end.q_state)
            self._helped[arm] += news.helped
        if end.outcome in _FAILED:
            reason = " ".join(end.reason.split())
            self._first.setdefault(arm, f"{end.outcome}: {reason}")

    def line(self, elapsed_s: float) -> str:
        """Return how far the run is, in a line.

        Args:
            elapsed_s: Seconds since it began to play.
        Returns: Episodes, failures, cost and the time that is left.
        """
        minutes, last = round(elapsed_s / _MINUTE_S), self._last
        if last is None:
            return f"{minutes} min: no episode has ended yet"
        failed = sum(ends[name] for ends in [*self._ends.values()] for name in _FAILED)
        played = last.done - self._before
        left = "time left unknown"
        if played:
            left_s = elapsed_s / played * (last.total - last.done)
            left = f"about {max(1, round(left_s / _MINUTE_S))} min left"
        return (
            f"{minutes} min: {last.done} of {last.total} episodes, "
            f"{failed} attempts failed, {last.usd:,.2f} USD, {left}"
        )

    @property
    def mean(self) -> float | None:
        """Mean quality of all that counted, None before the first."""
        return _mean([value for each in self._quality.values() for value in each])

    def as_data(self) -> list[dict[str, Any]]:
        """Return a row per arm, for machines."""
        return [
            {
                "arm": arm,
                "episodes": len(self._quality[arm]),
                "helped": self._helped[arm],
                "mean_quality": _mean(self._quality[arm]),
                "outcomes": dict(ends),
                "first_failure": self._first.get(arm),
            }
            for arm, ends in self._ends.items()
        ]

    def show(self) -> None:
        """Print the table, and the first failure of every arm that has one."""
        if not self._ends:
            return
        rows = []
        for row in self.as_data():
            mean = "" if row["mean_quality"] is None else f"{row['mean_quality']:.2f}"
            ends = ", ".join(f"{n} {name}" for name, n in row["outcomes"].items())
            rows.append((row["arm"], row["episodes"], row["helped"], mean, ends))
        columns = ("agent", "episodes", "helped", "mean quality", "how they ended")
        table("played now", columns, rows)
        for arm, words in self._first.items():
            ERR.print(f"first failure of {arm}: {words}")
        for meter, count in self._unplayed.items():
            spent = "" if self._last is None else f" (spent: {self._last.usd:,.4f} USD)"
            ERR.print(
                f"{count} episodes were not played: the run's budget of {meter} is "
                f"spent{spent if meter == USD else ''}"
            )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
