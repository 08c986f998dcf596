"""The plan: everything decided before episode 0, then signed."""

import hashlib
import itertools
import math
import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from owa_bench.records.events import Condition, Phase, Side
from owa_bench.records.placement import PlacementTerms

SOURCE_RULE = 3  # of plans made now; see SuiteEntry
MOST = 1_000_000  # of anything counted in a plan; far above what can be played
SCHEMA = "owa-plan-2"
MAX_FAILURES = 3  # `Plan.attempt_rule`: attempts of an entry that the harness failed
MAX_PROVIDER_FAILURES = 2  # attempts of an entry that a provider failed, a call of run
PERSON = "person:"  # before the name of a person in an arm's agent
SCRIPTED_PERSON = "scripted-person:"  # a program in a person's place
HARNESS = "harness"  # hosting of a control policy, which the harness itself plays
READER = "reader:"  # a person or program that sees text files alone
# The assurance of a run is at most this, by the hosting of any of its agents.
WEAK_HOSTINGS: Mapping[str, int] = {
    "": 2,  # a plan that does not say
    "unsandboxed": 2,
    "in-process": 2,
    "local address": 2,
    "client": 2,
    "person": 2,
    "reader": 2,
    "remote": 4,
}
PRIVATE: Final = "private"  # an arm's root: nothing in common with another sandbox
SHARED: Final = "shared"
OWN_CODE: Final = "package"  # shared by agents of this package alone
KEY = re.compile(r"([0-9a-f]{64})?")  # a public key in hex, or none


class PlanEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One episode to be played, without its seed: HMAC(master, pair) gives that.

    `delta` is the nominal drift magnitude; in a campaign's practice it is None and `day` is the
    drift step. A campaign's checkpoint has both: its drift is `delta`'s, the same every day.
    `interventions` None means the supervisor is not limited, "protocol" the plan's `help_share` of
    the instance's horizon. `calendar` is the entry's own, empty the plan's: an entry with one shows
    a response to some drift alone and enters no axis. `control` marks what a ceiling on seats or a
    mute is compared on: axis S alone reads it. An entry with a `condition` belongs to an attempt
    set of a campaign: it enters no axis but R and plays on a throw-away copy. `window` holds the
    two mornings of the revision that it tests; `world_day`, where given, is its drift step in place
    of `day`, which is when it is played. `told` is set in trials whose agent is told whether the
    novelty is there, and then so much about it: -1 nothing, or that many hints of `SuiteCard.hints`
    and one more. Of an embodied suite `side` is the body, `unit` the one of the fleet on which its
    pair is played, and `repeat` the draw of the simulation's law, 0 its published numbers.
    """

    index: int
    arm: str
    pair: str
    suite: str
    version: int
    family: str
    tier: int
    repeat: int = 0
    delta: float | None = 0.0
    day: int | None = None
    interventions: int | Literal["protocol"] | None = None
    lane: str | None = None
    session: int = 0
    phase: Phase = "holdout"
    role_cap: int | None = None
    muted: bool = False
    control: bool = False
    calendar: str = ""
    tools_off: tuple[str, ...] = ()
    side: Side = "sim"
    condition: Condition = ""
    window: tuple[int, int] | None = None
    world_day: int | None = None
    told: int | msgspec.UnsetType = msgspec.UNSET
    unit: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def fleet(self) -> str:
        """The name from which the run's secret gives the seed of its fleet, "" without units."""
        return "" if isinstance(self.unit, msgspec.UnsetType) else f"fleet/{self.suite}"

    @property
    def morning(self) -> int | None:
        """The day whose morning's memory it begins with; None: the lane's present."""
        if self.condition == "before" and self.window is not None:
            return self.window[0]
        return self.day if self.condition and self.lane is not None else None

    @property
    def mornings(self) -> tuple[int, ...]:
        """Every morning whose memory it needs; an ablation needs both of its window."""
        both = (self.morning, self.window[0] if self.window else None)
        wanted = both if self.condition == "ablated" else both[:1]
        return tuple(day for day in wanted if day is not None)

    @property
    def keeps_memory(self) -> bool:
        """Whether its lane keeps what it changes: checkpoints and sets are copies."""
        return self.phase != "checkpoint" and not self.condition


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of the run: how to make it and the digest of what it is.

    `frozen` marks a control: its memory is thrown away after every episode. `placebo` marks one
    that practises where nothing of the holdout can be learnt, `baseline` the drift-blind agent of
    maintenance, `companion` one of the protocol's references, which plays stages of a placement
    beside the agent that is placed. `hosting` says where its code runs (`docs/isolation.md`); empty
    in older plans. `root` is PRIVATE where every sitting and seat has files and locks of its own,
    OWN_CODE where an agent of this package plays, which passes no bit by the kernel, "shared: " and
    why where it must and cannot, empty where nothing asks for it.
    """

    name: str
    agent: str
    fingerprint: str
    frozen: bool = False
    placebo: bool = False
    baseline: bool = False
    companion: bool = False
    hosting: str = ""
    root: str = ""

    @property
    def shared_root(self) -> str:
        """Why its sittings and seats can pass bits past the record, "" if not."""
        word, _, why = self.root.partition(": ")
        return why if word == SHARED else ""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Ceilings; None is no ceiling. Meter ceilings are (meter, amount) pairs."""

    steps: int | None = None
    act_s: float = 60.0
    episode_wall_s: float | None = None
    episode_meters: tuple[tuple[str, float], ...] = ()
    run_meters: tuple[tuple[str, float], ...] = ()


class SuiteEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A suite as it was when the plan was made; `native` as on its card.

    `source_rule` says which files `source_digest` is over: 1 all world types, 2 those that the
    suite, its operators and the calendars import, 3 the suite's folder, the operators of its domain
    and what drift is. `embodied` is set where the card says so: axis E alone reads its episodes.
    `groups` are the groups of its domain's operators, with the operators in each.
    """

    name: str
    version: int
    source_digest: str
    families: tuple[str, ...]
    honeypots: tuple[str, ...] = ()
    tiers: tuple[int, ...]
    weight: float = 1.0
    family_weights: tuple[tuple[str, float], ...] = ()
    native: bool = False
    source_rule: int = 1
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    embodied: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def apart(self) -> bool:
        """Whether its episodes enter no axis at all."""
        return self.native and self.embodied is not True


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The signed list of everything that will be played, and the terms.

    `battery_digest` is the SHA-256 of the battery's file, where the plan gives a level.
    `underpowered`: the battery is too small to place an agent. `dynamics` are the axes whose index
    kappa reads from day to day; none: all of the index but R. `challenger` is the public key of the
    verifier whose challenge enters the seeds, "" for none. `model_fields` are names of fields that
    the model gateway passes on though they are not on its list. `shared_worlds`: the worlds are
    those of another run; its agents have seen them. `placement`: the entries are a pool of which a
    rule chooses, batch by batch.
    """

    schema: str = SCHEMA
    name: str
    battery: str | None
    suites: tuple[SuiteEntry, ...]
    arms: tuple[Arm, ...]
    entries: tuple[PlanEntry, ...]
    budget: Budget
    commitment: str
    protocol_digest: str
    price_digest: str
    calendar: str
    attempt_rule: str = (
        "the last complete attempt counts and none follows it; "
        "after 3 that the harness failed no more are made; one that the model's "
        "provider failed never counts, and its entry is missing until a later attempt "
        "is complete; help given in a lost attempt counts as used; a second death of a "
        "worker under one entry scores 0"
    )
    help_share: float = 0.0
    environment: tuple[tuple[str, str], ...] = ()
    public_key: str = ""
    verifier_nonce: str | None = None
    transcripts: bool = True
    simulated_days: bool = True
    underpowered: bool = False
    dynamics: tuple[str, ...] = ()
    created: str = ""
    battery_digest: str = ""
    challenger: str = ""
    shared_worlds: bool = False
    model_fields: tuple[str, ...] = ()
    placement: PlacementTerms | None = None


class SampleSizes(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan gives one agent's gates to read.

    `tasks` are pairs by the axis that their suites give evidence on, `families` those of all
    suites, `projects` tasks of the suite of projects. Of a campaign: checkpoint episodes of the
    smallest family on a day, days with any, tasks of the smallest drifted lane of maintenance, days
    with one. 0: none.
    """

    tasks: Mapping[str, int]
    families: int
    projects: int
    family_day: int
    days: int
    lane: int
    lane_days: int


def supervisor_budget(plan: Plan, entry: PlanEntry, horizon: int) -> int | None:
    """Return how often an entry's agent may ask its supervisor, None: no limit.

    Args:
        plan: The plan.
        entry: One of its entries.
        horizon: H_t of the entry's instance, in verified actions.
    Returns: The count; under the protocol's budget ceil(help_share H_t).
    """
    if entry.interventions == "protocol":
        return math.ceil(plan.help_share * horizon)
    return entry.interventions


def fault(plan: Plan) -> str:
    """Return why a plan cannot be read as one, "" if it can.

    An entry that stands twice would count one attempt for two.
    """
    for place, entry in enumerate(plan.entries):
        if entry.index != place:
            return f"entry {entry.index} must stand at its place, got place {place}"
    if plan.schema != SCHEMA:
        return (
            f"it was written as {plan.schema!r} by an earlier version of owa_bench; "
            f"this one reads {SCHEMA!r}: read it with the version that wrote it"
        )
    if not KEY.fullmatch(plan.public_key):
        return f"`public_key` must be 64 hex digits, got {plan.public_key!r}"
    return ""


# --- digests of what a plan asks of an arm --------------------------------------------
# A battery and the suites fix every entry but the name of its arm, so the entries of
# the shipped batteries have digests that are known beforehand
# (`batteries/digests.json`). See docs/check-a-report.md.


_ENCODER = msgspec.json.Encoder(order="sorted")


def arm_role(arm: Arm) -> str:
    """Return what an arm is in its run.

    Returns: reference (a control policy, which knows the world), frozen, placebo, baseline,
        companion, or learner.
    """
    if arm.hosting == HARNESS:
        return "reference"
    for role in ("frozen", "placebo", "baseline", "companion"):
        if getattr(arm, role):
            return role
    return "learner"


# Who plays, when and where, and what has a digest or a check of its own.
NO_TERMS = frozenset(
    {"schema", "name", "battery", "suites", "arms", "entries", "commitment", "created"}
    | {"protocol_digest", "battery_digest", "environment", "public_key", "transcripts"}
    | {"verifier_nonce", "challenger"}
)


def arm_terms(plan: Plan, arm: Arm) -> str:
    """Return the digest of what a plan asks of one arm.

    It is over suites with their weights (not their sources), the entries of the arm, and each field
    of the plan that can make a task easier: budgets, deadlines, prices, calendar and so on. A field
    that is added to the plan is one of these until `NO_TERMS` names it; the dates of a placement,
    which make nothing easier, are left out. Entries of one day and kind may stand in any order:
    attempt sets are shuffled among the arms.

    Args:
        plan: The plan.
        arm: One of its arms.
    Returns: A SHA-256 in hex, equal for all agents that play the same battery.
    """
    if plan.placement is not None:
        one = msgspec.structs.replace(plan.placement, dates=1)
        plan = msgspec.structs.replace(plan, placement=one)
    suites = [
        msgspec.structs.replace(suite, source_digest="", source_rule=0, groups=())
        for suite in plan.suites
    ]
    terms = [
        (field, getattr(plan, field)) for field in Plan.__struct_fields__ if field not in NO_TERMS
    ]
    found = hashlib.sha256(_ENCODER.encode([suites, terms, arm_role(arm)]))
    own = (entry for entry in plan.entries if entry.arm == arm.name)
    for place, group in itertools.groupby(own, key=_place):
        found.update(_ENCODER.encode(place))
        for line in sorted(_ENCODER.encode(_unnamed(entry)) for entry in group):
            found.update(line)
    return found.hexdigest()


def _place(entry: PlanEntry) -> tuple[int | None, str, str]:
    """Return the part of a run in which an entry stands."""
    kind = "maintenance" if entry.condition in ("clean", "drifted") else "revision"
    return entry.day, entry.phase, kind if entry.condition else ""


def _unnamed(entry: PlanEntry) -> PlanEntry:
    """Return an entry without its place and the name of its arm."""
    lane = None if entry.lane is None else "own"
    return msgspec.structs.replace(entry, index=0, arm="", lane=lane)
