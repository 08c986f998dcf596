"""Output of the command line: tables, check lines, JSON, notes, progress bars."""

import math
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import msgspec
from rich import progress as bars
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_BIDI = (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell says it


# Characters that move the cursor, end a line, or turn the order of letters around.
_CONTROLS = {
    number: f"\\x{number:02x}"
    for number in (*range(32), *range(127, 160))
    if chr(number) not in "\n"
} | {
    number: f"\\u{number:04x}"
    for number in (*_BIDI, 0x2028, 0x2029, *range(0xD800, 0xE000))  # half characters
}


def printable(text: str) -> str:
    r"""Return a text that a terminal shows as it is: what controls it is escaped.

    >>> print(printable("\x1b[31mred"))
    \x1b[31mred
    """
    return text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """Return a text without line ends: a name of a file may hold some."""
    return text.replace("\n", "\\n")


class Screen(Console):
    """A stream that prints text literally: names in brackets are no markup.

    Lines are never broken, so that they can be copied and searched; tables wrap. Control characters
    are escaped: names and reasons are other people's text.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, soft_wrap=True)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the segments of what is printed, text without control characters."""
        for segment in super().render(renderable, options):
            if segment.control is not None:
                yield segment
            else:
                yield segment._replace(text=printable(segment.text))

    def on_broken_pipe(self) -> NoReturn:
        """Exit silently: the reader (`| head`) has what it wanted."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        sys.exit(_BROKEN_PIPE)


OUT = Screen()
ERR = Screen(stderr=True)
_ENDING = (signal.SIGTERM, signal.SIGHUP)  # of a scheduler, of a closed terminal
_received: list[int] = []


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Treat signals that end a program as Ctrl-C within a block.

    The block's own words on how to continue are printed for them too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _: object) -> NoReturn:
        _received.append(number)
        raise KeyboardInterrupt

    # One that is ignored, as by nohup, stays ignored.
    usual = [n for n in _ENDING if signal.getsignal(n) is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


def exit_code_of_signal(usual: int) -> int:
    """Return the exit code of a program that a signal ended, as a shell says it.

    Args:
        usual: The code where no such signal came.
    """
    return 128 + _received.pop() if _received else usual


def as_json(document: Any) -> None:
    """Print a document as JSON, for machines."""
    data = msgspec.json.encode(plain(document), enc_hook=str)
    OUT.out(msgspec.json.format(data, indent=2).decode())


_MICRO_USD = "micro_usd"


def _plain_field(name: str, value: Any) -> tuple[str, Any]:
    """Return a field of a document; an amount of micro-USD, or a dict of such, becomes USD."""
    if not name.endswith(_MICRO_USD):
        return name, value
    from owa_bench.records.price_card import usd_of

    usd = name.removesuffix(_MICRO_USD) + "usd"
    if isinstance(value, dict):
        return usd, {key: usd_of(part) for key, part in value.items()}
    return usd, usd_of(value)


def plain(value: Any) -> Any:
    """Return a result as JSON data: no NaN, no infinity, names kept, micro-USD as USD."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value, enc_hook=str)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return dict(_plain_field(str(name), plain(part)) for name, part in value.items())
    if hasattr(value, "tolist"):  # an array, or a number of one
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table.

    Args:
        title: above it.
        columns: the header, which is left out where it has no words.
        rows: cells; None is shown empty.
    """
    head = any(columns)
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, show_header=head)
    for i, column in enumerate(columns):
        shown.add_column(column, style="bold" if i == 0 else None, overflow="fold")
    for row in rows:
        shown.add_row(*("" if cell is None else str(cell) for cell in row))
    OUT.print(shown, soft_wrap=False)


def figure_text(value: float | None) -> str:
    """Return a figure in three digits, nothing for a missing one."""
    return "" if value is None else f"{value:.3g}"


def check_line(name: str, *, ok: bool, detail: str, skipped: bool = False) -> None:
    """Print one line for one check.

    Args:
        name: the check.
        ok: whether it holds.
        detail: what was compared.
        skipped: there was nothing to check.
    """
    mark = ("ok  ", "green") if ok else ("FAIL", "bold red")
    mark = ("--  ", "yellow") if ok and skipped else mark
    OUT.print(Text.assemble(mark, f" {name:<16} {one_line(detail)}"))


def note(text: str, screen: Screen = ERR) -> None:
    """Print a note on a result.

    Args:
        text: the note.
        screen: where; standard error by default.
    """
    screen.print(Text.assemble(("note:", "yellow"), f" {one_line(text)}"))


def progress() -> bars.Progress:
    """Return a progress bar on standard error; it vanishes when there is no screen."""
    return bars.Progress(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
        console=ERR,
        disable=not ERR.is_terminal,
    )
