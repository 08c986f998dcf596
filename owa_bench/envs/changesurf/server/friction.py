"""Friction of a site: simulated times, rate limit, sign-in lifetime, early forms."""

from collections.abc import Mapping

from msgspec.structs import replace

from owa_bench.envs.changesurf.server.forms import slots_on
from owa_bench.envs.changesurf.server.sign_in import SIGN_IN_PAGES
from owa_bench.envs.changesurf.server.state import Draft, SiteState, with_event

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

    Waiting while something is to be waited for, a request that a limit refused, a form
    that came too soon, and what it takes to sign in again.

    Args:
        before: the state before the act.
        after: the state after it.
        waits: whether the act let time pass.

    Returns:
        Whether the act counts as a wait.
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

    Returns:
        The reason, "" if it is taken.
    """
    friction = state.world.plan.friction
    early = early_ms(state)
    if friction.trap and sent.get("sys:trap"):
        return "This looks like a robot. Leave the hidden field empty."
    if friction.once and draft.committed:
        return "This form was sent already."
    if early > 0:
        return f"Too fast. Please send again in {-(-early // 1000)} seconds."
    return ""
