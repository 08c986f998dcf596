"""Page model: the parts of a page, the aliases they carry, and their HTML.

`ref` is canonical and never leaves the server; `ident`, `css` and `name` are aliases that the page
carries instead. HTML, oracle steps and measures all read these parts.
"""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import Literal, NamedTuple

import jinja2

from owa_bench.envs.changesurf.site_spec import Control, ListForm, Nav, Placement
from owa_bench.envs.changesurf.world import RenderPlan
from owa_bench.records.instance import Instance

AliasKind = Literal["id", "class", "field", "route", "value"]
_LETTERS = "bcdfghjklmnpqrstvwxz"
_LENGTH, _BYTES = 7, 5
_PACKAGE = "owa_bench.envs.changesurf.server"
# ink, paper, accent, tint
_THEMES = (
    ("#1c2733", "#fbfcfd", "#1f5f8b", "#e4eef5"),
    ("#2a2118", "#fdfbf7", "#8a4b22", "#f3e8db"),
    ("#16261c", "#f9fcfa", "#23693f", "#e0efe5"),
    ("#221c33", "#fbfafd", "#5b3f95", "#ebe5f5"),
    ("#331c22", "#fdf9fa", "#a32a4b", "#f7e1e7"),
    ("#222222", "#f4f4f4", "#333333", "#dddddd"),
)


# --- aliases --------------------------------------------------------------------------


class Aliases:
    """A bijection between canonical references and the names of one attempt.

    It is drawn from seed, drift step and repeat, so that a name learnt in one attempt is worth
    nothing in the next. The server inverts it on every request; its database never sees an alias.
    `churned` counts the changes of names within the attempt; `salt` identifies the whole.
    """

    def __init__(self, seed: int, drift_step: int, repeat: int, churned: int) -> None:
        self.salt = f"{seed}/{drift_step}/{repeat}/{churned}"

    def of(self, kind: AliasKind, ref: str) -> str:
        """Return an alias: a letter and seven more signs.

        Args:
            kind: what carries it.
            ref: the canonical reference.
        """
        return _alias(self.salt, kind, ref)

    def codebook(self, kind: AliasKind, refs: Iterable[str]) -> dict[str, str]:
        """Return the inverse of `of`.

        Args:
            kind: what carries the aliases.
            refs: the canonical references.
        Returns: Alias -> reference.
        Raises: KeyError: two references share an alias (35 bits: never in practice).
        """
        book: dict[str, str] = {}
        for ref in refs:
            alias = self.of(kind, ref)
            if book.setdefault(alias, ref) != ref:
                raise KeyError(alias)
        return book


def aliases_of(instance: Instance, churned: int = 0) -> Aliases:
    """Return the aliases of an attempt.

    Args:
        instance: the attempt.
        churned: changes of names since it began.
    """
    return Aliases(instance.seed, instance.drift_step, instance.repeat, churned)


def former_aliases(instance: Instance) -> Aliases:
    """Return the aliases with which an attempt at the drift step before began.

    At drift step 0 there was none: these are aliases that no attempt had.
    """
    return Aliases(instance.seed, instance.drift_step - 1, instance.repeat, 0)


@lru_cache(maxsize=8192)
def _alias(salt: str, kind: str, ref: str) -> str:
    digest = hashlib.sha256(f"{salt}|{kind}|{ref}".encode()).digest()
    first = _LETTERS[digest[-1] % len(_LETTERS)]  # names must begin with a letter
    return first + base64.b32encode(digest[:_BYTES]).decode().lower()[:_LENGTH]


# --- parts ----------------------------------------------------------------------------


class FieldOption(NamedTuple):
    """An option of a field; `value` is its alias."""

    ref: str
    ident: str
    value: str
    text: str
    chosen: bool


class FormField(NamedTuple):
    """An input of a form. `parts` are the fields of a date in pieces."""

    ref: str
    ident: str
    name: str
    css: str
    label: str
    control: Control
    placement: Placement
    value: str = ""
    choices: tuple[FieldOption, ...] = ()
    parts: tuple["FormField", ...] = ()
    hint: str = ""
    error: str = ""
    secret: bool = False
    required: bool = False


class Button(NamedTuple):
    """A link (with `href`) or a button that sends its form.

    `name` and `value` are sent with the form. `sign` is shown in place of the text, which then is
    the accessible name.
    """

    ref: str
    ident: str
    css: str
    text: str
    href: str = ""
    name: str = ""
    value: str = ""
    sign: str = ""
    about: str = ""


class LabelledValue(NamedTuple):
    """A column's label and a value."""

    key: str
    label: str
    text: str


class ListRow(NamedTuple):
    """A row of a list: its link, its cells, those in the drawer, its actions."""

    key: str
    link: Button
    cells: tuple[LabelledValue, ...]
    drawer: tuple[LabelledValue, ...]
    more: str
    actions: tuple[Button, ...]


class Listing(NamedTuple):
    """The rows of a collection in one of its forms."""

    form: ListForm
    caption: str
    headers: tuple[str, ...]
    rows: tuple[ListRow, ...]
    empty: str = "Nothing found."


class Facts(NamedTuple):
    """Label and value pairs: a row's own page, a review, a message."""

    cells: tuple[LabelledValue, ...]


class PageForm(NamedTuple):
    """Fields and buttons that are sent together; `trap` is an invisible input."""

    ident: str
    action: str
    method: str
    fields: tuple[FormField, ...]
    buttons: tuple[Button, ...]
    hidden: tuple[tuple[str, str], ...] = ()
    trap: FormField | None = None
    decoys: tuple[FormField, ...] = ()


class Links(NamedTuple):
    """A group of links with its label."""

    label: str
    buttons: tuple[Button, ...]


class Paragraph(NamedTuple):
    """A paragraph of text."""

    text: str


Block = Listing | Facts | PageForm | Links | Paragraph


class PageModel(NamedTuple):
    """A page and the database cells (collection, row key, column) that it shows."""

    key: str
    title: str
    heading: str
    blocks: tuple[Block, ...]
    menu: tuple[Button, ...] = ()
    notice: str = ""
    shown: tuple[tuple[str, str | int, str], ...] = ()
    status: int = 200

    @property
    def forms(self) -> list[PageForm]:
        """The forms of the page."""
        return [block for block in self.blocks if isinstance(block, PageForm)]

    @property
    def buttons(self) -> list[Button]:
        """Every link and button of the page."""
        found = list(self.menu)
        for block in self.blocks:
            if isinstance(block, (PageForm, Links)):
                found.extend(block.buttons)
            if isinstance(block, Listing):
                for row in block.rows:
                    found.extend((row.link, *row.actions))
        return found


# --- HTML -----------------------------------------------------------------------------


def html(aliases: Aliases, plan: RenderPlan, page: PageModel, *, part: str = "") -> str:
    """Return a page's HTML, the same bytes on every machine.

    Args:
        aliases: the attempt's aliases.
        plan: the site's presentation.
        page: the page's parts.
        part: "inner" for the contents of a frame; a page with a frame holds only its outside.
    """
    is_site = page.menu != ()
    template = _environment().get_template("page.html.j2")
    return template.render(
        page=page,
        plan=plan,
        template=plan.template if is_site else 0,
        shell=plan.root if is_site and not part else "plain",
        css=partial(aliases.of, "class"),
        style=_style(aliases.salt, plan.theme, plan.nav, plan.dense),
        script=_script(),
        inner=part == "inner",
        # of the page's own origin: a frame of another origin cannot be observed
        frame=f"/{aliases.of('route', 'frame')}",
    )


@lru_cache(maxsize=256)
def _style(salt: str, theme: int, nav: Nav, dense: bool) -> str:
    """Return the style sheet of an attempt; every page of it has the same."""
    colours = zip(("ink", "paper", "accent", "tint"), _THEMES[theme % len(_THEMES)], strict=True)
    template = _environment().get_template("style.css.j2")
    return template.render(
        nav=nav,
        dense=dense,
        css=partial(_alias, salt, "class"),
        pad=".5rem" if dense else "1rem",
        cell=".2rem .5rem" if dense else ".5rem .7rem",
        **dict(colours),
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _script() -> str:
    script = files(_PACKAGE) / "templates" / "swap.js"
    return script.read_text(encoding="utf-8")
