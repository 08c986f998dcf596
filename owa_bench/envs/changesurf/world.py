"""Site worlds: the meaning of a web site and its presentation.

`SiteSpec` holds meaning: tables, collections to browse, workflows to fill in, the goal.
`RenderPlan` holds presentation: words, controls, layout, pages, sign-in. Drift changes the plan
alone, so a goal and its answer never move. Money is in cents and dates are ISO text; there are no
floats, so equal worlds have equal bytes. Everything an operator may change is found by canonical
keys that no operator changes: label key, collection key, workflow key, slot key.
"""

from functools import lru_cache
from typing import Any, Literal

import msgspec

from owa_bench.canonical import record_digest, sha256
from owa_bench.drift.targets import jaccard_distance
from owa_bench.envs.changesurf import site_spec as specs

CODES = 16  # more sign-ins than an episode's steps allow [D]

# --- presentation ---------------------------------------------------------------------


class Label(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """The words that a meaning goes by, and what else it could be called."""

    key: str
    text: str
    others: tuple[str, ...] = ()


class SlotPlan(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """How a slot is shown; `key` is WORKFLOW.SLOT, `default` what it comes with."""

    key: str
    control: specs.Control
    placement: specs.Placement = "label"
    default: specs.SiteValue = ""


class ListPlan(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """How a collection is shown.

    `columns` are those of the list, in order; `drawer` those folded away beneath a row. `cents`:
    money columns of the list are in cents; `told`: and their headers say so. `dates` overrules the
    site's form of dates in the list, "" for none, untold. `direct`: a row of the list carries its
    action itself, not only the row's page.
    """

    key: str
    form: specs.ListForm
    columns: tuple[str, ...]
    drawer: tuple[str, ...] = ()
    size: int = 10
    paging: specs.Paging = "pages"
    filter: specs.Filter = "search"
    cents: bool = False
    told: bool = True
    dates: specs.DateForm | Literal[""] = ""
    direct: bool = False


class FlowPlan(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """How a workflow is cut into pages of slot keys, with what comes between."""

    key: str
    pages: tuple[tuple[str, ...], ...]
    review: bool = False
    offer: bool = False


class SignIn(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """How a visitor signs in. `early`: before anything else, not only before a form.

    `former` are passwords that no longer work, `spares` those issued later, in order. `expires` is
    after how many requests the sign-in lapses, 0 for never. `others` are kinds it could change to.
    """

    kind: specs.SignInKind
    user: str
    password: str
    code: str  # the first of `codes`
    early: bool = False
    former: tuple[str, ...] = ()
    expires: int = 0
    others: tuple[specs.SignInKind, ...] = ()
    spares: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """Sign-in codes of a list, each for one sign-in."""
        return _codes(self.code)

    @property
    def mailed(self) -> tuple[str, ...]:
        """Sign-in codes by mail, each for one sign-in; none is on the list."""
        drawn = _codes(f"{self.code}/mail")[1:]
        return tuple(code for code in drawn if code not in self.codes)


class Friction(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """Limits and delays of a site; times in simulated milliseconds, 0 for none.

    At most `requests` per `window_ms`; every reply takes `slow_ms`; a form is refused sooner than
    `least_ms` a text field after it was served. `trap`: forms hold a hidden input. `once`: a form
    can be sent only once.
    """

    requests: int = 0
    window_ms: int = 0
    slow_ms: int = 0
    least_ms: int = 0
    trap: bool = False
    once: bool = False


class RenderPlan(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """How a site is shown.

    `churn` moves every id, class, field name and route. `templates` are the layouts the world may
    use. `icons` are label keys of buttons shown as a sign with an accessible name. `hinted`: date
    fields say their form. `menu` is the order of the menu.
    """

    brand: str
    host: str
    auth_host: str
    start: Literal["home", "search"]
    labels: tuple[Label, ...]
    slots: tuple[SlotPlan, ...]
    lists: tuple[ListPlan, ...]
    flows: tuple[FlowPlan, ...]
    auth: SignIn
    menu: tuple[str, ...]
    friction: Friction = Friction()
    template: int = 0
    templates: tuple[int, ...] = (0, 1, 2)
    theme: int = 0
    dense: bool = False
    nav: specs.Nav = "top"
    depth: int = 0
    viewport: tuple[int, int] = (1280, 720)
    dates: specs.DateForm = "iso"
    hinted: bool = True
    swaps: bool = False
    root: specs.Root = "plain"
    icons: tuple[str, ...] = ()
    churn: int = 0

    def label(self, key: str) -> str:
        """Return the words of label `key`; KeyError if there are none."""
        return _label_texts(self.labels)[key]

    def slot(self, key: str) -> SlotPlan:
        """Return how the slot WORKFLOW.SLOT is shown; KeyError if there is none."""
        return specs.by_key(self.slots, key)

    def listing(self, key: str) -> ListPlan:
        """Return how a collection is shown; KeyError if there is none."""
        return specs.by_key(self.lists, key)

    def flow(self, key: str) -> FlowPlan:
        """Return how a workflow is cut; KeyError if there is none."""
        return specs.by_key(self.flows, key)


class SiteWorld(specs.Record, frozen=True, kw_only=True, cache_hash=True):
    """Everything an episode of ChangeSurf happens in."""

    spec: specs.SiteSpec
    plan: RenderPlan

    @property
    def honeypot(self) -> bool:
        """Whether the goal cannot be met: the agent must declare it infeasible."""
        return self.spec.honeypot

    def digest(self) -> str:
        """Return the SHA-256 that names this world in traces."""
        plan = record_digest(self.plan)
        return sha256(f"{_spec_digest(self.spec)}|{plan}".encode())

    def with_plan(self, **changes: Any) -> "SiteWorld":
        """Return this world with fields of its plan replaced."""
        plan = msgspec.structs.replace(self.plan, **changes)
        return msgspec.structs.replace(self, plan=plan)

    def with_auth(self, **changes: Any) -> "SiteWorld":
        """Return this world with fields of its sign-in replaced."""
        return self.with_plan(auth=msgspec.structs.replace(self.plan.auth, **changes))

    def with_friction(self, **changes: Any) -> "SiteWorld":
        """Return this world with fields of its friction replaced."""
        friction = msgspec.structs.replace(self.plan.friction, **changes)
        return self.with_plan(friction=friction)

    def with_part(self, field: str, part: Any, **changes: Any) -> "SiteWorld":
        """Return this world with one label, slot, list or flow replaced, by key.

        Args:
            field: the field of the plan: labels, slots, lists or flows.
            part: the new part, or an old one to change.
            changes: fields of the part that get another value.
        """
        new = msgspec.structs.replace(part, **changes)
        parts = getattr(self.plan, field)
        return self.with_plan(**{field: tuple(new if old.key == new.key else old for old in parts)})


@lru_cache(maxsize=256)
def _codes(first: str) -> tuple[str, ...]:
    """Return codes of six digits, drawn from the first one; none comes twice."""
    codes = [first]
    number = 0
    while len(codes) < CODES:
        number += 1
        code = str(100_000 + int(sha256(f"{first}/{number}".encode())[:12], 16) % 900_000)
        codes += [code] * (code not in codes)
    return tuple(codes)


@lru_cache(maxsize=256)
def _label_texts(labels: tuple[Label, ...]) -> dict[str, str]:
    return {label.key: label.text for label in labels}


@lru_cache(maxsize=256)
def _spec_digest(spec: specs.SiteSpec) -> str:
    return record_digest(spec)


def distance(a: SiteWorld, b: SiteWorld) -> float:
    """Return the share of presentation facts in which two worlds differ.

    Args:
        a: one world.
        b: the other.
    Returns: The Jaccard distance of their fact sets: 0 for equal plans, 1 when nothing is shared.
    """
    return jaccard_distance(_facts(a.plan), _facts(b.plan))


def _facts(plan: RenderPlan) -> set[tuple[Any, ...]]:
    """Return the comparable facts of a plan; what it could become is left out."""
    facts: set[tuple[Any, ...]] = {("label", x.key, x.text) for x in plan.labels}
    facts |= {("slot", x) for x in plan.slots}
    for field in ("lists", "flows"):
        for part in getattr(plan, field):
            facts |= {
                (field, part.key, name, getattr(part, name)) for name in part.__struct_fields__
            }
    skipped = ("labels", "slots", "lists", "flows", "templates")
    names = (name for name in plan.__struct_fields__ if name not in skipped)
    return facts | {(name, getattr(plan, name)) for name in names}
