"""Page observations: the in-page observer's records, and HTML read as roles and names.

Coordinates serve the driver's next input and stay out of text and digest: they depend on fonts. For
visitors without a browser HTML is read by a small part of the accessible-name rules (labels,
legend, caption, aria-label, placeholder, contents).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

import msgspec

from owa_bench.canonical import sha256
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.errors import InfrastructureFailure

DISABLED, CHECKED, REQUIRED, INVALID = 1, 2, 4, 8
FOCUSED, IN_VIEW, READ_ONLY, EXPANDED = 16, 32, 64, 128
SELECTED, IN_DIALOG = 256, 512
_STATES = {
    CHECKED: "checked",
    SELECTED: "selected",
    EXPANDED: "expanded",
    REQUIRED: "required",
    INVALID: "invalid",
    READ_ONLY: "read only",
    DISABLED: "disabled",
}
_TOGGLES = frozenset({"checkbox", "radio", "switch"})
_OPTIONS_SHOWN = 24
_VIEW_DEPENDENT = IN_VIEW | FOCUSED


class ControlOption(msgspec.Struct, frozen=True, array_like=True):
    """An option of a select; `enabled` is 0 where it is disabled."""

    value: str
    label: str
    enabled: int


class ObservedControl(msgspec.Struct, frozen=True, array_like=True):
    """A control of the page.

    `ref` is its number in this document. `ident`, `field` and `href` are the page's own id, name
    and link attributes: for the oracle and the detectors, never shown.
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
    options: tuple[ControlOption, ...]
    fault: str

    @property
    def checked(self) -> bool:
        """Whether a box or radio button is ticked."""
        return self.has(CHECKED)

    def has(self, flag: int) -> bool:
        """Return whether a state flag is set."""
        return bool(self.flags & flag)


class Viewport(msgspec.Struct, frozen=True, array_like=True):
    """Scroll position, window and page height in CSS pixels."""

    x: int
    y: int
    width: int
    height: int
    page_height: int


class PageObservation(msgspec.Struct, frozen=True, array_like=True):
    """An observed page in reading order: a line is text, or the number of a control.

    `reached` is whether the last click landed on the control it was meant for.
    """

    url: str
    title: str
    lines: tuple[str | int, ...]
    controls: tuple[ObservedControl, ...]
    window: Viewport
    reached: bool

    def control(self, ref: int) -> ObservedControl | None:
        """Return the control of this number, None if the page shows none."""
        return next((c for c in self.controls if c.ref == ref), None)

    def digest(self) -> str:
        """Return the SHA-256 of what the page says, whatever its layout.

        Controls count by their place: where a site swaps its pages in one document, the same page
        has other numbers when it comes again.
        """
        return sha256(msgspec.json.encode([self.url, self.title, *self._content()]))

    def _content(self) -> Iterator[object]:
        places = {control.ref: i for i, control in enumerate(self.controls)}
        yield [x if isinstance(x, str) else places.get(x, -1) for x in self.lines]
        for c in self.controls:
            states = c.flags & ~_VIEW_DEPENDENT
            yield (c.role, c.name, c.value, states, c.tag, c.type, c.ident)
            yield (c.field, c.href, c.group, c.options, c.fault)


_DECODER = msgspec.json.Decoder(PageObservation)
BLANK_PAGE = PageObservation("about:blank", "", (), (), Viewport(0, 0, 0, 0, 0), True)


def read_observation(text: str) -> PageObservation:
    """Parse what the observer wrote; InfrastructureFailure if it is something else."""
    try:
        return _DECODER.decode(text)
    except msgspec.MsgspecError as error:
        raise InfrastructureFailure(
            f"the in-page observer wrote what does not read back: {error}"
        ) from error


class SurfState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an episode: the site's, and what the browser shows of it.

    `outside` are addresses beyond the sandbox that were asked for, `untrusted` counts clicks and
    submits that no input of the driver made.
    """

    site: SiteState
    page: PageObservation = BLANK_PAGE
    outside: tuple[str, ...] = ()
    untrusted: int = 0

    @property
    def controls(self) -> tuple[ObservedControl, ...]:
        """The controls of the open page."""
        return self.page.controls


def control_line(control: ObservedControl) -> str:
    """Return a control as one line: number, role, name, value, state.

    >>> line = [3, "textbox", "Guests", "2", 4, 0, 0, 9, 9, "", "input", "text", "a",
    ...         "b", "", "", [], ""]
    >>> control_line(msgspec.convert(line, ObservedControl))
    '[3] textbox "Guests" = "2" (required)'
    """
    text = f'[{control.ref}] {control.role} "{control.name}"'
    if control.value or control.role in ("textbox", "searchbox", "combobox"):
        hidden = control.type == "password"
        text += f' = "{"*" * len(control.value) if hidden else control.value}"'
    states = [word for flag, word in _STATES.items() if control.has(flag)]
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


def page_lines(observed: PageObservation) -> list[str]:
    """Return the whole page as lines in reading order."""
    by_ref = {control.ref: control for control in observed.controls}
    return [
        line if isinstance(line, str) else control_line(by_ref[line]) for line in observed.lines
    ]


def page_text(observed: PageObservation, *, room: int, first: int = 1) -> str:
    """Return a page as text.

    Args:
        observed: the page.
        room: the most characters.
        first: the line to begin with, from 1.
    Returns: Address, title and lines; a remark says where the rest begins.
    """
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


# --- HTML -----------------------------------------------------------------------------

_VOID = frozenset(("input", "meta", "link", "br", "hr", "img", "base"))
_ROLES = {
    "a": "link",
    "button": "button",
    "textarea": "textbox",
    "option": "option",
    "nav": "navigation",
    "main": "main",
    "header": "banner",
    "footer": "contentinfo",
    "aside": "complementary",
    "form": "form",
    "table": "table",
    "tr": "row",
    "td": "cell",
    "th": "columnheader",
    "ul": "list",
    "li": "listitem",
    "fieldset": "group",
    "details": "group",
    "summary": "disclosure",
    "iframe": "iframe",
    "p": "paragraph",
    "dt": "term",
    "dd": "definition",
    **{f"h{level}": "heading" for level in range(1, 7)},
}
_INPUTS = {"checkbox": "checkbox", "radio": "radio", "hidden": "", "submit": "button"}
_CONTROLS = (
    *("link", "button", "textbox", "combobox", "listbox", "checkbox", "switch"),
    *("radio", "disclosure"),
)
_NAMED_BY_CONTENTS = (
    *("link", "button", "option", "heading", "cell", "columnheader"),
    *("disclosure", "paragraph", "term", "definition"),
)


@dataclass(slots=True)
class HtmlNode:
    """An element with its role and accessible name."""

    tag: str
    attributes: dict[str, str]
    parent: "HtmlNode | None" = None
    children: list["HtmlNode | str"] = field(default_factory=list)
    role: str = ""
    name: str = ""

    def elements(self) -> Iterator["HtmlNode"]:
        """Return this element and all below it, in document order."""
        yield self
        for child in self.children:
            if isinstance(child, HtmlNode):
                yield from child.elements()

    def text(self) -> str:
        """Return the words in it, blanks joined; scripts and styles left out."""
        return " ".join(self._words())

    def _words(self) -> Iterator[str]:
        if self.tag in ("style", "script", "select", "textarea"):
            return
        for child in self.children:
            if isinstance(child, HtmlNode):
                yield from child._words()  # noqa: SLF001 - the same class
            else:
                yield from child.split()

    def around(self, tag: str) -> "HtmlNode | None":
        """Return the nearest element around it that has this tag."""
        node = self.parent
        while node is not None and node.tag != tag:
            node = node.parent
        return node

    def within(self, role: str) -> "HtmlNode | None":
        """Return the nearest element around it that has this role."""
        node = self.parent
        while node is not None and node.role != role:
            node = node.parent
        return node


def parse_html(html: str) -> HtmlNode:
    """Return the tree of a document with roles and names."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    everything = list(reader.root.elements())
    labels = {
        node.attributes["for"]: node.text()
        for node in everything
        if node.tag == "label" and "for" in node.attributes
    }
    for node in everything:
        node.role = "" if _is_hidden(node) else _role(node)
    for node in everything:
        node.name = _name(node, labels)
    return reader.root


def html_controls(root: HtmlNode) -> list[HtmlNode]:
    """Return the controls of a document, in order."""
    return [node for node in root.elements() if node.role in _CONTROLS]


def group_name(node: HtmlNode) -> str:
    """Return the name of the group around a control, "" without one."""
    around = node.within("group")
    while around is not None and not around.name:
        around = around.within("group")
    return "" if around is None else around.name


class _Reader(HTMLParser):
    """Builds the tree; the end of an element closes what is open in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = HtmlNode("document", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = HtmlNode(tag, {k: v or "" for k, v in attrs}, self._open[-1])
        self._open[-1].children.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        for place in range(len(self._open) - 1, 0, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                return

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._open[-1].children.append(data)


def _is_hidden(node: HtmlNode) -> bool:
    walk: HtmlNode | None = node
    while walk is not None:
        hidden = walk.attributes.get("aria-hidden") == "true"
        if hidden or walk.tag in ("head", "style", "script"):
            return True
        walk = walk.parent
    return False


def _role(node: HtmlNode) -> str:
    given = node.attributes.get("role")
    if given:
        return given
    if node.tag == "input":
        return _INPUTS.get(node.attributes.get("type", "text"), "textbox")
    if node.tag == "select":
        return "listbox" if int(node.attributes.get("size", "0")) > 1 else "combobox"
    if node.tag == "a" and "href" not in node.attributes:
        return ""
    return _ROLES.get(node.tag, "")


def _name(node: HtmlNode, labels: dict[str, str]) -> str:
    if not node.role:
        return ""
    given = node.attributes.get("aria-label")
    if given:
        return given
    labelled = labels.get(node.attributes.get("id", ""))
    if labelled and node.role in _CONTROLS:
        return labelled
    if node.role in _NAMED_BY_CONTENTS:
        return node.text()
    for tag in ("legend", "caption"):
        for child in node.children:
            if isinstance(child, HtmlNode) and child.tag == tag:
                return child.text()
    label = node.around("label") if node.role in _CONTROLS else None
    if label is not None:
        return label.text()
    return node.attributes.get("placeholder", node.attributes.get("title", ""))
