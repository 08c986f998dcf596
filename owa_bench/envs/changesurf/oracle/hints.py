"""Oracle steps: the next correct action on a site, by the controls of its open page.

A pure function of timeline, site state and what the controls hold. It reads the world, so it does
not depend on what the page calls things; only the oracle uses it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from owa_bench.envs.changesurf.oracle.goal import goal_score, missing_evidence
from owa_bench.envs.changesurf.server.forms import MONTHS, show
from owa_bench.envs.changesurf.server.listing import categories
from owa_bench.envs.changesurf.server.page_model import Button, FormField
from owa_bench.envs.changesurf.server.pages import build
from owa_bench.envs.changesurf.server.sign_in import REQUEST_MS, least_form_ms, sign_in_code
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.envs.changesurf.site_spec import SiteValue, Slot
from owa_bench.records.instance import Instance, Timeline

StepKind = Literal["fill", "select", "check", "press", "wait", "goto", "done", "infeasible"]
_MANY = 2  # rows from which on turning pages beats searching one by one


class ControlState(Protocol):
    """What a control of the open page holds."""

    @property
    def ident(self) -> str:
        """The id attribute."""

    @property
    def value(self) -> str:
        """The text, or the words of the chosen option."""

    @property
    def checked(self) -> bool | None:
        """Whether it is ticked or chosen; None where that makes no sense."""


class ControlValue(NamedTuple):
    """What a control holds: its text, or whether it is ticked."""

    ident: str
    value: str
    checked: bool | None


class VisitState(Protocol):
    """The state that the oracle reads: the site's, and the open page's controls."""

    @property
    def site(self) -> SiteState:
        """The site's state."""

    @property
    def controls(self) -> Sequence[ControlState]:
        """The controls of the open page; without them fields hold what was served."""


class OracleStep(NamedTuple):
    """The next correct action, on one control.

    `ident` is its id attribute, `name` its accessible name, `group` that of the group that tells it
    apart. `value` is the text to type, the option's words, "on" or "off" for a box, the
    milliseconds to wait, or the address to go to.
    """

    op: StepKind
    ident: str = ""
    name: str = ""
    value: str = ""
    group: str = ""


def next_step(
    timeline: Timeline, site: SiteState, controls: Sequence[ControlState] = ()
) -> OracleStep:
    """Return the next correct action.

    Args:
        timeline: the episode's worlds.
        site: the site's state.
        controls: what the open page's controls hold; without them fields are taken to hold what the
            server put there.
    Returns: The step; `done` or `infeasible` at the end.
    """
    if site.world.honeypot:
        return OracleStep("infeasible")
    if goal_score(site) >= 1.0:
        return OracleStep("done")
    if site.stale:  # the names on the open page may be those of before
        return OracleStep("goto", value=f"https://{site.world.plan.host}/")
    return _StepFinder(site, timeline.instance, controls).step()


class _StepFinder:
    """Finds the next step on one page."""

    def __init__(
        self, site: SiteState, instance: Instance, controls: Sequence[ControlState]
    ) -> None:
        self._site = site
        self._world = site.world
        self._goal = site.world.spec.goal
        page = build(site, instance)
        self._forms = page.forms
        self._buttons = {button.ref: button for button in page.buttons}
        self._controls = {control.ident: control for control in controls}

    def step(self) -> OracleStep:
        """Return the next correct action on the page."""
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

    def _limited(self) -> OracleStep:
        end_ms = self._site.window_ms + self._world.plan.friction.window_ms
        return self._wait_until(end_ms) or self._press("retry")

    def _wait_until(self, time_ms: int) -> OracleStep | None:
        """Return the wait after which a request is handled at a time, None if later."""
        cost_ms = REQUEST_MS + self._world.plan.friction.slow_ms
        left_ms = time_ms - self._site.now_ms - cost_ms
        return OracleStep("wait", value=str(left_ms)) if left_ms > 0 else None

    def _search(self) -> OracleStep:
        if "finder:hit" in self._buttons:
            return self._press("finder:hit")
        field = self._forms[0].fields[0]
        return self._write(field, self._world.plan.brand) or self._press("finder:go")

    def _sign_in(self) -> OracleStep:
        auth = self._world.plan.auth
        if "passport" in self._buttons:
            return self._press("passport")
        is_mailed = self._site.sign_in == "code" and auth.kind == "mailbox"
        if is_mailed and self._site.codes_read < self._site.codes_sent:
            return self._press("menu:mail")
        values = {
            "sys:user": auth.user,
            "sys:password": auth.password,
            "sys:code": sign_in_code(self._site),
        }
        steps = (self._write(field, values[field.ref]) for field in self._forms[0].fields)
        return next(filter(None, steps), None) or self._press("submit:signin")

    def _mail(self) -> OracleStep:
        if "back:login2" in self._buttons:
            return self._press("back:login2")
        return self._navigate()

    # --- forms ------------------------------------------------------------------------

    def _is_on_course(self) -> bool:
        """Return whether the draft is the goal's own, and may be gone on with."""
        draft, goal = self._site.draft, self._goal
        return (
            draft is not None
            and (draft.workflow, draft.record) == (goal.workflow, goal.record)
            and not missing_evidence(self._site)
        )

    def _form(self) -> OracleStep:
        form = self._forms[0]
        open_ms = self._site.served_ms + least_form_ms(self._site)
        step = next(filter(None, map(self._fill, form.fields)), None)
        offered = "offer:no" in self._buttons
        send = "offer:no" if offered else form.buttons[0].ref
        return step or self._wait_until(open_ms) or self._press(send)

    def _fill(self, field: FormField) -> OracleStep | None:
        """Return the step that sets a field to the goal's value, None if it is set."""
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
        return self._set(field, _words(slot, value, self._site))

    def _date(self, field: FormField, day: str) -> OracleStep | None:
        year, month, date = map(int, day.split("-"))
        texts = {"day": str(date), "month": MONTHS[month - 1], "year": str(year)}
        steps = (
            self._set(part, texts[part.ref.rpartition("/")[2]], field.label) for part in field.parts
        )
        return next(filter(None, steps), None)

    def _set(self, field: FormField, text: str, group: str = "") -> OracleStep | None:
        if field.control == "radio":
            choice = next(c for c in field.choices if c.text == text)
            if self._is_checked(choice.ident, choice.chosen):
                return None
            return OracleStep("press", choice.ident, choice.text, "", field.label)
        if field.control in ("select", "listbox"):
            now = next((c.text for c in field.choices if c.chosen), "")
            if self._value(field.ident, now) == text:
                return None
            return OracleStep("select", field.ident, field.label, text, group)
        return self._write(field, text)

    def _tick(self, field: FormField, *, on: bool) -> OracleStep | None:
        now = bool(field.choices and field.choices[0].chosen)
        if self._is_checked(field.ident, now) == on:
            return None
        return OracleStep("check", field.ident, field.label, "on" if on else "off")

    def _write(self, field: FormField, text: str) -> OracleStep | None:
        if self._value(field.ident, field.value) == text:
            return None
        return OracleStep("fill", field.ident, field.label, text)

    def _value(self, ident: str, served: str) -> str:
        control = self._controls.get(ident)
        return served if control is None else control.value

    def _is_checked(self, ident: str, served: bool) -> bool:
        control = self._controls.get(ident)
        return served if control is None else bool(control.checked)

    # --- navigation -------------------------------------------------------------------

    def _navigate(self) -> OracleStep:
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
    ) -> OracleStep:
        """Return the step towards a row: its list, its page of it, its own page."""
        if self._site.page != f"list:{collection}":
            return self._press(f"menu:{collection}")
        link = f"item:{collection}/{key}"
        if link in self._buttons and not listed:
            return self._press(link)
        found = None if many else self._narrow(collection, key)
        if found is not None:
            return found
        pagers = (ref for ref in ("go:more", "go:later") if ref in self._buttons)
        return self._press(next(pagers, f"menu:{collection}"))

    def _narrow(self, collection: str, key: SiteValue) -> OracleStep | None:
        """Return the search or category that leads to a row, None without either."""
        plan = self._world.plan.listing(collection)
        about = self._world.spec.collection(collection)
        row = self._site.row(collection, key)
        query = self._site.query
        title = str(row[about.title])
        if plan.filter == "search" and query.words != title:
            return self._write(self._forms[0].fields[0], title) or self._press("go:search")
        name = str(row[about.category]) if about.category else ""
        known = categories(self._site, about)
        if plan.filter == "tree" and query.category != name in known:
            return self._press(f"category:{name}")
        return None

    def _press(self, ref: str) -> OracleStep:
        button = self._buttons.get(ref) or self._buttons["menu:home"]
        return OracleStep("press", button.ident, accessible_name(button))


def accessible_name(button: Button) -> str:
    """Return a button's accessible name."""
    return f"{button.text}: {button.about}" if button.about else button.text


def _words(slot: Slot, value: SiteValue, site: SiteState) -> str:
    """Return a value as its field takes it: typed in the page's form, or an option."""
    texts = {option.value: option.text for option in slot.options}
    if str(value) in texts:
        return texts[str(value)]
    if slot.kind == "money":
        return show(value, "money", "iso").replace(",", "")
    return show(value, slot.kind, site.world.plan.dates)
