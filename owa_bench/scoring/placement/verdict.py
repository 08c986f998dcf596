"""The verdict of a placement: gates, level words, looks and a picture of the bounds."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import stdev

import msgspec

from owa_bench.discovery import get
from owa_bench.records.observables import Observables
from owa_bench.records.placement import (
    APART_H,
    ASSURANCE,
    BAR,
    DATES,
    KIND_TRIES,
    LOST_MOST,
    GateLine,
    stage_gate,
)
from owa_bench.records.plan import arm_role
from owa_bench.records.score import (
    AgentVerdict,
    CellTable,
    Curve,
    FrontierScore,
    GateResult,
    Interval,
)
from owa_bench.scoring.axis import AXIS_NAMES
from owa_bench.scoring.gate import (
    CONTROL_POLICY,
    NOT_PLACED,
    Findings,
    LevelPlacement,
    no_level,
    norms_mark,
)
from owa_bench.scoring.placement.dates import WAIT, BatchDate, dates_words, is_below, passes
from owa_bench.scoring.placement.played import PlacementFacts, PlayedPlacement
from owa_bench.scoring.placement.rule import CAP, GO_ON, OPEN, TOO_FEW, LookState, PlacementRule
from owa_bench.scoring.placement.stages import LEVEL
from owa_bench.scoring.verdict import descriptive

_NO_AXES = (
    "a placement decides gates and stops as soon as it can, so a mean over what it played is "
    "biased; `owa-bench run --battery full` plays a profile"
)
BOUNDS_PANEL = "bounds of the gates over episodes"
METHOD = "95 percent at all looks at once, by bets on worlds"
STAGE_METHOD = "one-sided bounds of the one test over the tasks of a stage"
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


def placement_verdict(
    played: PlayedPlacement, own_terms: str, assurance: int | None
) -> AgentVerdict:
    """Return the verdict on the agent of a placement.

    Args:
        played: What was played, and what the rule makes of it.
        own_terms: What of the terms is the submitter's own: then no level is given.
        assurance: Rung of the assurance ladder.
    """
    rule, looks, facts = played.rule, played.looks, played.facts
    arm, table, plan = played.plan.arms[0], played.episodes, played.plan
    lines = tuple(_at_price(line, played) for line in looks[-1].gates)
    rung = _assurance_line(rule, assurance)
    level = _by_dates(played, lines, _level(played, lines, rung))
    if arm_role(arm) == "reference":
        level = no_level(CONTROL_POLICY)
    elif own_terms:
        text = f"{NOT_PLACED} (own terms: {own_terms}); by them {level.text}"
        level = level._replace(level=None, text=text)
    own = [entry.index for entry in plan.entries if entry.arm == arm.name]
    return AgentVerdict(
        arm=arm.name,
        agent=arm.agent,
        level=level.level,
        level_text=level.text,
        provisional=level.provisional,
        axes=(),
        indices=(),
        kappas=(),
        closures=(),
        gates=(
            *_gate_results(rule, lines, table),
            *((rung,) if rung and lines[-1].level > 1 else ()),
        ),
        frontier=FrontierScore(target=rule.protocol.frontier.success_share, reason=_NO_AXES),
        tables=(_looks_table(looks), *_dates_table(looks, facts)),
        curves=_bound_curves(looks),
        cost_micro_usd=descriptive.money_totals(table),
        violations=descriptive.violations(table),
        episodes=len(own),
        counted=len(table),
        infrastructure=len(facts.starts.intersection(own)) - len(table),
        warnings=tuple(_warnings(rule, looks, facts)),
    )


def _assurance_line(rule: PlacementRule, assurance: int | None) -> GateResult | None:
    """Return the line of the gate on the assurance ladder, None where no level asks for it."""
    for one in rule.protocol.gates:
        if one.gate == ASSURANCE and one.level <= rule.level:
            empty = Findings({}, {}, (), {}, assurance, (), rule.protocol)
            line: GateResult = get("gates", ASSURANCE).judge(one, empty)
            return line
    return None


def _at_price(line: GateLine, played: PlayedPlacement) -> GateLine:
    """Return a gate as all plans that its submitter had challenged by now ask for."""
    plans = played.facts.plans
    if line.stage:
        if plans == played.facts.number:
            return line
        judge = dataclasses.replace(played.judge, plans=plans, _known={})
        stages = (stage for stage in played.rule.stages if stage.name == line.stage)
        found = (one for stage in stages for one in judge(stage) if one.key == line.key)
        return next(found, line)
    bar = max(line.bar, BAR * plans)
    short = line.status == "PASS" and line.log_pass < math.log(bar)
    status = "UNDECIDED" if short else line.status
    return msgspec.structs.replace(line, bar=bar, status=status)


def _level(
    played: PlayedPlacement, lines: Sequence[GateLine], rung: GateResult | None
) -> LevelPlacement:
    """Return the level and its words."""
    rule, facts = played.rule, played.facts
    first = [line for line in lines if line.level == 1]
    below = [_words(line) for line in first if line.status == "BELOW"]
    if below:
        floor = all(_is_floor(line, rule) for line in first if line.gate in "GP")
        mild = any(line.gate == "tools" and line.status == "BELOW" for line in first)
        words = "fixed automation" if floor and mild else "below AAI-1"
        return LevelPlacement(0, f"AAI-0, {words} ({'; '.join(below)})", False, ())
    open_ = [_words(line) for line in first if line.status != "PASS"]
    if open_:
        text = f"undecided between AAI-0 and AAI-1 ({'; '.join(open_)})"
        return LevelPlacement(None, text, False, ())
    level = (
        _second(played, lines, rung) if rule.level > 1 else LevelPlacement(1, "AAI-1", False, ())
    )
    own = {e.index for e in rule.plan.entries if e.arm == rule.plan.arms[0].name}
    share = len(facts.lost & own) / max(len(facts.starts & own), 1)
    if share > LOST_MOST:
        why = f"{share:.1%} of its episodes were lost after they began, {LOST_MOST:.0%} may be"
        return LevelPlacement(None, f"{NOT_PLACED} ({why}); by its gates {level.text}", False, ())
    return level


def _by_dates(
    played: PlayedPlacement, lines: Sequence[GateLine], level: LevelPlacement
) -> LevelPlacement:
    """Return a level as the dates of an agent that can change bear it out."""
    rule, facts = played.rule, played.facts
    if level.level is None or not (facts.served or rule.dates > 1):
        return level
    why = _dates_short(played, lines)
    if not why:
        return level
    days = dict.fromkeys(date.words for date in facts.dates if any(date))
    when = " to ".join(dict.fromkeys((*days,)[:: max(len(days) - 1, 1)]))
    when = when or f"{facts.date or 'a date'} (nobody's witness)"
    name, _, rest = level.text.partition(", ")
    reason = "; ".join(filter(None, (why, rest)))
    return LevelPlacement(None, f"{name} as served on {when}, {NOT_PLACED} ({reason})", False, ())


def _dates_short(played: PlayedPlacement, lines: Sequence[GateLine]) -> str:
    """Return what an agent's dates are short of, "" where they bear a level out."""
    rule, facts = played.rule, played.facts
    if rule.dates < DATES:
        return f"its plan asks for one date, a served model needs {DATES}"
    short = [line for line in lines if line.status == "BELOW"]
    if any(is_below(line, rule.dates) for line in short):
        short = []
    elif not short:
        short = [line for line in lines if not passes(line, rule.dates)]
    if short:
        return "; ".join(f"{line.gate} {dates_words(line, rule.dates)}" for line in short)
    batches = sum(bool(look.batch.worlds) for look in played.looks[:-1])
    held = sum(bool(date.begin and date.end) for date in facts.dates)
    if held < batches:
        return f"a verifier bears out {held} of {batches} dates"
    return "" if facts.verifier else "no registry names the verifier of its dates"


def _second(
    played: PlayedPlacement, lines: Sequence[GateLine], rung: GateResult | None
) -> LevelPlacement:
    """Return AAI-2, or AAI-1 with what is said of AAI-2."""
    rule, looks = played.rule, played.looks
    second = [line for line in lines if line.level == LEVEL]
    below = [_words(line) for line in second if line.status == "BELOW"]
    if below:
        return LevelPlacement(1, f"AAI-1, below AAI-2 ({'; '.join(below)})", False, ())
    open_ = [_words(line) for line in second if line.status != "PASS"]
    waits = [stage.name for stage in rule.stages if stage.name not in _stages_of(looks)]
    if waits:
        open_.append(f"not played: {', '.join(waits)}")
    if rung is not None and rung.status != "PASS":
        open_.append(f"assurance {rung.measured or 'nothing'} against {rung.required}")
    if not open_:
        mark = norms_mark(LEVEL, rule.protocol)
        return LevelPlacement(LEVEL, f"AAI-2{f' ({mark} norms)' if mark else ''}", bool(mark), ())
    if all(line.worlds == 0 or not line.stage for line in second) and not _has_second(looks):
        return LevelPlacement(1, "AAI-1", False, ())
    text = f"AAI-1, undecided between AAI-1 and AAI-2 ({'; '.join(open_)})"
    return LevelPlacement(1, text, False, ())


def _stages_of(looks: Sequence[LookState]) -> set[str]:
    """Return the stages that were played whole."""
    return {look.batch.stage for look, after in pairwise(looks) if after.decision != OPEN}


def _has_second(looks: Sequence[LookState]) -> bool:
    """Return whether anything was played for AAI-2."""
    return any(line.level == LEVEL for look in looks[:-1] for line in look.gates)


def _is_floor(line: GateLine, rule: PlacementRule) -> bool:
    return line.mean is not None and line.mean <= rule.protocol.levels.automation_max


def _words(line: GateLine) -> str:
    if line.stage:
        return f"{line.gate} {line.note}"
    mean = "nothing" if line.mean is None else f"{line.mean:.2f}"
    note = f", {line.note}" if line.note and line.gate == "tools" else ""
    return f"{line.gate} {mean} [{line.low:.2f}, {line.high:.2f}] against {line.required:.2f}{note}"


def _gate_results(
    rule: PlacementRule, lines: Sequence[GateLine], table: Observables
) -> tuple[GateResult, ...]:
    """Return the lines of the gates of the level."""
    names = table.attempt.tolist()
    evidence = (f"{names[0]} to {names[-1]}, {len(names)} attempts",) if names else ()
    results = [_gate_result(rule, line, evidence) for line in lines]
    known = {line.key for line in lines}
    highest = max((line.level for line in lines), default=0)  # AAI-2 comes after AAI-1
    unplayed = (one for one in rule.protocol.gates if one.level <= highest)
    results += [
        GateResult(
            level=one.level,
            gate=stage_gate(one),
            required="" if one.required is None else f">= {one.required:g}",
            measured="nothing",
            interval=None,
            status="NO EVIDENCE",
            evidence=(),
            reason="not played",
        )
        for one in unplayed
        if (one.level, stage_gate(one)) not in known and one.gate != ASSURANCE
    ]
    return tuple(sorted(results, key=lambda one: one.level))


def _gate_result(rule: PlacementRule, line: GateLine, evidence: tuple[str, ...]) -> GateResult:
    """Return the line of a gate in a report."""
    if line.stage:
        bounds = Interval(low=line.low, high=line.high, method=STAGE_METHOD)
        return GateResult(
            level=line.level,
            gate=line.gate,
            required=f">= {line.required:g}" if line.required else line.gate,
            measured="nothing" if line.mean is None else f"{line.mean:.3f}, {line.worlds} episodes",
            interval=bounds if line.mean is not None else None,
            status=line.status,
            evidence=evidence,
            reason=f"stage {line.stage}: {line.note}",
        )
    slack = rule.protocol.statistics.gate_slack
    shown = f"at least {line.required - slack:.2f} shown" if line.status == "PASS" else ""
    if line.gate == "G" and shown:
        shown = "at least that many families shown"
    short, decides = "", passes(line, rule.dates) or is_below(line, rule.dates)
    if rule.dates > 1 and line.status != "UNDECIDED":
        short = dates_words(line, rule.dates)
    return GateResult(
        level=line.level,
        gate="T" if line.gate == "tools" else line.gate,
        required=rule.required_words(line.gate, line.level),
        measured="nothing" if line.mean is None else f"{line.mean:.3f}, {line.worlds} worlds",
        interval=Interval(low=line.low, high=line.high, method=METHOD),
        status=line.status if decides else "UNDECIDED",
        evidence=evidence,
        reason="; ".join(filter(None, (shown, short, line.note))),
    )


def _label(line: GateLine) -> str:
    return line.gate if line.level == 1 else f"{line.gate} AAI-{line.level}"


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
            _label(line),
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
    for last in looks[-1].gates:
        if last.stage:
            continue
        found = [
            (x, line)
            for x, look in zip(episodes, looks, strict=True)
            for line in look.gates
            if line.key == last.key
        ]
        lines = [line for _, line in found]
        beside = "" if last.level == 1 else f", AAI-{last.level}"
        curves.append(
            Curve(
                name=f"{last.gate} {AXIS_NAMES.get(last.gate, '')}".strip() + beside,
                x_label="episodes played",
                y_label=f"{last.gate}, required {last.required:.2f}",
                x=tuple(x for x, _ in found),
                y=tuple(line.mean for line in lines),
                low=tuple(line.low for line in lines),
                high=tuple(line.high for line in lines),
                used=tuple(line.worlds for line in lines),
                note=METHOD,
                panel=BOUNDS_PANEL,
                beside=(last.required,) * len(lines),
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
            f"the rule would go on with {len(last.batch.indices)} episodes"
            f"{_purpose(last)}: `owa-bench place --resume{_flag(last)}`"
        )
    elif last.decision == WAIT:
        said.append("it goes on at another date: `owa-bench place --resume`")
    elif last.decision == CAP:
        said.append("this is all that its plan can decide: nothing more of it would change it")
    elif last.decision == TOO_FEW:
        said.append(
            "success with tools is what is asked for, and too few kinds of tools can come into "
            f"use: one that was not in use after {KIND_TRIES} worlds that need it is given up"
        )
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


def _flag(look: LookState) -> str:
    """Return what `--resume` needs beside it to play the next batch."""
    return f" --level {LEVEL}" if look.passed(1) else ""


def _purpose(look: LookState) -> str:
    """Return what the next batch is for, in words."""
    if look.batch.stage:
        gates = ", ".join(look.batch.reads)
        return f" of the stage `{look.batch.stage}`" + (f" for {gates} of AAI-2" if gates else "")
    return f" for {', '.join(look.batch.reads)}"
