"""Failures of a run: the kind of each failed episode, and groups of like failures.

An episode fails if it counts and has no success, or if harness or provider took it away. Its kind
is the first of `KINDS` that holds. Every kind is read from what the harness and the suite's world
recorded, never from words of the agent. Nothing here is scored.

Source: docs/read-a-run.md#what-went-wrong.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from owa_bench import bounded_json
from owa_bench.errors import ProviderFailure, TraceError
from owa_bench.records import events
from owa_bench.records.events import AGENT_RECORD, AnyEvent, EpisodeEnd, EpisodeStart
from owa_bench.records.packs import Transcripts
from owa_bench.records.trace import FAILED, Trace
from owa_bench.reports.read.bundle import Bundle
from owa_bench.reports.read.outcomes import provider_failure

STANDARD = frozenset({"note", "recall", "ask_supervisor", "finish", "declare_infeasible"})
_ENDING = frozenset({"finish", "declare_infeasible"})
_LONGEST = 120  # characters of an error, or of an exception's line, in a row
_NUMBER = re.compile(r"\d+")
_MARK = re.compile(r"[:/]")
_RULE_END = re.compile(r", got |: |; ")


class KindWords(NamedTuple):
    """A kind of failure in words: what it is, and what to look at next."""

    words: str
    next: str


# In the order of precedence: an episode has the first that holds. [D]
KINDS: Mapping[str, KindWords] = {
    "harness": KindWords(
        "the harness failed; not counted",
        "No failure of the agent. The reason is on the example's page; `owa-bench run --resume` "
        "plays it again.",
    ),
    "provider": KindWords(
        "the model's provider failed or refused",
        "No failure of the agent's own. Check key, quota, address and name of the model "
        "(`owa-bench doctor`), then `owa-bench run --resume`.",
    ),
    "damaged": KindWords(
        "its evidence does not read",
        "`owa-bench verify` names the bytes. Somebody or some disk changed the run.",
    ),
    "rule": KindWords(
        "broke a rule that disqualifies",
        "The violation on the example's page has the rule and its evidence; the work itself may "
        "have been right.",
    ),
    "raised": KindWords(
        "the agent's process raised or died",
        "Read its traceback: `owa-bench view RUN --failures` and the example's page have it whole.",
    ),
    "timeout": KindWords(
        "the agent missed the deadline of an act",
        "See what it printed last. A slower model needs a larger `--act-seconds`.",
    ),
    "malformed": KindWords(
        "most actions after its last progress were no tool call",
        "Compare an action with the error beside it: the model's format or the agent's parser is "
        "wrong, or the context was cut.",
    ),
    "refused": KindWords(
        "most calls after its last progress were refused",
        "Look at the last refused call: arguments, credentials, or an interface that has drifted.",
    ),
    "idle": KindWords(
        "called no tool of the task",
        "The model may have declined or given up at once, or answered in words: read its first "
        "replies.",
    ),
    "gave_up": KindWords(
        "declared the task infeasible",
        "See which subgoal was missing when it gave up, and what it had seen by then.",
    ),
    "budget": KindWords(
        "a budget ran out",
        "If the path was left long before, look there; if it was not, raise the budget "
        "(`--steps`, `--budget`) or make the agent spend less.",
    ),
    "help": KindWords(
        "asked for help after none was left",
        "Look at the question and at the subgoal that was missing; `--interventions` allows more.",
    ),
    "over": KindWords(
        "the task was over before it was solved, by no act of the agent",
        "Open the last steps: the pole fell, or the task's own deadline came.",
    ),
    "early": KindWords(
        "ended by itself with subgoals missing",
        "Open the first step off the path: what did it read there, and had drift changed it?",
    ),
    "wrong": KindWords(
        "ended by itself, and the result is not right",
        "No subgoal is missing (or the task has none): compare what it handed in with the task.",
    ),
}
# Their detail says why: subgoals and calls of the episode add nothing to it.
_OWN_CAUSE = frozenset(
    {"harness", "provider", "damaged", "rule", "raised", "timeout", "malformed", "idle"}
)


class RefusedCall(msgspec.Struct, frozen=True):
    """A call that was refused: its step, its tool, and the rule or the status."""

    step: int
    tool: str
    error: str


class EpisodeReading(msgspec.Struct, frozen=True, kw_only=True):
    """One episode as the harness saw it.

    `kind` is "" of a success, `detail` is the budget's meter, the rule or the exception.
    `subgoals` are nodes with the step that reached each, `missing` those that were not reached in
    the oracle's order, None where the run does not hold the graph. `missed_class` is the class of
    the first (`node_class`). `drift` is the highest class in
    effect when the path was left. `left` is the first step off the oracle's path, None where it
    was not left; `path` says whether there is one.
    """

    attempt: str
    index: int
    arm: str
    family: str
    tier: int | None
    delta: float | None
    pair: str
    success: bool | None
    q_state: float | None
    outcome: str
    reason: str
    kind: str
    detail: str
    subgoals: tuple[tuple[str, int], ...]
    missing: tuple[str, ...] | None
    missed_class: str
    drift: str
    path: bool
    left: int | None
    steps: int
    refused: RefusedCall | None

    @property
    def missed(self) -> str:
        """The first subgoal that was not reached, "" for none or where nobody knows."""
        return self.missing[0] if self.missing else ""


def readings(bundle: Bundle) -> Iterator[EpisodeReading]:
    """Yield every counted episode in plan order, then those that harness or provider took away.

    Args: bundle: The run directory.
    """
    counted: set[int] = set()
    for trace in bundle.traces():
        counted.add(trace.leaf.index)
        yield read_episode(trace)
    yield from lost_readings(bundle, counted)


def lost_readings(bundle: Bundle, counted: Set[int]) -> Iterator[EpisodeReading]:
    """Yield the episodes that harness or provider took away: the last attempt at each.

    Args:
        bundle: The run directory.
        counted: Plan indices of the counted episodes.
    """
    lost = {leaf.index: leaf for leaf in bundle.leaves if leaf.status in FAILED}
    names = {leaf.attempt_id: leaf for index, leaf in lost.items() if index not in counted}
    for attempt in bundle.uncounted() if names else ():
        leaf, sequence = names.get(attempt.attempt_id), attempt.events
        if leaf is None or not sequence:
            continue
        if isinstance(sequence[0], EpisodeStart) and isinstance(sequence[-1], EpisodeEnd):
            yield read_episode(Trace(leaf, sequence))


def read_episode(trace: Trace) -> EpisodeReading:
    """Return what the harness saw of an ended attempt; texts that many have are kept once."""
    start, end = trace.start, trace.end
    void = any(event.severity == "disqualify" for event in trace.of(events.Violation))
    counts = end.outcome != "infrastructure"
    success = end.q_state >= start.theta and not void if counts else None
    solved = tuple((sys.intern(event.node), event.step) for event in trace.of(events.Subgoal))
    graph = next(iter(trace.of(events.SubgoalGraph)), None)
    missing = None if graph is None else missing_nodes(graph, {name for name, _ in solved})
    path = next(iter(trace.of(events.ToolOffer)), None) is not None
    progress = _last_progress(trace) if path else 0
    actions = tuple(trace.of(events.Action))
    refused = _refused_steps(trace, offered=path)
    kind, detail = ("", "")
    if not success:
        kind, detail = _kind(trace, _After(actions, progress, refused), missing)
    left = next((action.step for action in actions if action.step > progress), None)
    return EpisodeReading(
        attempt=trace.leaf.attempt_id,
        index=start.index,
        arm=sys.intern(start.arm),
        family=sys.intern(f"{start.instance.suite}/{start.instance.family}"),
        tier=start.instance.tier,
        delta=start.delta,
        pair=start.pair,
        success=success,
        q_state=(0.0 if void else end.q_state) if counts else None,
        outcome=sys.intern(end.outcome),
        reason=sys.intern(end.reason),
        kind=kind,
        detail=detail,
        subgoals=solved,
        missing=missing,
        missed_class=node_class(graph, missing[0]) if graph and missing else "",
        drift=_drift_before(trace, left),
        path=path,
        left=left if path and not success else None,
        steps=len(actions),
        refused=refused[max(refused)].call if refused else None,
    )


def missing_nodes(graph: events.SubgoalGraph, solved: Collection[str]) -> tuple[str, ...]:
    """Return the nodes that were missing: those that could have been reached next come first.

    A node that was not reached but leads to one that was, such as documents that nobody had to
    read, was not missing.

    Args:
        graph: The nodes of the task, in the oracle's order.
        solved: Names of the nodes that were reached.

    >>> nodes = (("docs", ()), ("key", ("docs",)), ("rows", ("key",)), ("write", ("rows",)))
    >>> missing_nodes(events.SubgoalGraph(nodes=nodes), {"docs"})
    ('key', 'rows', 'write')
    >>> missing_nodes(events.SubgoalGraph(nodes=nodes), {"rows"})
    ('write',)
    """
    needs = dict(graph.nodes)
    passed: set[str] = set()
    stack = [name for name in solved if name in needs]
    while stack:
        name = stack.pop()
        if name not in passed:
            passed.add(name)
            stack += [before for before in needs[name] if before in needs]
    names = [sys.intern(name) for name in needs if name not in passed]
    return tuple(sorted(names, key=lambda name: not set(names).isdisjoint(needs[name])))


def node_class(graph: events.SubgoalGraph, node: str) -> str:
    """Return what a node is in every instance: its name before a mark, or its depth.

    Some suites name nodes by their kind and an object (`key:sales`), others by the object alone.

    Args:
        graph: The nodes of the task.
        node: The name of one of them.

    >>> graph = events.SubgoalGraph(nodes=(("key:sales", ()), ("druno", ("key:sales",))))
    >>> node_class(graph, "key:sales"), node_class(graph, "druno")
    ('key', 'depth 2')
    """
    kind, mark, _ = _MARK.sub(":", node, count=1).partition(":")
    if mark:
        return kind
    needs = dict(graph.nodes)
    level, depth = {node}, 0
    while level and depth <= len(needs):
        level = {before for name in level for before in needs.get(name, ()) if before in needs}
        depth += 1
    return f"depth {depth}"


# --- one episode ----------------------------------------------------------------------


class _Refusal(NamedTuple):
    """A step that was refused, and whether its action was no tool call at all."""

    call: RefusedCall
    malformed: bool


class _After(NamedTuple):
    """The actions of an episode, the step of its last progress, and its refused steps."""

    actions: tuple[events.Action, ...]
    progress: int
    refused: Mapping[int, _Refusal]

    @property
    def worked(self) -> list[events.Action]:
        """The actions behind the last progress, but for the one that ends the episode."""
        return [a for a in self.actions if a.step > self.progress and not _ends(a)]


def _kind(trace: Trace, after: _After, missing: tuple[str, ...] | None) -> tuple[str, str]:
    """Return the first kind that holds of a failed attempt, and its detail."""
    end = trace.end
    if trace.leaf.status == "unreadable":
        return "damaged", ""
    if end.outcome == "infrastructure":
        words = end.reason.removeprefix(f"{ProviderFailure.__name__}: ")
        lost = trace.leaf.status == "provider" or words != end.reason
        return ("provider" if lost else "harness"), _line(words)
    if rule := next((e.rule for e in _breaches(trace)), ""):
        return "rule", rule
    if end.outcome in ("agent_raised", "agent_timeout"):
        if cause := provider_failure(trace):
            return "provider", _line(cause)
        return ("raised" if end.outcome == "agent_raised" else "timeout"), _line(end.reason)
    worked = after.worked
    malformed = sum(a.step in after.refused and after.refused[a.step].malformed for a in worked)
    if 2 * malformed > len(worked):
        last = max(step for step, one in after.refused.items() if one.malformed)
        return "malformed", after.refused[last].call.error
    if 2 * sum(a.step in after.refused for a in worked) > len(worked):
        return "refused", ""
    return _own_end(trace, after, missing)


def _own_end(trace: Trace, after: _After, missing: tuple[str, ...] | None) -> tuple[str, str]:
    """Return the kind of an episode that broke nothing and was not stuck on refusals."""
    end = trace.end
    tools = [tool_of(a) for a in after.actions if a.step not in after.refused]
    if tools and not any(tool not in STANDARD for tool in tools):
        return "idle", ""
    if end.outcome == "infeasible":
        return "gave_up", ""
    if end.outcome == "truncated":
        return "budget", end.reason.removeprefix("budget:")
    asked = (e.step for e in trace.of(events.Intervention) if e.kind == "refused")
    if any(step > after.progress for step in asked):
        return "help", ""
    if after.actions and not _ends(after.actions[-1]):
        return "over", _line(end.reason)
    return ("early" if missing else "wrong"), ""


def _breaches(trace: Trace) -> Iterator[events.Violation]:
    return (e for e in trace.of(events.Violation) if e.severity == "disqualify")


def _last_progress(trace: Trace) -> int:
    """Return the last step that gained something the task needs, 0 without one.

    That is a verified action or a subgoal.
    """
    verified = (action.step for action in trace.of(events.Action) if action.verified)
    solved = (event.step for event in trace.of(events.Subgoal))
    return max((*verified, *solved), default=0)


def _drift_before(trace: Trace, left: int | None) -> str:
    """Return the highest class in effect of the drift before a step's action; "" for none."""
    classes: list[str] = []
    for event in trace.events:
        if isinstance(event, events.Action) and event.step == left:
            break
        if isinstance(event, events.Drift):
            classes.append(event.effective)
    return max(classes, default="")


def _refused_steps(trace: Trace, *, offered: bool) -> dict[int, _Refusal]:
    """Return the steps whose action was malformed or refused, by step.

    A step with calls of its own is refused if the last of them failed.
    """
    actions = {action.step: action for action in trace.of(events.Action)}
    refusals: dict[int, _Refusal] = {}
    calls = {call.step: call for call in trace.of(events.Call)}
    for step, call in calls.items():
        if not call.ok and step in actions:
            error = f"{call.method} HTTP {call.status}" if call.status else f"{call.method} failed"
            refusals[step] = _Refusal(RefusedCall(step, tool_of(actions[step]), error), False)
    for refusal in trace.of(events.CallRefusal):
        call_ = RefusedCall(refusal.step, refusal.tool, "refused by the suite's rules")
        refusals[refusal.step] = _Refusal(call_, False)
    names = {name for offer in trace.of(events.ToolOffer) for name in offer.names}
    for step, action in actions.items():
        if action.error is not None:
            malformed = not offered or _is_malformed(action.action, names)
            tool = "" if malformed else tool_of(action)
            error = _line(_RULE_END.split(action.error)[0])
            refusals[step] = _Refusal(RefusedCall(step, tool, error), malformed)
    return refusals


def _is_malformed(text: str, names: Collection[str]) -> bool:
    """Return whether an action has not the form of a call of a tool that was on offer."""
    try:
        action = bounded_json.decode(text)
    except ValueError:
        return True
    if type(action) is not dict or not action.keys() <= {"tool", "arguments"}:
        return True
    tool, arguments = action.get("tool"), action.get("arguments", {})
    return type(tool) is not str or tool not in names or type(arguments) is not dict


def tool_of(action: events.Action) -> str:
    """Return the tool that an action calls, "" where it has not the form of a call."""
    try:
        call = bounded_json.decode(action.action)
    except ValueError:
        return ""
    tool = call.get("tool") if type(call) is dict else None
    return tool if isinstance(tool, str) else ""


def _ends(action: events.Action) -> bool:
    return action.terminated and tool_of(action) in _ENDING


def _line(text: str) -> str:
    """Return a text as one line of a row."""
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


# --- a run ----------------------------------------------------------------------------


class FailureKindCount(msgspec.Struct, frozen=True):
    """Failed episodes of one kind: all, by arm in the plan's order, and the first."""

    kind: str
    episodes: int
    arms: tuple[tuple[str, int], ...]
    example: str


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Like failures: of one kind and detail, family, missed subgoal and last refused call.

    Where the detail says why by itself (`_OWN_CAUSE`), kind and detail alone make them like, and
    `missed` and `refused` are "". Subgoals are alike by their class (`node_class`), and numbers in
    details do not count. `left` is the first
    step off the path of the example, `drift` how many episodes had met which class by then.
    """

    families: tuple[str, ...]
    kind: str
    detail: str
    missed: str
    refused: str
    episodes: int
    arms: tuple[tuple[str, int], ...]
    drift: tuple[tuple[str, int], ...]
    example: str
    left: int | None = None


class FailureSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong in a run: `counted` episodes, `failed` of them, kinds and groups.

    `lost` are planned episodes that harness or provider took away; they are no failure. `graphs`:
    the run holds what subgoals its tasks have, as runs of earlier versions do not. `more_groups`
    are left out.
    """

    counted: int = 0
    failed: int = 0
    lost: int = 0
    graphs: bool = True
    arms: tuple[str, ...] = ()
    kinds: tuple[FailureKindCount, ...] = ()
    groups: tuple[FailureGroup, ...] = ()
    more_groups: int = 0


def summarise(
    arms: Sequence[str], episodes: Iterable[EpisodeReading], most_groups: int | None = None
) -> FailureSummary:
    """Return the kinds, in order of precedence, and the groups, the largest first.

    Args:
        arms: Names in the plan's order.
        episodes: Of the run, or of a part of it.
        most_groups: That are kept; None: all.
    """
    rows = FailureReadings()
    for episode in episodes:
        rows.add(episode)
    return rows.summary(arms, most_groups)


class FailureReadings:
    """Readings of episodes, added one by one; only those of failures are kept."""

    def __init__(self) -> None:
        self._failed: list[EpisodeReading] = []
        self._success: Counter[bool | None] = Counter()
        self._graphs = True

    def add(self, row: EpisodeReading) -> None:
        """Count an episode."""
        self._success[row.success] += 1
        self._graphs &= row.missing is not None or not row.subgoals
        if row.kind:
            self._failed.append(row)

    def summary(self, arms: Sequence[str], most_groups: int | None = None) -> FailureSummary:
        """Return what went wrong.

        Args:
            arms: Names in the plan's order.
            most_groups: That are kept; None: all.
        """
        by_kind: dict[str, list[EpisodeReading]] = {kind: [] for kind in KINDS}
        groups: dict[tuple[str, ...], list[EpisodeReading]] = defaultdict(list)
        for row in self._failed:
            by_kind[row.kind].append(row)
            groups[_likeness(row)].append(row)
        ordered = sorted(groups.values(), key=lambda group: (-len(group), group[0].index))
        return FailureSummary(
            counted=self._success[True] + self._success[False],
            failed=self._success[False],
            lost=self._success[None],
            graphs=self._graphs,
            arms=tuple(arms),
            kinds=tuple(
                FailureKindCount(kind, len(group), _by_arm(arms, group), group[0].attempt)
                for kind, group in by_kind.items()
                if group
            ),
            groups=tuple(_group(arms, group) for group in ordered[:most_groups]),
            more_groups=len(ordered[most_groups:]) if most_groups else 0,
        )


def _likeness(row: EpisodeReading) -> tuple[str, ...]:
    """Return what like failures share."""
    detail = _NUMBER.sub("#", row.detail)
    if row.kind in _OWN_CAUSE:
        return row.kind, detail
    refused = (row.refused.tool, row.refused.error) if row.refused else ("", "")
    return row.family, row.kind, detail, row.missed_class, *refused


def _group(arms: Sequence[str], group: Sequence[EpisodeReading]) -> FailureGroup:
    first, apart = group[0], group[0].kind in _OWN_CAUSE
    refused = f"{first.refused.tool} {first.refused.error}".strip() if first.refused else ""
    return FailureGroup(
        families=tuple(dict.fromkeys(row.family for row in group)),
        kind=first.kind,
        detail=first.detail,
        missed="" if apart else _shared_node(group),
        refused="" if apart else refused,
        episodes=len(group),
        arms=_by_arm(arms, group),
        drift=tuple(sorted(Counter(row.drift or "none" for row in group).items())),
        example=first.attempt,
        left=first.left,
    )


def _shared_node(group: Sequence[EpisodeReading]) -> str:
    """Return the missed subgoal of a group: its name, its class where names differ."""
    names = {row.missed for row in group}
    return names.pop() if len(names) == 1 else f"a subgoal ({group[0].missed_class})"


def _by_arm(arms: Sequence[str], group: Iterable[EpisodeReading]) -> tuple[tuple[str, int], ...]:
    counts = Counter(row.arm for row in group)
    return tuple((arm, counts[arm]) for arm in arms if counts[arm])


def agent_record(sequence: Iterable[AnyEvent], transcripts: Transcripts) -> str:
    """Return what a failed agent's process left, its traceback or its last prints.

    Args:
        sequence: The events of its attempt.
        transcripts: The blobs of the run.
    Returns: "" where it left nothing, or where the run does not hold it (any more).
    """
    for event in sequence:
        if isinstance(event, events.Evidence) and (event.source, event.name) == (
            "agent",
            AGENT_RECORD,
        ):
            try:
                return transcripts.read(event.blob).decode("utf-8", "replace")
            except TraceError:
                return ""
    return ""
