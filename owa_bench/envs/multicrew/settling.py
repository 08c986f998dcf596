"""Settling of contested clauses: proposals, acceptance, arbitration; pure functions.

Source: docs/multicrew.md#tools
"""

from msgspec.structs import replace

from owa_bench.envs.multicrew.acceptance import accepted_items
from owa_bench.envs.multicrew.calls import ActionOutcome, Arguments, Place
from owa_bench.envs.multicrew.state import holder
from owa_bench.records.events import Conflict


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
