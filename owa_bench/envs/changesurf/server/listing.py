"""Lists of a collection and the pages of their rows."""

from collections.abc import Mapping

from owa_bench.envs.changesurf.server import page_model
from owa_bench.envs.changesurf.server.control_factory import ControlFactory
from owa_bench.envs.changesurf.server.forms import show, show_fully
from owa_bench.envs.changesurf.server.state import CellRef, Query, RowValues, SiteState
from owa_bench.envs.changesurf.site_spec import Collection

_QUOTES = str.maketrans({"%": "%25", "&": "%26", "+": "%2B", " ": "+"})
BlocksAndCells = tuple[tuple[page_model.Block, ...], tuple[CellRef, ...]]


class ListPages:
    """The pages of one collection: its list, and a page for each row."""

    def __init__(self, factory: ControlFactory, state: SiteState, collection: Collection) -> None:
        self._factory = factory
        self._state = state
        self._collection = collection
        self._plan = factory.plan.listing(collection.key)

    def list_page(self) -> BlocksAndCells:
        """Return the blocks of the list, and the cells they show."""
        plan, query = self._plan, self._state.query
        found = self._matches()
        last = query.page * plan.size
        first = 0 if plan.paging == "more" else last - plan.size
        rows = found if plan.paging == "all" else found[first:last]
        listing = page_model.Listing(
            form=plan.form,
            caption=f"{len(found)} in all",
            headers=tuple(self._header(key) for key in plan.columns),
            rows=tuple(self._row(row) for row in rows),
        )
        shown = tuple(
            (self._collection.key, _key(row), column)
            for row in rows
            for column in (*plan.columns, *plan.drawer)
        )
        return (*self._filter(), listing, *self._pager(len(found))), shown

    def row_page(self, row: RowValues) -> BlocksAndCells:
        """Return the blocks of a row's own page, and the cells they show."""
        label, columns = self._factory.plan.label, self._collection.columns
        cells = tuple(
            page_model.LabelledValue(
                c.key, label(f"column:{c.key}"), show_fully(row[c.key], c.kind)
            )
            for c in columns
        )
        actions = self._actions(row)
        blocks: list[page_model.Block] = [page_model.Facts(cells)]
        if actions:
            blocks.append(page_model.Links(f"Actions for {self._title(row)}", actions))
        shown = tuple((self._collection.key, _key(row), c.key) for c in columns)
        return tuple(blocks), shown

    # --- rows -------------------------------------------------------------------------

    def _matches(self) -> list[dict[str, str | int]]:
        """Return the rows that the query finds, all pages of them."""
        rows = self._state.records(self._collection.key)
        query = self._state.query
        if query.category:
            column = self._collection.category
            rows = [row for row in rows if str(row[column]) == query.category]
        if query.words:
            words = query.words.lower().split()
            rows = [row for row in rows if self._has_words(row, words)]
        return rows

    def _has_words(self, row: RowValues, words: list[str]) -> bool:
        """Return whether every word stands in what the list shows of a row."""
        plan = self._plan
        cells = (self._cell(row, key).text for key in (*plan.columns, *plan.drawer))
        text = " ".join((self._title(row), *cells)).lower()
        return all(word in text for word in words)

    def _title(self, row: RowValues) -> str:
        return str(row[self._collection.title])

    def _row(self, row: RowValues) -> page_model.ListRow:
        plan, title = self._plan, self._title(row)
        page = f"item:{self._collection.key}/{_key(row)}"
        href = self._factory.route(page)
        return page_model.ListRow(
            key=str(_key(row)),
            link=self._factory.button(page, title, "rowlink", href=href),
            cells=tuple(self._cell(row, key) for key in plan.columns),
            drawer=tuple(self._cell(row, key) for key in plan.drawer),
            more=f"{self._factory.plan.label('drawer')}: {title}",
            actions=self._actions(row) if plan.direct else (),
        )

    def _actions(self, row: RowValues) -> tuple[page_model.Button, ...]:
        """Return what may be done with a row, named with the row's title."""
        return tuple(
            self._factory.go(
                f"act:{workflow.key}",
                page := f"start:{workflow.key}/{_key(row)}",
                href=self._factory.route(page),
                about=self._title(row),
            )
            for workflow in self._factory.world.spec.workflows
            if workflow.record == self._collection.key
        )

    def _header(self, key: str) -> str:
        label = self._factory.plan.label(f"column:{key}")
        is_money = self._collection.column(key).kind == "money"
        told = is_money and self._plan.cents and self._plan.told
        return f"{label} (in cents)" if told else label

    def _cell(self, row: RowValues, key: str) -> page_model.LabelledValue:
        kind = self._collection.column(key).kind
        form = self._plan.dates or self._factory.plan.dates
        text = show(row[key], kind, form, in_cents=self._plan.cents)
        return page_model.LabelledValue(key, self._header(key), text)

    # --- navigation in a long list ----------------------------------------------------

    def _filter(self) -> tuple[page_model.Block, ...]:
        factory, collection = self._factory, self._collection
        if self._plan.filter == "search":
            field = factory.entry("sys:q", "field:q")
            form = page_model.PageForm(
                ident=factory.aliases.of("id", "form:search"),
                action=factory.route(f"list:{collection.key}"),
                method="get",
                fields=(field._replace(value=self._state.query.words, required=False),),
                buttons=(factory.go("go:search"),),
            )
            return (form,)
        if self._plan.filter != "tree" or not collection.category:
            return ()
        href = list_address(factory, collection, Query())
        links = [factory.go("all", "category:", "branch", href=href)]
        for name in categories(self._state, collection):
            href = list_address(factory, collection, Query(category=name))
            ref = f"category:{name}"
            links.append(factory.button(ref, name, "branch", href=href))
        label = factory.plan.label(f"column:{collection.category}")
        return (page_model.Links(label, tuple(links)),)

    def _pager(self, total: int) -> tuple[page_model.Block, ...]:
        query, paging = self._state.query, self._plan.paging
        last = -(-total // self._plan.size)
        if paging == "all" or last <= 1:
            return ()
        links: list[page_model.Button] = []
        if paging != "more" and query.page > 1:
            links.append(self._turn("go:earlier", query.page - 1))
        if query.page < last:
            label = "go:more" if paging == "more" else "go:later"
            links.append(self._turn(label, query.page + 1))
        if not links:
            return ()
        pager = page_model.Links("Pages", tuple(links))
        if paging != "pages":
            return (pager,)
        return (page_model.Paragraph(f"Page {min(query.page, last)} of {last}"), pager)

    def _turn(self, label: str, page: int) -> page_model.Button:
        query = self._state.query
        asked = Query(words=query.words, category=query.category, page=page)
        href = list_address(self._factory, self._collection, asked)
        return self._factory.go(label, css="turn", href=href)


def list_address(factory: ControlFactory, collection: Collection, query: Query) -> str:
    """Return the address of a list under a query.

    Args:
        factory: the attempt's control factory.
        collection: the list's collection.
        query: what is asked of it.
    Returns: The address; its query string holds aliases.
    """
    category = f"{collection.key}={query.category}"
    pairs: Mapping[str, str] = {
        "sys:q": query.words,
        "sys:category": factory.aliases.of("value", category) if query.category else "",
        "sys:page": str(query.page) if query.page > 1 else "",
    }
    # Words are letters, digits and signs that a query string takes as they are.
    asked = "&".join(
        f"{factory.aliases.of('field', ref)}={value.translate(_QUOTES)}"
        for ref, value in pairs.items()
        if value
    )
    route = factory.route(f"list:{collection.key}")
    return f"{route}?{asked}" if asked else route


def categories(state: SiteState, collection: Collection) -> list[str]:
    """Return the categories of a collection.

    Args:
        state: the visit.
        collection: the collection.
    Returns: Each once, in order of its first row; none for a collection without.
    """
    if not collection.category:
        return []
    rows = state.records(collection.key)
    return list(dict.fromkeys(str(row[collection.category]) for row in rows))


def _key(row: RowValues) -> str | int:
    return next(iter(row.values()))
