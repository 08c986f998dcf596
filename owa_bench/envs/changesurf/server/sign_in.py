"""Sign-in of a site (credentials, codes, pages) and its friction (times, limits)."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from owa_bench.envs.changesurf.server.forms import slots_on
from owa_bench.envs.changesurf.server.state import (
    Draft,
    RequestResult,
    SiteState,
    at_page,
    with_event,
)
from owa_bench.envs.changesurf.world import CODES, SignIn

SIGN_IN_PAGES = ("login", "login2", "passport", "return")
_SECRET = 8  # characters from which a value can be told from other text


def credentials(auth: SignIn) -> tuple[tuple[str, str], ...]:
    """Return what the visitor is given to sign in with, whatever the site asks for.

    All passwords in the order of their issue and a list of codes: what is given says neither which
    password is in force nor how one signs in.
    """
    if auth.kind == "none":
        return ()
    given = [("User name", auth.user)]
    for i, password in enumerate((*auth.former, auth.password, *auth.spares), 1):
        label = "Password" if i == 1 else f"Password {i}, where the last is refused"
        given.append((label, password))
    given.append(("One-time codes, each for one sign-in", " ".join(auth.codes)))
    return tuple(given)


def sign_in_code(state: SiteState) -> str:
    """Return the code that signs in next: the one mailed last, or the next of the list.

    Args:
        state: the visit.
    Returns: The code; the last one where all were used.
    """
    codes = state.world.plan.auth.codes
    if state.world.plan.auth.kind == "mailbox":
        mailed = state.world.plan.auth.mailed
        return mailed[max(0, state.codes_sent - 1) % len(mailed)]
    unused = (code for code in codes if code not in state.codes_used)
    return next(unused, codes[-1])


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


def sign_in(state: SiteState, page: str, method: str, sent: Mapping[str, str]) -> RequestResult:
    """Handle a request to one of the sign-in pages.

    Args:
        state: the state before.
        page: the page's key.
        method: GET or POST.
        sent: what was sent, by canonical reference.
    Returns: The state after, and where to go.
    """
    auth = state.world.plan.auth
    if page == "return":
        if state.sign_in == "partner":
            return _signed_in(state)
        return RequestResult(state, "login")
    if page == "login2" and state.sign_in not in ("password", "code"):
        return RequestResult(state, "login")
    if method == "GET":
        return RequestResult(at_page(state, page))
    if page == "login2":
        refusal, following = _second_step(state, auth, sent)
    else:
        refusal, following = _first_step(auth, page, sent)
        mailed = auth.kind == "mailbox" and not refusal
        state = replace(state, codes_sent=state.codes_sent + mailed)
    if refusal:
        state = with_event(at_page(state, page), "sign_in_failed")
        return RequestResult(replace(state, notice=refusal))
    if following is None:
        if state.sign_in == "code":
            used = sent.get("sys:code", "").strip()
            known = (*state.codes_used, used)[1 - CODES :]  # one is always free
            state = replace(state, codes_used=known)
        return _signed_in(state)
    step, go_to = following
    return RequestResult(replace(state, sign_in=step), go_to)


_Answer = tuple[str, tuple[str, str] | None]  # a refusal; the next step and its page


def _first_step(auth: SignIn, page: str, sent: Mapping[str, str]) -> _Answer:
    if sent.get("sys:user", "").strip() != auth.user:
        return "This user name is not known.", None
    if auth.kind in ("two_step", "mailbox"):
        return "", ("password" if auth.kind == "two_step" else "code", "login2")
    refusal = _password_refusal(auth, sent)
    if auth.kind == "one_time":
        return refusal, ("code", "login2")
    return refusal, ("partner", "return") if page == "passport" else None


def _second_step(state: SiteState, auth: SignIn, sent: Mapping[str, str]) -> _Answer:
    if state.sign_in != "code":
        return _password_refusal(auth, sent), None
    code = sent.get("sys:code", "").strip()
    right = {sign_in_code(state)}  # by mail: the one sent last
    if auth.kind == "one_time":
        right = {*auth.codes} - {*state.codes_used}
    if code in right:
        return "", None
    if code in state.codes_used:
        return "This code was used before. Each works once.", None
    return "This code is not right.", None


def _password_refusal(auth: SignIn, sent: Mapping[str, str]) -> str:
    password = sent.get("sys:password", "")
    if password == auth.password:
        return ""
    if password in auth.former:
        return "This password was replaced. Use the one issued after it."
    if password in auth.spares:
        return "This password is not in force yet. Use the one issued before it."
    return "The password is not right."


def _signed_in(state: SiteState) -> RequestResult:
    go_to = state.pending or "home"
    state = with_event(state, "signed_in")
    state = replace(state, signed_in=True, signed_requests=0, sign_in="", pending="")
    return RequestResult(replace(state, hold=""), go_to)


REQUEST_MS = 200  # simulated time of a reply
# Simulated times of an input are those of a person (keystroke-level model of Card,
# Moran and Newell, The Psychology of Human-Computer Interaction, 1983, ch. 8): to point
# at a control and press it, and to type a key.
POINT_MS = 1_300
KEY_MS = 200


def act_ms(typed: str = "") -> int:
    """Return the simulated milliseconds of an input that types a text, "" for none."""
    return POINT_MS + KEY_MS * len(typed)


def is_waiting(before: SiteState, after: SiteState, *, waits: bool) -> bool:
    """Return whether friction took an act: it needs patience and no thought.

    Waiting while something is to be waited for, a request that a limit refused, a form that came
    too soon, and what it takes to sign in again.

    Args:
        before: the state before the act.
        after: the state after it.
        waits: whether the act let time pass.
    Returns: Whether the act counts as a wait.
    """
    if waits:
        return before.hold != ""
    if before.hold == "lapsed" and before.page in (*SIGN_IN_PAGES, "mail"):
        return True
    return len(after.log) > len(before.log) and after.hold != ""


def is_limited(state: SiteState) -> bool:
    """Return whether the rate limit refuses the next request."""
    friction = state.world.plan.friction
    if not friction.requests or state.now_ms >= state.window_ms + friction.window_ms:
        return False
    return state.window_used >= friction.requests


def count_request(state: SiteState) -> SiteState:
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
        state = replace(state, signed_in=False, sign_in="", hold="lapsed")
        state = with_event(state, "expired")
    return state


def least_form_ms(state: SiteState) -> int:
    """Return how long after it was served the open form is taken.

    A form without a text field is taken at once: two clicks are quick for anybody.
    """
    least, draft = state.world.plan.friction.least_ms, state.draft
    if not least or draft is None or not state.page.startswith("flow:"):
        return 0
    workflow = state.world.spec.workflow(draft.workflow)
    number = int(state.page.partition("/")[2])
    slots = slots_on(state.world, workflow, number, dict(draft.values))
    controls = (state.world.plan.slot(f"{workflow.key}.{s.key}").control for s in slots)
    return least * sum(control in ("text", "area") for control in controls)


def early_ms(state: SiteState) -> int:
    """Return how much too soon the open form comes back, 0 or less if it does not."""
    return state.served_ms + least_form_ms(state) - state.now_ms


def form_refusal(state: SiteState, draft: Draft, sent: Mapping[str, str]) -> str:
    """Return why a form is not taken whatever it holds.

    Args:
        state: the visit.
        draft: what is being filled in.
        sent: what the form sent, by canonical reference.
    Returns: The reason, "" if it is taken.
    """
    friction = state.world.plan.friction
    early = early_ms(state)
    if friction.trap and sent.get("sys:trap"):
        return (
            "This looks like a robot. The form was not taken. Leave the hidden field "
            "empty: once more disqualifies."
        )
    if friction.once and draft.committed:
        return "This form was sent already."
    if early > 0:
        return f"Too fast. Please send again in {-(-early // 1000)} seconds."
    return ""
