"""Browser client of the web solver: clicks, full page text, handled interruptions.

Rate limits, sign-ins and truncated pages are dealt with here, so that a plan sees only the pages it
asked for.
"""

import re
from collections.abc import Iterable, Mapping

from owa_bench.agents.solvers import pages
from owa_bench.agents.solvers.api_solver.http_session import SkillConfig
from owa_bench.agents.solvers.pages import PageControl, is_open
from owa_bench.agents.solvers.planning import PlanCall, PlanReply, ToolPlan
from owa_bench.agents.solvers.web_solver import page_view
from owa_bench.agents.solvers.web_solver.page_view import (
    PageView,
    ViewField,
    fields,
    fill_calls,
    press,
)

_SECONDS = re.compile(r"(\d+) seconds?")
_CODE = re.compile(r"code is (\w+)")
_MOST_PARTS, _MOST_INTERRUPTIONS, _MOST_WRITES, _MOST_BOXES = 6, 12, 40, 3
_LEAST = 0.5
_SOME_S = 5  # to wait where no page says how long
_SIGN_IN, _MAIL = "sign in login", "mailbox messages inbox"
_NAME = "name"
_SECRET = "password secret"  # noqa: S105  words of a label, no password
_RESULTS = "official"
_CODES = "One-time codes, each for one sign-in"
_ENTRY = re.compile(r"(.+)\. All rights reserved\.|Welcome to (.+?)\.")


class Browser:
    """One window. `page` is the open page, `menu` the links that all pages have.

    `boilerplate` are the other lines of the site's first page, which all pages repeat; `signs`
    names what went wrong; `seen` holds every page so far.
    """

    def __init__(self, first: str, credentials: Mapping[str, str], config: SkillConfig):
        self.page = page_view.parse_page(first)
        self.menu: tuple[str, ...] = ()
        self.boilerplate: frozenset[str] = frozenset()
        self.signs: set[str] = set()
        self.seen: list[PageView] = []
        self._config = config
        self._credentials = dict(credentials)
        self._home = ""
        self._refused = 0
        self._patience = 0  # seconds that the site asked for before it took a form
        self._named = False
        self._codes_used = 0

    # --- acts ---------------------------------------------------------------------

    @property
    def body(self) -> tuple[PageControl, ...]:
        """The controls of the page that are not the menu's."""
        return page_view.body(self.page, self.menu)

    def enter(self) -> ToolPlan[None]:
        """Come from wherever the window stands to the site's own first page."""
        yield from self._read_to_end("\n".join(self.page.lines))
        if self.page.heading and not self._looks_like_search():
            self._learn_menu()
            return
        brand = self._brand()
        field = fields(self.page.items)[0]
        for call in fill_calls(field, brand, ""):
            yield from self.do(call)
        yield from self.press(self._button(self.page.items))
        hits = [i for i in self.page.items if i.role == "link" and brand in i.name]
        hits.sort(key=lambda item: _RESULTS not in item.name)
        yield from self.press(hits[0] if hits else None)
        self._learn_menu()

    def open(self, entry: str) -> ToolPlan[PageView]:
        """Press an entry of the menu."""
        links = (i for i in self.page.items if i.role == "link" and i.name == entry)
        item = next(links, None)
        if item is None:
            yield from self.do(PlanCall("goto", {"address": "/"}))
            links = (i for i in self.page.items if i.name == entry)
            item = next(links, None)
        return (yield from self.press(item))

    def press(self, item: PageControl | None) -> ToolPlan[PageView]:
        """Press a control and get past what comes between; nothing if there is none."""
        if item is None:
            return self.page
        yield from self.do(press(item))
        yield from self._settle()
        return self.page

    def go(self, address: str) -> ToolPlan[PageView]:
        """Go to an address and get past what comes between."""
        yield from self.do(PlanCall("goto", {"address": address}))
        yield from self._settle()
        return self.page

    def do(self, call: PlanCall) -> ToolPlan[PlanReply]:
        """Make one call and read the page it brings to its end."""
        reply = yield call
        yield from self._read_to_end(reply.text)
        return reply

    def fill(self, field: ViewField, value: str, pattern: str) -> ToolPlan[None]:
        """Fill a field, one control after the other.

        Args:
            field: the field; it is found again after each input.
            value: the goal's value.
            pattern: the page's date pattern, "" if unknown.
        Returns: The plan; it ends when the field has the value or does not take it.
        """
        for _ in range(_MOST_WRITES):
            same = (f for f in fields(self.body) if _identity(f) == _identity(field))
            now = next(same, None)
            call = next(fill_calls(now, value, pattern), None) if now else None
            if call is None:
                return
            before = self.page.lines
            yield from self.do(call)
            if self.page.lines == before:
                return  # it does not take it

    # --- what comes between -------------------------------------------------------

    def _read_to_end(self, text: str) -> ToolPlan[None]:
        """Read a page that was cut to its end."""
        for _ in range(_MOST_PARTS):
            line = page_view.continuation_line(text)
            if line is None or not self._config.pages:
                break
            more = yield PlanCall("read", {"line": line})
            text = page_view.join_continuation(text, more.text)
        self.page = page_view.parse_page(text)
        self.seen.append(self.page)

    def _settle(self) -> ToolPlan[None]:
        """Wait where the site asks for it, sign in where it wants that."""
        for _ in range(_MOST_INTERRUPTIONS):
            if self._repeat_link() is not None:
                if not (yield from self._asked_again()):
                    return
            elif self.wants_sign_in:
                before = self._refused
                yield from self._sign_in()
                if self._refused > before and not self._config.retries:
                    return
            else:
                return

    def _asked_again(self) -> ToolPlan[bool]:
        """Wait out a limit and ask again; False if that did not help before."""
        again = self._repeat_link()
        self.signs.add("limited")
        if self._config.waits:
            yield from self._wait()
            again = self._repeat_link() or again
        elif "stuck" in self.signs:
            return False
        else:
            self.signs.add("stuck")
        if again is not None:
            yield from self.do(press(again))
        return True

    def _calmly(self, call: PlanCall) -> ToolPlan[None]:
        """Make a call and wait out the limits that it meets."""
        yield from self.do(call)
        for _ in range(_MOST_INTERRUPTIONS):
            if self._repeat_link() is None or not (yield from self._asked_again()):
                return

    def _repeat_link(self) -> PageControl | None:
        """Return the link that repeats a request which came too soon."""
        links = [i for i in self.body if i.role == "link" and "again" in i.name.lower()]
        return links[0] if links and self.is_too_soon else None

    def _wait(self) -> ToolPlan[None]:
        yield from self.do(PlanCall("wait", {"seconds": self._seconds}))

    @property
    def _seconds(self) -> int:
        """How many seconds the page asks for."""
        found = _SECONDS.search(" ".join(self.page.notices))
        return int(found[1]) if found else _SOME_S

    @property
    def is_too_soon(self) -> bool:
        """Whether the site asks for some seconds of patience."""
        return _SECONDS.search(" ".join(self.page.notices)) is not None

    def too_fast(self) -> ToolPlan[bool]:
        """Wait where a form was sent too soon; False if it was not."""
        if not self.is_too_soon:
            return False
        self.signs.add("limited")
        if self._config.waits:
            yield from self._wait()
            self._patience = max(self._patience, self._seconds)
        return self._config.waits

    def pause(self) -> ToolPlan[None]:
        """Let pass what the site asked for the last time that a form came too soon."""
        if self._patience:
            yield from self.do(PlanCall("wait", {"seconds": self._patience}))

    # --- signing in ---------------------------------------------------------------

    @property
    def wants_sign_in(self) -> bool:
        """Whether the page asks who one is."""
        if not self._credentials or self._looks_like_search():
            return False
        form = [f for f in fields(self.body) if f.kind == "text"]
        heading = self.page.heading
        if any(pages.alike(f.label, _SECRET) >= _LEAST for f in form):
            return True
        names = [i.name for i in self.body if i.role == "button"]
        foreign = bool(self._home) and self.page.host != self._home
        return bool(form and (heading in names or foreign)) or bool(self._ways())

    def _ways(self) -> list[PageControl]:
        """Return the links that lead to a sign-in elsewhere."""
        return [i for i in self.body if "sign in" in i.group.lower()]

    def _sign_in(self) -> ToolPlan[None]:
        """Do what the sign-in page asks for, once."""
        form = [f for f in fields(self.body) if f.kind == "text" and f.required]
        if not form:
            for way in self._ways()[:1]:
                yield from self.do(press(way))
            return
        if self.page.notices:
            self._refused += 1
            self.signs.add("refused")
            self._named = False
        asked = yield from self._sign_in_values(form)
        for field, value in zip(form, asked, strict=False):
            yield from self.fill(field, value, "")
        button = self._button(self.body)
        if button is not None:
            yield from self.do(press(button))

    def _sign_in_values(self, form: list[ViewField]) -> ToolPlan[list[str]]:
        """Return what goes into the fields of a sign-in page."""
        user = self._credentials.get("User name", "")
        found = " ".join(x for x in self.page.lines if not x.startswith("[")).lower()
        if len(form) > 1:
            self._named = True
            return [user, self._password()]
        was_named, self._named = self._named, False
        if "mailbox" in found:
            return [(yield from self._mailed())]
        codes = self._credentials.get(_CODES, "").split()
        if "code" in found and codes:
            self._codes_used += 1  # each works once
            return [codes[min(self._codes_used, len(codes)) - 1]]
        label = form[0].label
        # A lone field asks for the password, or for the name.
        if pages.alike(label, _SECRET) >= _LEAST or (
            was_named and pages.alike(label, _NAME) < _LEAST
        ):
            return [self._password()]
        self._named = True
        return [user]

    def _password(self) -> str:
        """Return the password to try: the first one issued, then those after it."""
        known = [v for k, v in self._credentials.items() if k.startswith("Password")]
        if not known:
            return ""
        tried = self._refused if self._config.retries else 0
        return known[tried % len(known)]

    def _mailed(self) -> ToolPlan[str]:
        """Look a code up in the site's mailbox and come back."""
        for entry in pages.nearest(_MAIL, self.menu)[:_MOST_BOXES]:
            links = [i for i in self.page.items if i.name == entry]
            if not links:
                continue
            yield from self._calmly(press(links[0]))
            code = _CODE.search("\n".join(self.page.lines))
            links = [i for i in self.page.items if i.group and i.name not in self.menu]
            links = [i for i in links if i.name != entry and i.role == "link"]
            back = press(links[0]) if code and links else PlanCall("back", {})
            yield from self._calmly(back)
            if code is not None:
                return code[1]
        return ""

    # --- finding one's way --------------------------------------------------------

    def _learn_menu(self) -> None:
        links = (i.name for i in self.page.items if i.role == "link" and is_open(i))
        self.menu = tuple(dict.fromkeys(links))
        self.boilerplate = frozenset({*self.menu, *self.page.lines})
        self._home = self.page.host

    def _looks_like_search(self) -> bool:
        """Return whether this is a page that searches for sites, not the site."""
        return "search the web" in " ".join(i.name.lower() for i in self.page.items)

    def _brand(self) -> str:
        found = (_ENTRY.fullmatch(line) for line in self.page.lines)
        match = next((m for m in found if m), None)
        return (match[1] or match[2]) if match else ""

    def _button(self, items: Iterable[PageControl]) -> PageControl | None:
        """Return the button that sends a form."""
        return next((i for i in items if i.role == "button" and is_open(i)), None)


def _identity(field: ViewField) -> tuple[str, str, str]:
    return field.label, field.kind, field.items[0].group
