"""The kinds of case by name, and the world of an instance."""

from collections.abc import Mapping

from owa_bench.company.kinds.close import KIND as CLOSE
from owa_bench.company.kinds.contract import CaseKind, CaseSpec, CaseWorld, NoWorldError
from owa_bench.company.kinds.credits.kind import KIND as CREDITS
from owa_bench.company.kinds.tariff import KIND as TARIFF
from owa_bench.errors import InfrastructureFailure
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive, is_practice

KINDS: Mapping[str, CaseKind] = {kind.name: kind for kind in (CREDITS, CLOSE, TARIFF)}
FAMILIES = tuple(KINDS)
TIERS = (1, 2, 3)
_REDRAWS = 40


def draw_world(instance: Instance) -> CaseWorld:
    """Return the base world of an instance.

    Args:
        instance: Its seed draws everything.
    Raises: InfrastructureFailure: No drawn company has the facts that the case needs.
    """
    return draw_case(instance.family, instance.tier, instance.seed)


def draw_case(name: str, level: int, seed: int) -> CaseWorld:
    """Return the world of a case.

    Args:
        name: Of the kind.
        level: 1 to 3.
        seed: Draws everything.
    Raises: InfrastructureFailure: No drawn company has the facts that the case needs.
    """
    kind, practice = KINDS[name], is_practice(seed)
    for number in range(_REDRAWS):
        drawn = derive(seed, "case", name, level, number)
        try:
            return kind.draw(CaseSpec(drawn, level, practice))
        except NoWorldError:
            continue
    raise InfrastructureFailure(f"No company of {_REDRAWS} has the facts of this case.")
