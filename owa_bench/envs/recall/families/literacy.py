"""Reading (Grw, Gc): extraction, paraphrase, contradiction and verification.

    extraction     who, what, to whom or where, from a passage
    fidelity       which of four sentences says what a sentence says
    contradiction  which two of the statements cannot both hold
    verification   whether a passage supports a claim, contradicts it or says nothing

A transfer has an agent, a verb, a thing, a receiver, a place and a day; sentences of several forms
tell it.
"""

from typing import Any, NamedTuple

from owa_bench.envs.recall.draws import Draws
from owa_bench.envs.recall.world import Exercise

_EACH = 6  # tasks of each kind
_TRANSFERS = (4, 6, 8, 12)  # transfers of a passage
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


class Transfer(NamedTuple):
    """One transfer; `verb` is a place in the table of verbs."""

    agent: str
    verb: int
    thing: str
    receiver: str
    place: str
    day: str

    def sentence(self, style: int) -> str:
        """Return the transfer as a sentence of some form."""
        verb, past = _VERBS[self.verb]
        words = self._asdict() | {"verb": verb, "past": past}
        return _SENTENCES[style % len(_SENTENCES)].format(**words)


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    makers = (_extraction, _fidelity, _contradiction, _verification)
    return {"exercises": tuple(maker(draws, number) for number in range(_EACH) for maker in makers)}


def _passage(draws: Draws) -> tuple[list[Transfer], list[str]]:
    """Return transfers with things of their own, and a sentence for each."""
    count = draws.by_tier(_TRANSFERS)
    cast, places = draws.lexicon.names(count), draws.lexicon.words(3)
    things = draws.lexicon.words(count)
    picks = draws.rng.integers(1 << 20, size=(count, 5)).tolist()
    transfers = [
        Transfer(
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
    return transfers, [
        transfer.sentence(style) for transfer, style in zip(transfers, styles, strict=True)
    ]


def _changed(draws: Draws, transfer: Transfer, transfers: list[Transfer]) -> Transfer:
    """Return the transfer with roles exchanged, or another receiver, place or day."""
    others = [d for d in transfers if d.receiver not in (transfer.receiver, transfer.agent)]
    later = _DAYS[(_DAYS.index(transfer.day) + 2) % len(_DAYS)]
    options = [
        transfer._replace(agent=transfer.receiver, receiver=transfer.agent),
        transfer._replace(day=later),
        *(transfer._replace(receiver=other.receiver) for other in others[:1]),
    ]
    return options[int(draws.rng.integers(len(options)))]


_ASKED = {
    "agent": "Who had the {thing} before?",
    "receiver": "Who got the {thing}?",
    "place": "In which place did the {thing} change hands?",
    "day": "On which day did the {thing} change hands?",
}


def _extraction(draws: Draws, number: int) -> Exercise:
    transfers, lines = _passage(draws)
    transfer = transfers[int(draws.rng.integers(len(transfers)))]
    part = list(_ASKED)[number % len(_ASKED)]
    return Exercise(
        name=f"extraction/{number}",
        kind="extraction",
        pages=("\n".join(lines),),
        prompt=_ASKED[part].format(thing=transfer.thing),
        key=(str(getattr(transfer, part)),),
    )


def _fidelity(draws: Draws, number: int) -> Exercise:
    """Return a sentence and four, of which one says the same in another form."""
    transfers, _ = _passage(draws)
    transfer = transfers[0]
    style, *styles = draws.styles(5)
    later = _DAYS[(_DAYS.index(transfer.day) + 3) % len(_DAYS)]
    choices = [
        transfer,
        transfer._replace(agent=transfer.receiver, receiver=transfer.agent),
        transfer._replace(day=later),
        transfer._replace(verb=(transfer.verb + 1) % len(_VERBS)),
    ]
    order = draws.order(len(choices))
    lines = [f"Sentence: {transfer.sentence(style)}"]
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
    transfers, lines = _passage(draws)
    at = int(draws.rng.integers(len(transfers)))
    lines.append(_changed(draws, transfers[at], transfers).sentence(draws.styles(1)[0]))
    order = draws.order(len(lines))
    listed = [f"{place + 1}: {lines[i]}" for place, i in enumerate(order)]
    pair = (order.index(at), order.index(len(transfers)))
    return Exercise(
        name=f"contradiction/{number}",
        kind="contradiction",
        pages=("\n".join(listed),),
        prompt="Every thing changes hands once. Which two statements contradict?",
        key=tuple(str(place + 1) for place in sorted(pair)),
        unordered=True,
    )


def _verification(draws: Draws, number: int) -> Exercise:
    transfers, lines = _passage(draws)
    transfer = transfers[int(draws.rng.integers(len(transfers)))]
    verdict = int(draws.rng.integers(len(VERDICTS)))
    claim = transfer
    if verdict == 1:
        claim = _changed(draws, transfer, transfers)
    elif verdict == 2:
        claim = transfer._replace(thing=draws.lexicon.words(1)[0])
    told = claim.sentence(draws.styles(1)[0])
    return Exercise(
        name=f"verification/{number}",
        kind="verification",
        pages=("\n".join(lines),),
        prompt=f"Every thing changes hands once. Claim: {told}",
        key=(VERDICTS[verdict],),
        options=VERDICTS,
    )
