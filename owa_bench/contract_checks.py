"""Contract tests of plug-ins: what a suite, an operator or an agent must hold.

    check_suite(SUITE)
    check_operator(OPERATOR, worlds)
    check_agent(AGENT, suite, memory_dir)

Each raises CheckFailure with the first rule that is broken. A package calls them from its own
tests; this project runs them over every registered plug-in.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
from gymnasium.utils.env_checker import check_env

from owa_bench.canonical import record_digest
from owa_bench.errors import CheckFailure, DriftError
from owa_bench.interfaces import (
    Agent,
    AgentCard,
    AgentConfig,
    Brief,
    Move,
    Operator,
    Oracle,
    Seated,
    Session,
    Setting,
    Suite,
    TimelineSource,
    View,
    World,
)
from owa_bench.records.events import AnyEvent
from owa_bench.records.instance import ANNOUNCEMENTS, Instance, Timeline
from owa_bench.shells.calls import CallParser, ParsedCall, call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.solution import solve
from owa_bench.shells.standard_tools import tools_of

NO_OP_MAX = 0.05  # q_state that doing nothing may come to
VIEWS: tuple[View, ...] = ("language", "vector", "python")
EVENT_TAGS = frozenset(kind.__struct_config__.tag for kind in get_args(AnyEvent))
_SEAT = re.compile(r"[a-z][a-z0-9_-]*")
_STREAM = 7  # any fixed number: an operator must be a function of its stream


def check_suite(
    suite: Suite, *, source: TimelineSource | None = None, seeds: Sequence[int] = (0, 1)
) -> None:
    """Check a suite: its card, worlds, sessions, answer key and Gymnasium env.

    Args:
        suite: The plug-in.
        source: Gives timelines; None: the base worlds, without drift.
        seeds: One instance of each family and tier is played per seed.
    Raises: CheckFailure: the first broken rule.
    """
    _check_base(suite, Suite, "subclass `owa_bench.Suite`, or `shells.tool_env.ToolSuite`")
    _check_members(suite, "card")
    card, name = suite.card, f"Suite `{suite.card.name}`"
    if not card.native:
        for member in ("oracle", "session"):
            given = getattr(type(suite), member) is not getattr(Suite, member)
            _require(given, name, f"must define `{member}`, as every suite with tools")
        _check_base(suite.oracle, Oracle, "subclass `owa_bench.interfaces.Oracle`")
    _require(card.families and card.tiers, name, "must have families and tiers")
    for item in card.meters:
        owned = item.meter.startswith(f"{card.name}/")
        _require(owned, name, f"`meters` must be called {card.name}/..")
        known = item.witness in EVENT_TAGS
        _require(known, name, "`meters` must be witnessed by a kind of event")
    rules = {detector.rule for detector in suite.detectors}
    _require(rules <= set(card.rules), name, "`rules` must hold every detector's rule")
    timelines = source or (lambda instance: _undrifted(suite, instance))
    _check_digests(map(suite.generate, _instances(suite, seeds)))
    for instance in _instances(suite, seeds):
        _check_world(suite, instance)
        if not card.native:
            _check_session(suite, timelines(instance))
            _check_answer_key(suite, timelines(instance))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for view in ("vector",) if card.native else VIEWS:
            check_env(suite.env(timelines, view=view), skip_render_check=True)


def check_operator(operator: Operator, worlds: Iterable[World]) -> None:
    """Check a drift operator on some worlds of its domain.

    Args:
        operator: The plug-in.
        worlds: Base worlds; at least one must have a target.
    Raises: CheckFailure: the first broken rule, of the operator or of its worlds.
    """
    _check_base(operator, Operator, "decorate its function with `owa_bench.operator`")
    _check_members(operator, "name", "announcement", "weight")
    name = f"Operator `{operator.name}`"
    _require(operator.announcement in ANNOUNCEMENTS, name, "`announcement` is not D0 to D3")
    _require(operator.weight > 0, name, "`weight` must be above 0")
    _require(operator.version >= 1, name, "`version` must be at least 1")
    _require(bool((operator.__doc__ or "").strip()), name, "must have a docstring")
    pairs = [(world, target) for world in worlds for target in operator.targets(world)]
    _require(bool(pairs), name, "must find a target in one of the worlds")
    for world, target in pairs:
        before = record_digest(world)
        first, second = (
            operator.apply(world, target, 1.0, rng=np.random.default_rng(_STREAM)) for _ in range(2)
        )
        _require(record_digest(world) == before, name, "must leave its argument alone")
        _check_digests((world, first))
        _require(first.digest() == second.digest(), name, "must repeat with its stream")
        _require(first.digest() != world.digest(), name, f"must change {target!r}")
    try:
        operator.apply(pairs[0][0], "?", 1.0, rng=np.random.default_rng(_STREAM))
    except DriftError:
        return
    raise CheckFailure(f"{name} must raise DriftError for an unknown target.")


def check_agent(card: AgentCard, suite: Suite, memory_dir: Path) -> None:
    """Check an agent: its card, and that an episode ends and repeats.

    Args:
        card: The plug-in.
        suite: The tool suite that it plays, without drift.
        memory_dir: An empty folder.
    Raises: CheckFailure: the first broken rule.
    """
    name = f"Agent `{card.name}`"
    _require(card.about.endswith("."), name, "`about` must be a sentence")
    _require(set(card.required) <= set(card.options), name, "`required` must be options")
    privileged = card.needs == "privilege"
    _require((card.make is None) == privileged, name, "`make` must be None for a policy")
    if card.make is None or card.required:
        return
    instance = next(_instances(suite, (0,)))
    timeline = _undrifted(suite, instance)
    script = solve(suite, timeline).actions if card.needs == "script" else ()
    runs = []
    for attempt in ("first", "second"):
        agent = card.make(AgentConfig(script=script))
        _require(isinstance(agent, Agent), name, "`make` must return reset, act, close")
        runs.append(_actions_of(agent, suite, timeline, memory_dir / attempt))
    _require(runs[0] == runs[1], name, "must repeat its actions with an equal brief")


def _check_base(plugin: object, base: type, fix: str) -> None:
    """Check that a plug-in has the base class whose defaults the harness calls."""
    _require(
        isinstance(plugin, base), f"`{type(plugin).__name__}`", f"is no {base.__name__}: {fix}"
    )


def _check_members(plugin: object, *names: str) -> None:
    """Check that a plug-in has what its base class has no default for."""
    missing = ", ".join(f"`{name}`" for name in names if not hasattr(plugin, name))
    _require(not missing, f"`{type(plugin).__name__}`", f"must have {missing}")


def _require(holds: object, name: str, rule: str) -> None:
    if not holds:
        raise CheckFailure(f"{name}: {rule}.")


def _instances(suite: Suite, seeds: Iterable[int]) -> Iterator[Instance]:
    card = suite.card
    for seed in seeds:
        for family in card.families:
            for tier in card.tiers:
                yield Instance(
                    suite=card.name, version=card.version, family=family, tier=tier, seed=seed
                )


def _undrifted(suite: Suite, instance: Instance) -> Timeline:
    world = suite.generate(instance)
    return Timeline(instance=instance, starts=(0,), worlds=(world,), changes=((),), realised=0.0)


def _check_digests(worlds: Iterable[World]) -> None:
    """Check that worlds which differ in a field differ in their digests."""
    contents: dict[str, str] = {}
    for world in worlds:
        content = record_digest(world)
        rule = "`digest()` must differ between worlds that differ in a field"
        same = contents.setdefault(world.digest(), content) == content
        _require(same, f"World `{type(world).__name__}`", rule)


def _check_world(suite: Suite, instance: Instance) -> None:
    name = f"Suite `{suite.card.name}`, {instance.family} {instance.tier}"
    first, second = suite.generate(instance), suite.generate(instance)
    _require(first.digest() == second.digest(), name, "`generate` must be pure")
    other = suite.generate(msgspec.structs.replace(instance, repeat=1, drift_step=1))
    _require(
        first.digest() == other.digest(),
        name,
        "`generate` must not depend on repeat and drift step",
    )


def _check_session(suite: Suite, timeline: Timeline) -> None:
    """Check tools, features and macros of a fresh session."""
    card, name = suite.card, f"Session of `{suite.card.name}`"
    session: Session = suite.session(timeline, NullSink(), Setting())
    _check_base(session, Session, "subclass `owa_bench.interfaces.Session`, or `Seated`")
    try:
        if isinstance(session, Seated):
            _check_crew(suite, timeline, session)
        _check_members(session, "tools", "task", "state")
        _require(not (rule := card.unmapped(session.tools)), f"Suite `{card.name}`", rule)
        parser = CallParser(tools_of(session.tools))
        features = session.features()
        due = (card.features,)
        rule = f"must have shape {due}, as `features` of the card, got {features.shape}"
        _require(features.shape == due, name, f"`features()` {rule}")
        _require(((features >= 0) & (features <= 1)).all(), name, "features are in [0, 1]")
        macros = session.macros()
        count = f"{len(card.macros)} as in the card's `macros`, got {len(macros)}"
        _require(len(macros) == len(card.macros), name, f"`macros()` must give {count}")
        for macro in macros:
            call = macro and parser.parse(call_text(macro["tool"], macro["arguments"]))
            legal = call is None or isinstance(call, ParsedCall)
            _require(legal, name, f"a macro must be a legal call: {call}")
    finally:
        session.close()


def _check_crew(suite: Suite, timeline: Timeline, session: Seated) -> None:
    """Check the seats of a fresh session, and that cap and mute are told to nobody."""
    card, name = suite.card, f"Session of `{suite.card.name}`"
    _check_members(session, "seats")
    seats = session.seats
    _require(session.seat in seats, name, "must let one of its `seats` act first")
    _require(len(seats) <= card.seats, name, "must have at most the card's `seats`")
    named = all(_SEAT.fullmatch(seat) for seat in seats)
    _require(named, name, "must name seats by lower-case letters, digits, - and _")
    for setting in (Setting(role_cap=1), Setting(muted=True)):
        other = suite.session(timeline, NullSink(), setting)
        try:
            if not isinstance(other, Seated):
                raise CheckFailure(f"{name}: must be `Seated` under every setting.")
            if setting.role_cap:
                _require(len(other.seats) == 1, name, "must keep to `role_cap`")
            same = other.task_of(seats[0]) == session.task_of(seats[0])
            _require(same, name, "must tell no seat of cap and mute")
        finally:
            other.close()


def _check_answer_key(suite: Suite, timeline: Timeline) -> None:
    """Check that the oracle solves the instance, and that doing nothing does not."""
    name = f"Oracle of `{suite.card.name}`"
    card, world = suite.card, timeline.worlds[0]
    reached = solve(suite, timeline).q_state
    place = f"{timeline.instance.family}, tier {timeline.instance.tier}"
    rule = f"its hints must end at q_state 1, got {reached:g} in {place}"
    _require(reached == 1.0, name, rule)
    kinds = {truth.kind for truth in suite.oracle.propositions(timeline)}
    for field, got, known in (
        ("categories", set(suite.oracle.categories(world)), card.categories.values()),
        ("proposition_kinds", kinds, card.proposition_kinds),
    ):
        odd = sorted(got - set(known))
        _require(not odd, name, f"must keep to the card's `{field}`, got {', '.join(odd)}")
    episode = _episode(suite, timeline)
    try:
        malformed = episode.step("no JSON")
        _require(malformed.error, name, "a malformed action must be an error")
        _require(episode.steps == 1, name, "a malformed action must cost a step")
        ending = episode.conclude("truncated", "nothing was done")
        idle = suite.honeypot(world) or ending.q_state <= NO_OP_MAX
        _require(idle, name, f"must give {NO_OP_MAX} at most for doing nothing")
    finally:
        episode.close()


def _episode(suite: Suite, timeline: Timeline) -> Episode:
    return Episode(suite, timeline, sink=NullSink(), terms=EpisodeTerms())


def _actions_of(agent: Agent, suite: Suite, timeline: Timeline, memory_dir: Path) -> list[str]:
    """Return the actions of an agent in one episode."""
    env = suite.env(lambda _: timeline)
    observation, info = env.reset(options={"instance": timeline.instance})
    shell = env.unwrapped
    task = shell.task  # type: ignore[attr-defined]
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions, seed=_STREAM)
    memory_dir.mkdir(parents=True, exist_ok=True)
    agent.reset(brief, shell.tools, memory_dir)  # type: ignore[attr-defined]
    actions: list[str] = []
    over = False
    while not over:
        answer = agent.act(observation, info)
        actions.append(str(answer.action if isinstance(answer, Move) else answer))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    agent.close()
    env.close()
    return actions
