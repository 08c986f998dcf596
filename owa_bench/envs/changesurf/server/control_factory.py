"""Control factory: canonical slots, buttons and routes to aliased page parts."""

from collections.abc import Iterable, Mapping
from typing import Any

from owa_bench.canonical import keyed_digest
from owa_bench.envs.changesurf.server import page_model
from owa_bench.envs.changesurf.server.forms import MONTHS, PATTERNS, show
from owa_bench.envs.changesurf.server.page_model import (
    Aliases,
    Button,
    FieldOption,
    FormField,
    PageForm,
    PageModel,
)
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.envs.changesurf.site_spec import Control, Placement, SiteValue, Slot
from owa_bench.envs.changesurf.world import SiteWorld, SlotPlan
from owa_bench.records.instance import Instance

DECOY_BUTTON, DECOY_FIELD = "Save draft", "Private note"  # honest labels of decoys
_SIGNS = {
    "go:next": "→",
    "go:search": "?",
    "go:more": "+",
    "go:later": "»",
    "go:earlier": "«",
    "go:confirm": "✓",
}
_SIGN = "◆"  # of every other label
_YEARS = (-1, 0, 1)
_TOKEN_HEX = 20


class ControlFactory:
    """Makes the controls of one world under one attempt's aliases."""

    def __init__(self, world: SiteWorld, aliases: Aliases) -> None:
        self.world = world
        self.plan = world.plan
        self.aliases = aliases

    # --- addresses --------------------------------------------------------------------

    def route(self, page: str) -> str:
        """Return the address of a page."""
        host = self.plan.auth_host if page == "passport" else self.plan.host
        path = "" if page == "home" else self.aliases.of("route", page)
        return f"https://{host}/{path}"

    def token(self, *parts: str) -> str:
        """Return a signed step token: nobody can make one for a step not reached."""
        key = self.aliases.of("value", "token-key").encode()
        return keyed_digest(key, "step", *parts).hex()[:_TOKEN_HEX]

    # --- controls ---------------------------------------------------------------------

    def button(self, ref: str, text: str, css: str = "button", **more: str) -> Button:
        """Return a button or link.

        Args:
            ref: what pressing it means.
            text: its words.
            css: its style.
            more: other fields of `Button`.
        """
        ident = self.aliases.of("id", f"press:{ref}")
        return Button(ref, ident, self.aliases.of("class", css), text, **more)

    def go(self, label: str, ref: str = "", css: str = "button", **more: str) -> Button:
        """Return a button whose words are a label of the plan, or a sign for it.

        Args:
            label: the label's key.
            ref: what pressing it means, "" for the label's key.
            css: its style.
            more: other fields of `Button`.
        """
        sign = _SIGNS.get(label, _SIGN) if label in self.plan.icons else ""
        return self.button(ref or label, self.plan.label(label), css, sign=sign, **more)

    def entry(self, ref: str, label: str, *, secret: bool = False) -> FormField:
        """Return a text field of the site's own, such as user name or search words.

        Args:
            ref: its canonical reference.
            label: the label's key.
            secret: whether it shows stars.
        """
        return self.field(ref, label=self.plan.label(label), secret=secret, required=True)

    def slot(
        self,
        workflow: str,
        slot: Slot,
        *,
        value: SiteValue,
        typed: Mapping[str, str],
        error: str = "",
        required: bool = True,
    ) -> FormField:
        """Return the field of a workflow's slot.

        Args:
            workflow: its key.
            slot: the slot.
            value: the canonical value that the field holds.
            typed: contents of a refused form by reference; they replace `value`.
            error: what was wrong with it.
            required: whether it must be filled, whatever else is chosen on the page.
        Returns: The field; a date's has parts where it is not typed.
        """
        ref = f"{workflow}.{slot.key}"
        shown = self.plan.slot(ref)
        label = self.plan.label(f"slot:{slot.key}")
        if slot.when is not None:
            label += " (where it applies)"
        if slot.kind == "date" and shown.control != "text":
            parts = self._date_parts(ref, label, shown, str(value), typed)
            return self.field(ref, label=label, control=shown.control, parts=parts, error=error)
        # A box that was left empty sends nothing.
        chosen = "no" if slot.kind == "check" and typed else str(value)
        if slot.kind == "check":
            text = self.aliases.of("value", f"{ref}=yes")
        else:
            written = show(value, slot.kind, self.plan.dates) if value != "" else ""
            text = typed.get(ref, written)
        return self.field(
            ref,
            label=label,
            control=shown.control,
            placement=_placement(shown),
            value=text,
            choices=self._choices(ref, slot, shown, typed.get(ref, chosen)),
            hint=self._hint(slot),
            error=error,
            required=required,
        )

    def field(
        self,
        ref: str,
        *,
        css: str = "field",
        control: Control = "text",
        placement: Placement = "label",
        **more: Any,
    ) -> FormField:
        """Return a field with the aliases of its reference.

        Args:
            ref: its canonical reference.
            css: its style.
            control: its kind of control.
            placement: where its label stands.
            more: other fields of `FormField`.
        """
        return FormField(
            ref=ref,
            ident=self.aliases.of("id", f"field:{ref}"),
            name=self.aliases.of("field", ref),
            css=self.aliases.of("class", css),
            control=control,
            placement=placement,
            **more,
        )

    def _choices(
        self, ref: str, slot: Slot, shown: SlotPlan, chosen: str
    ) -> tuple[FieldOption, ...]:
        if slot.kind == "check":
            return self._options(ref, [("yes", "yes")], chosen)
        if slot.kind == "number" and shown.control == "select":
            return self._options(ref, _numbers(slot.least, slot.most), chosen)
        return self._options(ref, [(o.value, o.text) for o in slot.options], chosen)

    def _options(
        self, ref: str, options: Iterable[tuple[str, str]], chosen: str
    ) -> tuple[FieldOption, ...]:
        return tuple(
            FieldOption(
                ref=f"{ref}={value}",
                ident=self.aliases.of("id", f"field:{ref}={value}"),
                value=self.aliases.of("value", f"{ref}={value}"),
                text=text,
                chosen=value == chosen,
            )
            for value, text in options
        )

    def _hint(self, slot: Slot) -> str:
        if slot.kind == "date" and self.plan.hinted:
            return f"Format: {PATTERNS[self.plan.dates]}"
        return "In EUR, such as 1234.50" if slot.kind == "money" else ""

    def _date_parts(
        self, ref: str, label: str, shown: SlotPlan, value: str, typed: Mapping[str, str]
    ) -> tuple[FormField, ...]:
        """Return day, month and year: three lists, or the days as radio buttons."""
        year, month, day = value.split("-") if value else ("", "", "")
        today = int(self.world.spec.today[:4])
        months = [(str(i), name) for i, name in enumerate(MONTHS, 1)]
        known = {
            "day": (_numbers(1, 31), day),
            "month": (months, month),
            "year": (_numbers(today + _YEARS[0], today + _YEARS[-1]), year),
        }
        parts = []
        for part, (options, chosen) in known.items():
            own = f"{ref}/{part}"
            is_days = shown.control == "picker" and part == "day"
            word = self.plan.label(f"part:{part}")
            now = typed.get(own, chosen.lstrip("0"))
            field = self.field(
                own,
                css="days" if is_days else "part",
                control="radio" if is_days else "select",
                label=f"{label}: {word}" if is_days else word,  # groups need own names
                choices=self._options(own, options, now),
            )
            parts.append(field)
        return tuple(parts)


def factory_for(state: SiteState, instance: Instance) -> ControlFactory:
    """Return the control factory of an attempt.

    Args:
        state: the visit, whose world may have changed the names since it began.
        instance: the attempt.
    """
    churned = state.world.plan.churn - state.first_churn
    return ControlFactory(state.world, page_model.aliases_of(instance, churned))


def with_decoys(factory: ControlFactory, instance: Instance, page: PageModel) -> PageModel:
    """Add decoys to a page: controls with the aliases of one drift step before.

    An agent that learnt an id uses a decoy; one that reads labels does not. Forms look the same
    with and without drift.

    Args:
        factory: the attempt's control factory.
        instance: the attempt.
        page: the page without decoys.
    Returns: The page with a decoy link and field in every form that is posted.
    """
    past = ControlFactory(factory.world, page_model.former_aliases(instance))
    blocks = tuple(
        _with_decoy(past, factory.route("decoy"), block)
        if isinstance(block, PageForm) and block.method == "post"
        else block
        for block in page.blocks
    )
    return page._replace(blocks=blocks)


def _with_decoy(past: ControlFactory, address: str, form: PageForm) -> PageForm:
    buttons = tuple(
        past.button(button.ref, DECOY_BUTTON, href=address)._replace(ref=f"decoy:{button.ref}")
        for button in form.buttons[:1]
    )
    fields = tuple(
        past.field(field.ref, label=DECOY_FIELD, secret=field.secret)._replace(
            ref=f"decoy:{field.ref}"
        )
        for field in form.fields[:1]
    )
    return form._replace(buttons=(*form.buttons, *buttons), decoys=fields)


def _numbers(least: int, most: int) -> list[tuple[str, str]]:
    return [(str(n), str(n)) for n in range(least, most + 1)]


def _placement(shown: SlotPlan) -> Placement:
    """Return the placement that a control can have: only typed ones take a placeholder.

    A group of radio buttons is named by its legend, wherever other labels stand.
    """
    if shown.control in ("text", "area"):
        return shown.placement
    if shown.control == "radio":
        return "label"
    return "aria" if shown.placement == "placeholder" else shown.placement
