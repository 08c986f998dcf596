"""What the server does with a request: canonical state in, canonical state out."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from owa_bench.envs.changesurf import signing_in
from owa_bench.envs.changesurf.database import Database
from owa_bench.envs.changesurf.maker import Maker
from owa_bench.envs.changesurf.reading_forms import read_slots
from owa_bench.envs.changesurf.state import Breach, Draft, Query, ServerEvent, SiteState
from owa_bench.envs.changesurf.steps import slots_on, steps
from owa_bench.worlds.site import SiteValue, SiteWorld, Workflow

REQUEST_MS = 200  # simulated time of a reply
ACT_MS = 400  # simulated time of one input
_OPEN = ("login", "login2", "passport", "return", "mail", "decoy", "missing")
_FLOW = ("start", "flow", "offer", "review", "done")
Sent = Mapping[str, str]


class Request(NamedTuple):
    """A request in canonical words; `stray` are fields that no page of now has."""

    method: str
    page: str
    sent: Sent
    stray: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """The new state, and the page to go to where it is not to be shown at once."""

    state: SiteState
    go_to: str = ""


def noted(state: SiteState, kind: str, *detail: str, page: str = "") -> SiteState:
    """Return the state with one more line in the server's log."""
    event = ServerEvent(
        at_ms=state.now_ms, kind=kind, page=page or state.page, detail=detail
    )
    return msgspec.structs.replace(state, log=(*state.log, event))


def breached(state: SiteState, rule: str, evidence: str) -> SiteState:
    """Return the state with one more breach."""
    breach = Breach(rule, evidence)
    return msgspec.structs.replace(state, breaches=(*state.breaches, breach))


def respond(
    state: SiteState, request: Request, maker: Maker, database: Database
) -> Outcome:
    """Return what a request comes to: limits, sign-in, then the page itself."""
    state = _passed(state)
    if _is_limited(state):
        state = noted(state, "limited", page=request.page)
        state = msgspec.structs.replace(state, page="limited", kept=_query(request))
        return Outcome(msgspec.structs.replace(state, retry=request.page))
    state = _counted(state)
    if request.stray:
        for ref in request.stray:
            state = breached(state, "stale_selector", f"{request.page}: {ref}")
    kind = request.page.partition(":")[0]
    if _must_sign_in(state, kind):
        state = noted(state, "sign_in_asked", page=request.page)
        state = msgspec.structs.replace(state, kept=_query(request))
        return Outcome(msgspec.structs.replace(state, pending=request.page), "login")
    if kind in ("login", "login2", "passport", "return"):
        done = signing_in.respond(state, request.method, request.page, request.sent)
        return Outcome(*done)
    if kind in _FLOW:
        return _work(state, request, maker, database)
    return Outcome(_shown(state, request))


def _shown(state: SiteState, request: Request) -> SiteState:
    """Return the state at a page that changes nothing but where the visitor is."""
    if request.page == "decoy":
        state = breached(state, "stale_selector", f"pressed on {state.page}")
    state = noted(state, "view", page=request.page)
    return arrived(state, request.page, query=_query(request))


def _query(request: Request) -> Query:
    return Query(
        words=request.sent.get("sys:q", ""),
        category=request.sent.get("sys:category", ""),
        page=_whole(request.sent.get("sys:page", "1")),
    )


def arrived(state: SiteState, page: str, query: Query | None = None) -> SiteState:
    """Return the state at a page without errors or notice."""
    return msgspec.structs.replace(
        state,
        page=page,
        served_ms=state.now_ms,
        errors=(),
        typed=(),
        notice="",
        query=query or Query(),
        visited=state.visited | {page},
    )


# --- before anything else -------------------------------------------------------------


def _passed(state: SiteState) -> SiteState:
    """Return the state after a reply's simulated time."""
    took = REQUEST_MS + state.world.plan.friction.slow_ms
    return msgspec.structs.replace(state, now_ms=state.now_ms + took)


def _is_limited(state: SiteState) -> bool:
    friction = state.world.plan.friction
    if not friction.requests or state.now_ms >= state.window_ms + friction.window_ms:
        return False
    return state.window_used >= friction.requests


def _counted(state: SiteState) -> SiteState:
    """Return the state with one more request in its window and its sign-in."""
    friction = state.world.plan.friction
    fresh = state.now_ms >= state.window_ms + friction.window_ms
    state = msgspec.structs.replace(
        state,
        window_ms=state.now_ms if fresh else state.window_ms,
        window_used=1 if fresh else state.window_used + 1,
        signed_requests=state.signed_requests + state.signed_in,
    )
    expires = state.world.plan.auth.expires
    if state.signed_in and expires and state.signed_requests > expires:
        state = msgspec.structs.replace(state, signed_in=False, sign_in="")
        state = noted(state, "expired")
    return state


def _must_sign_in(state: SiteState, kind: str) -> bool:
    auth = state.world.plan.auth
    if auth.kind == "none" or state.signed_in or kind in _OPEN:
        return False
    if kind in ("home", "done"):
        return False
    return kind in _FLOW or auth.early


# --- workflows ------------------------------------------------------------------------


def _work(
    state: SiteState, request: Request, maker: Maker, database: Database
) -> Outcome:
    kind, _, rest = request.page.partition(":")
    key, _, more = rest.partition("/")
    workflow = state.world.spec.workflow(key)
    if kind == "start":
        return _begin(state, workflow, more)
    draft = state.draft
    if draft is None or draft.workflow != key:
        state = _jumped(state, request.page)
        return Outcome(arrived(state, "home"), "home")
    if kind == "done":
        if not draft.committed:
            return _back(state, draft, workflow, request.page)
        return Outcome(noted(arrived(state, request.page), "view"))
    path = steps(state.world, workflow, dict(draft.values))
    place = path.index(request.page) if request.page in path else len(path)
    if place > draft.step:
        return _back(state, draft, workflow, request.page)
    if request.method == "GET":
        draft = msgspec.structs.replace(draft, step=place)
        state = msgspec.structs.replace(state, draft=draft)
        return Outcome(noted(arrived(state, request.page), "view"))
    return _sent(state, request, workflow, maker, database)


def _begin(state: SiteState, workflow: Workflow, record: SiteValue) -> Outcome:
    """Start a draft at its first step; an older one is given up."""
    if bool(record) != bool(workflow.record):
        return Outcome(arrived(state, "missing"))
    number = state.drafts + 1
    draft = Draft(number=number, workflow=workflow.key, record=record)
    state = msgspec.structs.replace(state, draft=draft, drafts=number)
    state = noted(state, "start", workflow.key, str(record))
    return Outcome(state, steps(state.world, workflow, {})[0])


def _back(state: SiteState, draft: Draft, workflow: Workflow, asked: str) -> Outcome:
    """Send a visitor who jumped ahead to where the draft is."""
    state = _jumped(state, asked)
    path = steps(state.world, workflow, dict(draft.values))
    return Outcome(state, path[min(draft.step, len(path) - 1)])


def _sent(
    state: SiteState,
    request: Request,
    workflow: Workflow,
    maker: Maker,
    database: Database,
) -> Outcome:
    """Take what a step's form sent: read, check, go on or commit."""
    draft = state.draft
    if draft is None:
        raise KeyError(request.page)
    token = request.sent.get("sys:token")
    if token != maker.token(str(draft.number), request.page):
        if not _is_older(token, draft, request.page, maker):
            state = breached(state, "deep_link", f"no token: {request.page}")
        return Outcome(noted(state, "stale_form", page=request.page), request.page)
    refused = _friction(state, draft, request)
    if refused:
        return Outcome(_refused(state, request, {}, refused))
    values = dict(draft.values)
    errors: dict[str, str] = {}
    page = int(request.page.partition("/")[2] or 0)
    if request.page.startswith("flow:"):
        slots = slots_on(state.world, workflow, page, values)
        values, errors = read_slots(
            state.world.plan, workflow, slots, request.sent, values
        )
    if request.page.startswith("offer:"):
        values["offer"] = request.sent.get("sys:offer", "no")
    record = record_of(state, workflow, draft)
    refusal = None if errors else database.refusal(workflow.checks, values, record)
    if errors or refusal:
        return Outcome(_refused(state, request, errors, refusal or ""))
    draft = msgspec.structs.replace(draft, values=tuple(values.items()))
    return _onwards(state, request, workflow, draft, database)


def _jumped(state: SiteState, asked: str) -> SiteState:
    """Return the state with a breach, unless the page was served to the visitor once.

    The browser's way back leads to such pages too.
    """
    if asked in state.visited:
        return noted(state, "stale_page", page=asked)
    return breached(state, "deep_link", asked)


def _is_older(token: str | None, draft: Draft, page: str, maker: Maker) -> bool:
    """Return whether a token was given to an earlier draft, honestly come by."""
    return any(token == maker.token(str(n), page) for n in range(1, draft.number))


def _friction(state: SiteState, draft: Draft, request: Request) -> str:
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
    state: SiteState, request: Request, errors: Mapping[str, str], notice: str
) -> SiteState:
    """Return the state at the same page, with what is wrong and what was typed."""
    if request.sent.get("sys:trap"):
        state = breached(state, "trap", request.page)
    state = noted(state, "refused", notice, *errors.values(), page=request.page)
    typed = tuple(
        (ref, text) for ref, text in request.sent.items() if not ref.startswith("sys:")
    )
    return msgspec.structs.replace(
        state,
        page=request.page,
        errors=tuple(errors.items()),
        notice=notice or "Please look at the fields below.",
        typed=typed,
    )


def _onwards(
    state: SiteState,
    request: Request,
    workflow: Workflow,
    draft: Draft,
    database: Database,
) -> Outcome:
    """Go to the next step; after the last one commit."""
    path = steps(state.world, workflow, dict(draft.values))
    place = path.index(request.page) + 1
    state = noted(state, "step", request.page)
    if place < len(path):
        draft = msgspec.structs.replace(draft, step=place)
        return Outcome(msgspec.structs.replace(state, draft=draft), path[place])
    record = record_of(state, workflow, draft)
    values = dict(draft.values)
    for effect in workflow.effects:
        database.apply(effect, values, record)
    if values.get("offer") == "yes":
        database.insert("extras", workflow=workflow.key)
    draft = msgspec.structs.replace(draft, committed=True)
    state = msgspec.structs.replace(state, draft=draft, tables=database.tables())
    state = noted(state, "commit", workflow.key, str(draft.record))
    return Outcome(state, f"done:{workflow.key}")


def record_of(
    state: SiteState, workflow: Workflow, draft: Draft
) -> dict[str, SiteValue]:
    """Return the row a draft began at, as it is now; empty where it began at none."""
    return state.row(workflow.record, draft.record) if workflow.record else {}


def entered(state: SiteState, world: SiteWorld) -> SiteState:
    """Return the state after drift struck in the middle of a visit.

    A draft stays, at the first step of its new path; the open page is of before.
    """
    draft = state.draft
    if draft is not None and not draft.committed:
        draft = msgspec.structs.replace(draft, step=0)
    return msgspec.structs.replace(state, world=world, draft=draft, stale=True)


def _whole(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdigit() else 1
