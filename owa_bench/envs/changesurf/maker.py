"""Makes the parts of a page: canonical meaning in, aliased controls out."""

from collections.abc import Iterable, Mapping

from owa_bench.canonical import keyed_digest
from owa_bench.envs.changesurf.aliases import Aliases
from owa_bench.envs.changesurf.elements import Button, Choice, Field
from owa_bench.envs.changesurf.formats import MONTHS, PATTERNS, show
from owa_bench.worlds.site import Placement, SiteValue, SiteWorld, Slot, SlotPlan

SIGNS = {
    "go:next": "→",
    "go:search": "?",
    "go:more": "+",
    "go:later": "»",
    "go:earlier": "«",
    "go:confirm": "✓",
}
_YEARS = (-1, 0, 1)
_TOKEN_HEX = 20
CHOOSE = "Choose ..."


class Maker:
    """Makes controls of one world under one attempt's aliases."""

    def __init__(self, world: SiteWorld, aliases: Aliases) -> None:
        self.world = world
        self.plan = world.plan
        self.aliases = aliases

    # --- addresses ------------------------------------------------------------------

    def route(self, page: str) -> str:
        """Return the address of a page, with its origin where that differs."""
        path = f"/{self.aliases.of('route', page)}"
        if page == "home":
            path = "/"
        return self.origin(page) + path

    def origin(self, page: str) -> str:
        """Return the origin a page is served from."""
        host = self.plan.auth_host if page == "passport" else self.plan.host
        return f"https://{host}"

    def token(self, *parts: str) -> str:
        """Return a signed step token: nobody can make one for a step not reached."""
        key = self.aliases.of("value", "token-key").encode()
        return keyed_digest(key, "step", *parts).hex()[:_TOKEN_HEX]

    # --- controls -------------------------------------------------------------------

    def button(self, ref: str, text: str, css: str = "button", **more: str) -> Button:
        """Return a button or link; `ref` is what pressing it means."""
        return Button(
            ref=ref,
            ident=self.aliases.of("id", f"press:{ref}"),
            css=self.aliases.of("class", css),
            text=text,
            **more,
        )

    def go(self, label: str, ref: str = "", css: str = "button", **more: str) -> Button:
        """Return a button whose words are a label of the plan, or a sign for it."""
        sign = ""
        if label in self.plan.icons:
            sign = SIGNS.get(label, "◆")
        text = self.plan.label(label)
        return self.button(ref or label, text, css, sign=sign, **more)

    def entry(self, ref: str, label: str, *, secret: bool = False) -> Field:
        """Return a plain text field of the site's own: user name, search words."""
        return Field(
            ref=ref,
            ident=self.aliases.of("id", f"field:{ref}"),
            name=self.aliases.of("field", ref),
            css=self.aliases.of("class", "field"),
            label=self.plan.label(label),
            control="text",
            placement="label",
            secret=secret,
            required=True,
        )

    def slot(
        self,
        workflow: str,
        slot: Slot,
        *,
        value: SiteValue,
        typed: Mapping[str, str],
        error: str = "",
        required: bool = True,
    ) -> Field:
        """Return the field of a workflow's slot, holding a canonical value.

        `typed` is what a refused form held, by field reference: it goes first. Only
        what must be filled whatever else is chosen on the page is `required`.
        """
        shown = self.plan.slot(f"{workflow}.{slot.key}")
        label = self.plan.label(f"slot:{slot.key}")
        if slot.when is not None:
            label += " (where it applies)"
        ref = f"{workflow}.{slot.key}"
        if slot.kind == "date" and shown.control != "text":
            return self._date(ref, label, shown, str(value), typed, error)
        # A box that was left empty sends nothing.
        empty = "no" if slot.kind == "check" and typed else str(value)
        choices = self.choices(ref, slot, shown, typed.get(ref, empty))
        text = typed.get(ref, _text(slot, value, self.world))
        return Field(
            ref=ref,
            ident=self.aliases.of("id", f"field:{ref}"),
            name=self.aliases.of("field", ref),
            css=self.aliases.of("class", "field"),
            label=label,
            control=shown.control,
            placement=_placement(shown),
            value=self.aliases.of("value", f"{ref}=yes")
            if slot.kind == "check"
            else text,
            choices=choices,
            hint=self._hint(slot),
            error=error,
            required=required,
        )

    def choices(
        self, ref: str, slot: Slot, shown: SlotPlan, chosen: str
    ) -> tuple[Choice, ...]:
        """Return the options of a slot under their aliases."""
        if slot.kind == "check":
            return self._options(ref, [("yes", "yes")], chosen)
        if slot.kind == "number" and shown.control == "select":
            numbers = [(str(n), str(n)) for n in range(slot.least, slot.most + 1)]
            return self._options(ref, numbers, chosen)
        return self._options(ref, [(o.value, o.text) for o in slot.options], chosen)

    def _options(
        self, ref: str, options: Iterable[tuple[str, str]], chosen: str
    ) -> tuple[Choice, ...]:
        return tuple(
            Choice(
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

    def _date(
        self,
        ref: str,
        label: str,
        shown: SlotPlan,
        value: str,
        typed: Mapping[str, str],
        error: str,
    ) -> Field:
        """Return a date in three lists, or as a month with its days."""
        year, month, day = value.split("-") if value else ("", "", "")
        today = int(self.world.spec.today.split("-")[0])
        known = {
            "day": ([(str(n), str(n)) for n in range(1, 32)], day),
            "month": ([(str(i + 1), m) for i, m in enumerate(MONTHS)], month),
            "year": ([(str(today + n), str(today + n)) for n in _YEARS], year),
        }
        parts = tuple(
            self._part(f"{ref}/{part}", part, shown, options, typed, chosen, label)
            for part, (options, chosen) in known.items()
        )
        return Field(
            ref=ref,
            ident=self.aliases.of("id", f"field:{ref}"),
            name=self.aliases.of("field", ref),
            css=self.aliases.of("class", "field"),
            label=label,
            control=shown.control,
            placement="label",
            parts=parts,
            error=error,
        )

    def _part(
        self,
        ref: str,
        part: str,
        shown: SlotPlan,
        options: list[tuple[str, str]],
        typed: Mapping[str, str],
        chosen: str,
        about: str,
    ) -> Field:
        is_days = shown.control == "picker" and part == "day"
        now = typed.get(ref, chosen.lstrip("0"))
        word = self.plan.label(f"part:{part}")  # groups are told apart by their names
        return Field(
            ref=ref,
            ident=self.aliases.of("id", f"field:{ref}"),
            name=self.aliases.of("field", ref),
            css=self.aliases.of("class", "days" if is_days else "part"),
            label=f"{about}: {word}" if is_days else word,
            control="radio" if is_days else "select",
            placement="label",
            choices=self._options(ref, options, now),
        )


def _placement(shown: SlotPlan) -> Placement:
    """Return the placement that a control can have: only typed ones take a placeholder.

    A group of radio buttons is named by its legend, wherever other labels stand.
    """
    if shown.control in ("text", "area"):
        return shown.placement
    if shown.control == "radio":
        return "label"
    return "aria" if shown.placement == "placeholder" else shown.placement


def _text(slot: Slot, value: SiteValue, world: SiteWorld) -> str:
    if value == "":
        return ""
    return show(value, slot.kind, world.plan.dates)
