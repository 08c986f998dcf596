"""The next right thing to do on a site, in terms of the controls of its last page.

A pure function of timeline, state and what the controls hold now. It reads the world,
so it holds whatever the page is called; it is the oracle's hand and nobody else's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from owa_bench.envs.changesurf.elements import Button, Field, Page, buttons, forms
from owa_bench.envs.changesurf.formats import MONTHS, show
from owa_bench.envs.changesurf.goal import goal_score, missing_evidence
from owa_bench.envs.changesurf.listing import categories
from owa_bench.envs.changesurf.pages import build
from owa_bench.envs.changesurf.state import SiteState
from owa_bench.envs.changesurf.visit import REQUEST_MS
from owa_bench.records.instance import Instance, Timeline
from owa_bench.worlds.site import SiteValue, Slot

Op = Literal["fill", "select", "check", "press", "wait", "goto", "done", "infeasible"]
_MANY = 2  # rows from which on turning pages beats searching one by one


class Seen(Protocol):
    """A control as the browser half observed it."""

    @property
    def ident(self) -> str:
        """The id attribute."""

    @property
    def value(self) -> str:
        """What it holds: the text, or the words of the chosen option."""

    @property
    def checked(self) -> bool | None:
        """Whether it is ticked or chosen; None where that makes no sense."""


class Deed(NamedTuple):
    """One act on one control.

    `ident` is its id attribute, `name` its accessible name, `group` that of the group
    that tells it apart, `value` the text to type, the option's words, "on" or "off" for
    a box, the milliseconds to wait, or the address to go to.
    """

    op: Op
    ident: str = ""
    name: str = ""
    value: str = ""
    group: str = ""


def deed(timeline: Timeline, state: Any, controls: Sequence[Seen] = ()) -> Deed:
    """Return the next right act.

    `state` is a `SiteState` or carries one as `site`. Without `controls` fields are
    taken to hold what the server put there.
    """
    site: SiteState = getattr(state, "site", state)
    if site.world.honeypot:
        return Deed("infeasible")
    if goal_score(site) >= 1.0:
        return Deed("done")
    if site.stale:  # what the open page calls things need not be so any more
        return Deed("goto", value=f"https://{site.world.plan.host}/")
    return _Hand(site, timeline.instance, controls).act()


class _Hand:
    """Looks at one page and says what to do on it."""

    def __init__(
        self, site: SiteState, instance: Instance, controls: Sequence[Seen]
    ) -> None:
        self._site = site
        self._world = site.world
        self._goal = site.world.spec.goal
        self._page: Page = build(site, instance)
        self._buttons = {button.ref: button for button in buttons(self._page)}
        self._held = {control.ident: control for control in controls}

    def act(self) -> Deed:
        """Return the next right act on the page."""
        kind = self._site.page.partition(":")[0]
        special = {
            "limited": self._limited,
            "search": self._search,
            "login": self._sign_in,
            "login2": self._sign_in,
            "passport": self._sign_in,
            "mail": self._mail,
        }
        if kind in special:
            return special[kind]()
        if kind in ("flow", "offer", "review") and self._is_on_course():
            return self._form()
        return self._navigate()

    # --- special pages ----------------------------------------------------------------

    def _limited(self) -> Deed:
        friction = self._world.plan.friction
        cost = REQUEST_MS + friction.slow_ms
        end = self._site.window_ms + friction.window_ms
        left = end - self._site.now_ms - cost
        if left > 0:
            return Deed("wait", value=str(left))
        return self._press("retry")

    def _search(self) -> Deed:
        if "finder:hit" in self._buttons:
            return self._press("finder:hit")
        field = forms(self._page)[0].fields[0]
        return self._write(field, self._world.plan.brand) or self._press("finder:go")

    def _sign_in(self) -> Deed:
        auth = self._world.plan.auth
        if "passport" in self._buttons:
            return self._press("passport")
        asked = self._site.sign_in == "code" and auth.kind == "mailbox"
        if asked and "mail" not in self._site.visited:
            return self._press("menu:mail")
        given = {
            "sys:user": auth.user,
            "sys:password": auth.password,
            "sys:code": auth.code,
        }
        for field in forms(self._page)[0].fields:
            step = self._write(field, given[field.ref])
            if step is not None:
                return step
        return self._press("submit:signin")

    def _mail(self) -> Deed:
        if "back:login2" in self._buttons:
            return self._press("back:login2")
        return self._navigate()

    # --- forms ------------------------------------------------------------------------

    def _is_on_course(self) -> bool:
        """Return whether the draft is the goal's own, and may be gone on with."""
        draft = self._site.draft
        return (
            draft is not None
            and (draft.workflow, draft.record)
            == (self._goal.workflow, self._goal.record)
            and not missing_evidence(self._site)
        )

    def _form(self) -> Deed:
        form = forms(self._page)[0]
        for field in form.fields:
            step = self._fill(field)
            if step is not None:
                return step
        friction = self._world.plan.friction
        cost = REQUEST_MS + friction.slow_ms
        early = self._site.served_ms + friction.least_ms - self._site.now_ms - cost
        if early > 0:
            return Deed("wait", value=str(early))
        if "offer:no" in self._buttons:
            return self._press("offer:no")
        return self._press(form.buttons[0].ref)

    def _fill(self, field: Field) -> Deed | None:
        """Return what brings a field to the goal's value, None if it is there."""
        workflow = self._world.spec.workflow(self._goal.workflow)
        slot = workflow.slot(field.ref.partition(".")[2])
        values = dict(self._goal.values)
        if slot.key not in values:
            return None
        value = values[slot.key]
        if field.parts:
            return self._date(field, str(value))
        if slot.kind == "check":
            return self._tick(field, on=value == "yes")
        return self._set(field, _words(slot, value, field, self._site))

    def _date(self, field: Field, day: str) -> Deed | None:
        year, month, date = map(int, day.split("-"))
        wanted = {"day": str(date), "month": MONTHS[month - 1], "year": str(year)}
        for part in field.parts:
            text = wanted[part.ref.rpartition("/")[2]]
            group = part.label if part.control == "radio" else field.label
            step = self._set(part, text, group=group)
            if step is not None:
                return step
        return None

    def _set(self, field: Field, text: str, group: str = "") -> Deed | None:
        if field.control == "radio":
            return self._choose(field, text)
        if field.control in ("select", "listbox"):
            now = next((c.text for c in field.choices if c.chosen), "")
            if self._value(field.ident, now) == text:
                return None
            return Deed("select", field.ident, field.label, text, group)
        return self._write(field, text)

    def _choose(self, field: Field, text: str) -> Deed | None:
        choice = next(c for c in field.choices if c.text == text)
        if self._checked(choice.ident, choice.chosen):
            return None
        return Deed("press", choice.ident, choice.text, "", field.label)

    def _tick(self, field: Field, *, on: bool) -> Deed | None:
        now = bool(field.choices and field.choices[0].chosen)
        if self._checked(field.ident, now) == on:
            return None
        return Deed("check", field.ident, field.label, "on" if on else "off")

    def _write(self, field: Field, text: str) -> Deed | None:
        if self._value(field.ident, field.value) == text:
            return None
        return Deed("fill", field.ident, field.label, text)

    def _value(self, ident: str, served: str) -> str:
        return self._held[ident].value if ident in self._held else served

    def _checked(self, ident: str, served: bool) -> bool:
        return bool(self._held[ident].checked) if ident in self._held else served

    # --- finding the way --------------------------------------------------------------

    def _navigate(self) -> Deed:
        missing = missing_evidence(self._site)
        if missing:
            collection, key, column = missing[0]
            plan = self._world.plan.listing(collection)
            is_listed = column in (*plan.columns, *plan.drawer)
            many = len({cell[1] for cell in missing}) > _MANY
            return self._to_row(collection, key, listed=is_listed, many=many)
        workflow = self._world.spec.workflow(self._goal.workflow)
        if not workflow.record:
            return self._press(f"menu:{workflow.key}")
        action = f"start:{workflow.key}/{self._goal.record}"
        if action in self._buttons:
            return self._press(action)
        return self._to_row(workflow.record, self._goal.record, listed=False)

    def _to_row(
        self, collection: str, key: SiteValue, *, listed: bool, many: bool = False
    ) -> Deed:
        """Return the step towards a row: its list, its place in it, its own page."""
        if self._site.page != f"list:{collection}":
            return self._press(f"menu:{collection}")
        link = f"item:{collection}/{key}"
        if link in self._buttons and not listed:
            return self._press(link)
        return self._turn(collection, key, many=many)

    def _turn(self, collection: str, key: SiteValue, *, many: bool) -> Deed:
        """Return how to bring a row that is not on the page nearer."""
        plan = self._world.plan.listing(collection)
        about = self._world.spec.collection(collection)
        row = self._site.row(collection, key)
        query = self._site.query
        title = str(row[about.title])
        if plan.filter == "search" and not many and query.words != title:
            field = forms(self._page)[0].fields[0]
            return self._write(field, title) or self._press("go:search")
        name = str(row[about.category]) if about.category else ""
        known = categories(self._site, about)
        if plan.filter == "tree" and not many and query.category != name in known:
            return self._press(f"category:{name}")
        for ref in ("go:more", "go:later"):
            if ref in self._buttons:
                return self._press(ref)
        return self._press(f"menu:{collection}")

    def _press(self, ref: str) -> Deed:
        button = self._buttons.get(ref)
        if button is None:
            button = self._buttons["menu:home"]
        return Deed("press", button.ident, spoken(button))


def spoken(button: Button) -> str:
    """Return a button's accessible name."""
    return f"{button.text}: {button.about}" if button.about else button.text


def _words(slot: Slot, value: SiteValue, field: Field, site: SiteState) -> str:
    """Return a value as the field takes it: typed in the page's form, or an option."""
    texts: Mapping[str, str] = {option.value: option.text for option in slot.options}
    if str(value) in texts:
        return texts[str(value)]
    if slot.kind == "money":
        return show(value, "money", "iso").replace(",", "")
    return show(value, slot.kind, site.world.plan.dates)
