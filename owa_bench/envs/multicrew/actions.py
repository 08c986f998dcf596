"""Effects of the tools on the work: pure functions from a state to an outcome.

Messages are the session's, by the fabric. Source: docs/multicrew.md#tools
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from owa_bench.envs.multicrew.acceptance import STAMP, accepted_items, revision
from owa_bench.envs.multicrew.generate import MERGE, family_of
from owa_bench.envs.multicrew.state import CrewState, MergedItem, WorkDraft, holder
from owa_bench.envs.multicrew.wording import document_text
from owa_bench.records.events import Board, Conflict, Event
from owa_bench.shells.schemas import ArgumentCheck, compile_schema
from owa_bench.worlds.crew import Clause, CrewItem, CrewWorld

MOST_CLAIMS = 3
_LONGEST = 2000  # characters of a fragment
_AGAIN = 2  # an item that was merged before is worked out anew in a part of its effort


class ActionOutcome(NamedTuple):
    """The result of a call: `news` is what the board tells the other seats."""

    state: CrewState
    text: str
    ok: bool = True
    ticks: int = 1
    events: tuple[Event, ...] = ()
    news: str = ""


class Place(NamedTuple):
    """Where a call is made: world, state, the seats of the episode, the step."""

    world: CrewWorld
    state: CrewState
    seats: tuple[str, ...]
    step: int

    @property
    def seat(self) -> str:
        """The seat that acts."""
        return self.state.seat

    def refused(self, text: str) -> ActionOutcome:
        """Return the outcome of a call that changes nothing."""
        return ActionOutcome(self.state, text, ok=False)

    def item(self, name: str) -> CrewItem | None:
        """Return an item by its name."""
        return self.world.item_of.get(name)

    def clause(self, name: str) -> Clause | None:
        """Return a clause by its name."""
        return self.world.clause_of.get(name)


Arguments = Mapping[str, Any]


def claim(at: Place, arguments: Arguments) -> ActionOutcome:
    """Put a seat's name on an item.

    Args:
        at: Where.
        arguments: `item`.
    Returns: The outcome.
    """
    item = at.item(arguments["item"])
    if item is None:
        return at.refused(f"There is no item {arguments['item']}.")
    if refusal := _claimed(at, item.name):
        return at.refused(refusal)
    claims = {**at.state.claims, item.name: at.seat}
    board = Board(step=at.step, item=item.name, status="claimed", owner=at.seat)
    return ActionOutcome(
        replace(at.state, claims=claims),
        f"{item.name} is yours.",
        events=(board,),
        news=f"{item.name} claimed by {at.seat}",
    )


def _claimed(at: Place, name: str) -> str:
    """Return why an item cannot be claimed by the present seat, "" if it can."""
    owner = at.state.claims.get(name, at.seat)
    if owner != at.seat and owner in at.state.free:
        return f"{name} is claimed by {owner}."
    own = [item for item, seat in at.state.claims.items() if seat == at.seat]
    if name not in own and len(own) >= MOST_CLAIMS:
        return f"You have {len(own)} items, {MOST_CLAIMS} at most: {', '.join(own)}."
    return ""


def work(at: Place, arguments: Arguments) -> ActionOutcome:
    """Make an item's fragment; the seat is busy for the effort.

    Args:
        at: Where.
        arguments: `item`, `fragment`, `pins`.
    Returns: The outcome.
    """
    item = at.item(arguments["item"])
    if item is None:
        return at.refused(f"There is no item {arguments['item']}.")
    fragment, pins = arguments["fragment"], arguments.get("pins", {})
    refusal = _claimed(at, item.name) or _form_problem(at.world, item, fragment, pins)
    again = item.name in at.state.merged or item.name in at.state.drafts
    ticks = -(-item.effort // _AGAIN) if again else item.effort
    if not refusal and at.state.hours[at.seat] < ticks:
        refusal = f"You have {at.state.hours[at.seat]} ticks of work left."
    if refusal:
        return at.refused(refusal)
    state = at.state
    draft = WorkDraft(
        fragment=msgspec.json.encode(fragment, order="sorted").decode(),
        pins=tuple(sorted(pins.items())),
        author=at.seat,
        ready=state.tick + ticks,
    )
    state = replace(
        state,
        drafts={**state.drafts, item.name: draft},
        claims={**state.claims, item.name: at.seat},
        hours={**state.hours, at.seat: state.hours[at.seat] - ticks},
    )
    board = Board(step=at.step, item=item.name, status="worked", owner=at.seat)
    text = f"{item.name} is worked out at tick {draft.ready}: merge it then."
    news = f"{item.name} in work by {at.seat} until tick {draft.ready}"
    return ActionOutcome(state, text, ticks=ticks, events=(board,), news=news)


@cache
def _form_check(family: str) -> ArgumentCheck:
    """Return the check of the form of a family's fragments."""
    return compile_schema(family_of(family).form)


def _form_problem(
    world: CrewWorld,
    item: CrewItem,
    fragment: Mapping[str, Any],
    pins: Mapping[str, str],
) -> str:
    """Return what is wrong with the form of what is handed in, "" for nothing."""
    family = family_of(world.family)
    if len(msgspec.json.encode(fragment)) > _LONGEST:
        return f"`fragment` has at most {_LONGEST} characters."
    plain = {name: value for name, value in fragment.items() if name != STAMP}
    if not isinstance(fragment.get(STAMP, ""), str):
        return f"`fragment.{STAMP}` must be text."
    check = _form_check(family.name)
    if problem := check(plain, "fragment") or family.problem(plain):
        return str(problem)
    if unknown := sorted(set(pins) - set(item.needs)):
        return (
            f"`pins` may name {', '.join(item.needs) or 'nothing'}, got {unknown[0]}."
        )
    if lacking := [name for name in item.needs if name not in pins]:
        return f"`pins` must give the revision of {lacking[0]}."
    return ""


def merge(at: Place, arguments: Arguments) -> ActionOutcome:
    """Merge an item that is worked out: from now on others build on it.

    Args:
        at: Where.
        arguments: `item`.
    Returns: The outcome; whether it is accepted is not told.
    """
    name = arguments["item"]
    draft = at.state.drafts.get(name)
    if draft is None or draft.ready > at.state.tick:
        return at.refused(f"{name} is not worked out.")
    if at.world.reviewed and not draft.approved:
        return at.refused(f"{name} is not approved.")
    state = at.state
    made = MergedItem(
        fragment=draft.fragment,
        pins=draft.pins,
        author=draft.author,
        revision=revision(at.world.code, name, draft.fragment, draft.pins),
    )
    merged = {**state.merged, name: made}
    accepted = accepted_items(at.world, merged, state.settled)
    state = replace(
        state,
        merged=merged,
        drafts={item: one for item, one in state.drafts.items() if item != name},
        claims={item: seat for item, seat in state.claims.items() if item != name},
        accepted=accepted,
        harm=state.harm + len(state.accepted - accepted),
    )
    board = Board(step=at.step, item=name, status="merged", owner=draft.author)
    text = f"{name} merged by {at.seat}, revision {made.revision}"
    if name not in accepted and (missed := checked_clauses(at.world, name)):
        text += f"; it fails its check on {', '.join(missed)}"
    return ActionOutcome(state, f"{text}.", ticks=MERGE, events=(board,), news=text)


def checked_clauses(world: CrewWorld, name: str) -> tuple[str, ...]:
    """Return the clauses of an item that a check names where the item does not hold.

    Args:
        world: The world that holds now.
        name: The item.
    Returns: Names of clauses.
    """
    item = world.item_of[name]
    own = (*item.clauses, *item.hidden)
    return tuple(c.name for c in world.clauses if c.checked and c.name in own)


def read(at: Place, arguments: Arguments) -> ActionOutcome:
    """Read a document or a merged fragment.

    Args:
        at: Where.
        arguments: `name`.
    Returns: The outcome; another role's document takes longer.
    """
    name, state = arguments["name"], at.state
    if name in state.drafts and state.drafts[name].ready <= state.tick:
        draft = state.drafts[name]
        text = f"{name}, worked out by {draft.author}:\n{draft.fragment}"
        return ActionOutcome(state, text)
    if name in state.merged:
        made = state.merged[name]
        text = f"{name}, revision {made.revision}, by {made.author}:\n{made.fragment}"
        return ActionOutcome(state, text)
    document = next((d for d in at.world.documents if d.name == name), None)
    if document is None:
        return at.refused(f"There is nothing called {name} to read.")
    own = holder(at.world, at.seats, document.owner) == at.seat
    ticks = 1 if own else at.world.research
    learned = {
        f"{line.subject}.{line.attribute}"
        for line in document.lines
        if line.standing == "holds"
    }
    state = replace(
        state,
        known=state.known | {(at.seat, clause) for clause in learned},
        served=state.served | {f"fact/{clause}" for clause in learned},
    )
    return ActionOutcome(state, document_text(document), ticks=ticks)


def propose(at: Place, arguments: Arguments) -> ActionOutcome:
    """Propose a value for a contested clause; one of its sides must do so.

    Args:
        at: Where.
        arguments: `clause`, `value`.
    Returns: The outcome.
    """
    clause = at.clause(arguments["clause"])
    sides = clause.sides if clause else ()
    if at.seat not in {holder(at.world, at.seats, role) for role in sides}:
        return at.refused(f"{arguments['clause']} is not yours to settle.")
    if clause is None or not clause.rival:
        return at.refused(f"{arguments['clause']} is not contested.")
    value = arguments["value"]
    proposed = {**at.state.proposed, clause.name: (value, at.seat)}
    open_ = Conflict(step=at.step, item=clause.name)
    news = f"{at.seat} proposes for {clause.name}: {value}"
    state = replace(at.state, proposed=proposed)
    return ActionOutcome(state, "Proposed.", events=(open_,), news=news)


def accept(at: Place, arguments: Arguments) -> ActionOutcome:
    """Accept what another seat proposed: the clause is settled.

    Args:
        at: Where.
        arguments: `clause`.
    Returns: The outcome.
    """
    name = arguments["clause"]
    value, proposer = at.state.proposed.get(name, ("", at.seat))
    if proposer == at.seat:
        return at.refused(f"Nobody else has proposed a value for {name}.")
    clause = at.clause(name)
    settler = clause.settler if clause else ""
    if settler and holder(at.world, at.seats, settler) not in (at.seat, proposer):
        return at.refused(f"Neither of you decides about {name}.")
    return _settled(at, name, value)


def arbitrate(at: Place, arguments: Arguments) -> ActionOutcome:
    """Have a clause settled, or a draft approved, from outside; takes longer.

    Args:
        at: Where.
        arguments: `name` of a clause or an item.
    Returns: The outcome.
    """
    name = arguments["name"]
    draft = at.state.drafts.get(name)
    if draft is not None and at.world.reviewed:
        approved = replace(draft, approved=True)
        state = replace(at.state, drafts={**at.state.drafts, name: approved})
        text, ticks = f"{name} is approved.", at.world.arbitration
        return ActionOutcome(
            state, text, ticks=ticks, news=f"{name} approved from outside"
        )
    clause = at.clause(name)
    if clause is None or not clause.rival:  # to find that out takes as long
        nothing = at.refused(f"There is nothing to decide about {name}.")
        return nothing._replace(ticks=at.world.arbitration if clause else 1)
    outcome = _settled(at, name, clause.value)
    state = outcome.state
    known = state.known | {(at.seat, name)}
    state = replace(state, known=known)
    return outcome._replace(state=state, ticks=at.world.arbitration)


def _settled(at: Place, name: str, value: str) -> ActionOutcome:
    state = at.state
    settled = {**state.settled, name: value}
    state = replace(
        state,
        settled=settled,
        proposed={one: it for one, it in state.proposed.items() if one != name},
        accepted=accepted_items(at.world, state.merged, settled),
    )
    done = Conflict(step=at.step, item=name, resolved=True)
    news = f"{name} settled: {value}"
    return ActionOutcome(state, f"{news}.", events=(done,), news=news)


def review(at: Place, arguments: Arguments) -> ActionOutcome:
    """Approve or reject a draft that another seat made.

    Args:
        at: Where.
        arguments: `item`, `verdict`, `reasons`.
    Returns: The outcome.
    """
    name = arguments["item"]
    draft = at.state.drafts.get(name)
    if draft is None or draft.ready > at.state.tick:
        return at.refused(f"{name} is not worked out.")
    if draft.author == at.seat:
        return at.refused("Nobody may review an item of their own.")
    verdict = arguments["verdict"] == "approve"
    drafts = {**at.state.drafts, name: replace(draft, approved=verdict)}
    status = "approved" if verdict else "rejected"
    board = Board(step=at.step, item=name, status=status, owner=at.seat)
    news = f"{name} {status} by {at.seat}"
    state = replace(at.state, drafts=drafts)
    return ActionOutcome(state, f"{news}.", events=(board,), news=news)


def board(at: Place, arguments: Arguments) -> ActionOutcome:
    """Show the state of every item.

    Args:
        at: Where.
        arguments: None.
    Returns: The outcome.
    """
    lines = [_status(at.state, item.name) for item in at.world.items]
    contested = [c.name for c in at.world.clauses if c.name in at.state.settled]
    lines += [f"{name} settled: {at.state.settled[name]}" for name in contested]
    return ActionOutcome(at.state, "\n".join(lines))


def _status(state: CrewState, name: str) -> str:
    draft, made = state.drafts.get(name), state.merged.get(name)
    if draft is not None:
        done = "worked out" if draft.ready <= state.tick else "in work"
        approved = ", approved" if draft.approved else ""
        return f"{name}: {done} by {draft.author}{approved}"
    if made is not None:
        return f"{name}: merged, revision {made.revision}, by {made.author}"
    owner = state.claims.get(name)
    return f"{name}: claimed by {owner}" if owner else f"{name}: open"


ACTIONS: Mapping[str, Callable[[Place, Arguments], ActionOutcome]] = {
    "claim": claim,
    "work": work,
    "read": read,
    "propose": propose,
    "accept": accept,
    "review": review,
    "merge": merge,
    "arbitrate": arbitrate,
    "board": board,
}
