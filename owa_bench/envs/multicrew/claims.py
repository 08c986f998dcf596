"""Propositions about a crew's world: what is in force, who knows it, what is contested.

A claim is about clauses that items need, so that a crew meets them on its way. None states a value,
and each is as often true as false whatever else is told at reset.

Source: docs/multicrew.md#propositions
"""

from collections.abc import Sequence

from owa_bench.envs.multicrew.draws import CrewDraws
from owa_bench.envs.multicrew.world import (
    Clause,
    CrewClaim,
    CrewItem,
    CrewWorld,
    Document,
    DocumentLine,
)
from owa_bench.interfaces import PropositionTruth
from owa_bench.records.instance import Timeline

KINDS = ("in_force", "owner", "contested")
_EACH = 2  # claims of each kind
_CODED = ("tag", "key", "flag", "version", "kinds")  # their values end in digits
_OPEN_SEATS = 3  # from here on `owner` has another role to name
_TEXTS = {
    "in_force": "The value of {clause} that is in force when the episode ends has an "
    "even last digit.",
    "owner": "When the episode ends, a document that {role} keeps states {clause}.",
    "contested": "The documents of two roles give different values of {clause}.",
}


def draw_claims(
    draws: CrewDraws, items: Sequence[CrewItem], clauses: Sequence[Clause], *, open_owners: bool
) -> tuple[CrewClaim, ...]:
    """Return the claims of a world, by a stream of their own.

    Args:
        draws: Knows the roles.
        items: With their clauses.
        clauses: All of them.
        open_owners: Whether the task says who owns what: nothing to claim then.
    Returns: Two of each kind that the world has.
    """
    rng = draws.claims
    needed = {name for item in items for name in (*item.clauses, *item.hidden)}
    doer = {item.name: item.role for item in items}
    plain = [c for c in clauses if c.name in needed and not c.rival]
    rivals = [c for c in clauses if c.name in needed and c.rival]

    def some(options: Sequence[Clause]) -> list[Clause]:
        order = rng.permutation(len(options)).tolist()
        return [options[i] for i in order[:_EACH]]

    found = [
        CrewClaim(name="", kind="in_force", clause=clause.name)
        for clause in some([c for c in plain if c.attribute in _CODED])
    ]
    if not open_owners and len(draws.roles) >= _OPEN_SEATS:
        # Whose item it is is told: neither the true nor the false one is named by it.
        asked = [c for c in plain if doer.get(c.subject) != c.owner]
        for clause in some(asked):
            own = doer.get(clause.subject)
            others = [r for r in draws.roles if r not in (own, clause.owner)]
            false = others[int(rng.integers(len(others)))]
            role = clause.owner if rng.random() < 0.5 else false
            claim = CrewClaim(name="", kind="owner", clause=clause.name, role=role)
            found.append(claim)
    for two in zip(some(rivals), some(plain), strict=False):
        chosen = two[int(rng.integers(2))]
        found.append(CrewClaim(name="", kind="contested", clause=chosen.name))
    named = (
        CrewClaim(name=f"claim-{n}", kind=c.kind, clause=c.clause, role=c.role)
        for n, c in enumerate(found, start=1)
    )
    return tuple(named)


def claim_texts(world: CrewWorld) -> dict[str, str]:
    """Return the claims of a world by name."""
    return {
        claim.name: _TEXTS[claim.kind].format(clause=claim.clause, role=claim.role)
        for claim in world.claims
    }


def truths(timeline: Timeline) -> tuple[PropositionTruth, ...]:
    """Return the claims of the first world as they hold in the last one.

    What a notice states is everybody's from then on: a later statement does not count.
    """
    last: CrewWorld = timeline.worlds[-1]
    told: dict[str, int] = {}
    for start, world in zip(timeline.starts, timeline.worlds, strict=True):
        for notice in world.notices:
            if isinstance(notice, DocumentLine):
                told.setdefault(f"{notice.subject}.{notice.attribute}", start)
    return tuple(
        PropositionTruth(
            claim.name,
            claim.kind,
            holds(last, claim),
            told.get(claim.clause) if claim.kind == "in_force" else None,
        )
        for claim in timeline.worlds[0].claims
    )


def holds(world: CrewWorld, claim: CrewClaim) -> bool:
    """Return whether a claim is true in a world.

    Args:
        world: The world.
        claim: About a clause of it.
    """
    clause = world.clause_of[claim.clause]
    if claim.kind == "in_force":
        return int(clause.value[-1]) % 2 == 0
    if claim.kind == "contested":
        return bool(clause.rival)
    return any(d.owner == claim.role and _states(d, clause) for d in world.documents)


def _states(document: Document, clause: Clause) -> bool:
    about = (clause.subject, clause.attribute)
    return any(
        (line.subject, line.attribute) == about and line.standing == "holds"
        for line in document.lines
    )
