"""Reading (Grw, Gc): extraction, paraphrase, contradiction and verification.

    extraction     who, what, to whom or where, from a passage
    fidelity       which of four sentences says what a sentence says
    contradiction  which two of the statements cannot both hold
    verification   whether a passage supports a claim, contradicts it or says nothing

A deed has an agent, a verb, a thing, a receiver, a place and a day, told in sentences
of several forms.
"""

from typing import Any, NamedTuple

from owa_bench.envs.recall.draws import Draws
from owa_bench.worlds.recall import Exercise

_EACH = 6  # tasks of each kind
_DEEDS = (4, 6, 8, 12)  # deeds of a passage
_VERBS = (("gave", "given"), ("lent", "lent"), ("sold", "sold"), ("sent", "sent"))
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SENTENCES = (
    "On {day} {agent} {verb} the {thing} to {receiver} in {place}.",
    "In {place}, {receiver} was {past} the {thing} by {agent} on {day}.",
    "It was {agent} who {verb} {receiver} the {thing}; that was in {place}, on {day}.",
    "The {thing} was {past} to {receiver} in {place} on {day}; {agent} did it.",
)
VERDICTS = ("supported", "contradicted", "not stated")
_LETTERS = ("a", "b", "c", "d")


class Deed(NamedTuple):
    """One deed; `verb` is a place in the table of verbs."""

    agent: str
    verb: int
    thing: str
    receiver: str
    place: str
    day: str

    def sentence(self, style: int) -> str:
        """Return the deed as a sentence of some form."""
        verb, past = _VERBS[self.verb]
        words = self._asdict() | {"verb": verb, "past": past}
        return _SENTENCES[style % len(_SENTENCES)].format(**words)


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    makers = (_extraction, _fidelity, _contradiction, _verification)
    return {
        "exercises": tuple(
            maker(draws, number) for number in range(_EACH) for maker in makers
        )
    }


def _passage(draws: Draws) -> tuple[list[Deed], list[str]]:
    """Return deeds with things of their own, and a sentence for each."""
    count = draws.by_tier(_DEEDS)
    cast, places = draws.lexicon.names(count), draws.lexicon.words(3)
    things = draws.lexicon.words(count)
    picks = draws.rng.integers(1 << 20, size=(count, 5)).tolist()
    deeds = [
        Deed(
            agent=cast[a % count],
            verb=v % len(_VERBS),
            thing=thing,
            receiver=cast[(a + 1 + r % (count - 1)) % count],
            place=places[p % 3].capitalize(),
            day=_DAYS[d % len(_DAYS)],
        )
        for thing, (a, v, r, p, d) in zip(things, picks, strict=True)
    ]
    styles = draws.styles(count)
    return deeds, [
        deed.sentence(style) for deed, style in zip(deeds, styles, strict=True)
    ]


def _changed(draws: Draws, deed: Deed, deeds: list[Deed]) -> Deed:
    """Return the deed with its roles exchanged, or another receiver, place or day."""
    others = [d for d in deeds if d.receiver not in (deed.receiver, deed.agent)]
    later = _DAYS[(_DAYS.index(deed.day) + 2) % len(_DAYS)]
    options = [
        deed._replace(agent=deed.receiver, receiver=deed.agent),
        deed._replace(day=later),
        *(deed._replace(receiver=other.receiver) for other in others[:1]),
    ]
    return options[int(draws.rng.integers(len(options)))]


_ASKED = {
    "agent": "Who had the {thing} before?",
    "receiver": "Who got the {thing}?",
    "place": "In which place did the {thing} change hands?",
    "day": "On which day did the {thing} change hands?",
}


def _extraction(draws: Draws, number: int) -> Exercise:
    deeds, lines = _passage(draws)
    deed = deeds[int(draws.rng.integers(len(deeds)))]
    part = list(_ASKED)[number % len(_ASKED)]
    return Exercise(
        name=f"extraction/{number}",
        kind="extraction",
        pages=("\n".join(lines),),
        prompt=_ASKED[part].format(thing=deed.thing),
        key=(str(getattr(deed, part)),),
    )


def _fidelity(draws: Draws, number: int) -> Exercise:
    """Return a sentence and four, of which one says the same in another form."""
    deeds, _ = _passage(draws)
    deed = deeds[0]
    style, *styles = draws.styles(5)
    later = _DAYS[(_DAYS.index(deed.day) + 3) % len(_DAYS)]
    choices = [
        deed,
        deed._replace(agent=deed.receiver, receiver=deed.agent),
        deed._replace(day=later),
        deed._replace(verb=(deed.verb + 1) % len(_VERBS)),
    ]
    order = draws.order(len(choices))
    lines = [f"Sentence: {deed.sentence(style)}"]
    for letter, at, other in zip(_LETTERS, order, styles, strict=True):
        form = style + 1 + other % (len(_SENTENCES) - 1)
        lines.append(f"{letter}: {choices[at].sentence(form)}")
    return Exercise(
        name=f"fidelity/{number}",
        kind="fidelity",
        pages=("\n".join(lines),),
        prompt="Which of a to d says the same as the sentence?",
        key=(_LETTERS[order.index(0)],),
        options=_LETTERS,
    )


def _contradiction(draws: Draws, number: int) -> Exercise:
    deeds, lines = _passage(draws)
    at = int(draws.rng.integers(len(deeds)))
    lines.append(_changed(draws, deeds[at], deeds).sentence(draws.styles(1)[0]))
    order = draws.order(len(lines))
    listed = [f"{place + 1}: {lines[i]}" for place, i in enumerate(order)]
    pair = (order.index(at), order.index(len(deeds)))
    return Exercise(
        name=f"contradiction/{number}",
        kind="contradiction",
        pages=("\n".join(listed),),
        prompt="Every thing changes hands once. Which two statements contradict?",
        key=tuple(str(place + 1) for place in sorted(pair)),
        unordered=True,
    )


def _verification(draws: Draws, number: int) -> Exercise:
    deeds, lines = _passage(draws)
    deed = deeds[int(draws.rng.integers(len(deeds)))]
    verdict = int(draws.rng.integers(len(VERDICTS)))
    claim = deed
    if verdict == 1:
        claim = _changed(draws, deed, deeds)
    elif verdict == 2:
        claim = deed._replace(thing=draws.lexicon.words(1)[0])
    told = claim.sentence(draws.styles(1)[0])
    return Exercise(
        name=f"verification/{number}",
        kind="verification",
        pages=("\n".join(lines),),
        prompt=f"Every thing changes hands once. Claim: {told}",
        key=(VERDICTS[verdict],),
        options=VERDICTS,
    )
