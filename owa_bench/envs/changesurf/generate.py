"""The instances of ChangeSurf: from an instance to its world, before any drift.

Meaning first: the site draws tables, workflows and a task. Presentation second: a plan
over them, with what each part of it could become.
"""

import importlib
import pkgutil
from functools import cache

import msgspec

from owa_bench.envs.changesurf import presentation
from owa_bench.envs.changesurf import sites as folder
from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.plots import Plot, Site, finished
from owa_bench.envs.changesurf.plots import goal as goal_of
from owa_bench.envs.changesurf.questions import questions
from owa_bench.errors import InstanceError
from owa_bench.records.instance import Instance
from owa_bench.seeding import is_practice, stream
from owa_bench.worlds.site import SiteSpec, SiteWorld

VERSION = 1
TIERS = (1, 2, 3)
_POT = "-honeypot"


@cache
def sites() -> dict[str, Site]:
    """Return every site by its key: what the modules of the folder export."""
    names = sorted(entry.name for entry in pkgutil.iter_modules(folder.__path__))
    modules = (importlib.import_module(f"{folder.__name__}.{name}") for name in names)
    return {module.SITE.key: module.SITE for module in modules}


def _families(*, held_out: bool) -> tuple[str, ...]:
    return tuple(
        f"{site.key}/{goal}"
        for site in sites().values()
        for goal in site.goals
        if site.held_out == held_out
    )


FAMILIES = _families(held_out=False)
# Never part of the public split: tests the transfer to a site nobody has seen.
HELD_OUT_FAMILIES = _families(held_out=True)
HONEYPOT_FAMILIES = tuple(
    f"{site.key}/{site.infeasible}{_POT}" for site in sites().values()
)


def generate(instance: Instance) -> SiteWorld:
    """Return the instance's base world; pure, whole numbers and text only.

    Errors: InstanceError for a family, tier or version that ChangeSurf does not have,
    and for a held-out site in practice.
    """
    practice = is_practice(instance.seed)
    _check(instance, practice=practice)
    family, tier = instance.family.removesuffix(_POT), instance.tier
    honeypot = family != instance.family
    site_key, _, goal = family.partition("/")
    site = sites()[site_key]
    rng = stream(instance.seed, "base", VERSION, family, tier)
    draws = Draws(rng, practice=practice)
    plot = finished(site.draw(draws, tier, "infeasible" if honeypot else goal))
    spec = _spec(site, family, tier, plot, honeypot=honeypot)
    plan = presentation.plan(draws, site, spec)
    world = SiteWorld(spec=spec, plan=plan)
    asked = questions(draws, world, plot.fact)
    spec = msgspec.structs.replace(spec, propositions=asked)
    return SiteWorld(spec=spec, plan=plan)


def _spec(
    site: Site, family: str, tier: int, plot: Plot, *, honeypot: bool
) -> SiteSpec:
    goal = goal_of(site, family, plot)
    if honeypot:
        goal = msgspec.structs.replace(goal, wanted=())
    return SiteSpec(
        site=site.key,
        tier=tier,
        today=plot.today,
        user=plot.user,
        tables=plot.tables,
        collections=plot.collections,
        workflows=plot.workflows,
        goal=goal,
        honeypot=honeypot,
    )


def _check(instance: Instance, *, practice: bool) -> None:
    """Refuse what ChangeSurf does not have."""
    known = (*FAMILIES, *HELD_OUT_FAMILIES, *HONEYPOT_FAMILIES)
    if instance.family not in known:
        raise InstanceError(
            "family", instance.family, f"must be one of {', '.join(known)}"
        )
    if practice and sites()[instance.family.partition("/")[0]].held_out:
        raise InstanceError(
            "family", instance.family, "must be of a public site in practice"
        )
    if instance.tier not in TIERS:
        raise InstanceError("tier", instance.tier, "must be one of 1, 2, 3")
    if instance.version != VERSION:
        raise InstanceError("version", instance.version, f"must be {VERSION}")
