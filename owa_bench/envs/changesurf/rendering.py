"""From a page's parts to its HTML: one template, the same bytes everywhere."""

from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import NamedTuple

import jinja2

from owa_bench.envs.changesurf.aliases import alias_of
from owa_bench.envs.changesurf.elements import Page
from owa_bench.envs.changesurf.maker import Maker
from owa_bench.worlds.site import Nav

_TEMPLATES = "owa_bench.envs.changesurf"


class _Theme(NamedTuple):
    ink: str
    paper: str
    accent: str
    tint: str


_THEMES = (
    _Theme("#1c2733", "#fbfcfd", "#1f5f8b", "#e4eef5"),
    _Theme("#2a2118", "#fdfbf7", "#8a4b22", "#f3e8db"),
    _Theme("#16261c", "#f9fcfa", "#23693f", "#e0efe5"),
    _Theme("#221c33", "#fbfafd", "#5b3f95", "#ebe5f5"),
    _Theme("#331c22", "#fdf9fa", "#a32a4b", "#f7e1e7"),
    _Theme("#222222", "#f4f4f4", "#333333", "#dddddd"),
)


def html(maker: Maker, page: Page, *, part: str = "") -> str:
    """Return a page's HTML.

    `part` "inner" is what a frame holds. A page with a frame holds only its outside.
    """
    plan = maker.plan
    is_site = page.menu != ()
    shell = plan.root if is_site and not part else "plain"
    template = plan.template if is_site else 0

    def css(name: str) -> str:
        return maker.aliases.of("class", name)

    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            plan=plan,
            template=template,
            shell=shell,
            css=css,
            style=_style(maker.aliases.salt, plan.theme, plan.nav, plan.dense),
            script=_script(),
            inner=part == "inner",
            # of the page's own origin: across origins nobody sees into a frame
            frame=f"/{maker.aliases.of('route', 'frame')}",
        )
    )


@lru_cache(maxsize=256)
def _style(salt: str, theme: int, nav: Nav, dense: bool) -> str:
    """Return the style sheet of an attempt; every page of it has the same."""
    return (
        _environment()
        .get_template("style.css.j2")
        .render(
            nav=nav,
            dense=dense,
            css=partial(alias_of, salt, "class"),
            pad=".5rem" if dense else "1rem",
            cell=".2rem .5rem" if dense else ".5rem .7rem",
            **_THEMES[theme % len(_THEMES)]._asdict(),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(_TEMPLATES, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _script() -> str:
    folder = files(_TEMPLATES) / "templates"
    return (folder / "swap.js").read_text(encoding="utf-8")
