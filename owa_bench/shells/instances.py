"""Instances by seed: which instance the reset of a Gymnasium env plays."""

from collections.abc import Callable
from functools import partial

import msgspec

from owa_bench.errors import InstanceError
from owa_bench.interfaces import SuiteCard
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive

Instances = Callable[[int], Instance]


def plain_instances(
    card: SuiteCard,
    *,
    tier: int | None = None,
    family: str | None = None,
    site: str | None = None,
    repeat: int = 0,
    drift_step: int = 0,
) -> Instances:
    """Return the function from a reset's seed to its instance.

    Args:
        card: The suite's.
        tier: One of the card's; None: its first.
        family: One of the card's, of no public draw too; None: the seed draws one.
        site: The seed draws among the families called `site/...`; None: among all.
        repeat: Chooses the noise stream.
        drift_step: Of every instance.
    Returns: A function of a seed; it can be pickled.
    Raises: InstanceError: the suite lacks the family, site or tier.
    """
    tier = card.tiers[0] if tier is None else tier
    if tier not in card.tiers:
        tiers = ", ".join(map(str, card.tiers))
        raise InstanceError("tier", tier, f"must be one of {tiers}")
    if family is not None and family not in (*card.families, *card.held_out):
        names = ", ".join(card.families)
        raise InstanceError("family", family, f"must be one of {names}")
    prefix = "" if site is None else f"{site}/"
    families = tuple(name for name in card.families if name.startswith(prefix))
    if not families:
        sites = sorted({name.partition("/")[0] for name in card.families})
        raise InstanceError("site", site, f"must be one of {', '.join(sites)}")
    plain = Instance(
        suite=card.name,
        version=card.version,
        family=family or families[0],
        tier=tier,
        seed=0,
        repeat=repeat,
        drift_step=drift_step,
    )
    return partial(_with_seed, plain, () if family else families)


def _with_seed(plain: Instance, families: tuple[str, ...], seed: int) -> Instance:
    """Return an instance with a seed, which draws one of the families if there are any.

    Args:
        plain: The instance.
        families: Those that the seed draws from; (): the instance's own.
        seed: Of a reset.
    """
    family = plain.family
    if families:
        family = families[derive(seed, "family") % len(families)]
    return msgspec.structs.replace(plain, family=family, seed=seed)
