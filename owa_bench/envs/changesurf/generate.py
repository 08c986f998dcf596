"""Worlds of ChangeSurf before any drift: from an instance to its world.

Meaning first: the site draws tables, workflows and a task. Presentation second: one plan over them.
Base plans are plain: most slots have a label, most lists are tables. What the first page shows
(menu, its words and side, the layout) is drawn evenly from all that drift could make of it, so that
it does not say whether there was drift. What a plan could become (words, layouts, sign-ins) comes
along, so that operators need no list of their own and practice worlds never hold what is held out.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec.structs import replace

from owa_bench.envs.changesurf import site_spec as specs
from owa_bench.envs.changesurf import sites as folder
from owa_bench.envs.changesurf import world as plans
from owa_bench.envs.changesurf.propositions import propositions
from owa_bench.envs.changesurf.server.forms import show_money
from owa_bench.envs.changesurf.server.state import RowValues, effect_value
from owa_bench.envs.changesurf.site_schema import (
    INFEASIBLE,
    SHARED_WORDS,
    Site,
    SiteDraw,
    SiteTask,
    effect,
)
from owa_bench.errors import InstanceError
from owa_bench.records.instance import Instance
from owa_bench.seeding import is_practice, stream

VERSION = 3
_DRAWN = 2  # the version whose worlds are drawn: that of rules may be a later one
TIERS = (1, 2, 3)
_HONEYPOT = "-honeypot"
_MOST_CENTS = 10_000_000
_SYSTEM_TABLES = (
    specs.SiteTable(key="answers", columns=("id", "value")),
    specs.SiteTable(key="extras", columns=("id", "workflow")),
)
_TEMPLATES, _HELD_OUT_TEMPLATES = (0, 1, 2), (3, 4)
_THEMES = 4
_PAGE_SIZE = {1: 12, 2: 8, 3: 8}
_PAGES = {1: 1, 2: 2, 3: 3}
_AUTH_KINDS: tuple[specs.SignInKind, ...] = (*("password", "two_step", "mailbox", "one_time"),)
_HELD_OUT_AUTH_KINDS: tuple[specs.SignInKind, ...] = ("redirect",)
_FEW = 12  # numbers of at most so many values may be picked from a list
_SECRETS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron")


@cache
def sites() -> dict[str, Site]:
    """Return every site by its key: what the modules of the folder export."""
    names = sorted(entry.name for entry in pkgutil.iter_modules(folder.__path__))
    modules = (importlib.import_module(f"{folder.__name__}.{name}") for name in names)
    return {module.SITE.key: module.SITE for module in modules}


def _families(*, held_out: bool) -> tuple[str, ...]:
    chosen = (site for site in sites().values() if site.held_out == held_out)
    return tuple(f"{site.key}/{goal}" for site in chosen for goal in site.goals)


FAMILIES = _families(held_out=False)
# Never part of the public split: tests the transfer to an unknown site.
HELD_OUT_FAMILIES = _families(held_out=True)
HONEYPOT_FAMILIES = tuple(f"{site.key}/{site.infeasible}{_HONEYPOT}" for site in sites().values())


def generate(instance: Instance) -> plans.SiteWorld:
    """Return the instance's base world; pure, whole numbers and text only.

    Raises: InstanceError: ChangeSurf has no such family, tier or version, or a held-out site is
        asked for in practice.
    """
    practice = is_practice(instance.seed)
    _check(instance, practice=practice)
    family, tier = instance.family.removesuffix(_HONEYPOT), instance.tier
    site = sites()[family.partition("/")[0]]
    rng = stream(instance.seed, "base", _DRAWN, family, tier)
    draw = SiteDraw(rng, tier=tier, practice=practice)
    spec = _spec(draw, site, family, honeypot=family != instance.family)
    world = plans.SiteWorld(spec=spec, plan=_plan(draw, site, spec))
    asked = tuple(propositions(draw, world, site))
    return replace(world, spec=replace(spec, propositions=asked))


def _check(instance: Instance, *, practice: bool) -> None:
    """Refuse what ChangeSurf does not have."""
    family = instance.family
    known = (*FAMILIES, *HELD_OUT_FAMILIES, *HONEYPOT_FAMILIES)
    if family not in known:
        raise InstanceError("family", family, f"must be one of {', '.join(known)}")
    if practice and sites()[family.partition("/")[0]].held_out:
        raise InstanceError("family", family, "must be of a public site in practice")
    if instance.tier not in TIERS:
        raise InstanceError("tier", instance.tier, "must be one of 1, 2, 3")
    if instance.version != VERSION:
        raise InstanceError("version", instance.version, f"must be {VERSION}")


# --- meaning --------------------------------------------------------------------------


def _spec(draw: SiteDraw, site: Site, family: str, *, honeypot: bool) -> specs.SiteSpec:
    """Draw the meaning of a world, without propositions."""
    tables = site.tables(draw)
    draw.rows = {table.key: table.rows for table in tables}
    slot = specs.Slot(key="answer", kind="money", least=0, most=_MOST_CENTS)
    answer = effect("replace", "answers", (), value="slot:answer")
    workflows = (
        *site.workflows(draw),
        specs.Workflow(key="answer", slots=(slot,), effects=(answer,)),
    )
    draw.workflows = {workflow.key: workflow for workflow in workflows}
    task = site.tasks[INFEASIBLE if honeypot else family.partition("/")[2]](draw)
    goal = _goal(site, family, task, draw.workflows[task.workflow], tables)
    if honeypot:
        goal = replace(goal, wanted=())
    return specs.SiteSpec(
        site=site.key,
        tier=draw.tier,
        today=draw.today,
        user=site.user,
        tables=(*tables, *_SYSTEM_TABLES),
        collections=site.collections,
        workflows=workflows,
        goal=goal,
        honeypot=honeypot,
    )


def _goal(
    site: Site,
    family: str,
    task: SiteTask,
    workflow: specs.Workflow,
    tables: Sequence[specs.SiteTable],
) -> specs.SiteGoal:
    """Return the goal of a task: words, values, and the rows that it wants."""
    text, names = task.text, site.names
    record: dict[str, specs.SiteValue] = {}
    for table in tables:
        for row in table.rows if table.key == workflow.record else ():
            if row[0] == task.record:
                record = dict(zip(table.columns, row, strict=True))
    arguments = tuple(
        (names.get(slot.key, slot.key), _in_words(slot, task.values[slot.key]))
        for slot in workflow.slots
        if slot.key in task.values and workflow.key != "answer"
    )
    if arguments:
        text += " " + "; ".join(f"{name}: {value}" for name, value in arguments) + "."
    return specs.SiteGoal(
        family=family,
        text=text,
        workflow=workflow.key,
        record=task.record,
        values=tuple(task.values.items()),
        wanted=wanted_rows(workflow, task.values, record, task.record),
        arguments=arguments,
        evidence=tuple(task.evidence),
    )


def _in_words(slot: specs.Slot, value: specs.SiteValue) -> str:
    """Return a slot's value in the words of a goal."""
    if slot.kind == "money":
        return f"EUR {show_money(int(value))}"
    texts = {option.value: option.text for option in slot.options}
    return texts.get(str(value), str(value))


def wanted_rows(
    workflow: specs.Workflow, values: RowValues, record: RowValues, key: specs.SiteValue
) -> tuple[specs.RequiredRow, ...]:
    """Return the rows that a workflow's effects would leave.

    Args:
        workflow: the workflow.
        values: the values of its slots.
        record: the row at which it begins, empty for none.
        key: the key of that row.
    Returns: The rows, new ones without a key.
    """
    rows = []
    for each in workflow.effects:
        cells = []
        for column, source in each.values:
            value = effect_value(source, values, record)
            if each.kind == "take":
                value = int(record[column]) - int(value)
            cells.append((column, value))
        row = None if each.kind in ("insert", "replace") else key
        rows.append(specs.RequiredRow(table=each.table, key=row, values=tuple(cells)))
    return tuple(rows)


# --- presentation ---------------------------------------------------------------------


def _plan(draw: SiteDraw, site: Site, spec: specs.SiteSpec) -> plans.RenderPlan:
    """Draw the presentation of a world before any drift."""
    brand = draw.pick(site.brands)
    host = brand.lower().replace(" ", "-")
    lists = (collection.key for collection in spec.collections)
    free = (workflow.key for workflow in spec.workflows if not workflow.record)
    menu = ("home", *lists, *free)
    templates = (*_TEMPLATES, *(() if draw.practice else _HELD_OUT_TEMPLATES))
    return plans.RenderPlan(
        brand=brand,
        host=f"{host}.test",
        auth_host="passkeeper.test",
        start="search" if spec.tier == max(_PAGES) and draw.coin() else "home",
        labels=tuple(_labels(draw, site, spec)),
        slots=tuple(
            _slot(draw, workflow.key, slot)
            for workflow in spec.workflows
            for slot in workflow.slots
        ),
        lists=tuple(_listing(draw, each) for each in spec.collections),
        flows=tuple(plans.FlowPlan(key=w.key, pages=_pages(w, spec.tier)) for w in spec.workflows),
        auth=_auth(draw, spec.user),
        menu=tuple(draw.sample(menu, len(menu))),
        template=draw.pick(templates),
        templates=templates,
        nav=draw.pick(specs.NAVS),
        theme=draw.between(0, _THEMES - 1),
        dates="iso",
        swaps=draw.between(0, 3) == 0,
    )


def pools(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a label: those of all worlds, and the held-out ones."""
    known, _, held_out = text.partition("||")
    return _words(known), _words(held_out)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|") if word.strip())


def _labels(draw: SiteDraw, site: Site, spec: specs.SiteSpec) -> Iterator[plans.Label]:
    """Yield a label for every key of the site that its world can show.

    The first word is the one that a world without drift uses most often, but in the menu, which is
    on the first page.
    """
    used = {slot.key for workflow in spec.workflows for slot in workflow.slots}
    used |= {column.key for each in spec.collections for column in each.columns}
    for key, text in {**SHARED_WORDS, **site.words}.items():
        kind, _, name = key.partition(":")
        if kind in ("slot", "column") and name not in used:
            continue
        known, held_out = pools(text)
        words = known if draw.practice else (*known, *held_out)
        if kind == "menu":  # noqa: SIM108  three cases
            word = draw.pick(words)
        else:
            word = known[0] if draw.coin() else draw.pick(known)
        others = tuple(other for other in words if other != word)
        yield plans.Label(key=key, text=word, others=others)


def controls(slot: specs.Slot) -> tuple[specs.Control, ...]:
    """Return the controls that may stand for a slot."""
    if slot.kind == "number" and slot.most - slot.least >= _FEW:
        return ("text",)
    return specs.CONTROLS[slot.kind]


def _slot(draw: SiteDraw, workflow: str, slot: specs.Slot) -> plans.SlotPlan:
    known = controls(slot)
    return plans.SlotPlan(
        key=f"{workflow}.{slot.key}",
        control=known[0] if draw.coin() else draw.pick(known),
        placement="label" if draw.coin() else draw.pick(("label", "wrap")),
        default="no" if slot.kind == "check" else "",
    )


def _listing(draw: SiteDraw, collection: specs.Collection) -> plans.ListPlan:
    kinds: tuple[specs.Filter, ...] = ("search", "none")
    if collection.category:
        kinds = ("search", "tree", "none")
    keys = (column.key for column in collection.columns)
    return plans.ListPlan(
        key=collection.key,
        form="table" if draw.coin() else draw.pick(("table", "cards")),
        columns=tuple(key for key in keys if key not in collection.secluded),
        size=_PAGE_SIZE[draw.tier],
        paging=draw.pick(("pages", "more")),
        filter="none" if draw.tier == 1 else draw.pick(kinds),
    )


def _pages(workflow: specs.Workflow, tier: int) -> tuple[tuple[str, ...], ...]:
    """Return the slots cut into as many even pages as the tier has.

    A slot that is asked only sometimes comes on a later page than what decides it.
    """
    keys = [slot.key for slot in workflow.slots]
    size = -(-len(keys) // min(_PAGES[tier], len(keys)))
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


def _auth(draw: SiteDraw, user: str) -> plans.SignIn:
    kinds = (*_AUTH_KINDS, *(() if draw.practice else _HELD_OUT_AUTH_KINDS))
    kind: specs.SignInKind = "password"
    if draw.tier == 1:
        kind = draw.pick(("none", "password"))
    words = draw.sample(_SECRETS, 2)
    passwords = [f"{word}-{draw.between(100, 999)}" for word in words]
    return plans.SignIn(
        kind=kind,
        user=f"{user}{draw.between(10, 99)}",
        password=passwords[0],
        code=str(draw.between(100_000, 999_999)),
        early=draw.tier > 1 and draw.coin(),
        others=tuple(other for other in kinds if other != kind),
        spares=tuple(passwords[1:]),
    )
