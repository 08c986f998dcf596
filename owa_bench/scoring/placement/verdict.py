"""The verdict of a placement: gates, level words, looks and a picture of the bounds."""

import itertools
import math
from collections.abc import Iterator, Sequence
from statistics import stdev
from typing import NamedTuple

import msgspec
import numpy as np

from owa_bench.records.observables import Observables
from owa_bench.records.placement import APART_H, BAR, DATES, LOST_MOST, GateLine
from owa_bench.records.plan import Arm, arm_role
from owa_bench.records.score import (
    AgentVerdict,
    CellTable,
    Curve,
    FrontierScore,
    GateResult,
    Interval,
)
from owa_bench.scoring.axis import AXIS_NAMES
from owa_bench.scoring.gate import CONTROL_POLICY, NOT_PLACED, LevelPlacement, no_level
from owa_bench.scoring.placement.dates import WAIT, BatchDate, dates_words, is_below, passes
from owa_bench.scoring.placement.rule import CAP, GO_ON, LookState, PlacementRule
from owa_bench.scoring.placement.worlds import TraceEvidence
from owa_bench.scoring.verdict import descriptive

_NO_AXES = (
    "a placement decides gates and stops as soon as it can, so a mean over what it played is "
    "biased; `owa-bench run --battery full` plays a profile"
)
BOUNDS_PANEL = "bounds of the gates over episodes"
METHOD = "95 percent at all looks at once, by bets on worlds"
_LOOKS = (
    "look",
    "episodes",
    "gate",
    "worlds",
    "mean",
    "low",
    "high",
    "ln e",
    "ln e below",
    "answer",
)


_DATES = ("date", "from", "until", "gate", "worlds", "least", "most")


class PlacementFacts(NamedTuple):
    """What a placement rests on beside its counted traces.

    Attributes:
        key: Draws the order of the pool's worlds.
        lost: Entries with an attempt that failed after the env had taken an act of the agent's.
        starts: Entries with any attempt.
        number: Which of its submitter's challenged plans this is.
        plans: How many of theirs a verifier has challenged by now, at least `number`.
        dates: When each batch was played, by the plan's challenger.
        verifier: Their name in the registry of the report, "" for a key that it does not name.
        date: What the machine's own clock says of the first look.
        served: Whether the agent is a model behind an address, which can change from day to day.
    """

    key: str = ""
    lost: frozenset[int] = frozenset()
    starts: frozenset[int] = frozenset()
    number: int = 1
    plans: int = 1
    dates: tuple[BatchDate, ...] = ()
    verifier: str = ""
    date: str = ""
    served: bool = False


def looks_of(
    rule: PlacementRule, table: Observables, facts: PlacementFacts
) -> tuple[LookState, ...]:
    """Return every look that a placement's traces allow.

    Args:
        rule: The rule for its plan.
        table: Its counted episodes.
        facts: What else it rests on.
    """
    terms = rule.plan.placement
    depth = 1 if terms is None else terms.depth
    counted = table.take(~np.isin(table.index, sorted(facts.lost)))
    return rule.replay(TraceEvidence(counted, facts.lost, facts.starts, depth))


def placement_verdict(
    rule: PlacementRule, arm: Arm, table: Observables, facts: PlacementFacts, own_terms: str
) -> AgentVerdict:
    """Return the verdict on the agent of a placement.

    Args:
        rule: The rule for its plan.
        arm: Its arm.
        table: Its counted episodes.
        facts: What else it rests on.
        own_terms: What of the terms is the submitter's own: then no level is given.
    """
    looks = looks_of(rule, table, facts)
    last = looks[-1]
    lines = tuple(_at_price(line, facts.plans) for line in last.gates)
    gates = _gate_results(rule, lines, table)
    level = _level(rule, lines, looks, facts)
    if arm_role(arm) == "reference":
        level = no_level(CONTROL_POLICY)
    elif own_terms:
        text = f"{NOT_PLACED} (own terms: {own_terms}); by them {level.text}"
        level = level._replace(level=None, text=text)
    reason = _NO_AXES
    return AgentVerdict(
        arm=arm.name,
        agent=arm.agent,
        level=level.level,
        level_text=level.text,
        provisional=False,
        axes=(),
        indices=(),
        kappas=(),
        closures=(),
        gates=gates,
        frontier=FrontierScore(target=rule.protocol.frontier.success_share, reason=reason),
        tables=(_looks_table(looks), *_dates_table(looks, facts)),
        curves=_bound_curves(looks),
        cost_micro_usd=descriptive.money_totals(table),
        violations=descriptive.violations(table),
        episodes=sum(entry.arm == arm.name for entry in rule.plan.entries),
        counted=len(table),
        infrastructure=len(facts.starts) - len(table),
        warnings=tuple(_warnings(rule, looks, facts)),
    )


def _at_price(line: GateLine, plans: int) -> GateLine:
    """Return a gate at the bar of all plans that its submitter had challenged by now."""
    bar = max(line.bar, BAR * plans)
    short = line.status == "PASS" and line.log_pass < math.log(bar)
    status = "UNDECIDED" if short else line.status
    return msgspec.structs.replace(line, bar=bar, status=status)


def _level(
    rule: PlacementRule,
    lines: Sequence[GateLine],
    looks: Sequence[LookState],
    facts: PlacementFacts,
) -> LevelPlacement:
    """Return the level and its words; of an agent that can change, as its dates bear it out."""
    level = _by_gates(rule, lines, facts)
    if level.level is None or not (facts.served or rule.dates > 1):
        return level
    why = _dates_short(rule, lines, looks, facts)
    if not why:
        return level
    days = dict.fromkeys(date.words for date in facts.dates if any(date))
    when = " to ".join(dict.fromkeys((*days,)[:: max(len(days) - 1, 1)]))
    when = when or f"{facts.date or 'a date'} (nobody's witness)"
    name, _, rest = level.text.partition(", ")
    reason = "; ".join(filter(None, (why, rest)))
    return LevelPlacement(None, f"{name} as served on {when}, {NOT_PLACED} ({reason})", False, ())


def _dates_short(
    rule: PlacementRule,
    lines: Sequence[GateLine],
    looks: Sequence[LookState],
    facts: PlacementFacts,
) -> str:
    """Return what an agent's dates are short of, "" where they bear a level out."""
    if rule.dates < DATES:
        return f"its plan asks for one date, a served model needs {DATES}"
    if any(line.status == "BELOW" for line in lines):
        short = [line for line in lines if line.status == "BELOW"]
        short = [] if any(is_below(line, rule.dates) for line in short) else short
    else:
        short = [line for line in lines if not passes(line, rule.dates)]
    if short:
        return "; ".join(f"{line.gate} {dates_words(line, rule.dates)}" for line in short)
    batches = sum(bool(look.batch.worlds) for look in looks[:-1])
    held = sum(bool(date.begin and date.end) for date in facts.dates)
    if held < batches:
        return f"a verifier bears out {held} of {batches} dates"
    return "" if facts.verifier else "no registry names the verifier of its dates"


def _by_gates(
    rule: PlacementRule, lines: Sequence[GateLine], facts: PlacementFacts
) -> LevelPlacement:
    """Return the level and its words by the evidence alone."""
    below = [_words(line) for line in lines if line.status == "BELOW"]
    if below:
        floor = all(_is_floor(line, rule) for line in lines if line.gate in "GP")
        mild = any(line.gate == "tools" and line.status == "BELOW" for line in lines)
        words = "fixed automation" if floor and mild else f"below AAI-{rule.level}"
        return LevelPlacement(0, f"AAI-0, {words} ({'; '.join(below)})", False, ())
    open_ = [_words(line) for line in lines if line.status != "PASS"]
    if open_:
        text = f"undecided between AAI-{rule.level - 1} and AAI-{rule.level} ({'; '.join(open_)})"
        return LevelPlacement(None, text, False, ())
    name = f"AAI-{rule.level}"
    share = len(facts.lost) / max(len(facts.starts), 1)
    if share > LOST_MOST:
        why = f"{share:.1%} of its episodes were lost after they began, {LOST_MOST:.0%} may be"
        return LevelPlacement(None, f"{NOT_PLACED} ({why}); by its gates {name}", False, ())
    return LevelPlacement(rule.level, name, False, ())


def _is_floor(line: GateLine, rule: PlacementRule) -> bool:
    return line.mean is not None and line.mean <= rule.protocol.levels.automation_max


def _words(line: GateLine) -> str:
    mean = "nothing" if line.mean is None else f"{line.mean:.2f}"
    note = f", {line.note}" if line.note and line.gate == "tools" else ""
    return f"{line.gate} {mean} [{line.low:.2f}, {line.high:.2f}] against {line.required:.2f}{note}"


def _gate_results(
    rule: PlacementRule, lines: Sequence[GateLine], table: Observables
) -> tuple[GateResult, ...]:
    """Return the lines of the gates of the level."""
    names = table.attempt.tolist()
    evidence = (f"{names[0]} to {names[-1]}, {len(names)} attempts",) if names else ()
    slack = rule.protocol.statistics.gate_slack
    results = []
    for line in lines:
        shown = f"at least {line.required - slack:.2f} shown" if line.status == "PASS" else ""
        if line.gate == "G" and shown:
            shown = "at least that many families shown"
        short = ""
        if rule.dates > 1 and line.status != "UNDECIDED":
            short = dates_words(line, rule.dates)
        decides = passes(line, rule.dates) or is_below(line, rule.dates)
        results.append(
            GateResult(
                level=rule.level,
                gate="T" if line.gate == "tools" else line.gate,
                required=rule.required_words(line.gate),
                measured="nothing"
                if line.mean is None
                else f"{line.mean:.3f}, {line.worlds} worlds",
                interval=Interval(low=line.low, high=line.high, method=METHOD),
                status=line.status if decides else "UNDECIDED",
                evidence=evidence,
                reason="; ".join(filter(None, (shown, short, line.note))),
            )
        )
    return tuple(results)


def _episodes(looks: Sequence[LookState]) -> list[int]:
    """Return how many episodes had been announced and played at each look."""
    sizes = [len(look.batch.indices) for look in looks[:-1]]
    return [0, *itertools.accumulate(sizes)]


def _looks_table(looks: Sequence[LookState]) -> CellTable:
    """Return a row per gate and look: how much evidence decided what."""
    rows = tuple(
        (
            look.number,
            episodes,
            line.gate,
            line.worlds,
            line.mean,
            line.low,
            line.high,
            line.log_pass,
            line.log_below,
            line.status,
        )
        for look, episodes in zip(looks, _episodes(looks), strict=True)
        for line in look.gates
    )
    note = (
        f"A gate passes at ln e = {math.log(BAR):.3f} where the mean reaches what is required; "
        "points after a stop are biased and rank nobody."
    )
    return CellTable("looks", _LOOKS, rows, note)


def _dates_table(looks: Sequence[LookState], facts: PlacementFacts) -> Iterator[CellTable]:
    """Yield a row per date and gate, where the plan asks for several dates."""
    lines = [line for line in looks[-1].gates if line.dates]
    if not lines:
        return
    count = len(lines[0].dates)
    days = [*facts.dates, *itertools.repeat(BatchDate("", ""), count)][:count]
    rows = tuple(
        (place, day.begin, day.end, line.gate, date.worlds, date.least, date.most)
        for place, day in enumerate(days, 1)
        for line in lines
        for date in line.dates[place - 1 : place]
    )
    spreads = "; ".join(
        f"{line.gate} {stdev(date.least for date in line.dates):.3f}"
        for line in lines
        if len(line.dates) > 1
    )
    yield CellTable(
        "dates",
        _DATES,
        rows,
        "Means less what is required, lost worlds as 0 and as 1; of G the worlds bet on as of "
        "covered families, less their thresholds. From and until by the plan's verifier. "
        f"Spread between dates: {spreads or 'one date'}.",
    )


def _bound_curves(looks: Sequence[LookState]) -> tuple[Curve, ...]:
    """Return each gate's mean and bounds over episodes."""
    episodes = tuple(float(n) for n in _episodes(looks))
    curves = []
    for place, first in enumerate(looks[-1].gates):
        lines = [look.gates[place] for look in looks]
        required = first.required
        curves.append(
            Curve(
                name=f"{first.gate} {AXIS_NAMES.get(first.gate, '')}".strip(),
                x_label="episodes played",
                y_label=f"{first.gate}, required {required:.2f}",
                x=episodes,
                y=tuple(line.mean for line in lines),
                low=tuple(line.low for line in lines),
                high=tuple(line.high for line in lines),
                used=tuple(line.worlds for line in lines),
                note=METHOD,
                panel=BOUNDS_PANEL,
                beside=(required,) * len(lines),
                beside_label="required",
            )
        )
    return tuple(curves)


def _warnings(rule: PlacementRule, looks: Sequence[LookState], facts: PlacementFacts) -> list[str]:
    last, said = looks[-1], []
    if last.open:
        said.append(
            f"{len(last.open)} episodes of the announced batch never came: they count as lost, "
            "and --resume plays them"
        )
    elif last.decision == GO_ON:
        said.append(
            f"the rule would go on with {len(last.batch.indices)} episodes for "
            f"{', '.join(last.batch.reads)}: `owa-bench place --resume`"
        )
    elif last.decision == WAIT:
        said.append("it goes on at another date: `owa-bench place --resume`")
    elif last.decision == CAP:
        said.append("the pool is used up: this is all that its plan can decide")
    if facts.lost:
        said.append(
            f"{len(facts.lost)} episodes were lost after they had begun: each counts 0 for a PASS "
            "and 1 for a BELOW, whoever failed"
        )
    if facts.plans > 1:
        said.append(
            f"plan {facts.number} of {facts.plans} of its submitter: a gate passes at an e-value "
            f"of {BAR * facts.plans:g}"
        )
    if rule.dates > 1:
        said.append(
            f"a level needs {DATES} dates, each {APART_H} hours after the one before, and {DATES} "
            "more for each date against it"
        )
    elif facts.served:
        said.append(
            f"a served model: a level needs {DATES} dates that a verifier bears out "
            "(`owa-bench place --verifier URL`)"
        )
    return said
