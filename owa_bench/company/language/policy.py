"""Policies: one declaration gives the text, the terms that hold, and the reading of the text.

A `PolicyForm` lists sections; a section has sentences with slots. A `Policy` holds the values of
the sentences that are in it, and amendments that hold for what is received from a day on. `write`
makes the page, `read` finds the values in a page, `terms` says what holds for a day of receipt.
"""

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from owa_bench.company.language.text import DAY, NameSlot, Sentence, read_all
from owa_bench.seeding import pick

MAILED = "mailed"
PolicyTerms = Mapping[str, Mapping[str, Any]]  # sentence -> slot -> value
_TITLE = NameSlot(r"[A-Z]{2,4}-\d+")
_HEAD = Sentence(
    "head",
    (
        "{title}, in force since {since}.",
        "{title} holds from {since} on.",
        "This is {title}. It came into force on {since}.",
    ),
    {"title": _TITLE, "since": DAY},
)
_AMENDED = Sentence(
    "amendment",
    (
        "Amendment {title}/{number}, for everything received from {first} on, in place of the rule "
        "in section {section}:",
        "{title}/{number}. What is received on or after {first} follows this rule in place of the "
        "one in section {section}:",
        "With {title}/{number} this replaces the rule in section {section} for all that is "
        "received from {first} on:",
    ),
    {"title": _TITLE, "number": NameSlot(r"\d+"), "first": DAY, "section": NameSlot(r"\d+")},
)


class PolicySection(NamedTuple):
    """A section of a form.

    Attributes:
        name: Of the section.
        titles: Headings, one of which is drawn.
        sentences: Its rules, in order; a policy may lack some.
    """

    name: str
    titles: tuple[str, ...]
    sentences: tuple[Sentence, ...]


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence with new values, for what is received from a day on.

    `event` is the event of a case that tells of it, `MAILED` if a mail in the mailbox does, "" if
    the page of changes does.
    """

    number: int
    sentence: str
    values: dict[str, Any]
    first: dt.date
    event: str = ""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy in force.

    Attributes:
        title: Such as "CP-7".
        since: The day from which it is in force.
        sections: Names of its sections, in the order of the text.
        terms: Values of every sentence that is in it.
        amendments: In order of their numbers.
    """

    title: str
    since: dt.date
    sections: tuple[str, ...]
    terms: dict[str, dict[str, Any]]
    amendments: tuple[Amendment, ...] = ()

    def at(self, received: dt.date) -> dict[str, dict[str, Any]]:
        """Return the terms for what is received on a day.

        Args:
            received: The day of receipt.
        """
        terms = dict(self.terms)
        for amendment in self.amendments:
            if amendment.first <= received:
                terms[amendment.sentence] = amendment.values
        return terms

    def known_with(self, happened: Set[str]) -> "Policy":
        """Return the policy with the amendments that are told so far.

        Args:
            happened: Names of the events so far.
        """
        known = {"", MAILED, *happened}
        told = tuple(a for a in self.amendments if a.event in known)
        return replace(self, amendments=told)

    def amended(self, sentence: str, first: dt.date, *, event: str = "", **values: Any) -> "Policy":
        """Return the policy with one amendment more.

        Args:
            sentence: The one whose values change.
            first: From this day of receipt on.
            event: That tells of it; "" for the page of changes.
            **values: Those that change; the others stay as they are on that day.
        """
        number = len(self.amendments) + 1
        new = {**self.at(first)[sentence], **values}
        amendment = Amendment(
            number=number, sentence=sentence, values=new, first=first, event=event
        )
        return replace(self, amendments=(*self.amendments, amendment))


class PolicyForm:
    """Everything that policies of a kind can say.

    Args:
        name: In words, such as "Credit policy".
        sections: In the order of the form.
    """

    def __init__(self, name: str, sections: Sequence[PolicySection]) -> None:
        self.name = name
        self.sections = {section.name: section for section in sections}
        self.sentences = {s.name: s for section in sections for s in section.sentences}
        self._home = {s.name: section.name for section in sections for s in section.sentences}

    def write(self, policy: Policy, rng: np.random.Generator, *, practice: bool = False) -> str:
        """Return the text of a policy without its amendments.

        Args:
            policy: Of this form.
            rng: Draws headings and wordings.
            practice: Whether only the wordings of practice are drawn.
        """
        head = _HEAD.write(rng, practice=practice, title=policy.title, since=policy.since)
        lines = [f"{self.name} {head}"]
        for number, name in enumerate(policy.sections, 1):
            section = self.sections[name]
            rules = [
                sentence.write(rng, practice=practice, **policy.terms[sentence.name])
                for sentence in section.sentences
                if sentence.name in policy.terms
            ]
            lines.append(f"{number} {pick(section.titles, rng)}. {' '.join(rules)}")
        return "\n".join(lines)

    def write_amendment(
        self,
        policy: Policy,
        amendment: Amendment,
        rng: np.random.Generator,
        *,
        practice: bool = False,
    ) -> str:
        """Return the text of an amendment: when it holds, then the sentence as it is from then on.

        Args:
            policy: The one that is amended.
            amendment: One of its amendments.
            rng: Draws wordings.
            practice: Whether only the wordings of practice are drawn.
        """
        head = _AMENDED.write(
            rng,
            practice=practice,
            title=policy.title,
            number=str(amendment.number),
            first=amendment.first,
            section=str(1 + policy.sections.index(self._home[amendment.sentence])),
        )
        sentence = self.sentences[amendment.sentence]
        return f"{head} {sentence.write(rng, practice=practice, **amendment.values)}"

    def read(self, text: str) -> Policy | None:
        """Return the policy that a page states; None: the page states none.

        Args:
            text: A page that `write` may have made.
        """
        heads = [reading for reading in _HEAD.read(text) if self._named(text, reading.first)]
        if not heads:
            return None
        readings = read_all(tuple(self.sentences.values()), text)
        order = dict.fromkeys(self._home[reading.name] for reading in readings)
        return Policy(
            title=heads[0].values["title"],
            since=heads[0].values["since"],
            sections=tuple(order),
            terms={reading.name: dict(reading.values) for reading in readings},
        )

    def read_amendments(self, text: str, title: str) -> tuple[Amendment, ...]:
        """Return the amendments of a policy that a page or a mail states.

        Args:
            text: Any.
            title: Of the policy; amendments of others are left out.
        """
        heads = list(_AMENDED.read(text))
        ends = [*(head.first for head in heads[1:]), len(text)][: len(heads)]
        found = []
        for head, end in zip(heads, ends, strict=True):
            rules = read_all(tuple(self.sentences.values()), text[head.end : end])
            if head.values["title"] == title and rules:
                found.append(
                    Amendment(
                        number=int(head.values["number"]),
                        sentence=rules[0].name,
                        values=dict(rules[0].values),
                        first=head.values["first"],
                    )
                )
        return tuple(found)

    def _named(self, text: str, place: int) -> bool:
        return text[:place].rstrip().endswith(self.name)


def with_amendments(policy: Policy, found: Iterable[Amendment]) -> Policy:
    """Return a policy with the amendments that were found, each number once, in order.

    Args:
        policy: As its page states it.
        found: Of several sources.
    """
    by_number = {amendment.number: amendment for amendment in found}
    return replace(policy, amendments=tuple(by_number[n] for n in sorted(by_number)))


_JOINT = re.compile(r", (?:and |or )?| and | or ")


class ListSlot:
    """Several names out of a known list, in order: "customs, weather and mislabelled".

    Args:
        names: Those that may occur; none holds a comma or " and ".
        last: The word before the last one.
    """

    def __init__(self, names: Sequence[str], last: str = "and") -> None:
        one = "(?:" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + ")"
        self._last = last
        self.pattern = f"{one}(?:, {one})*(?: {last} {one})?".replace("\\ ", " ")

    def write(self, value: Sequence[str], rng: np.random.Generator) -> str:
        """Return the names.

        Args:
            value: At least one.
            rng: Not used.
        """
        *first, last = value
        return f"{', '.join(first)} {self._last} {last}" if first else last

    def read(self, text: str) -> tuple[str, ...]:
        """Return the names, in order."""
        return tuple(_JOINT.split(text))
