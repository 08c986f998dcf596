"""Pages of a site as a pure function of world, state and aliases."""

from owa_bench.envs.changesurf.server import control_factory, forms
from owa_bench.envs.changesurf.server.listing import ListPages, list_address
from owa_bench.envs.changesurf.server.page_model import (
    Block,
    Button,
    Facts,
    FormField,
    LabelledValue,
    Links,
    PageForm,
    PageModel,
    Paragraph,
)
from owa_bench.envs.changesurf.server.sign_in import sign_in_code
from owa_bench.envs.changesurf.server.state import Draft, Query, SiteState
from owa_bench.envs.changesurf.site_spec import Workflow
from owa_bench.records.instance import Instance

SEARCH_HOST = "finder.test"
_OFFER = "Members of our circle enjoy more. Would you like to join for EUR 4.90?"
_CODE_SOURCES = {
    "mailbox": "We sent a code to your mailbox on this site.",
    "one_time": "Enter a one-time code from your list. Each works once.",
}


def build(state: SiteState, instance: Instance) -> PageModel:
    """Return the open page.

    Args:
        state: the visit.
        instance: the attempt, which names the aliases.
    Returns: The page in parts.
    """
    factory = control_factory.factory_for(state, instance)
    pages = _Pages(factory, state)
    kind, _, rest = state.page.partition(":")
    page = pages.build(kind, rest)
    if kind in ("search", "passport"):
        return page
    page = page._replace(menu=pages.menu(), notice=page.notice or state.notice)
    return control_factory.with_decoys(factory, instance, page)


def address(factory: control_factory.ControlFactory, page: str, query: Query) -> str:
    """Return the address of a page.

    Args:
        factory: the attempt's control factory.
        page: the page's key.
        query: what is asked of it, if it is a list.
    """
    kind, _, key = page.partition(":")
    if kind == "list":
        return list_address(factory, factory.world.spec.collection(key), query)
    return factory.route(page)


class _Pages:
    """Builds the pages of one state; a method for each kind of page."""

    def __init__(self, factory: control_factory.ControlFactory, state: SiteState) -> None:
        self._factory = factory
        self._plan = factory.plan
        self._spec = factory.world.spec
        self._state = state

    def build(self, kind: str, rest: str) -> PageModel:
        """Return a page; `rest` names the collection, row or workflow it is about."""
        about_one = {
            "list": self._list,
            "item": self._row,
            "flow": self._flow,
            "offer": self._offer,
            "review": self._review,
            "done": self._done_page,
        }
        if kind in about_one:
            return about_one[kind](rest)
        others = {
            "home": self._home,
            "limited": self._limited,
            "decoy": self._decoy,
            "login": self._login,
            "login2": self._second_login,
            "passport": self._passport,
            "mail": self._mail,
            "search": self._search,
        }
        return others.get(kind, self._missing_page)()

    def menu(self) -> tuple[Button, ...]:
        """Return the site's menu."""
        lists = {collection.key for collection in self._spec.collections}
        pages = {key: f"list:{key}" for key in lists} | {"home": "home", "mail": "mail"}
        extra = () if self._plan.auth.kind == "none" else ("mail",)
        return tuple(
            self._factory.go(
                f"menu:{key}", css="entry", href=self._factory.route(pages.get(key, f"start:{key}"))
            )
            for key in (*self._plan.menu, *extra)
        )

    # --- sections ---------------------------------------------------------------------

    def _home(self) -> PageModel:
        today = forms.show_fully(self._spec.today, "date")
        return self._page(
            self._plan.label("menu:home"),
            Paragraph(f"Welcome to {self._plan.brand}. Today is {today}."),
            Paragraph("Choose from the menu what you would like to do."),
        )

    def _list(self, key: str) -> PageModel:
        pages = ListPages(self._factory, self._state, self._spec.collection(key))
        blocks, shown = pages.list_page()
        page = self._page(self._plan.label(f"menu:{key}"), *blocks)
        return page._replace(shown=shown)

    def _row(self, rest: str) -> PageModel:
        key, _, row_key = rest.partition("/")
        collection = self._spec.collection(key)
        row = self._state.row(key, row_key)
        pages = ListPages(self._factory, self._state, collection)
        blocks, shown = pages.row_page(row)
        return self._page(str(row[collection.title]), *blocks)._replace(shown=shown)

    def _missing_page(self) -> PageModel:
        page = self._page("Not found", Paragraph("There is no such page."))
        return page._replace(status=404)

    def _decoy(self) -> PageModel:
        text = "Saved as a draft on this device. Nothing was sent."
        return self._page("Draft", Paragraph(text))

    def _limited(self) -> PageModel:
        state = self._state
        left_ms = state.window_ms + self._plan.friction.window_ms - state.now_ms
        text = f"Too many requests. Please wait {max(1, -(-left_ms // 1000))} seconds."
        href = address(self._factory, state.retry, state.retry_query)
        again = self._factory.button("retry", "Try again", href=href)
        page = self._page("Slow down", Paragraph(text), Links("Again", (again,)))
        return page._replace(status=429, notice=text)

    # --- workflows --------------------------------------------------------------------

    def _flow(self, rest: str) -> PageModel:
        key, _, number = rest.partition("/")
        world, draft = self._factory.world, self._draft
        workflow, page = self._spec.workflow(key), int(number)
        values, errors = dict(draft.values), dict(self._state.errors)
        fields = tuple(
            self._factory.slot(
                key,
                slot,
                value=values.get(slot.key, self._plan.slot(f"{key}.{slot.key}").default),
                typed=dict(self._state.typed),
                error=errors.get(slot.key, ""),
                required=slot.required and forms.is_decided(world, workflow, page, slot),
            )
            for slot in forms.slots_on(world, workflow, page, values)
        )
        is_last = forms.steps(world, workflow, values)[-1] == self._state.page
        label = f"commit:{key}" if is_last else "go:next"  # the last page commits
        button = self._factory.go(label, f"submit:{key}")
        return self._page(self._heading(workflow), self._form(fields, button))

    def _offer(self, key: str) -> PageModel:
        aliases = self._factory.aliases
        name = aliases.of("field", "sys:offer")
        buttons = (
            self._factory.go(
                f"offer:{word}", name=name, value=aliases.of("value", f"sys:offer={word}")
            )
            for word in ("yes", "no")
        )
        heading = self._heading(self._spec.workflow(key))
        return self._page(heading, Paragraph(_OFFER), self._form((), *buttons))

    def _review(self, key: str) -> PageModel:
        workflow, values = self._spec.workflow(key), dict(self._draft.values)
        cells = []
        for slot in workflow.slots:
            if slot.key in values and forms.is_asked(slot, values):
                value = values[slot.key]
                texts = {option.value: option.text for option in slot.options}
                text = texts.get(str(value)) or forms.show_fully(value, slot.kind)
                label = self._plan.label(f"slot:{slot.key}")
                cells.append(LabelledValue(slot.key, label, text))
        form = self._form((), self._factory.go("go:confirm"))
        return self._page(self._heading(workflow), Facts(tuple(cells)), form)

    def _done_page(self, key: str) -> PageModel:
        text = self._state.notice or "Thank you. We have what you sent."
        return self._page(self._plan.label(f"flow:{key}"), Paragraph(text))

    @property
    def _draft(self) -> Draft:
        if self._state.draft is None:
            raise KeyError(self._state.page)
        return self._state.draft

    def _heading(self, workflow: Workflow) -> str:
        """Return what a step is called: the workflow, and the record it is about."""
        heading, draft = self._plan.label(f"flow:{workflow.key}"), self._draft
        if not workflow.record:
            return heading
        title = self._spec.collection(workflow.record).title
        return f"{heading}: {self._state.row(workflow.record, draft.record)[title]}"

    def _form(self, fields: tuple[FormField, ...], *buttons: Button) -> PageForm:
        """Return the form of a step, with its token and perhaps an invisible input."""
        factory, page = self._factory, self._state.page
        token = factory.token(str(self._draft.number), page)
        trap = None
        if self._plan.friction.trap:
            trap = factory.entry("sys:trap", "field:q")._replace(label="Leave this empty")
        return PageForm(
            ident=factory.aliases.of("id", f"form:{page}"),
            action=factory.route(page),
            method="post",
            hidden=((factory.aliases.of("field", "sys:token"), token),),
            fields=fields,
            buttons=buttons,
            trap=trap,
        )

    # --- signing in -------------------------------------------------------------------

    def _login(self) -> PageModel:
        kind = self._plan.auth.kind
        if kind == "redirect":
            href = self._factory.route("passport")
            go = self._factory.go("go:partner", "passport", href=href)
            heading = self._plan.label("go:signin")
            return self._page(heading, *self._lapse(), Links("Ways to sign in", (go,)))
        names = ("user", "password") if kind in ("password", "one_time") else ("user",)
        page = self._sign_in("login", *names)
        return page._replace(blocks=(*self._lapse(), *page.blocks))

    def _lapse(self) -> tuple[Block, ...]:
        """Return why the visitor must sign in again, if a sign-in has lapsed."""
        if self._state.hold != "lapsed":
            return ()
        pages = self._plan.auth.expires
        text = f"Your sign-in has ended: it lasts for {pages} pages. What you entered is kept."
        return (Paragraph(text),)

    def _second_login(self) -> PageModel:
        kind = self._plan.auth.kind
        if kind == "two_step":
            return self._sign_in("login2", "password")
        page = self._sign_in("login2", "code")
        text = Paragraph(_CODE_SOURCES.get(kind, ""))
        return page._replace(blocks=(text, *page.blocks))

    def _passport(self) -> PageModel:
        page = self._sign_in("passport", "user", "password", heading="Passkeeper")
        return page._replace(notice=self._state.notice)

    def _sign_in(self, page: str, *names: str, heading: str = "") -> PageModel:
        """Return a page of the sign-in with the fields of these names."""
        factory = self._factory
        form = PageForm(
            ident=factory.aliases.of("id", "form:signin"),
            action=factory.route(page),
            method="post",
            fields=tuple(
                factory.entry(f"sys:{x}", f"field:{x}", secret=x == "password") for x in names
            ),
            buttons=(factory.go("go:signin", "submit:signin"),),
        )
        return self._page(heading or self._plan.label("go:signin"), form)

    def _mail(self) -> PageModel:
        heading = self._plan.label("menu:mail")
        if self._state.sign_in != "code" or self._plan.auth.kind != "mailbox":
            return self._page(heading, Paragraph("No messages."))
        text = Paragraph(f"Your sign-in code is {sign_in_code(self._state)}.")
        href = self._factory.route("login2")
        back = self._factory.go("go:signin", "back:login2", href=href)
        return self._page(heading, text, Links("Message", (back,)))

    # --- the search page --------------------------------------------------------------

    def _search(self) -> PageModel:
        factory, state, brand = self._factory, self._state, self._plan.brand
        field = factory.entry("sys:q", "field:q")
        form = PageForm(
            ident=factory.aliases.of("id", "form:finder"),
            action=f"https://{SEARCH_HOST}/",
            method="get",
            fields=(field._replace(value=state.query.words, label="Search the web"),),
            buttons=(factory.button("finder:go", "Search the web now"),),
        )
        blocks: list[Block] = [form]
        if state.query.words:
            pages = (
                ("finder:other", f"{brand} reviews (archive)", f"{form.action}archive"),
                ("finder:hit", f"{brand}: official site", factory.route("home")),
            )
            hits = (factory.button(ref, text, href=href) for ref, text, href in pages)
            blocks.append(Links("Results", tuple(hits)))
        return PageModel(
            key=state.page,
            title="Finder",
            heading="Finder",
            blocks=tuple(blocks),
            notice=state.notice,
        )

    def _page(self, heading: str, *blocks: Block) -> PageModel:
        title = f"{heading} - {self._plan.brand}"
        return PageModel(self._state.page, title, heading, blocks)
