"""Where the command line writes: tables, check lines, JSON, progress."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

_BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell says it


class Screen(Console):
    """A stream whose text is shown as it is: paths and names are no markup.

    Lines are as long as they are, for whoever copies or greps them; tables wrap.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, soft_wrap=True)

    def on_broken_pipe(self) -> NoReturn:
        """Leave without a word: the reader (`| head`) has what it wanted."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        sys.exit(_BROKEN_PIPE)


OUT = Screen()
ERR = Screen(stderr=True)


def data_folder() -> Path:
    """Return the folder of keys and masters: OWA_BENCH_HOME, else the user's own."""
    named = os.environ.get("OWA_BENCH_HOME")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "owa-bench"


def as_json(document: Any) -> None:
    """Print a document as JSON, for machines."""
    data = msgspec.json.encode(_named(document), enc_hook=str)
    OUT.out(msgspec.json.format(data, indent=2).decode())


def _named(document: Any) -> Any:
    """Return named tuples as objects, however deep they lie."""
    if isinstance(document, tuple) and hasattr(document, "_asdict"):
        return {name: _named(value) for name, value in document._asdict().items()}
    if isinstance(document, dict):
        return {name: _named(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [_named(value) for value in document]
    return document


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table."""
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        shown.add_column(column, style="bold" if i == 0 else None, overflow="fold")
    for row in rows:
        shown.add_row(*("" if cell is None else str(cell) for cell in row))
    OUT.print(shown, soft_wrap=False)


def check_line(name: str, *, ok: bool, detail: str, skipped: bool = False) -> None:
    """Print one line for one check; a skipped one proves nothing."""
    mark = ("ok  ", "green") if ok else ("FAIL", "bold red")
    mark = ("--  ", "yellow") if ok and skipped else mark
    OUT.print(Text.assemble(mark, f" {name:<16} {detail}"))


def note(text: str, screen: Screen = ERR) -> None:
    """Print what a reader of the result should know."""
    screen.print(Text.assemble(("note:", "yellow"), f" {text}"))


def progress() -> Progress:
    """Return a progress bar on standard error; it vanishes when there is no screen."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=ERR,
        disable=not ERR.is_terminal,
    )
