"""Templates of the report's pages: escaping, undefined names refused, one style."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

_FOLDER = files("owa_bench.report")


def page_template(name: str, names: Mapping[str, Any] = {}) -> Template:
    """Return a template of this folder, with the style of all pages as `css`.

    Args:
        name: Its file.
        names: What it can call, by name.

    Returns:
        The template; whatever it is given is escaped.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(names, css=own_file("page.css"))
    return environment.from_string(_FOLDER.joinpath(name).read_text("utf-8"))


def own_file(name: str) -> Markup:
    """Return a style or script of this folder, which is not escaped."""
    return Markup(_FOLDER.joinpath(name).read_text("utf-8"))  # noqa: S704 - our own file
