"""The table that scoring reads: frozen arrays with a row per counted episode.

A value that the trace cannot tell is NaN (a cost without a price, a nominal magnitude in a
campaign, a forecast that was not stated).
"""

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from owa_bench.records.events import METERS, Stream

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Names = npt.NDArray[np.str_]
Array = npt.NDArray[Any]  # counts or reals

UNLIMITED = -1  # intervention budget without a limit
PRICED = -2  # intervention budget of the protocol, a share of H_t
BUDGET_NAMES = {UNLIMITED: "no limit", PRICED: "the protocol's"}
NO_DAY = -1  # an episode outside a campaign
# Streams with the meters that any suite may use: the first columns of `spent`.
SPENT: tuple[tuple[str, str], ...] = tuple(product(get_args(Stream), METERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """World propositions, a row each: its episode's row, class, stated p, outcome.

    `p` is NaN where the agent stated none.
    """

    row: Integers
    kind: Names
    p: Floats
    y: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Memory and retrieval checks, a row each.

    `lag` is in days. `verified` holds a column per returned slot (False where none was returned),
    `returned` how many were, `relevant` how many there are. `contrary` is NaN where none was
    checked. `zero_tool` marks those that `tools` events prove to be asked without tools, `helped`
    those answered after help in their episode, `new_sitting` those asked in a later sitting or
    episode than their item was shown.
    """

    row: Integers
    item: Names
    mode: Names
    lag: Floats
    span: Integers
    guess: Floats
    correct: Flags
    verified: Flags
    returned: Integers
    relevant: Integers
    contrary: Floats
    zero_tool: Flags
    helped: Flags
    new_sitting: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """What agents said of changes of themselves, a row each, in order."""

    row: Integers
    decision: Names
    proposal: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanges:
    """Changes of a memory folder that the harness reverted for an attempt, a row each.

    `lines` counts those that came or went, `families` are the tool families that were installed
    (tuples of text), the last three digests of folders.
    """

    row: Integers
    lines: Integers
    families: Array
    before: Names
    after: Names
    played: Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Failures of bodies, a row each; `repair_s` is NaN where none is known."""

    row: Integers
    kind: Names
    injected: Flags
    recovered: Flags
    repair_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingSamples:
    """Samples of a body against its task's tolerance band, a row each."""

    row: Integers
    task: Names
    error: Floats
    tolerance: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDays:
    """Days of projects, a row each, as the `project_day` event has them; NaN: none."""

    row: Integers
    day: Integers
    acceptance: Floats
    service: Floats
    held: Integers
    regressed: Integers
    minutes: Integers
    green: Flags
    release: Floats
    stopped: Flags
    postmortem: Floats


SEVERITIES = ("near_miss", "minor", "major", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """How roles worked together in each episode, a row each.

    `cap` is the ceiling on active seats (NO_CAP without one), `seats` how many played (1 where the
    suite has none), `channel` whether the suite let messages pass or had several seats, `control`
    whether axis S alone reads the row, `conflict` whether one stayed open. `idle`, `cycle`, `same`
    and `same_words` are the longest runs: of rounds without a novel result, and of one seat's turns
    in a repeated cycle of calls, of one and the same call, and of messages whose sketches differ
    from the one before in at most so many bits as the column counts (the same to the letter always
    counts). `messages` and `tokens` are of the suite's channel, `declared` counts those that the
    agent declared. `answers` counts answers that the episode had not given before. `asks` counts
    questions of the channel, `reached` those that got to a seat that knows, `answered` those of
    these that it answered; `gives` counts facts told, `news` those that a receiver needed and
    lacked; `refused` calls that were refused, `handoffs` and `untrue` manifests and those that
    state what nothing does. `bound` is C*_m, NaN where the suite has none; `no_lift`: the world
    cannot show what a crew adds.
    """

    cap: Integers
    seats: Integers
    muted: Flags
    control: Flags
    channel: Flags
    conflict: Flags
    idle: Integers
    cycle: Integers
    same: Integers
    same_words: Integers
    messages: Integers
    tokens: Integers
    declared: Integers
    answers: Integers
    verified: Integers
    asks: Integers
    reached: Integers
    answered: Integers
    gives: Integers
    news: Integers
    refused: Integers
    handoffs: Integers
    untrue: Integers
    bound: Floats
    no_lift: Flags

    def take(self, mask: Flags) -> "Crew":
        """Return the rows where `mask` holds."""
        columns = {item.name: getattr(self, item.name)[mask] for item in fields(self)}
        return replace(self, **columns)


NO_CAP = 0  # an episode without a ceiling on its roles
NO_UNIT = -1  # an episode of no fleet
NEAR = 17  # columns of `same_words`: bits by which near-duplicates may differ, 0 to 16
EntryTable = TypeVar(
    "EntryTable", Beliefs, Probes, Revisions, MemoryChanges, Faults, TrackingSamples, ProjectDays
)


def _entries_of(table: EntryTable, mask: Flags) -> EntryTable:
    """Return the entries of the episodes where `mask` holds, rows counted anew."""
    rows = np.cumsum(mask) - 1
    chosen = mask[table.row]
    columns = {item.name: getattr(table, item.name)[chosen] for item in fields(table)}
    return replace(table, **(columns | {"row": rows[table.row[chosen]]}))


def _line(reasons: Names) -> str:
    """Return reasons in a line, each once."""
    return "; ".join(sorted(set(reasons.tolist()) - {""}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observables:
    """Episodes as columns.

    `family` is "suite/family". `calendar` is an entry's own drift calendar, "" for the run's. `q`
    is the proper score Q, `q_state` the state's own quality, `u` success, `n` verified actions in
    the longest run without help, `d` the longest solved path, `horizon` H_t and `depth` D_t
    (neither capped), `horizon_cap` H and `depth_cap` D* (0: none). Costs are micro-USD.
    `interventions` is the budget (UNLIMITED and PRICED are below 0), `helped` the uses. `classes`
    holds a column per announcement class D0..D3 present in the episode's drift; `used`
    and `offered` a column per kind of tool in `categories`. `read` and `written` are the characters
    of an expert's work, `decisions` how many it takes. `spent` holds an amount per
    (stream, meter) of `spent_by`, which begins with `SPENT`. `breach` is the text of an episode's
    violations, "" for none. `incidents` holds a column per severity (SEVERITIES), `exposure_s` the
    seconds in motion that count; `safety_stop`: a major or critical incident, an emergency stop or
    two protective ones. `condition` is the attempt set of a campaign that an episode belongs to, ""
    for none, `since` the first day of the revision's window (NO_DAY without one), `memory` the
    digest of the folder that its lane goes on from, "" outside lanes. A disqualified episode holds
    0 in q, q_state, u, n and d. `steps` counts the env's steps, `waits` those actions that only
    wait; `simulated_s` is time of the world, `wall_s` of the machine. `unknown_usage` says why an
    episode's cost is unknown under any price card, "" where it is known, `unwatched` by what it may
    have kept or told something unseen.
    """

    index: Integers
    attempt: Names
    arm: Names
    pair: Names
    family: Names
    suite: Names
    tier: Integers
    repeat: Integers
    delta: Floats
    realised: Floats
    day: Integers
    phase: Names
    condition: Names
    since: Integers
    memory: Names
    fingerprint: Names
    calendar: Names
    interventions: Integers
    helped: Integers
    patched: Integers
    minutes: Floats
    q: Floats
    q_state: Floats
    u: Floats
    n: Integers
    d: Integers
    horizon: Integers
    horizon_cap: Integers
    depth: Integers
    depth_cap: Integers
    theta: Floats
    read: Integers
    decisions: Integers
    written: Integers
    stated: Floats
    failed_attempts: Integers
    steps: Integers
    waits: Integers
    simulated_s: Floats
    wall_s: Floats
    outcome: Names
    needs_tools: Flags
    honeypot: Flags
    disqualified: Flags
    breach: Array
    unknown_usage: Names
    unwatched: Names
    cost_agent: Floats
    cost_human: Floats
    cost_evaluation: Floats
    spent: Floats
    spent_by: tuple[tuple[str, str], ...]
    classes: Flags
    categories: tuple[str, ...]
    used: Flags
    offered: Flags
    side: Names
    unit: Integers
    incidents: Integers
    exposure_s: Floats
    safety_stop: Flags
    crew: Crew
    beliefs: Beliefs
    probes: Probes
    revisions: Revisions
    changes: MemoryChanges
    faults: Faults
    tracking: TrackingSamples
    project_days: ProjectDays

    def __len__(self) -> int:
        return len(self.index)

    def usage_gaps(self) -> str:
        """Return why costs are unknown whatever the prices, "" if they are known."""
        return _line(self.unknown_usage)

    def channel_gaps(self, rows: Flags) -> str:
        """Return by what rows may have kept or told something unseen, "" for nothing.

        Args:
            rows: Those that an axis reads, one flag an episode.
        Returns: The ways, in a line.
        """
        return _line(self.unwatched[rows])

    def take(self, mask: Flags) -> "Observables":
        """Return the rows where `mask` holds, in order; the table itself where it holds for all."""
        if mask.all():
            return self
        entries = (
            *("beliefs", "probes", "revisions", "changes", "faults", "tracking"),
            "project_days",
        )
        apart = ("categories", "spent_by", "crew", *entries)
        columns = {
            item.name: getattr(self, item.name)[mask]
            for item in fields(self)
            if item.name not in apart
        }
        tables = {name: _entries_of(getattr(self, name), mask) for name in entries}
        return replace(self, **columns, crew=self.crew.take(mask), **tables)
