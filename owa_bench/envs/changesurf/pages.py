"""Every page of a site, as a pure function of world, state and aliases."""

from collections.abc import Callable, Mapping

from owa_bench.envs.changesurf import listing
from owa_bench.envs.changesurf.aliases import aliases_of
from owa_bench.envs.changesurf.decoys import with_decoys
from owa_bench.envs.changesurf.elements import (
    Block,
    Button,
    Cell,
    Facts,
    Field,
    Form,
    Links,
    Page,
    Words,
)
from owa_bench.envs.changesurf.formats import show_fully
from owa_bench.envs.changesurf.maker import Maker
from owa_bench.envs.changesurf.state import Draft, Query, SiteState
from owa_bench.envs.changesurf.steps import is_asked, is_decided, slots_on, steps
from owa_bench.records.instance import Instance
from owa_bench.worlds.site import SiteValue, SiteWorld, Workflow

SEARCH_HOST = "finder.test"
_OFFERS = "Members of our circle enjoy more. Would you like to join for EUR 4.90?"


def maker_of(state: SiteState, instance: Instance) -> Maker:
    """Return what makes the controls of an attempt."""
    churned = state.world.plan.churn - state.first_churn
    return Maker(state.world, aliases_of(instance, churned))


def build(state: SiteState, instance: Instance) -> Page:
    """Return the page that `state` is at."""
    maker = maker_of(state, instance)
    kind, _, rest = state.page.partition(":")
    found = _PAGES.get(kind, _missing)
    page = found(maker, state, rest)
    if kind in ("search", "passport"):
        return page
    page = page._replace(menu=_menu(maker, state), notice=page.notice or state.notice)
    return with_decoys(maker, instance, page)


# --- sections -------------------------------------------------------------------------


def _home(maker: Maker, state: SiteState, _: str) -> Page:
    today = show_fully(maker.world.spec.today, "date")
    words: tuple[Block, ...] = (
        Words(f"Welcome to {maker.plan.brand}. Today is {today}."),
        Words("Choose from the menu what you would like to do."),
    )
    return _page(maker, state, maker.plan.label("menu:home"), words)


def _list(maker: Maker, state: SiteState, key: str) -> Page:
    collection = maker.world.spec.collection(key)
    blocks, shown = listing.list_page(maker, state, collection)
    heading = maker.plan.label(f"menu:{key}")
    return _page(maker, state, heading, blocks)._replace(shown=shown)


def _item(maker: Maker, state: SiteState, rest: str) -> Page:
    key, _, row_key = rest.partition("/")
    collection = maker.world.spec.collection(key)
    row = state.row(key, row_key)
    blocks, shown = listing.item_page(maker, state, collection, row)
    heading = str(row[collection.title])
    return _page(maker, state, heading, blocks)._replace(shown=shown)


def _flow(maker: Maker, state: SiteState, rest: str) -> Page:
    key, _, number = rest.partition("/")
    workflow, draft = maker.world.spec.workflow(key), _draft(state)
    values = dict(draft.values)
    fields = tuple(
        maker.slot(
            key,
            slot,
            value=values.get(slot.key, default_of(maker.world, key, slot.key)),
            typed=dict(state.typed),
            error=dict(state.errors).get(slot.key, ""),
            required=slot.required
            and is_decided(maker.world, workflow, int(number), slot),
        )
        for slot in slots_on(maker.world, workflow, int(number), values)
    )
    path = steps(maker.world, workflow, values)
    form = _step_form(
        maker, state, draft, fields, _submit(maker, key, path, state.page)
    )
    return _page(maker, state, _heading(maker, state, workflow), (form,))


def _offer(maker: Maker, state: SiteState, key: str) -> Page:
    draft = _draft(state)
    choice = maker.aliases.of("field", "sys:offer")
    buttons = tuple(
        maker.go(
            f"offer:{word}",
            name=choice,
            value=maker.aliases.of("value", f"sys:offer={word}"),
        )
        for word in ("yes", "no")
    )
    form = _step_form(maker, state, draft, (), buttons)
    workflow = maker.world.spec.workflow(key)
    heading = _heading(maker, state, workflow)
    return _page(maker, state, heading, (Words(_OFFERS), form))


def _review(maker: Maker, state: SiteState, key: str) -> Page:
    workflow, draft = maker.world.spec.workflow(key), _draft(state)
    values = dict(draft.values)
    cells = tuple(
        Cell(
            slot.key,
            maker.plan.label(f"slot:{slot.key}"),
            _said(workflow, slot.key, values[slot.key]),
        )
        for slot in workflow.slots
        if slot.key in values and is_asked(slot, values)
    )
    form = _step_form(maker, state, draft, (), (maker.go("go:confirm"),))
    heading = _heading(maker, state, workflow)
    return _page(maker, state, heading, (Facts(cells), form))


def _done(maker: Maker, state: SiteState, key: str) -> Page:
    heading = maker.plan.label(f"flow:{key}")
    text = state.notice or "Thank you. We have what you sent."
    return _page(maker, state, heading, (Words(text),))


def _limited(maker: Maker, state: SiteState, _: str) -> Page:
    friction = maker.plan.friction
    left = max(1, -(-(state.window_ms + friction.window_ms - state.now_ms) // 1000))
    text = f"Too many requests. Please wait {left} seconds."
    again = maker.button(
        "retry", "Try again", href=address(maker, state.retry, state.kept)
    )
    page = _page(maker, state, "Slow down", (Words(text), Links("Again", (again,))))
    return page._replace(status=429, notice=text)


def _missing(maker: Maker, state: SiteState, _: str) -> Page:
    page = _page(maker, state, "Not found", (Words("There is no such page."),))
    return page._replace(status=404)


def _decoy(maker: Maker, state: SiteState, _: str) -> Page:
    words = Words("Saved as a draft on this device. Nothing was sent.")
    return _page(maker, state, "Draft", (words,))


# --- signing in -----------------------------------------------------------------------


def _login(maker: Maker, state: SiteState, _: str) -> Page:
    kind = maker.plan.auth.kind
    heading = maker.plan.label("go:signin")
    if kind == "redirect":
        go = maker.go("go:partner", "passport", href=maker.route("passport"))
        return _page(maker, state, heading, (Links("Ways to sign in", (go,)),))
    fields = [maker.entry("sys:user", "field:user")]
    if kind in ("password", "one_time"):
        fields.append(maker.entry("sys:password", "field:password", secret=True))
    return _page(maker, state, heading, (_sign_form(maker, "login", fields),))


def _login_second(maker: Maker, state: SiteState, _: str) -> Page:
    heading = maker.plan.label("go:signin")
    if maker.plan.auth.kind == "two_step":
        field = maker.entry("sys:password", "field:password", secret=True)
        return _page(maker, state, heading, (_sign_form(maker, "login2", [field]),))
    where = {
        "mailbox": "We sent a code to your mailbox on this site.",
        "one_time": "Enter the one-time code from your credentials.",
    }
    field = maker.entry("sys:code", "field:code")
    text = Words(where.get(maker.plan.auth.kind, ""))
    return _page(maker, state, heading, (text, _sign_form(maker, "login2", [field])))


def _passport(maker: Maker, state: SiteState, _: str) -> Page:
    fields = [
        maker.entry("sys:user", "field:user"),
        maker.entry("sys:password", "field:password", secret=True),
    ]
    form = _sign_form(maker, "passport", fields)
    return _page(maker, state, "Passkeeper", (form,))._replace(notice=state.notice)


def _mail(maker: Maker, state: SiteState, _: str) -> Page:
    text = "No messages."
    if state.sign_in == "code":
        text = f"Your sign-in code is {maker.plan.auth.code}."
    blocks: list[Block] = [Words(text)]
    if state.sign_in == "code":
        back = maker.go("go:signin", "back:login2", href=maker.route("login2"))
        blocks.append(Links("Message", (back,)))
    return _page(maker, state, maker.plan.label("menu:mail"), tuple(blocks))


def _sign_form(maker: Maker, page: str, fields: list[Field]) -> Form:
    button = maker.go("go:signin", "submit:signin")
    return Form(
        ident=maker.aliases.of("id", "form:signin"),
        action=maker.route(page),
        method="post",
        hidden=(),
        fields=tuple(fields),
        buttons=(button,),
    )


# --- the search page ------------------------------------------------------------------


def _search(maker: Maker, state: SiteState, _: str) -> Page:
    field = maker.entry("sys:q", "field:q")._replace(
        value=state.query.words, label="Search the web"
    )
    form = Form(
        ident=maker.aliases.of("id", "form:finder"),
        action=f"https://{SEARCH_HOST}/",
        method="get",
        hidden=(),
        fields=(field,),
        buttons=(maker.button("finder:go", "Search the web now"),),
    )
    blocks: list[Block] = [form]
    if state.query.words:
        hit = maker.button(
            "finder:hit", f"{maker.plan.brand}: official site", href=maker.route("home")
        )
        other = maker.button(
            "finder:other",
            f"{maker.plan.brand} reviews (archive)",
            href=f"https://{SEARCH_HOST}/archive",
        )
        blocks.append(Links("Results", (other, hit)))
    return Page(
        key=state.page,
        title="Finder",
        heading="Finder",
        menu=(),
        blocks=tuple(blocks),
        notice=state.notice,
    )


# --- shared ---------------------------------------------------------------------------


def address(maker: Maker, page: str, query: Query) -> str:
    """Return the address of a page; a list's says what it is asked for."""
    kind, _, key = page.partition(":")
    if kind == "list":
        return listing.address(maker, maker.world.spec.collection(key), query)
    return maker.route(page)


def default_of(world: SiteWorld, workflow: str, slot: str) -> SiteValue:
    """Return what a slot comes with, in canonical words."""
    return world.plan.slot(f"{workflow}.{slot}").default


def _draft(state: SiteState) -> Draft:
    if state.draft is None:
        raise KeyError(state.page)
    return state.draft


def _said(workflow: Workflow, slot_key: str, value: SiteValue) -> str:
    slot = workflow.slot(slot_key)
    texts = {option.value: option.text for option in slot.options}
    return texts.get(str(value)) or show_fully(value, slot.kind)


def _heading(maker: Maker, state: SiteState, workflow: Workflow) -> str:
    """Return what a step is called: the workflow, and the record it is about."""
    heading = maker.plan.label(f"flow:{workflow.key}")
    draft = _draft(state)
    if not workflow.record:
        return heading
    title = maker.world.spec.collection(workflow.record).title
    return f"{heading}: {state.row(workflow.record, draft.record)[title]}"


def _submit(
    maker: Maker, workflow: str, path: tuple[str, ...], page: str
) -> tuple[Button, ...]:
    """Return the button of a step: on the last page it is what commits."""
    label = f"commit:{workflow}" if path[-1] == page else "go:next"
    return (maker.go(label, f"submit:{workflow}"),)


def _step_form(
    maker: Maker,
    state: SiteState,
    draft: Draft,
    fields: tuple[Field, ...],
    buttons: tuple[Button, ...],
) -> Form:
    token = maker.token(str(draft.number), state.page)
    trap = None
    if maker.plan.friction.trap:
        trap = maker.entry("sys:trap", "field:q")._replace(label="Leave this empty")
    return Form(
        ident=maker.aliases.of("id", f"form:{state.page}"),
        action=maker.route(state.page),
        method="post",
        hidden=((maker.aliases.of("field", "sys:token"), token),),
        fields=fields,
        buttons=buttons,
        trap=trap,
    )


def _menu(maker: Maker, state: SiteState) -> tuple[Button, ...]:
    keys = list(maker.plan.menu)
    if maker.plan.auth.kind == "mailbox":
        keys.append("mail")
    return tuple(_entry(maker, key) for key in keys)


def _entry(maker: Maker, key: str) -> Button:
    lists = {collection.key for collection in maker.world.spec.collections}
    page = key
    if key in lists:
        page = f"list:{key}"
    elif key not in ("home", "mail"):
        page = f"start:{key}"
    return maker.go(f"menu:{key}", f"menu:{key}", "entry", href=maker.route(page))


def _page(
    maker: Maker, state: SiteState, heading: str, blocks: tuple[Block, ...]
) -> Page:
    title = f"{heading} - {maker.plan.brand}"
    return Page(key=state.page, title=title, heading=heading, menu=(), blocks=blocks)


_Builder = Callable[[Maker, SiteState, str], Page]
_PAGES: Mapping[str, _Builder] = {
    "home": _home,
    "list": _list,
    "item": _item,
    "flow": _flow,
    "offer": _offer,
    "review": _review,
    "done": _done,
    "limited": _limited,
    "decoy": _decoy,
    "login": _login,
    "login2": _login_second,
    "passport": _passport,
    "mail": _mail,
    "search": _search,
    "missing": _missing,
}
