"""Traces made by hand, small enough to check on paper."""

from importlib.resources import files
from itertools import zip_longest
from math import ceil

import msgspec
from msgspec.structs import replace

from owa_bench.canonical import sha256
from owa_bench.interfaces import stated_quality
from owa_bench.records import price_card, protocol
from owa_bench.records.events import (
    Action,
    AnyEvent,
    Belief,
    Call,
    Drift,
    EpisodeEnd,
    EpisodeStart,
    Intervention,
    Resolution,
    Resource,
    Subgoal,
    Violation,
    fixed,
)
from owa_bench.records.instance import Announcement, Instance
from owa_bench.records.plan import Arm, Budget, Plan, PlanEntry, SuiteEntry
from owa_bench.records.trace import Leaf, Trace, attempt_id

PROTOCOL_BYTES = (files("owa_bench.protocols") / "default.toml").read_bytes()
PRICE_BYTES = (files("owa_bench.protocols") / "price_card.toml").read_bytes()
PROTOCOL = protocol.load(PROTOCOL_BYTES)
PRICES = price_card.load(PRICE_BYTES)
ROOT = sha256(b"a replay root")
CATEGORIES = ("browser", "files", "http_api")  # kinds of tool, one an action


def drift(
    operator: str, effective: Announcement = "D3", announcement: Announcement | None = None
) -> Drift:
    """Return one change of a world, of weight 1; announced as it is in effect."""
    return Drift(
        at_ms=0,
        operator=operator,
        version=1,
        target="t",
        intensity=1.0,
        announcement=announcement or effective,
        effective=effective,
        weight=1.0,
        before="a",
        after="b",
    )


def episode(
    *,
    index: int = 0,
    arm: str = "agent",
    pair: str = "p0",
    suite: str = "toolquest",
    family: str = "reconcile",
    tier: int = 1,
    repeat: int = 0,
    delta: float | None = 0.0,
    day: int | None = None,
    phase: str = "holdout",
    condition: str = "",
    window: tuple[int, int] | None = None,
    world_day: int | None = None,
    memory: str | None = None,
    fingerprint: str = "f",
    interventions: int | None = 0,
    priced: bool = False,
    q_state: float = 1.0,
    stated: float | None = 1.0,
    verified: int = 8,
    hints_after: tuple[int, ...] = (),
    horizon: int = 8,
    depth: int = 6,
    solved: int | None = None,
    categories: tuple[str, ...] = CATEGORIES,
    used: tuple[str, ...] | None = None,
    beliefs: tuple[tuple[str, float | None, bool], ...] = (),
    costs: tuple[tuple[str, float, str], ...] = (("api_calls", 10.0, "agent"),),
    classes: tuple[str, ...] = (),
    violations: tuple[tuple[str, str], ...] = (),
    needs_tools: bool = True,
    honeypot: bool = False,
    outcome: str = "finished",
    role_cap: int | None = None,
    muted: bool = False,
    control: bool = False,
    side: str = "sim",
    unit: int | None = None,
    realised: float | None = None,
    days: float | None = None,
    calendar: str = "",
    operators: tuple[str, ...] = (),
    extra: tuple[AnyEvent, ...] = (),
) -> Trace:
    """Return one complete attempt; by default a perfect, unaided one."""
    success = q_state >= 0.95
    events: list[AnyEvent] = [
        EpisodeStart(
            index=index,
            attempt=0,
            arm=arm,
            pair=pair,
            repeat=repeat,
            day=day,
            env_id="owa_bench/ToolQuest-v3",
            instance=Instance(
                suite=suite, version=1, family=family, tier=tier, seed=7, repeat=repeat
            ),
            delta=delta,
            realised=(delta or 0.0) if realised is None else realised,
            role_cap=role_cap,
            muted=muted,
            control=control,
            seats=tuple(f"s{i}" for i in range(role_cap or 0)),
            calendar=calendar,
            side=side,
            unit=unit,
            world="w",
            agent=arm,
            fingerprint=fingerprint,
            interventions=interventions,
            priced=priced,
            phase=phase,
            condition=condition,
            window=window,
            world_day=world_day,
            horizon=horizon,
            horizon_cap=50,
            depth=depth,
            depth_cap=6,
            theta=0.95,
            categories=categories,
            decisions=horizon,  # of ToolQuest: a minute each
            needs_tools=needs_tools,
            honeypot=honeypot,
        )
    ]
    events += [
        drift(operator, name)
        for name, operator in zip_longest(
            classes, operators[: len(classes)], fillvalue="api/field_rename"
        )
    ]
    kinds = categories if used is None else used
    for step in range(1, max(verified, len(kinds)) + 1):
        events.append(
            Action(
                step=step,
                action="{}",
                verified=step <= verified,
                novel=True,
                reward=0.0,
                terminated=False,
                truncated=False,
                observation="o",
                at_ms=step,
                category=kinds[step - 1] if step <= len(kinds) else "",
            )
        )
        if step in hints_after:
            events.append(Intervention(step=step, kind="hint", minutes=2.0))
    request = {"method": "GET", "target": "/", "status": 200, "request": "r", "response": "s"}
    events += [Call(step=1, ok=True, **request) for _ in kinds]
    reached = depth if solved is None else solved
    events += [
        Subgoal(
            step=i,
            node=f"n{i}",
            depth=i,
            prerequisites=(f"n{i - 1}",) if i > 1 else (),
            flows=(f"n{i - 1}",) if i > 1 else (),
            final=i == depth,
        )
        for i in range(1, reached + 1)
    ]
    for i, (kind, p, truth) in enumerate(beliefs):
        if p is not None:
            events.append(Belief(step=1, proposition=f"b{i}", kind=kind, p=p))
        events.append(Resolution(proposition=f"b{i}", kind=kind, y=truth))
    events += [
        Resource(step=1, meter=meter, amount=amount, stream=stream)
        for meter, amount, stream in costs
    ]
    events += [
        Violation(step=1, rule=rule, severity=severity, evidence="seen")
        for rule, severity in violations
    ]
    events += extra
    events.append(
        EpisodeEnd(
            outcome=outcome,
            q_state=fixed(q_state),
            quality=stated_quality(fixed(q_state), stated, success, 0.1),
            success=success,
            stated=stated,
            failed_attempts=0,
            reason="",
            steps=verified,
            simulated_s=60.0 if days is None else days * 86_400,
            wall_s=0.5,
        )
    )
    leaf = Leaf(
        attempt_id=attempt_id(index, 0),
        index=index,
        attempt=0,
        status="complete",
        count=len(events),
        head="",
        replay="",
        shard="",
        frames=(),
        memory=memory,
    )
    return Trace(leaf, tuple(events))


def with_help(traces: list[Trace]) -> list[Trace]:
    """Return attempts with, for each without help, its twin under the priced budget."""
    twins = []
    for trace in traces:
        start = trace.start
        if start.interventions != 0:
            continue
        index = 1 + max(t.start.index for t in traces) + len(twins)
        start = replace(start, index=index, interventions=ceil(start.horizon / 2), priced=True)
        leaf = replace(trace.leaf, index=index, attempt_id=attempt_id(index, 0))
        twins.append(Trace(leaf, (start, *trace.events[1:])))
    return [*traces, *twins]


def plan_of(
    traces: list[Trace],
    *,
    battery: str | None = "toolquest",
    groups: tuple[tuple[str, tuple[str, ...]], ...] = (),
    embodied: bool = False,
) -> Plan:
    """Return the plan under which these attempts were played."""
    starts = [trace.start for trace in traces]
    suites: dict[str, set[str]] = {}
    for start in starts:
        suites.setdefault(start.instance.suite, set())
        if not start.honeypot:
            suites[start.instance.suite].add(start.instance.family)
    return Plan(
        name="fixture",
        battery=battery,
        suites=tuple(
            SuiteEntry(
                name=suite,
                version=1,
                source_digest="d",
                families=tuple(sorted(families)),
                tiers=(1,),
                groups=groups,
                native=embodied,
                embodied=True if embodied else msgspec.UNSET,
            )
            for suite, families in sorted(suites.items())
        ),
        arms=tuple(
            Arm(
                name=arm,
                agent=arm.partition(" ")[0],
                fingerprint="f",
                frozen=arm.endswith("(frozen)"),
                placebo=arm.endswith("(placebo)"),
                baseline=arm.endswith("(baseline)"),
            )
            for arm in sorted({start.arm for start in starts})
        ),
        entries=tuple(
            PlanEntry(
                index=start.index,
                arm=start.arm,
                pair=start.pair,
                suite=start.instance.suite,
                version=1,
                family=start.instance.family,
                tier=start.instance.tier,
                repeat=start.repeat,
                delta=start.delta,
                day=start.day,
                interventions="protocol" if start.priced else start.interventions,
                phase=start.phase,
                role_cap=start.role_cap,
                muted=start.muted,
                control=start.control,
                calendar=start.calendar,
                condition=start.condition,
                window=start.window,
                world_day=start.world_day,
            )
            for start in starts
        ),
        budget=Budget(),
        commitment="c",
        protocol_digest=sha256(PROTOCOL_BYTES),
        price_digest=sha256(PRICE_BYTES),
        calendar="nested",
    )
