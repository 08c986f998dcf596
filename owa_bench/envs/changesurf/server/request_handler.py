"""Request handler: canonical request and site state in, new site state out."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.envs.changesurf.server.control_factory import ControlFactory
from owa_bench.envs.changesurf.server.forms import read_slots, slots_on, steps
from owa_bench.envs.changesurf.server.state import (
    Database,
    Draft,
    Query,
    RequestResult,
    SiteState,
    at_page,
    with_breach,
    with_event,
)
from owa_bench.worlds.site import SignIn, SiteWorld
from owa_bench.worlds.site_spec import SiteValue, Workflow

REQUEST_MS = 200  # simulated time of a reply
ACT_MS = 400  # simulated time of one input
_SIGN_IN = ("login", "login2", "passport", "return")
_OPEN = (*_SIGN_IN, "mail", "decoy", "missing", "home", "done")
_FLOW = ("start", "flow", "offer", "review", "done")
_SECRET = 8  # characters from which a value can be told from other text


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

    Args:
        state: the state before.
        request: the request.
        factory: signs the steps of forms.
        database: takes what a commit writes.

    Returns:
        The state after, and where to go.
    """
    took = REQUEST_MS + state.world.plan.friction.slow_ms
    state = replace(state, now_ms=state.now_ms + took)
    page, query = request.page, request.query
    if _is_limited(state):
        state = with_event(state, "limited", page=page)
        state = replace(state, page="limited", pending_query=query, retry=page)
        return RequestResult(state)
    state = _count(state)
    for ref in request.stray:
        state = with_breach(state, "stale_selector", f"{page}: {ref}")
    kind = page.partition(":")[0]
    if _must_sign_in(state, kind):
        state = with_event(state, "sign_in_asked", page=page)
        state = replace(state, pending_query=query, pending=page)
        return RequestResult(state, "login")
    if kind in _SIGN_IN:
        return _sign_in(state, request)
    if kind in _FLOW:
        return _work(state, request, factory, database)
    if page == "decoy":
        state = with_breach(state, "stale_selector", f"pressed on {state.page}")
    return RequestResult(at_page(with_event(state, "view", page=page), page, query))


def in_world(state: SiteState, world: SiteWorld) -> SiteState:
    """Apply a drift event in the middle of a visit.

    A draft stays, at the first step of its new path; the open page becomes stale.

    Args:
        state: the state before.
        world: the world from now on.

    Returns:
        The state after.
    """
    draft = state.draft
    if draft is not None and not draft.committed:
        draft = replace(draft, step=0)
    return replace(state, world=world, draft=draft, stale=True)


def _is_limited(state: SiteState) -> bool:
    friction = state.world.plan.friction
    if not friction.requests or state.now_ms >= state.window_ms + friction.window_ms:
        return False
    return state.window_used >= friction.requests


def _count(state: SiteState) -> SiteState:
    """Count a request in the rate limit's window and in the sign-in's lifetime."""
    is_new = state.now_ms >= state.window_ms + state.world.plan.friction.window_ms
    state = replace(
        state,
        window_ms=state.now_ms if is_new else state.window_ms,
        window_used=1 if is_new else state.window_used + 1,
        signed_requests=state.signed_requests + state.signed_in,
    )
    expires = state.world.plan.auth.expires
    if state.signed_in and expires and state.signed_requests > expires:
        state = with_event(replace(state, signed_in=False, sign_in=""), "expired")
    return state


# --- sign-in --------------------------------------------------------------------------


def credentials(auth: SignIn) -> tuple[tuple[str, str], ...]:
    """Return what the visitor is given to sign in with, former passwords too."""
    if auth.kind == "none":
        return ()
    given = [("User name", auth.user)]
    for i, password in enumerate((*auth.former, auth.password), 1):
        given.append(("Password" if i == 1 else f"Password, issue {i}", password))
    if auth.kind == "one_time":
        given.append(("One-time code", auth.code))
    return tuple(given)


def secrets(auths: Iterable[SignIn]) -> Iterator[tuple[str, str]]:
    """Yield name and value of what no record may hold.

    Each value has a name of its own, by which a replay puts it back.
    """
    each = tuple(auths)
    for name, values in (
        ("password", dict.fromkeys(auth.password for auth in each)),
        ("code", dict.fromkeys(auth.code for auth in each)),
    ):
        for i, value in enumerate(values):
            if len(value) >= _SECRET:
                yield (f"{name}:{i}" if i else name), value


def _must_sign_in(state: SiteState, kind: str) -> bool:
    auth = state.world.plan.auth
    if auth.kind == "none" or state.signed_in or kind in _OPEN:
        return False
    return kind in _FLOW or auth.early


def _sign_in(state: SiteState, request: SiteRequest) -> RequestResult:
    """Handle a request to one of the sign-in pages."""
    auth, page = state.world.plan.auth, request.page
    if page == "return":
        if state.sign_in == "partner":
            return _signed_in(state)
        return RequestResult(state, "login")
    if page == "login2" and state.sign_in not in ("password", "code"):
        return RequestResult(state, "login")
    if request.method == "GET":
        return RequestResult(at_page(state, page))
    if page == "login2":
        refusal, following = _second_step(state, auth, request)
    else:
        refusal, following = _first_step(auth, request)
    if refusal:
        state = with_event(at_page(state, page), "sign_in_failed")
        return RequestResult(replace(state, notice=refusal))
    if following is None:
        return _signed_in(state)
    step, go_to = following
    return RequestResult(replace(state, sign_in=step), go_to)


_Answer = tuple[str, tuple[str, str] | None]  # a refusal; the next step and its page


def _first_step(auth: SignIn, request: SiteRequest) -> _Answer:
    if request.sent.get("sys:user", "").strip() != auth.user:
        return "This user name is not known.", None
    if auth.kind in ("two_step", "mailbox"):
        return "", ("password" if auth.kind == "two_step" else "code", "login2")
    refusal = _password_refusal(auth, request)
    if auth.kind == "one_time":
        return refusal, ("code", "login2")
    return refusal, ("partner", "return") if request.page == "passport" else None


def _second_step(state: SiteState, auth: SignIn, request: SiteRequest) -> _Answer:
    if state.sign_in != "code":
        return _password_refusal(auth, request), None
    is_right = request.sent.get("sys:code", "").strip() == auth.code
    return "" if is_right else "This code is not right.", None


def _password_refusal(auth: SignIn, request: SiteRequest) -> str:
    password = request.sent.get("sys:password", "")
    if password == auth.password:
        return ""
    if password in auth.former:
        return "This password was replaced. Use the one issued last."
    return "The password is not right."


def _signed_in(state: SiteState) -> RequestResult:
    go_to = state.pending or "home"
    state = with_event(state, "signed_in")
    state = replace(state, signed_in=True, signed_requests=0, sign_in="", pending="")
    return RequestResult(state, go_to)


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
    return RequestResult(with_event(at_page(state, request.page), "view"))


def _begin(state: SiteState, workflow: Workflow, record: SiteValue) -> RequestResult:
    """Start a draft at its first step; an older one is given up."""
    if bool(record) != bool(workflow.record):
        return RequestResult(at_page(state, "missing"))
    number = state.drafts + 1
    draft = Draft(number=number, workflow=workflow.key, record=record)
    state = replace(state, draft=draft, drafts=number)
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
    refusal = _friction(state, draft, request)
    if refusal:
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


def _friction(state: SiteState, draft: Draft, request: SiteRequest) -> str:
    """Return why a form is not taken whatever it holds, "" if it is."""
    friction = state.world.plan.friction
    early = state.served_ms + friction.least_ms - state.now_ms
    if friction.trap and request.sent.get("sys:trap"):
        return "This looks like a robot. Leave the hidden field empty."
    if friction.once and draft.committed:
        return "This form was sent already."
    if early > 0:
        return f"Too fast. Please send again in {-(-early // 1000)} seconds."
    return ""


def _refused(
    state: SiteState, request: SiteRequest, errors: Mapping[str, str], notice: str
) -> RequestResult:
    """Show the same page again, with what is wrong and what was typed."""
    if request.sent.get("sys:trap"):
        state = with_breach(state, "trap", request.page)
    state = with_event(state, "refused", notice, *errors.values(), page=request.page)
    typed = ((k, v) for k, v in request.sent.items() if not k.startswith("sys:"))
    state = replace(
        state,
        page=request.page,
        errors=tuple(errors.items()),
        notice=notice or "Please look at the fields below.",
        typed=tuple(typed),
    )
    return RequestResult(state)
