"""Reading of Recall's passages, pages and questions from their text alone."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_NAME = r"[A-Z][a-z]+ [A-Z][a-z]+"
_PARTS = {
    "day": r"[A-Z][a-z]+day",
    "agent": _NAME,
    "receiver": _NAME,
    "thing": r"[a-z]+",
    "place": r"[A-Z][a-z]+",
    "verb": r"gave|given|lent|sold|sent",
}
_FORMS = (
    "On {day} {agent} {verb} the {thing} to {receiver} in {place}.",
    "In {place}, {receiver} was {verb} the {thing} by {agent} on {day}.",
    "It was {agent} who {verb} {receiver} the {thing}; that was in {place}, on {day}.",
    "The {thing} was {verb} to {receiver} in {place} on {day}; {agent} did it.",
)
_SENTENCES = tuple(
    re.compile(
        re.sub(r"\\{(\w+)\\}", lambda part: f"(?P<{part[1]}>{_PARTS[part[1]]})", re.escape(form))
    )
    for form in _FORMS
)
_LISTED = re.compile(r"^(\w+): (.*)$", re.M)
_QUESTIONS = {
    r"Who had the (\w+) before\?": "agent",
    r"Who got the (\w+)\?": "receiver",
    r"In which place did the (\w+) change hands\?": "place",
    r"On which day did the (\w+) change hands\?": "day",
}


class TransferRecord(NamedTuple):
    """One transfer as a record; equal sentences in other words have equal records."""

    day: str
    agent: str
    verb: str
    thing: str
    receiver: str
    place: str


def transfers_in(text: str) -> list[TransferRecord]:
    """Return the transfers that a text tells, in their order."""
    found = []
    for sentence in _SENTENCES:
        for match in sentence.finditer(text):
            words = match.groupdict()
            words["verb"] = words["verb"].replace("given", "gave")
            found.append((match.start(), TransferRecord(**words)))
    return [transfer for _, transfer in sorted(found)]


def read_passage(prompt: str, pages: list[str]) -> list[str] | None:
    """Answer a question on a passage.

    Args:
        prompt: The question.
        pages: The passage.
    Returns: The values, None where it is no such question.
    """
    text = "\n".join(pages)
    for question, part in _QUESTIONS.items():
        if asked := re.search(question, prompt):
            return [str(getattr(d, part)) for d in transfers_in(text) if d.thing == asked[1]]
    if "Claim: " in prompt:
        return _verdict(prompt.partition("Claim: ")[2], text)
    listed = {label: transfers_in(line) for label, line in _LISTED.findall(text)}
    if prompt.startswith("Which of a to d says the same"):
        [said] = listed.pop("Sentence")
        return [label for label, transfers in listed.items() if transfers == [said]]
    if prompt.endswith("Which two statements contradict?"):
        things: dict[str, list[str]] = {}
        for label, transfers in listed.items():
            for transfer in transfers:
                things.setdefault(transfer.thing, []).append(label)
        return next((labels for labels in things.values() if len(labels) == 2), None)
    return None


def _verdict(claim: str, text: str) -> list[str] | None:
    claimed = transfers_in(claim)
    if not claimed:
        return None
    same = [transfer for transfer in transfers_in(text) if transfer.thing == claimed[0].thing]
    if not same:
        return ["not stated"]
    return ["supported" if same == claimed else "contradicted"]


# --- pages and questions --------------------------------------------------------------


_HEADER = re.compile(r"(?:^|\n)Day (\d+), (page|item|review)\.\n(.*)", re.S)
_NUMBER = re.compile(r"^Notice (\d+): (.*)\.$|^(.*) \(slip (\d+)\)$")
_ASIDE = re.compile(rf" \(not {_NAME}\)|, no kin of {_NAME},| - {_NAME} is another -")
_FORMER = re.compile(r"(no longer|in place of|no more|given up) '[^']*'")
_RENAMED = re.compile(r'writes "([^"]+)" for "([^"]+)"')
_LARGE = 12  # pell in a dor


class CardText(NamedTuple):
    """A card as it was shown: its day, kind, text, and what came before it."""

    day: int
    kind: str
    text: str
    reply: str


class Fact(NamedTuple):
    """A statement of the register, or the withdrawal of one; 0 withdraws none."""

    number: int
    day: int
    subject: str = ""
    relation: str = ""
    value: str = ""
    withdraws: int = 0
    rumour: bool = False
    inverse: bool = False


class RegisterQuery(NamedTuple):
    """A question: about whom and what, and which notice is taken away."""

    subject: str
    relation: str
    entries: int = 0
    without: int = 0


class RegisterClaim(NamedTuple):
    """A proposition: is the first value given up, or do notices contradict another."""

    superseded: bool
    subject: str
    relation: str


def read_card(observation: str) -> CardText:
    r"""Return the last card of an observation.

    >>> read_card("noted\n\nDay 3, page.\nNotice 1: x.")
    CardText(day=3, kind='page', text='Notice 1: x.', reply='noted')
    """
    found = _HEADER.search(observation)
    if found is None:
        return CardText(0, "page", "", observation)
    reply = observation[: found.start()].strip()
    return CardText(int(found[1]), found[2], found[3], reply)


class RegisterReader:
    """Reads notices and questions with the words for relations known so far.

    Args:
        goal: Of the brief: `relations` and `family`.
        renamed: Later words for relations, learned from pages.
    """

    def __init__(self, goal: Mapping[str, Any], renamed: Mapping[str, str]) -> None:
        self.renamed = dict(renamed)
        self._relations = [str(word) for word in goal.get("relations", ())]

    def facts(self, day: int, text: str) -> Iterable[Fact]:
        """Yield the facts of a page; note renamed relations on the way.

        Args:
            day: The day of the page.
            text: Its lines.
        Yields: Facts, in order.
        """
        for line in text.splitlines():
            if renaming := _RENAMED.search(line):
                self.renamed[renaming[1]] = renaming[2]
            elif (fact := self.fact(day, line)) is not None:
                yield fact

    def fact(self, day: int, line: str) -> Fact | None:
        """Return the fact of a line, None if it states none.

        Args:
            day: The day of the page.
            line: One line.
        """
        numbered = _NUMBER.match(line)
        if numbered is None:
            return None
        rumour = numbered[3] is not None
        text = _ASIDE.sub("", numbered[3] or numbered[2])
        number = int(numbered[4] or numbered[1])
        if notice := re.search(r"\bnotice (\d+)", text):
            return Fact(number, day, withdraws=int(notice[1]))
        text = _FORMER.sub("", text)
        name, value = re.search(_NAME, text), re.search(r"'([^']*)'", text)
        word, relation = self._relation(text)
        if name is None or value is None:
            return None
        inverse = bool(word) and re.search(rf"' {word}\b", text) is not None
        inverse = inverse and word.endswith("s") and not rumour
        return Fact(
            number=number,
            day=day,
            subject=name[0],
            relation=relation,
            value=_small_unit(value[1]),
            rumour=rumour,
            inverse=inverse,
        )

    def query(self, text: str) -> RegisterQuery | None:
        """Return the question of a card, None for one that is not on the register."""
        name = re.search(_NAME, text.removeprefix("Someone asks for "))
        if name is None:
            return None
        entries = re.match(r"List (\d+) entries", text)
        without = re.match(r"Had notice (\d+)", text)
        return RegisterQuery(
            subject=name[0],
            relation=self._relation(text)[1],
            entries=int(entries[1]) if entries else 0,
            without=int(without[1]) if without else 0,
        )

    def claim(self, text: str) -> RegisterClaim | None:
        """Return the claim of a proposition, None for one of another kind."""
        name = re.search(_NAME, text.partition(" as ")[2])
        if name is None:
            return None
        superseded = "not in force" in text
        return RegisterClaim(superseded, name[0], self._relation(text)[1])

    def _relation(self, text: str) -> tuple[str, str]:
        """Return the word for a relation in a text, and the relation's first word."""
        for word, relation in self.renamed.items():
            if re.search(rf"\b{word}\b", text):
                return word, relation
        for word in self._relations:
            if re.search(rf"\b{word}\b", text):
                return word, word
        return "", self._relations[0] if len(self._relations) == 1 else ""


def _small_unit(value: str) -> str:
    amount = re.fullmatch(r"(\d+) dor", value)
    return f"{int(amount[1]) * _LARGE} pell" if amount else value


def in_form(value: str, form: str) -> str:
    """Return an answer in the form that the task asks for; amounts stay.

    Args:
        value: A word, or an amount.
        form: "plain", "capitals" or "reversed".
    """
    if form == "plain" or value.endswith(" pell"):
        return value
    return value.upper() if form == "capitals" else value[::-1]
