"""What a page's HTML says to a person who reads names and not ids: roles and names.

A small reading of the accessible-name rules over the standard library's HTML parser:
label, wrapping label, legend, caption, aria-label, placeholder, contents. Shadow roots
are read through; what a frame holds has to be read on its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"input", "meta", "link", "br", "hr", "img", "base"})
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
_NAMED_BY_CONTENTS = frozenset(
    {
        *("link", "button", "option", "heading", "cell", "columnheader"),
        *("disclosure", "paragraph", "term", "definition"),
    }
)
CONTROLS = frozenset(
    {
        *("link", "button", "textbox", "combobox", "listbox", "checkbox", "switch"),
        *("radio", "disclosure"),
    }
)


@dataclass(slots=True)
class Node:
    """An element: tag, attributes, what is in it, and what it is to a reader."""

    tag: str
    attributes: dict[str, str]
    parent: "Node | None" = None
    children: list["Node | str"] = field(default_factory=list)
    role: str = ""
    name: str = ""

    def elements(self) -> Iterator["Node"]:
        """Return this element and all below it, in document order."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.elements()

    def text(self) -> str:
        """Return the words in it, blanks joined; scripts and styles left out."""
        return " ".join(self._words())

    def _words(self) -> Iterator[str]:
        if self.tag in ("style", "script", "select", "textarea"):
            return
        for child in self.children:
            if isinstance(child, Node):
                yield from child._words()  # noqa: SLF001 - the same class
            else:
                yield from child.split()

    def within(self, role: str) -> "Node | None":
        """Return the nearest element around it that has this role."""
        node = self.parent
        while node is not None and node.role != role:
            node = node.parent
        return node


def read(html: str) -> Node:
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


def controls(root: Node) -> list[Node]:
    """Return the controls of a document, in order."""
    return [node for node in root.elements() if node.role in CONTROLS]


def group_of(node: Node) -> str:
    """Return the name of the group around a control, "" without one."""
    around = node.within("group")
    while around is not None and not around.name:
        around = around.within("group")
    return "" if around is None else around.name


class _Reader(HTMLParser):
    """Builds the tree; the end of an element closes what is open in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {k: v or "" for k, v in attrs}, self._open[-1])
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


def _is_hidden(node: Node) -> bool:
    walk: Node | None = node
    while walk is not None:
        if walk.attributes.get("aria-hidden") == "true" or walk.tag in (
            "head",
            "style",
            "script",
        ):
            return True
        walk = walk.parent
    return False


def _role(node: Node) -> str:
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


def _name(node: Node, labels: dict[str, str]) -> str:
    if not node.role:
        return ""
    given = node.attributes.get("aria-label")
    if given:
        return given
    labelled = labels.get(node.attributes.get("id", ""))
    if labelled and node.role in CONTROLS:
        return labelled
    if node.role in _NAMED_BY_CONTENTS:
        return node.text()
    for tag in ("legend", "caption"):
        for child in node.children:
            if isinstance(child, Node) and child.tag == tag:
                return child.text()
    around = _label_around(node)
    if around is not None:
        return around.text()
    return node.attributes.get("placeholder", node.attributes.get("title", ""))


def _label_around(node: Node) -> Node | None:
    if node.role not in CONTROLS:
        return None
    walk = node.parent
    while walk is not None and walk.tag != "label":
        walk = walk.parent
    return walk
