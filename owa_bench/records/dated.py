"""Dates of a placement: a verifier's word when a look was there, and when it was played on.

    dates/NNNN.dsse.json    DSSE envelope of DATE_TYPE over a LookDate, by the plan's challenger

A verifier closes a look when it first sees it: all that the look's root holds was played before.
Asked again APART_H later it opens the look with a nonce that enters the seeds of the batch which
the look announces: that was played after. The machine's own clock proves nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import msgspec

from owa_bench.canonical import unseal
from owa_bench.errors import CheckFailure
from owa_bench.records.layout import DATE_TYPE, RunLayout
from owa_bench.records.placement import APART_H, SignedLook, signed_looks
from owa_bench.records.plan import Plan

APART = timedelta(hours=APART_H)
NO_NAMES: Mapping[str, str] = MappingProxyType({})  # every pair is named by itself


class LookDate(msgspec.Struct, frozen=True, kw_only=True):
    """A verifier's answer for one look of a placement.

    Attributes:
        plan_digest: Of the run's plan.
        look: The look's number.
        look_digest: SHA-256 of its payload.
        number: Which of the plan's looks this verifier dated, from 1.
        closed: When the verifier first saw it (ISO 8601, UTC).
        opened: When it first told the nonce, "" before.
        nonce: Enters the seeds of the batch that the look announces.
    """

    plan_digest: str
    look: int
    look_digest: str
    number: int
    closed: str
    opened: str = ""
    nonce: str = ""


def date_path(layout: RunLayout, look: int) -> Path:
    """Return the file of a look's date.

    Args:
        layout: The run directory.
        look: Number of the look.
    """
    return layout.dates / f"{look:04d}.dsse.json"


def read_date(envelope: bytes, plan: Plan, plan_digest: str, signed: SignedLook) -> LookDate:
    """Return what a verifier says of a look.

    Args:
        envelope: The answer.
        plan: The run's plan, which names who may answer.
        plan_digest: Its digest.
        signed: The look.
    Raises: CheckFailure: It is not signed by the plan's challenger, is of another plan or look, or
        opens before its time.
    """
    try:
        payload = unseal(envelope, bytes.fromhex(plan.challenger), DATE_TYPE)
        date = msgspec.json.decode(payload, type=LookDate)
        closed = time_of(date.closed)
        apart = time_of(date.opened) - closed if date.opened else APART
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckFailure(f"it is no date of key {plan.challenger[:16]}: {error}") from error
    if date.plan_digest != plan_digest:
        raise CheckFailure("it is of another plan")
    if (date.look, date.look_digest) != (signed.look.number, signed.digest):
        raise CheckFailure("it is of another look")
    if bool(date.opened) != bool(date.nonce) or apart < APART:
        raise CheckFailure(f"it opens less than {APART_H} hours after it was closed")
    return date


def time_of(text: str) -> datetime:
    """Return a signed time; ValueError where it names no zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} must name its zone")
    return moment.astimezone(UTC)


def dates_of(layout: RunLayout, plan: Plan, plan_digest: str) -> Mapping[int, LookDate]:
    """Return the dates of a placement's looks that hold, by number of the look.

    Args:
        layout: The run directory.
        plan: Its plan.
        plan_digest: Of the plan.
    """
    found: dict[int, LookDate] = {}
    if not plan.challenger or not layout.dates.exists():
        return found
    for signed in signed_looks(layout):
        path = date_path(layout, signed.look.number)
        try:
            found[signed.look.number] = read_date(path.read_bytes(), plan, plan_digest, signed)
        except (OSError, CheckFailure):  # `verify` says which does not hold
            continue
    return found


def date_faults(layout: RunLayout, plan: Plan, plan_digest: str) -> Sequence[str]:
    """Return where the dates of a placement do not hold, or some are not there.

    Args:
        layout: The run directory.
        plan: Its plan.
        plan_digest: Of the plan.
    """
    faults, looks = [], {one.look.number: one for one in signed_looks(layout)}
    for path in sorted(layout.dates.glob("*")):
        signed = next((one for n, one in looks.items() if date_path(layout, n) == path), None)
        try:
            if signed is None:
                raise CheckFailure("it is of no look on record")
            read_date(path.read_bytes(), plan, plan_digest, signed)
        except (OSError, CheckFailure) as error:
            faults.append(f"{layout.dates.name}/{path.name}: {error}")
    numbers = [date.number for _, date in sorted(dates_of(layout, plan, plan_digest).items())]
    if not faults and numbers != [*range(1, len(numbers) + 1)]:
        lacking = next(k for k, n in enumerate([*numbers, 0], 1) if n != k)
        faults.append(f"the verifier's date {lacking} of this plan is not on record")
    return faults


def seed_names(layout: RunLayout, plan: Plan, plan_digest: str) -> Mapping[str, str]:
    """Return the names under which seeds are drawn of pairs that were played on a later date.

    Args:
        layout: The run directory.
        plan: Its plan.
        plan_digest: Of the plan.
    Returns: By pair; one that is not in it is named by itself.
    """
    names: dict[str, str] = {}
    if plan.placement is None or plan.placement.dates == 1:
        return names
    dates = dates_of(layout, plan, plan_digest)
    for signed in signed_looks(layout):
        date = dates.get(signed.look.number)
        if date is not None and date.nonce:
            pairs = {plan.entries[index].pair for index in signed.look.batch}
            names |= {pair: f"{pair} {date.nonce}" for pair in pairs}
    return names
