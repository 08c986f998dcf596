"""Operators on rules: what is decided changes, by day of receipt or for some customers."""

import datetime as dt

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.language.policy import MAILED
from owa_bench.company.messages import Mail
from owa_bench.drift.operator import operator
from owa_bench.envs.casework.kinds import KINDS
from owa_bench.envs.casework.world_edits import with_row
from owa_bench.seeding import pick

_FIRST, _LAST = 1, 8  # days before today from which a change may hold


def _rules(world: CaseWorld) -> tuple[str, ...]:
    return KINDS[world.kind].amendable(world)


def _amended(world: CaseWorld, target: str, rng: Generator, event: str) -> CaseWorld:
    """Return a world with a rule changed from a day of receipt on."""
    age = _FIRST + int(rng.integers(_LAST - _FIRST))
    first = world.begins.date() - dt.timedelta(age)
    values = KINDS[world.kind].amended_values(world, target, rng)
    return replace(world, policy=world.policy.amended(target, first, event=event, **values))


@operator(announcement="D1", weight=0.5, targets=_rules, group="rules")
def policy_amended(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Amend a rule for what is received from a day on; the page of changes says so.

    Changes: The rule's numbers from that day of receipt on.
    Leaves alone: The rule for what was received before, every other rule.
    Announcement: D1 (documented). Weight: 0.5.
    Source: docs/casework.md#drift.
    """
    return _amended(world, target, rng, "")


@operator(announcement="D2", weight=0.5, targets=_rules, group="rules")
def policy_mailed(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Amend a rule by a mail of the policy's owner; the page lags behind.

    Changes: The rule's numbers from a day of receipt on; a mail in the mailbox says so.
    Leaves alone: The page, the rule for what was received before, every other rule.
    Announcement: D2 (told in a mail alone). Weight: 0.5.
    Source: docs/casework.md#drift.
    """
    world = _amended(world, target, rng, MAILED)
    kind = KINDS[world.kind]
    owner = next(row for row in world.tables["people"] if row.role == kind.policy_owner)
    amendment = world.policy.amendments[-1]
    said = kind.form.write_amendment(world.policy, amendment, rng, practice=world.practice)
    at = dt.datetime.combine(amendment.first - dt.timedelta(1), dt.time(9, int(rng.integers(60))))
    mail = Mail(
        id=_free_key(world, at),
        sender=owner.email,
        to=world.mails[0].to,
        subject=f"{world.policy.title}/{amendment.number}",
        at=at,
        text=f"Dear all,\n{said}\nThe page of changes follows on another day.\n"
        f"{owner.name}, {owner.role}",
    )
    mails = sorted((*world.mails, mail), key=lambda one: (one.at, one.id))
    return replace(world, mails=tuple(mails))


def _free_key(world: CaseWorld, at: dt.datetime) -> str:
    """Return an unused key of a mail, near those of its time."""
    taken = {mail.id for mail in world.mails}
    taken |= {mail.id for event in world.events for mail in event.mails}
    later = [mail for mail in world.mails if mail.at > at]
    start = int(later[0].id[2:]) if later else int(world.mails[-1].id[2:])
    number = next(n for n in range(start - 1, start + 10_000) if f"m-{n}" not in taken)
    return f"m-{number}"


def _people(world: CaseWorld) -> tuple[str, ...]:
    return ("heads",)


@operator(announcement="D2", weight=0.5, targets=_people, group="rules")
def person_absent(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Let a person who approves be absent today; the deputy decides.

    Changes: The person's absence in the staff list.
    Leaves alone: Deputies, every other person.
    Announcement: D2 (seen in records). Weight: 0.5.
    Source: docs/casework.md#drift.
    """
    today = world.begins.date()
    leads = [row for row in world.tables["people"] if row.role.startswith("Team Lead")]
    free = [row for row in leads if row.away_from is None]
    if not free:
        return world
    person = pick(free, rng)
    last = today + dt.timedelta(int(rng.integers(5)))
    return with_row(world, "people", replace(person, away_from=today, away_to=last))
