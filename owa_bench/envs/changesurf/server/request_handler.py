"""Request handler: canonical request and site state in, new site state out."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.envs.changesurf.server.control_factory import ControlFactory
from owa_bench.envs.changesurf.server.forms import read_slots, slots_on, steps
from owa_bench.envs.changesurf.server.sign_in import (
    REQUEST_MS,
    SIGN_IN_PAGES,
    count_request,
    early_ms,
    form_refusal,
    is_limited,
    sign_in,
)
from owa_bench.envs.changesurf.server.state import (
    Database,
    Draft,
    Hold,
    Query,
    RequestResult,
    SiteState,
    at_page,
    with_breach,
    with_event,
)
from owa_bench.envs.changesurf.site_spec import SiteValue, Workflow
from owa_bench.envs.changesurf.world import SiteWorld

_OPEN = (*SIGN_IN_PAGES, "mail", "decoy", "missing", "home", "done")
_FLOW = ("start", "flow", "offer", "review", "done")


class SiteRequest(NamedTuple):
    """A request in canonical words; `stray` are fields that no page has any more."""

    method: str
    page: str
    sent: Mapping[str, str]
    stray: tuple[str, ...] = ()

    @property
    def query(self) -> Query:
        """What is asked of a list."""
        number = self.sent.get("sys:page", "1")
        return Query(
            words=self.sent.get("sys:q", ""),
            category=self.sent.get("sys:category", ""),
            page=max(1, int(number)) if number.isascii() and number.isdigit() else 1,
        )


def respond(
    state: SiteState, request: SiteRequest, factory: ControlFactory, database: Database
) -> RequestResult:
    """Handle a request: rate limit, sign-in, then the page itself.

    What the browser is sent on to counts as one request with what sent it there.

    Args:
        state: the state before.
        request: the request.
        factory: signs the steps of forms.
        database: takes what a commit writes.
    Returns: The state after, and where to go.
    """
    took = REQUEST_MS + state.world.plan.friction.slow_ms
    state = replace(state, now_ms=state.now_ms + took)
    page, query = request.page, request.query
    is_following = request.method == "GET" and state.following == page
    state = replace(state, following="", hold=_lasting(state.hold))
    if not is_following:
        if is_limited(state):
            state = with_event(_keeping(state, request), "limited", page=page)
            state = replace(state, page="limited", retry_query=query, retry=page)
            return RequestResult(replace(state, hold="limited"))
        state = count_request(state)
    for ref in request.stray:
        state = with_breach(state, "stale_selector", f"{page}: {ref}")
    kind = page.partition(":")[0]
    if _must_sign_in(state, kind):
        state = with_event(_keeping(state, request), "sign_in_asked", page=page)
        state = replace(state, pending_query=query, pending=page)
        return RequestResult(state, "login")
    if kind in SIGN_IN_PAGES:
        return sign_in(state, page, request.method, request.sent)
    if kind in _FLOW:
        return _work(state, request, factory, database)
    if page == "mail":
        state = replace(state, codes_read=state.codes_sent)
    if page == "decoy":
        state = with_breach(state, "stale_selector", f"pressed on {state.page}")
    return RequestResult(at_page(with_event(state, "view", page=page), page, query))


def _lasting(hold: Hold) -> Hold:
    """Return what still holds the visitor up when the next request comes."""
    return "lapsed" if hold == "lapsed" else ""


def _keeping(state: SiteState, request: SiteRequest) -> SiteState:
    """Keep what a form holds that cannot be taken now: it comes back filled in."""
    if request.method != "POST" or not request.page.startswith("flow:"):
        return state
    return replace(state, kept=(request.page, _contents(request)))


def _contents(request: SiteRequest) -> tuple[tuple[str, str], ...]:
    """Return what a form sent by canonical reference, without the site's own fields."""
    return tuple((k, v) for k, v in request.sent.items() if not k.startswith("sys:"))


def _must_sign_in(state: SiteState, kind: str) -> bool:
    auth = state.world.plan.auth
    if auth.kind == "none" or state.signed_in or kind in _OPEN:
        return False
    return kind in _FLOW or auth.early


def in_world(state: SiteState, world: SiteWorld) -> SiteState:
    """Apply a drift event in the middle of a visit.

    A draft stays, at the first step of its new path; the open page becomes stale.

    Args:
        state: the state before.
        world: the world from now on.
    Returns: The state after.
    """
    draft = state.draft
    if draft is not None and not draft.committed:
        draft = replace(draft, step=0)
    return replace(state, world=world, draft=draft, stale=True)


# --- workflows ------------------------------------------------------------------------


def _work(
    state: SiteState, request: SiteRequest, factory: ControlFactory, database: Database
) -> RequestResult:
    kind, _, rest = request.page.partition(":")
    key, _, more = rest.partition("/")
    workflow = state.world.spec.workflow(key)
    if kind == "start":
        return _begin(state, workflow, more)
    draft = state.draft
    if draft is None or draft.workflow != key:
        return RequestResult(at_page(_jumped(state, request.page), "home"), "home")
    path = steps(state.world, workflow, dict(draft.values))
    place = path.index(request.page) if request.page in path else len(path)
    allowed = draft.committed if kind == "done" else place <= draft.step
    if not allowed:  # ahead of the draft: back to where it is
        state = _jumped(state, request.page)
        return RequestResult(state, path[min(draft.step, len(path) - 1)])
    if kind != "done" and request.method != "GET":
        return _submit(state, draft, request, factory, database)
    if kind != "done":
        state = replace(state, draft=replace(draft, step=place))
    state = with_event(at_page(state, request.page), "view")
    page, typed = state.kept
    if page == request.page:
        state = replace(state, typed=typed, kept=("", ()))
    return RequestResult(state)


def _begin(state: SiteState, workflow: Workflow, record: SiteValue) -> RequestResult:
    """Start a draft at its first step; an older one is given up."""
    if bool(record) != bool(workflow.record):
        return RequestResult(at_page(state, "missing"))
    number = state.drafts + 1
    draft = Draft(number=number, workflow=workflow.key, record=record)
    state = replace(state, draft=draft, drafts=number, kept=("", ()))
    state = with_event(state, "start", workflow.key, str(record))
    return RequestResult(state, steps(state.world, workflow, {})[0])


def _jumped(state: SiteState, asked: str) -> SiteState:
    """Record a jump ahead: a breach, unless the page was served to the visitor before.

    The browser's way back leads to such pages too.
    """
    if asked in state.visited:
        return with_event(state, "stale_page", page=asked)
    return with_breach(state, "deep_link", asked)


def _submit(
    state: SiteState,
    draft: Draft,
    request: SiteRequest,
    factory: ControlFactory,
    database: Database,
) -> RequestResult:
    """Take what a step's form sent: parse, check, go on or commit."""
    page = request.page
    workflow = state.world.spec.workflow(draft.workflow)
    token = request.sent.get("sys:token")
    if token != factory.token(str(draft.number), page):
        older = [factory.token(str(n), page) for n in range(1, draft.number)]
        if token not in older:  # one of an earlier draft is honest
            state = with_breach(state, "deep_link", f"no token: {page}")
        return RequestResult(with_event(state, "stale_form", page=page), page)
    refusal = form_refusal(state, draft, request.sent)
    if refusal:
        state = replace(state, hold="early" if early_ms(state) > 0 else "")
        return _refused(state, request, {}, refusal)
    values = dict(draft.values)
    errors: dict[str, str] = {}
    if page.startswith("flow:"):
        number = int(page.partition("/")[2] or 0)
        slots = slots_on(state.world, workflow, number, values)
        values, errors = read_slots(state.world, workflow, slots, request.sent, values)
    if page.startswith("offer:"):
        values["offer"] = request.sent.get("sys:offer", "no")
    record = state.row(workflow.record, draft.record) if workflow.record else {}
    refusal = "" if errors else database.refusal(workflow.checks, values, record) or ""
    if errors or refusal:
        return _refused(state, request, errors, refusal)
    draft = replace(draft, values=tuple(values.items()))
    path = steps(state.world, workflow, values)
    place = path.index(page) + 1
    state = with_event(state, "step", page)
    if place < len(path):
        draft = replace(draft, step=place)
        return RequestResult(replace(state, draft=draft), path[place])
    return _commit(state, draft, workflow, record, database)


def _commit(
    state: SiteState,
    draft: Draft,
    workflow: Workflow,
    record: Mapping[str, SiteValue],
    database: Database,
) -> RequestResult:
    values = dict(draft.values)
    for effect in workflow.effects:
        database.apply(effect, values, record)
    if values.get("offer") == "yes":
        database.insert("extras", workflow=workflow.key)
    draft = replace(draft, committed=True)
    state = replace(state, draft=draft, tables=database.tables())
    state = with_event(state, "commit", workflow.key, str(draft.record))
    return RequestResult(state, f"done:{workflow.key}")


def _refused(
    state: SiteState, request: SiteRequest, errors: Mapping[str, str], notice: str
) -> RequestResult:
    """Show the same page again, with what is wrong and what was typed."""
    if request.sent.get("sys:trap"):
        state = with_breach(state, "trap", request.page)
    state = with_event(state, "refused", notice, *errors.values(), page=request.page)
    state = replace(
        state,
        page=request.page,
        errors=tuple(errors.items()),
        notice=notice or "Please look at the fields below.",
        typed=_contents(request),
    )
    return RequestResult(state)
