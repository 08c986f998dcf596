"""Placements: the terms that a plan signs, and the looks at what was played so far.

    looks/NNNN.dsse.json    DSSE envelope of LOOK_TYPE over a Look

A look is written before its next batch is played; the first one before anything is.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.canonical import canonical_json, peek, sha256
from owa_bench.errors import CheckFailure
from owa_bench.records.layout import RunLayout
from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateStatus

ASSURANCE = "assurance"  # the gate that no episode decides
FIRST_PRACTICE = "first practice"  # the stage that shows whether an agent keeps anything
POOL_GATES = frozenset("AGP") | {"tools"}  # decided by bets on the pool, at every level
RULE = "place-1"  # the name of the rule; another rule has another name
LEVELS = (1, 2)  # that a placement can decide
BAR = 20.0  # e-value that a PASS needs, by Ville's inequality .05
FRACTIONS = 24  # [D] bets: fractions of the largest stake that cannot be lost whole
HEDGE = 0.25  # [D] share of a family's stake that is not bet (axis G)
LOST_MOST = 0.02  # share of lost episodes above which there is no level
LOST_IN_STAGE = 0.005  # [D] share of lost episodes above which a stage is no evidence
# [D] Worlds that need a kind of tool after which it is given up if it is not in use: an agent that
# uses it with success in a quarter of them is in use of it by then in 99 of 100 placements.
KIND_TRIES = 24
DATES = 3  # dates that the level of a served model needs, and as many more a date against it
APART_H = 24  # hours at least between what was played on one date and the beginning of the next
DECIMALS = 6  # of the logarithms of evidence in a look


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a fixed number that are played whole, and judged once when they are.

    Attributes:
        name: Of the stage.
        gates: Gates of AAI-2 that are judged from it, as `stage_gate` names them.
        first: Its first entry.
        last: The entry behind its last.
        reads: Stages whose entries the gates read, with its own.
    """

    name: str
    gates: tuple[str, ...]
    first: int
    last: int
    reads: tuple[str, ...] = ()

    @property
    def indices(self) -> range:
        """Its entries."""
        return range(self.first, self.last)


class PlacementTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan says of its placement.

    Attributes:
        level: The level up to which the gates are decided.
        rule: Name of the rule.
        rule_digest: SHA-256 of the rule's constants (`rule_digest`).
        depth: Deepest plan that the suites ask for (axis P), in nodes.
        kappa_family: The one family on which an improvement is tested.
        stages: What is played after the pool, in order; none where the level is 1.
        dates: Dates that the level needs, each of one batch; 1 for an agent that does not change.
    """

    level: int
    rule: str
    rule_digest: str
    depth: int
    kappa_family: str
    stages: tuple[Stage, ...] = ()
    dates: int = 1


class DateMean(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate's worlds of one date earned over what is required.

    `least` counts lost worlds as 0 and `most` as 1. Of G: the worlds that were bet on as of a
    covered family, over the thresholds of their families.
    """

    worlds: int
    least: float
    most: float


class GateLine(msgspec.Struct, frozen=True, kw_only=True):
    """One gate at a look.

    `worlds` have a bet in it; `mean` is the weighted mean, `low` and `high` hold at all looks at
    once, each at 95 percent; `log_pass` and `log_below` are natural logarithms of the evidence,
    `bar` what the former must reach. `status` is PASS, BELOW or UNDECIDED, by the evidence alone.
    `dates` are its means by date, where the plan asks for several. A gate that is judged
    from a `stage` of fixed size has bounds of that one test, no logarithms, and its measurement in
    `note`; it may be NO EVIDENCE.
    """

    gate: str
    worlds: int
    mean: float | None
    required: float
    low: float
    high: float
    log_pass: float
    log_below: float
    bar: float
    status: GateStatus
    note: str = ""
    level: int = 1
    stage: str = ""
    dates: tuple[DateMean, ...] = ()

    @property
    def key(self) -> tuple[int, str]:
        """Its level and gate."""
        return self.level, self.gate


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One look: what the gates say, and the batch that is announced.

    Attributes:
        plan_digest: Of the run's plan.
        number: Its place, from 0.
        before: SHA-256 of the payload of the look before, "" for the first.
        evidence_root: Over every attempt on record at that time.
        attempts: How many those are.
        counts: Worlds played by family.
        gates: The gates of the level.
        decision: "go on", "wait" for another date, "AAI-N", "below AAI-N", "cap" or "too few kinds
            of tools".
        batch: Indices of the plan's entries that are played next; none where it stops.
        reads: The gates that read the batch.
        stage: The stage that the batch is; "" for one of the pool.
        at: The machine's own date and time; proves nothing.
        public_key: That signed it, in hex.
    """

    plan_digest: str
    number: int
    before: str
    evidence_root: str
    attempts: int
    counts: dict[str, int]
    gates: tuple[GateLine, ...]
    decision: str
    batch: tuple[int, ...]
    reads: tuple[str, ...]
    stage: str = ""
    at: str = ""
    public_key: str = ""


def stage_gate(rule: GateRule) -> str:
    """Return the name under which a placement knows a line of the gate table.

    Args:
        rule: The protocol's line.
    """
    return rule.of if rule.gate in ("axis", "closure") else rule.gate


def rule_digest() -> str:
    """Return the digest of the constants of this version's rule."""
    constants = [RULE, LEVELS, BAR, FRACTIONS, HEDGE, LOST_MOST, LOST_IN_STAGE, KIND_TRIES, DATES]
    return sha256(canonical_json([*constants, APART_H, DECIMALS]))


def look_path(layout: RunLayout, number: int) -> Path:
    """Return the file of a look.

    Args:
        layout: The run directory.
        number: Of the look, from 0.
    """
    return layout.looks / f"{number:04d}.dsse.json"


class SignedLook(NamedTuple):
    """A look on record, the digest of its payload, and its whole envelope."""

    look: Look
    digest: str
    envelope: bytes


def signed_look(envelope: bytes) -> SignedLook:
    """Return a look as its envelope holds it, whoever signed it.

    Raises: CheckFailure: It is no look.
    """
    payload = peek(envelope)
    try:
        look = msgspec.json.decode(payload, type=Look)
    except (ValueError, RecursionError) as error:
        raise CheckFailure(f"It must be a look of a placement: {error}.") from error
    return SignedLook(look, sha256(payload), envelope)


def signed_looks(layout: RunLayout) -> Iterator[SignedLook]:
    """Yield the looks of a run directory in order, whoever signed them.

    Raises: CheckFailure: One does not read.
    """
    number = 0
    while (path := look_path(layout, number)).exists():
        envelope = path.read_bytes()
        try:
            signed = signed_look(envelope)
        except CheckFailure as error:
            raise CheckFailure(f"{path} is no look: {error}") from error
        yield signed
        number += 1


def announced(layout: RunLayout, begun: Collection[int]) -> frozenset[int]:
    """Return the entries that a placement's looks announced.

    A last batch of which nothing was begun is left out: the run stopped before it.

    Args:
        layout: The run directory.
        begun: Entries with any attempt.
    """
    batches = [one.look.batch for one in signed_looks(layout)]
    if batches and not set(batches[-1]) & set(begun):
        batches.pop()
    return frozenset(index for batch in batches for index in batch)
