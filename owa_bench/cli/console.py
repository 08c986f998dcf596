"""Where the command line writes: tables, check lines, JSON, progress."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)


def data_folder() -> Path:
    """Return the folder of keys and masters: OWA_BENCH_HOME, else the user's own."""
    import os

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
        shown.add_row(*("" if cell is None else escape(str(cell)) for cell in row))
    OUT.print(shown)


def check_line(name: str, *, ok: bool, detail: str, skipped: bool = False) -> None:
    """Print one line for one check; a skipped one proves nothing."""
    mark = "[green]ok  [/green]" if ok else "[bold red]FAIL[/bold red]"
    mark = "[yellow]--  [/yellow]" if ok and skipped else mark
    OUT.print(f"{mark} {escape(f'{name:<16}')} {escape(detail)}", soft_wrap=True)


def progress() -> Progress:
    """Return a progress bar on standard error; it vanishes when there is no screen."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=ERR,
        disable=not ERR.is_terminal,
    )
