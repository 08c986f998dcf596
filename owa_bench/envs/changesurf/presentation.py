"""How a world without drift is shown: one plan, drawn after its meaning.

Base plans are plain: most slots have a label, most lists are tables. What the plan
could become (words, layouts, sign-ins) comes along, so that operators need no list of
their own and practice worlds never hold what is held out.
"""

from collections.abc import Iterable

from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.plots import Site
from owa_bench.envs.changesurf.words import SHARED, label
from owa_bench.worlds.site import (
    CONTROLS,
    Collection,
    Control,
    Filter,
    FlowPlan,
    Label,
    ListPlan,
    RenderPlan,
    SignIn,
    SignInKind,
    SiteSpec,
    Slot,
    SlotPlan,
    Workflow,
)

_TEMPLATES, _HELD_OUT_TEMPLATES = (0, 1, 2), (3, 4)
_THEMES = 4
_PAGE_SIZE = {1: 12, 2: 8, 3: 8}
_PAGES = {1: 1, 2: 2, 3: 3}
_KINDS: tuple[SignInKind, ...] = ("password", "two_step", "mailbox", "one_time")
_HELD_OUT_KINDS: tuple[SignInKind, ...] = ("redirect",)
_FEW = 12  # numbers of at most so many values may be picked from a list
_SECRETS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron")


def plan(draws: Draws, site: Site, spec: SiteSpec) -> RenderPlan:
    """Return the presentation of a world before any drift."""
    brand = draws.pick(site.brands)
    host = brand.lower().replace(" ", "-")
    templates = _TEMPLATES if draws.practice else (*_TEMPLATES, *_HELD_OUT_TEMPLATES)
    return RenderPlan(
        brand=brand,
        host=f"{host}.test",
        auth_host="passkeeper.test",
        start="search" if spec.tier == max(_PAGES) and draws.coin() else "home",
        labels=tuple(_labels(draws, site, spec)),
        slots=tuple(
            _slot(draws, workflow.key, slot)
            for workflow in spec.workflows
            for slot in workflow.slots
        ),
        lists=tuple(_listing(draws, spec, each) for each in spec.collections),
        flows=tuple(
            FlowPlan(key=w.key, pages=_pages(w, spec.tier)) for w in spec.workflows
        ),
        auth=_auth(draws, spec.tier, spec.user),
        menu=menu(spec),
        template=draws.pick(_TEMPLATES),
        templates=templates,
        theme=draws.between(0, _THEMES - 1),
        dates="iso",
        swaps=draws.between(0, 3) == 0,
    )


def menu(spec: SiteSpec) -> tuple[str, ...]:
    """Return the keys of the menu in their plain order."""
    lists = (collection.key for collection in spec.collections)
    free = (workflow.key for workflow in spec.workflows if not workflow.record)
    return ("home", *lists, *free)


def controls(slot: Slot) -> tuple[Control, ...]:
    """Return the controls that may stand for a slot."""
    if slot.kind == "number" and slot.most - slot.least >= _FEW:
        return ("text",)
    return CONTROLS[slot.kind]


def _labels(draws: Draws, site: Site, spec: SiteSpec) -> Iterable[Label]:
    """Return a label for every key of the site that its world can show."""
    used = _used(spec)
    for key, pool in {**SHARED, **site.words}.items():
        kind, _, name = key.partition(":")
        if kind not in ("slot", "column") or name in used:
            yield label(draws, key, pool)


def _used(spec: SiteSpec) -> set[str]:
    slots = {slot.key for workflow in spec.workflows for slot in workflow.slots}
    shown = {column.key for each in spec.collections for column in each.columns}
    return slots | shown


def _slot(draws: Draws, workflow: str, slot: Slot) -> SlotPlan:
    known = controls(slot)
    control = known[0] if draws.coin() else draws.pick(known)
    default = "no" if slot.kind == "check" else ""
    return SlotPlan(
        key=f"{workflow}.{slot.key}",
        control=control,
        placement="label" if draws.coin() else draws.pick(("label", "wrap")),
        default=default,
    )


def _listing(draws: Draws, spec: SiteSpec, collection: Collection) -> ListPlan:
    kinds: tuple[Filter, ...] = ("search", "none")
    if collection.category:
        kinds = ("search", "tree", "none")
    return ListPlan(
        key=collection.key,
        form="table" if draws.coin() else draws.pick(("table", "cards")),
        columns=tuple(
            column.key
            for column in collection.columns
            if column.key not in collection.secluded
        ),
        size=_PAGE_SIZE[spec.tier],
        paging=draws.pick(("pages", "more")),
        filter="none" if spec.tier == 1 else draws.pick(kinds),
    )


def _pages(workflow: Workflow, tier: int) -> tuple[tuple[str, ...], ...]:
    """Return the slots cut into as many even pages as the tier has.

    A slot that is asked only sometimes comes on a later page than what decides it.
    """
    keys = [slot.key for slot in workflow.slots]
    count = min(_PAGES[tier], len(keys))
    size = -(-len(keys) // count)
    pages = [keys[i : i + size] for i in range(0, len(keys), size)]
    for slot in workflow.slots:
        if slot.when is None:
            continue
        page = next(page for page in pages if slot.key in page)
        if slot.when[0] in page:
            page.remove(slot.key)
            after = pages.index(page) + 1
            if after == len(pages):
                pages.append([])
            pages[after].insert(0, slot.key)
    return tuple(tuple(page) for page in pages)


def _auth(draws: Draws, tier: int, user: str) -> SignIn:
    kinds = _KINDS if draws.practice else (*_KINDS, *_HELD_OUT_KINDS)
    kind: SignInKind = draws.pick(("none", "password")) if tier == 1 else "password"
    words = draws.sample(_SECRETS, 3)
    passwords = [f"{word}-{draws.between(100, 999)}" for word in words]
    return SignIn(
        kind=kind,
        user=f"{user}{draws.between(10, 99)}",
        password=passwords[0],
        code=str(draws.between(100_000, 999_999)),
        early=tier > 1 and draws.coin(),
        others=tuple(other for other in kinds if other != kind),
        spares=tuple(passwords[1:]),
    )
