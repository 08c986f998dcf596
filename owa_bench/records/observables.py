"""The table that scoring reads: frozen arrays with a row per counted episode.

A value that the trace cannot tell is NaN (a cost without a price, a nominal magnitude
in a campaign, a forecast that was not stated).
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

    `lag` is in days. `verified` holds a column per returned slot (False where none
    was returned), `returned` how many were. `contrary` is NaN where none was checked.
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
    contrary: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """Self-revisions, a row each, in order; NaN where a capability is not confirmed.

    `capability` holds before, after, control before, control after and ablated.
    `filters` and `evidence` are tuples of text, `fractions` (rows, 3).
    """

    row: Integers
    decision: Names
    family: Names
    plan: Names
    fractions: Floats
    capability: Floats
    filters: Array
    evidence: Array


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


CAPABILITIES = ("before", "after", "control_before", "control_after", "ablated")
SEVERITIES = ("near_miss", "minor", "major", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """How roles worked together in each episode, a row each.

    `cap` is the ceiling on active roles (NO_CAP without one), `conflict` whether one
    stayed open. `idle`, `cycle`, `same` and `same_words` are the longest runs of
    turns without a new verified action, in a repeated cycle of calls, of one and the
    same call, and of messages whose sketches differ from the one before in at most so
    many bits as the column counts (the same to the letter always counts).
    """

    cap: Integers
    muted: Flags
    conflict: Flags
    idle: Integers
    cycle: Integers
    same: Integers
    same_words: Integers
    messages: Integers
    tokens: Integers
    verified: Integers

    def take(self, mask: Flags) -> "Crew":
        """Return the rows where `mask` holds."""
        columns = {item.name: getattr(self, item.name)[mask] for item in fields(self)}
        return replace(self, **columns)


NO_CAP = 0  # an episode without a ceiling on its roles
NEAR = 17  # columns of `same_words`: bits by which near-duplicates may differ, 0 to 16
EntryTable = TypeVar("EntryTable", Beliefs, Probes, Revisions, Faults, TrackingSamples)


def _entries_of(table: EntryTable, mask: Flags) -> EntryTable:
    """Return the entries of the episodes where `mask` holds, rows counted anew."""
    rows = np.cumsum(mask) - 1
    chosen = mask[table.row]
    columns = {item.name: getattr(table, item.name)[chosen] for item in fields(table)}
    return replace(table, **(columns | {"row": rows[table.row[chosen]]}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observables:
    """Episodes as columns.

    `family` is "suite/family". `calendar` is an entry's own drift calendar, "" for the
    run's. `q` is the proper score Q, `q_state` the state's own
    quality, `u` success, `n` verified actions in the longest run without help, `d` the
    longest solved path, `horizon` H_t (not capped), `horizon_cap` H (0: the
    protocol's), `depth` D_t. Costs are micro-USD.
    `interventions` is the budget (UNLIMITED is -1), `helped` the uses. `classes` holds
    a column per announcement class D0..D3 present in the episode's drift; `used`,
    `discovered` and `offered` a column per name in `categories`. `cost_checked_help`
    is the part of the evaluation stream that a supervisor's minutes make. `spent` holds
    an amount per (stream, meter) of `spent_by`, which begins with `SPENT`. `breach` is
    the text of an episode's violations, "" for none. `incidents` holds a column per
    severity (SEVERITIES), `exposure_s` the seconds under the safety envelope. A
    disqualified episode holds 0 in q, q_state, u, n and d. `unknown_usage` says why an
    episode's cost is unknown under any price card, "" where it is known.
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
    theta: Floats
    stated: Floats
    failed_attempts: Integers
    steps: Integers
    simulated_s: Floats
    wall_s: Floats
    outcome: Names
    needs_tools: Flags
    honeypot: Flags
    disqualified: Flags
    breach: Array
    unknown_usage: Names
    cost_agent: Floats
    cost_human: Floats
    cost_evaluation: Floats
    cost_checked_help: Floats
    spent: Floats
    spent_by: tuple[tuple[str, str], ...]
    classes: Flags
    categories: tuple[str, ...]
    used: Flags
    discovered: Flags
    offered: Flags
    side: Names
    incidents: Integers
    exposure_s: Floats
    crew: Crew
    beliefs: Beliefs
    probes: Probes
    revisions: Revisions
    faults: Faults
    tracking: TrackingSamples

    def __len__(self) -> int:
        return len(self.index)

    def usage_gaps(self) -> str:
        """Return why costs are unknown whatever the prices, "" if they are known."""
        return "; ".join(sorted(set(self.unknown_usage.tolist()) - {""}))

    def take(self, mask: Flags) -> "Observables":
        """Return the rows where `mask` holds, in order."""
        entries = ("beliefs", "probes", "revisions", "faults", "tracking")
        apart = ("categories", "spent_by", "crew", *entries)
        columns = {
            item.name: getattr(self, item.name)[mask]
            for item in fields(self)
            if item.name not in apart
        }
        tables = {name: _entries_of(getattr(self, name), mask) for name in entries}
        return replace(self, **columns, crew=self.crew.take(mask), **tables)
