"""Lists of a collection and the pages of its rows."""

from collections.abc import Mapping

from owa_bench.envs.changesurf.elements import (
    Block,
    Button,
    Cell,
    Facts,
    Form,
    Links,
    Listing,
    Row,
    Words,
)
from owa_bench.envs.changesurf.formats import show, show_fully
from owa_bench.envs.changesurf.maker import Maker
from owa_bench.envs.changesurf.state import Query, SiteState
from owa_bench.worlds.site import Collection, ListPlan, SiteValue, Workflow

Shown = tuple[tuple[str, SiteValue, str], ...]
Record = Mapping[str, SiteValue]


def rows_shown(state: SiteState, collection: Collection) -> list[dict[str, SiteValue]]:
    """Return the rows that the state's query finds, all pages of them."""
    table = next(t for t in state.tables if t.key == collection.key)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    query = state.query
    if query.category:
        rows = [r for r in rows if str(r[collection.category]) == query.category]
    if query.words:
        wanted = query.words.lower()
        rows = [r for r in rows if wanted in str(r[collection.title]).lower()]
    return rows


def page_of(plan: ListPlan, query: Query, rows: list[Record]) -> list[Record]:
    """Return the rows of the page that was asked for."""
    last = query.page * plan.size
    if plan.paging == "all":
        return rows
    return rows[:last] if plan.paging == "more" else rows[last - plan.size : last]


def list_page(
    maker: Maker, state: SiteState, collection: Collection
) -> tuple[tuple[Block, ...], Shown]:
    """Return the blocks of a collection's list, and the cells they show."""
    plan = maker.plan.listing(collection.key)
    found = rows_shown(state, collection)
    rows = page_of(plan, state.query, list(found))
    keys = (*plan.columns, *plan.drawer)
    key = next(iter(rows[0])) if rows else ""
    shown = tuple((collection.key, row[key], column) for row in rows for column in keys)
    listing = Listing(
        form=plan.form,
        caption=f"{len(found)} in all",
        headers=tuple(_header(maker, collection, plan, key) for key in plan.columns),
        rows=tuple(_row(maker, collection, plan, row) for row in rows),
    )
    blocks: list[Block] = [*_filter(maker, state, collection, plan), listing]
    blocks += _pager(maker, state, collection, plan, len(found))
    return tuple(blocks), shown


def item_page(
    maker: Maker, state: SiteState, collection: Collection, row: Record
) -> tuple[tuple[Block, ...], Shown]:
    """Return the blocks of a row's own page, and the cells they show."""
    key = next(iter(row.values()))
    cells = tuple(
        Cell(c.key, maker.plan.label(f"column:{c.key}"), show_fully(row[c.key], c.kind))
        for c in collection.columns
    )
    title = str(row[collection.title])
    actions = _actions(maker, collection, key, title)
    blocks: list[Block] = [Facts(cells)]
    if actions:
        blocks.append(Links(f"Actions for {title}", actions))
    shown = tuple((collection.key, key, c.key) for c in collection.columns)
    return tuple(blocks), shown


def _actions(
    maker: Maker, collection: Collection, key: SiteValue, title: str
) -> tuple[Button, ...]:
    """Return what may be done with a row, named with the row's title."""
    return tuple(
        maker.go(
            f"act:{workflow.key}",
            f"start:{workflow.key}/{key}",
            href=maker.route(f"start:{workflow.key}/{key}"),
            about=title,
        )
        for workflow in _begun_at(maker, collection)
    )


def _begun_at(maker: Maker, collection: Collection) -> list[Workflow]:
    return [w for w in maker.world.spec.workflows if w.record == collection.key]


def _header(maker: Maker, collection: Collection, plan: ListPlan, key: str) -> str:
    label = maker.plan.label(f"column:{key}")
    if collection.column(key).kind == "money" and plan.cents and plan.told:
        return f"{label} (in cents)"
    return label


def _row(maker: Maker, collection: Collection, plan: ListPlan, row: Record) -> Row:
    key = next(iter(row.values()))
    title = str(row[collection.title])
    return Row(
        key=str(key),
        link=maker.button(
            f"item:{collection.key}/{key}",
            title,
            "rowlink",
            href=maker.route(f"item:{collection.key}/{key}"),
        ),
        cells=tuple(_cell(maker, collection, plan, row, k) for k in plan.columns),
        drawer=tuple(_cell(maker, collection, plan, row, k) for k in plan.drawer),
        more=f"{maker.plan.label('drawer')}: {title}",
        actions=_actions(maker, collection, key, title) if plan.direct else (),
    )


def _cell(
    maker: Maker, collection: Collection, plan: ListPlan, row: Record, key: str
) -> Cell:
    kind = collection.column(key).kind
    form = plan.dates or maker.plan.dates
    text = show(row[key], kind, form, in_cents=plan.cents)
    return Cell(key, _header(maker, collection, plan, key), text)


# --- finding one's way through a long list -------------------------------------------


def address(maker: Maker, collection: Collection, query: Query) -> str:
    """Return the address of a list under a query."""
    pairs = {
        "sys:q": query.words,
        "sys:category": maker.aliases.of("value", f"{collection.key}={query.category}")
        if query.category
        else "",
        "sys:page": str(query.page) if query.page > 1 else "",
    }
    field = maker.aliases.of
    # Words are letters, digits and signs that a query string takes as they are.
    asked = "&".join(
        f"{field('field', ref)}={_quoted(value)}"
        for ref, value in pairs.items()
        if value
    )
    route = maker.route(f"list:{collection.key}")
    return f"{route}?{asked}" if asked else route


def _quoted(text: str) -> str:
    return (
        text.replace("%", "%25")
        .replace("&", "%26")
        .replace("+", "%2B")
        .replace(" ", "+")
    )


def categories(state: SiteState, collection: Collection) -> list[str]:
    """Return the categories of a collection, in order of their first row."""
    table = next(t for t in state.tables if t.key == collection.key)
    if not collection.category:
        return []
    place = table.columns.index(collection.category)
    return list(dict.fromkeys(str(row[place]) for row in table.rows))


def _filter(
    maker: Maker, state: SiteState, collection: Collection, plan: ListPlan
) -> list[Block]:
    if plan.filter == "search":
        field = maker.entry("sys:q", "field:q")._replace(
            value=state.query.words, required=False
        )
        return [
            Form(
                ident=maker.aliases.of("id", "form:search"),
                action=maker.route(f"list:{collection.key}"),
                method="get",
                hidden=(),
                fields=(field,),
                buttons=(maker.go("go:search"),),
            )
        ]
    if plan.filter == "tree" and collection.category:
        everything = maker.go("all", "category:", "branch")
        links = [
            everything._replace(href=address(maker, collection, Query())),
            *(
                maker.button(
                    f"category:{name}",
                    name,
                    "branch",
                    href=address(maker, collection, Query(category=name)),
                )
                for name in categories(state, collection)
            ),
        ]
        return [Links(maker.plan.label(f"column:{collection.category}"), tuple(links))]
    return []


def _pager(
    maker: Maker, state: SiteState, collection: Collection, plan: ListPlan, total: int
) -> list[Block]:
    query = state.query
    last = -(-total // plan.size)
    if plan.paging == "all" or last <= 1:
        return []

    def turn(label: str, page: int) -> Button:
        asked = Query(words=query.words, category=query.category, page=page)
        return maker.go(label, css="turn", href=address(maker, collection, asked))

    links: list[Button] = []
    if plan.paging == "more":
        if query.page < last:
            links.append(turn("go:more", query.page + 1))
    else:
        if query.page > 1:
            links.append(turn("go:earlier", query.page - 1))
        if query.page < last:
            links.append(turn("go:later", query.page + 1))
    where = Words(f"Page {min(query.page, last)} of {last}")
    pager: list[Block] = [where] if plan.paging == "pages" else []
    return [*pager, Links("Pages", tuple(links))] if links else pager
