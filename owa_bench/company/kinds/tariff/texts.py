"""Pages, mails, events and people's knowledge of a world of the kind `tariff`."""

import datetime as dt
from collections.abc import Mapping

import numpy as np

from owa_bench.company.draw import Company
from owa_bench.company.kinds.arranging import NEWSLETTERS, mail_keys
from owa_bench.company.kinds.contract import CaseSpec, CaseWorld
from owa_bench.company.kinds.tariff.matter import TariffMatter
from owa_bench.company.language.policy import Policy
from owa_bench.company.language.tariff_departures import (
    conditions,
    departure,
    departure_words,
    effects,
    is_form,
)
from owa_bench.company.language.tariff_form import (
    FUEL_CORRECTION,
    FUEL_UNTIL,
    FUEL_WEEK,
    RELEASE,
    RELEASE_TODAY,
    tariff_of,
)
from owa_bench.company.language.tariff_rules import Departure
from owa_bench.company.language.text import Sentence
from owa_bench.company.messages import CaseEvent, ChatFact, Mail, Page
from owa_bench.company.tables import Employee
from owa_bench.seeding import derive, pick, stream

FUEL_EVENT, RELEASE_EVENT = "fuel", "release"
_NOTES_LEVEL = 2
_NEVER = 11  # tenths of the items: nothing is settled before it is handed in
_LETTERS = 5  # mails in the mailbox at the beginning
_CLERKS = {
    1: "All bills are made by the engine.",
    2: "Clerks may change a bill by hand; the bill says whether the engine or a clerk made it.",
    3: "Clerks may change a bill by hand; nobody records which bills they changed.",
}


class TariffTexts:
    """What is written and known around the engine of a world.

    Args:
        spec: What the world is drawn from.
        company: Gives the people.
        policy: The published tariff.
        matter: The engine.
        begins: When the case begins.
    """

    def __init__(
        self,
        spec: CaseSpec,
        company: Company,
        policy: Policy,
        matter: TariffMatter,
        begins: dt.datetime,
    ) -> None:
        self._spec, self._policy, self._matter, self._begins = spec, policy, matter, begins
        self._rng = stream(spec.seed, "tariff", "texts", spec.level)
        people = tuple(company.books.people.values())
        self._pricing = _person(people, "Pricing Manager", self._rng)
        self._support = _person(people, "IT Support", self._rng)
        self._desk = _person(people, "Order Desk", self._rng)
        major = 2 + int(self._rng.integers(6))
        self._versions = (f"{major}.{int(self._rng.integers(1, 5))}", f"{major}.6", f"{major}.9")
        self._release_minute = 5 * int(self._rng.integers(9, 22))
        self._fuel_until = 5 * int(self._rng.integers(30, 46))
        self._fuel_minute = self._fuel_until - 5 * int(self._rng.integers(1, 8))
        self._today = begins.date()
        self._keys = mail_keys(_LETTERS + 2, self._rng)
        self.text_seed = derive(spec.seed, "tariff", "wordings", spec.level)

    def pages(self) -> tuple[Page, ...]:
        """Return the pages of the wiki, the tariff apart."""
        monday = self._today - dt.timedelta(self._today.weekday())
        found = [
            self._page("fuel-bulletin", "Fuel bulletin", self._pricing, monday, self._bulletin()),
            self._releases_page(live=False),
            self._page(
                "freight-bills",
                "How freight bills come about",
                self._pricing,
                self._today - dt.timedelta(30),
                "The rating engine prices each shipment on the day of pickup. "
                + _CLERKS[self._spec.level],
            ),
        ]
        if self._spec.level >= _NOTES_LEVEL:
            found.append(self._notes())
        return tuple(found)

    def mails(self) -> tuple[Mail, ...]:
        """Return what lies in the mailbox at the beginning."""
        places = self._rng.permutation(len(NEWSLETTERS))[:_LETTERS].tolist()
        ages = sorted(self._rng.integers(20, 3_000, _LETTERS).tolist(), reverse=True)
        return tuple(
            self._mail(key, self._desk, *NEWSLETTERS[place], age=age)
            for key, place, age in zip(self._keys, places, ages, strict=False)
        )

    def events(self) -> tuple[CaseEvent, ...]:
        """Return the last release and the correction of the fuel percentage, as far as drawn."""
        matter, found = self._matter, []
        if matter.release_event:
            version, key = self._versions[2], self._keys[_LETTERS]
            text = f"Version {version} of the rating engine is live. The page on releases says so."
            found.append(
                CaseEvent(
                    name=RELEASE_EVENT,
                    minute=self._release_minute,
                    tenths=_NEVER,
                    mails=(self._mail(key, self._support, f"Version {version} is live", text),),
                    pages=(self._releases_page(live=True),),
                )
            )
        if matter.correction[0]:
            text = self._write(
                FUEL_CORRECTION,
                first=dt.date.fromisoformat(matter.correction[0]),
                percent=matter.correction[1],
            )
            subject = pick(("Fuel bulletin", "Fuel percentage", "Note on fuel"), self._rng)
            found.append(
                CaseEvent(
                    name=FUEL_EVENT,
                    minute=self._fuel_minute,
                    tenths=_NEVER,
                    mails=(
                        self._mail(
                            self._keys[_LETTERS + 1],
                            self._pricing,
                            subject,
                            f"{text} The engine has it since a minute ago; the page will follow "
                            "next week.",
                        ),
                    ),
                )
            )
        return tuple(sorted(found, key=lambda event: event.minute))

    def facts(self) -> tuple[ChatFact, ...]:
        """Return what people know about the engine."""
        return (
            ChatFact(
                roles=("IT Support",),
                words=("rule", "engine", "code", "departure", "condition"),
                answer="Each departure changes one number of one clause, or adds one fee or one "
                "percentage, for shipments that meet one condition on one field, or for all.",
            ),
            ChatFact(
                roles=("Pricing Manager",),
                words=("tariff", "published", "bill", "clerk"),
                answer="The page is what we published. Customers pay what the engine bills. "
                + _CLERKS[self._spec.level],
            ),
            ChatFact(
                roles=("Pricing Manager", "IT Support"),
                words=("fuel", "percentage", "bulletin"),
                answer="The engine takes the fuel percentage of the bulletin, with corrections.",
            ),
            ChatFact(
                roles=("Order Desk",),
                words=("notice", "odd", "strange", "rule", "departure"),
                answer=f"I have heard that {departure_words(self._false())}. I never checked it.",
            ),
        )

    def _bulletin(self) -> str:
        lines = [
            self._write(FUEL_WEEK, monday=dt.date.fromisoformat(day), percent=percent)
            for day, percent in self._matter.fuel.items()
        ]
        if self._spec.level >= _NOTES_LEVEL:
            lines.append(self._write(FUEL_UNTIL, time=self._clock(self._fuel_until)))
        return "\n".join(lines)

    def _releases_page(self, *, live: bool) -> Page:
        matter = self._matter
        first = self._policy.since
        lines = [self._write(RELEASE, version=self._versions[0], first=first)]
        updated = first
        if matter.released:
            lines.append(self._write(RELEASE, version=self._versions[1], first=matter.history_ends))
            updated = matter.history_ends
        if matter.late:
            updated = self._today
            version = self._versions[2]
            if matter.release_event and not live:
                lines.append(
                    self._write(
                        RELEASE_TODAY,
                        version=version,
                        time=self._clock(self._release_minute),
                        first=matter.late_from,
                    )
                )
            else:
                lines.append(self._write(RELEASE, version=version, first=matter.late_from))
        return self._page(
            "rater-releases",
            "Releases of the rating engine",
            self._support,
            updated,
            "\n".join(lines),
        )

    def _notes(self) -> Page:
        rules = [self._false(), pick(self._matter.departures, self._rng)]
        rules = [rules[n] for n in self._rng.permutation(2).tolist()]
        lines = [f"- I think that {departure_words(rule)}." for rule in rules]
        day = self._today - dt.timedelta(int(self._rng.integers(40, 90)))
        return self._page(
            "freight-notes", "What I noticed about freight", self._desk, day, "\n".join(lines)
        )

    def _false(self) -> Departure:
        """Return a departure that the engine does not have, of a clause that it follows."""
        tariff = tariff_of(self._policy)
        touched = {rule.section for rule in self._matter.departures}
        menu = [one for one in effects(tariff) if one[0] not in touched and one[0] != "new"]
        known = conditions(tariff)
        while True:
            effect, condition = pick(menu, self._rng), pick(known, self._rng)
            if is_form(tariff, effect, condition):
                return departure(effect, condition)

    def _write(self, sentence: Sentence, **values: object) -> str:
        return sentence.write(self._rng, practice=self._spec.practice, **values)

    def _clock(self, minute: int) -> str:
        return (self._begins + dt.timedelta(minutes=minute)).strftime("%H:%M")

    def _page(self, slug: str, title: str, by: Employee, updated: dt.date, text: str) -> Page:
        return Page(slug=slug, title=title, updated=updated, by=by.name, text=text)

    def _mail(self, key: str, sender: Employee, subject: str, text: str, age: int = 0) -> Mail:
        return Mail(
            id=key,
            sender=sender.email,
            to="freight desk",
            subject=subject,
            at=self._begins - dt.timedelta(minutes=age),
            text=f"Hello all,\n{text}\n{sender.name}",
        )


def _person(people: tuple[Employee, ...], role: str, rng: np.random.Generator) -> Employee:
    return pick([person for person in people if person.role == role], rng)


def brief_text(world: CaseWorld, weights: Mapping[str, float]) -> str:
    """Return the task as the agent reads it.

    Args:
        world: The one that is played.
        weights: Of the parts of the quality.
    """
    matter: TariffMatter = world.matter
    days = sorted(row.pickup for row in world.tables["planned"])
    today = world.begins
    share = {name: f"{100 * weight:.0f} percent" for name, weight in weights.items()}
    lines = (
        "# Task",
        f"You work at the freight desk of {world.firm} ({world.trade}). It is "
        f"{today:%A}, {today.day} {today:%B %Y}, {today:%H:%M}. The desk closes at "
        f"{world.ends:%H:%M}.",
        f"Forecast what the carrier will bill for {len(days)} planned shipments with pickups from "
        f"{days[0].isoformat()} to {days[-1].isoformat()}. The carrier's rating engine makes the "
        "bills. It departs from the published tariff, and nobody remembers how.",
        "",
        "# Hand in",
        "- `totals`: one row per planned shipment with `shipment` (its number) and `total_cents`.",
        "- `departures`: one row per departure of the engine with `clause` and `shipments` (a list "
        "of numbers of planned shipments).",
        "",
        "# Judged",
        f"- {share['totals']}: exact totals of the shipments that a departure or a correction of "
        "the fuel percentage touches, as a mean over departures.",
        f"- {share['plain']}: exact totals of the other shipments.",
        f"- {share['departures']}: departures (F1; a departure counts by the overlap of its "
        "shipments).",
        "- The case counts as done if the quality is at least 95 percent.",
        "",
        "# Rules",
        "- Totals are judged by next week's bills, not by what is known now.",
        "- The engine is the tariff plus its departures. A departure changes one number or one "
        "statement of one clause, or adds one rule that no clause is about.",
        "- A departure holds for all shipments, or for those that meet one condition on one field. "
        "The longest side and the weekday count as fields. Conditions on weight look at the actual "
        "weight.",
        "- `clause` is the number of the section of the tariff that the departure changes, or "
        '"new" for a fee or a percentage on freight that no section is about. An added percentage '
        "applies to freight before the minimum.",
        "- Whether fuel is charged on a fee belongs to the section on fuel, another zone for some "
        "shipments to the section on zones.",
        "- At most one departure changes a section. There may be several new rules.",
        "- `shipments` are the planned shipments whose total would be another one without this "
        "departure and with all others.",
        "- The fuel percentage of a week and its correction are no departures.",
        "- The engine goes by the day of pickup. Releases change its departures: see the page on "
        "releases. A release or a correction that is announced for today counts for next week.",
        f"- The rating engine takes {matter.quota} test quotes in all. It refuses one for a "
        "shipment that has zone, service, plan and number of pieces of a planned shipment.",
        "- Do not book anything: a booking cannot be undone.",
    )
    return "\n".join(lines)
