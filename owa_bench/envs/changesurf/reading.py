"""What one look at a page yields: records, and the text an agent reads.

The in-page observer returns one JSON string; here it becomes `Observed`. Coordinates
serve the driver's next input and stay out of text and digest: they depend on fonts.
"""

from collections.abc import Iterator

import msgspec

from owa_bench.canonical import sha256
from owa_bench.errors import InfrastructureFailure

DISABLED, CHECKED, REQUIRED, INVALID = 1, 2, 4, 8
FOCUSED, IN_VIEW, READ_ONLY, EXPANDED = 16, 32, 64, 128
SELECTED, IN_DIALOG = 256, 512
_STATES = (
    (CHECKED, "checked"),
    (SELECTED, "selected"),
    (EXPANDED, "expanded"),
    (REQUIRED, "required"),
    (INVALID, "invalid"),
    (READ_ONLY, "read only"),
    (DISABLED, "disabled"),
)
_TOGGLES = frozenset({"checkbox", "radio", "switch"})
_OPTIONS_SHOWN = 24
_VIEW_DEPENDENT = IN_VIEW | FOCUSED


class Option(msgspec.Struct, frozen=True, array_like=True):
    """One option of a select; `open` is 0 where it is disabled."""

    value: str
    label: str
    open: int


class Control(msgspec.Struct, frozen=True, array_like=True):
    """Something on the page that can be acted on.

    `ref` is its number in this document. `ident`, `field` and `href` are the page's own
    id, name and link attributes: for the oracle and the detectors, never shown.
    """

    ref: int
    role: str
    name: str
    value: str
    flags: int
    x: float
    y: float
    width: float
    height: float
    cover: str
    tag: str
    type: str
    ident: str
    field: str
    href: str
    group: str
    options: tuple[Option, ...]
    fault: str

    @property
    def checked(self) -> bool:
        """Whether a box or radio button is ticked."""
        return self.has(CHECKED)

    def has(self, flag: int) -> bool:
        """Return whether a state flag is set."""
        return bool(self.flags & flag)


class Window(msgspec.Struct, frozen=True, array_like=True):
    """Scroll position, window and page height in CSS pixels."""

    x: int
    y: int
    width: int
    height: int
    page_height: int


class Observed(msgspec.Struct, frozen=True, array_like=True):
    """A page in reading order: a line is text, or the number of a control.

    `reached` is whether the last click landed on the control it was meant for.
    """

    url: str
    title: str
    lines: tuple[str | int, ...]
    controls: tuple[Control, ...]
    window: Window
    reached: bool

    def control(self, ref: int) -> Control | None:
        """Return the control of this number, None if the page shows none."""
        return next((c for c in self.controls if c.ref == ref), None)

    def digest(self) -> str:
        """Return the SHA-256 of what the page says, whatever its layout.

        Controls count by their place: where a site swaps its pages in one document, the
        same page has other numbers when it comes again.
        """
        return sha256(msgspec.json.encode([self.url, self.title, *self._content()]))

    def _content(self) -> Iterator[object]:
        places = {control.ref: i for i, control in enumerate(self.controls)}
        yield [x if isinstance(x, str) else places.get(x, -1) for x in self.lines]
        for c in self.controls:
            states = c.flags & ~_VIEW_DEPENDENT
            yield (c.role, c.name, c.value, states, c.tag, c.type, c.ident)
            yield (c.field, c.href, c.group, c.options, c.fault)


_DECODER = msgspec.json.Decoder(Observed)
NOWHERE = Observed("about:blank", "", (), (), Window(0, 0, 0, 0, 0), True)


def read_observation(text: str) -> Observed:
    """Return what the observer wrote; InfrastructureFailure if it is something else."""
    try:
        return _DECODER.decode(text)
    except msgspec.MsgspecError as error:
        raise InfrastructureFailure(
            f"the in-page observer wrote what does not read back: {error}"
        ) from error


def control_line(control: Control) -> str:
    """Return a control as one line: number, role, name, value, state.

    >>> line = [3, "textbox", "Guests", "2", 4, 0, 0, 9, 9, "", "input", "text", "a",
    ...         "b", "", "", [], ""]
    >>> control_line(msgspec.convert(line, Control))
    '[3] textbox "Guests" = "2" (required)'
    """
    text = f'[{control.ref}] {control.role} "{control.name}"'
    if control.value or control.role in ("textbox", "searchbox", "combobox"):
        hidden = control.type == "password"
        text += f' = "{"*" * len(control.value) if hidden else control.value}"'
    states = [word for flag, word in _STATES if control.has(flag)]
    if control.role in _TOGGLES and not control.has(CHECKED):
        states.insert(0, "not checked")
    if control.fault:
        states.append(control.fault)
    if states:
        text += f" ({', '.join(states)})"
    if control.options:
        labels = [option.label for option in control.options[:_OPTIONS_SHOWN]]
        rest = len(control.options) - len(labels)
        more = f", and {rest} more" if rest else ""
        text += f" options: {' | '.join(labels)}{more}"
    return text


def page_lines(observed: Observed) -> list[str]:
    """Return the whole page as lines in reading order."""
    by_ref = {control.ref: control for control in observed.controls}
    return [
        line if isinstance(line, str) else control_line(by_ref[line])
        for line in observed.lines
    ]


def page_text(observed: Observed, *, room: int, first: int = 1) -> str:
    """Return the page's text from line `first` on, at most `room` characters."""
    lines = page_lines(observed)
    head = f"url: {observed.url}\ntitle: {observed.title}\n"
    body: list[str] = []
    left = room - len(head) - 80  # room for the closing remark
    for number, line in enumerate(lines[first - 1 :], start=first):
        cut = line if len(line) <= left else line[: max(left, 0)]
        if len(line) > left and body:
            rest = len(lines) - number + 1
            body.append(f"[{rest} more lines below: read from line {number}]")
            break
        body.append(cut)
        left -= len(cut) + 1
    return head + "\n".join(body)
