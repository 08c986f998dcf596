"""Effects of the tools on the work: pure functions from a state to an outcome.

Messages are the session's, by the fabric. Source: docs/multicrew.md#tools
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from owa_bench.envs.multicrew.acceptance import (
    STAMP,
    ActionOutcome,
    Arguments,
    Place,
    accept,
    accepted_items,
    arbitrate,
    propose,
    revision,
)
from owa_bench.envs.multicrew.generate import MERGE, family_of
from owa_bench.envs.multicrew.state import CrewState, MergedItem, WorkDraft, holder
from owa_bench.envs.multicrew.wording import document_text
from owa_bench.envs.multicrew.world import CrewItem, CrewWorld
from owa_bench.records.events import Board
from owa_bench.shells.schemas import ArgumentCheck, compile_schema

MOST_CLAIMS = 3
_LONGEST = 2000  # characters of a fragment
_AGAIN = 2  # an item that was merged before is worked out anew in a part of its effort


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
    state = at.state
    known = state.merged.keys() | state.drafts.keys() | state.conflicted
    again = item.name in known
    ticks = -(-item.effort // _AGAIN) if again else item.effort
    if not refusal and at.state.hours[at.seat] < ticks:
        refusal = f"You have {at.state.hours[at.seat]} ticks of work left."
    if refusal:
        return at.refused(refusal)
    if at.code is not None:
        at.code.commit(item, fragment, pins, seat=at.seat, tick=state.tick)
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
    world: CrewWorld, item: CrewItem, fragment: Mapping[str, Any], pins: Mapping[str, str]
) -> str:
    """Return what is wrong with the form of what is handed in, "" for nothing."""
    family = family_of(world.family)
    if len(msgspec.json.encode(fragment)) > _LONGEST:
        return f"`fragment` has at most {_LONGEST} characters."
    plain = {name: value for name, value in fragment.items() if name != STAMP}
    if not isinstance(fragment.get(STAMP, ""), str):
        return f"`fragment.{STAMP}` must be text."
    check = _form_check(family.name)
    if problem := check(plain, "fragment") or family.problem(item, plain):
        return str(problem)
    if unknown := sorted(set(pins) - set(item.needs)):
        return f"`pins` may name {', '.join(item.needs) or 'nothing'}, got {unknown[0]}."
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
    if at.code is not None:
        item = at.world.item_of[name]
        if files := at.code.merge(item, seat=at.seat, tick=state.tick):
            return _conflict(at, name, files)
    made = MergedItem(
        fragment=draft.fragment,
        pins=draft.pins,
        author=draft.author,
        revision=revision(at.world.code, name, draft.fragment, draft.pins),
    )
    merged, timed = {**state.merged, name: made}, False
    if at.code is not None:
        answers, timed = at.code.examine(merged)
        merged = {n: replace(m, answers=answers[n]) for n, m in merged.items()}
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
    return ActionOutcome(*(state, f"{text}."), ticks=MERGE, events=(board,), news=text, timed=timed)


def _conflict(at: Place, name: str, files: str) -> ActionOutcome:
    """Return the outcome of a merge that git refuses: the draft is gone."""
    state = at.state
    state = replace(
        state,
        drafts={item: one for item, one in state.drafts.items() if item != name},
        conflicted=state.conflicted | {name},
    )
    board = Board(step=at.step, item=name, status="conflict", owner=at.seat)
    news = f"{name} conflicts with main in {files}"
    text = f"{news}: work it out anew."
    return ActionOutcome(state, text, ok=False, events=(board,), news=news)


def checked_clauses(world: CrewWorld, name: str) -> tuple[str, ...]:
    """Return the clauses of an item that a check names where the item does not hold.

    Args:
        world: The world that holds now.
        name: The item.
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
        f"{line.subject}.{line.attribute}" for line in document.lines if line.standing == "holds"
    }
    state = replace(
        state,
        known=state.known | {(at.seat, clause) for clause in learned},
        served=state.served | {f"fact/{clause}" for clause in learned},
    )
    return ActionOutcome(state, document_text(document), ticks=ticks)


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
