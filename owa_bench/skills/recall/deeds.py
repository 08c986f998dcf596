"""Reading of passages on deeds: who gave what to whom, where and when.

Sentences of every form are taken apart into the same record, and questions,
paraphrases, contradictions and claims are answered by comparing records.
"""

import re
from typing import NamedTuple

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
        re.sub(
            r"\\{(\w+)\\}",
            lambda part: f"(?P<{part[1]}>{_PARTS[part[1]]})",
            re.escape(form),
        )
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


class TransferDeed(NamedTuple):
    """One deed as a record; equal sentences in other words have equal records."""

    day: str
    agent: str
    verb: str
    thing: str
    receiver: str
    place: str


def deeds_in(text: str) -> list[TransferDeed]:
    """Return the deeds that a text tells, in their order."""
    found = []
    for sentence in _SENTENCES:
        for match in sentence.finditer(text):
            words = match.groupdict()
            words["verb"] = words["verb"].replace("given", "gave")
            found.append((match.start(), TransferDeed(**words)))
    return [deed for _, deed in sorted(found)]


def read_passage(prompt: str, pages: list[str]) -> list[str] | None:
    """Answer a question on a passage.

    Args:
        prompt: The question.
        pages: The passage.

    Returns:
        The values, None where it is no such question.
    """
    text = "\n".join(pages)
    for question, part in _QUESTIONS.items():
        if asked := re.search(question, prompt):
            return [
                str(getattr(d, part)) for d in deeds_in(text) if d.thing == asked[1]
            ]
    if "Claim: " in prompt:
        return _verdict(prompt.partition("Claim: ")[2], text)
    listed = {label: deeds_in(line) for label, line in _LISTED.findall(text)}
    if prompt.startswith("Which of a to d says the same"):
        [said] = listed.pop("Sentence")
        return [label for label, deeds in listed.items() if deeds == [said]]
    if prompt.endswith("Which two statements contradict?"):
        things: dict[str, list[str]] = {}
        for label, deeds in listed.items():
            for deed in deeds:
                things.setdefault(deed.thing, []).append(label)
        return next((labels for labels in things.values() if len(labels) == 2), None)
    return None


def _verdict(claim: str, text: str) -> list[str] | None:
    claimed = deeds_in(claim)
    if not claimed:
        return None
    same = [deed for deed in deeds_in(text) if deed.thing == claimed[0].thing]
    if not same:
        return ["not stated"]
    return ["supported" if same == claimed else "contradicted"]
