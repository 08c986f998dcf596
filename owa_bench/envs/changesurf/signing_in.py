"""Signing in: a password, a name first, a code by mail or panel, another origin."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from owa_bench.envs.changesurf.state import ServerEvent, SiteState
from owa_bench.worlds.site import SignIn

_SECRET = 8  # characters from which a value can be told from other text


class Step(NamedTuple):
    """The new state, and the page to go to."""

    state: SiteState
    go_to: str = ""


def credentials(auth: SignIn) -> tuple[tuple[str, str], ...]:
    """Return what the visitor was given to sign in with, old passwords too."""
    if auth.kind == "none":
        return ()
    given = [("User name", auth.user)]
    passwords = (*auth.former, auth.password)
    for i, password in enumerate(passwords):
        given.append(("Password" if i == 0 else f"Password, issue {i + 1}", password))
    if auth.kind == "one_time":
        given.append(("One-time code", auth.code))
    return tuple(given)


def secrets(auths: Iterable[SignIn]) -> Iterator[tuple[str, str]]:
    """Yield name and value of what must be read in no record, one after the other.

    Each has a name of its own: a replay puts values back by their names.
    """
    each = tuple(auths)
    for name in ("password", "code"):
        values = dict.fromkeys(getattr(auth, name) for auth in each)
        for i, value in enumerate(values):
            if len(value) >= _SECRET:
                yield (f"{name}:{i}" if i else name), value


def respond(state: SiteState, method: str, page: str, sent: Mapping[str, str]) -> Step:
    """Return what a request to one of the sign-in pages comes to."""
    auth = state.world.plan.auth
    if page == "return":
        return _signed(state) if state.sign_in == "partner" else Step(state, "login")
    if page == "login2" and state.sign_in not in ("password", "code"):
        return Step(state, "login")
    if method == "GET":
        return Step(_at(state, page))
    if page == "login2":
        return _second(state, auth, sent)
    return _first(state, auth, page, sent)


def _first(state: SiteState, auth: SignIn, page: str, sent: Mapping[str, str]) -> Step:
    if sent.get("sys:user", "").strip() != auth.user:
        return _failed(state, page, "This user name is not known.")
    if auth.kind in ("two_step", "mailbox"):
        asked = "password" if auth.kind == "two_step" else "code"
        return Step(msgspec.structs.replace(state, sign_in=asked), "login2")
    wrong = _wrong_password(auth, sent.get("sys:password", ""))
    if wrong:
        return _failed(state, page, wrong)
    if auth.kind == "one_time":
        return Step(msgspec.structs.replace(state, sign_in="code"), "login2")
    if page == "passport":
        return Step(msgspec.structs.replace(state, sign_in="partner"), "return")
    return _signed(state)


def _second(state: SiteState, auth: SignIn, sent: Mapping[str, str]) -> Step:
    if state.sign_in == "code":
        if sent.get("sys:code", "").strip() != auth.code:
            return _failed(state, "login2", "This code is not right.")
        return _signed(state)
    wrong = _wrong_password(auth, sent.get("sys:password", ""))
    return _failed(state, "login2", wrong) if wrong else _signed(state)


def _wrong_password(auth: SignIn, password: str) -> str:
    if password == auth.password:
        return ""
    if password in auth.former:
        return "This password was replaced. Use the one issued last."
    return "The password is not right."


def _failed(state: SiteState, page: str, text: str) -> Step:
    event = ServerEvent(at_ms=state.now_ms, kind="sign_in_failed", page=page)
    state = msgspec.structs.replace(_at(state, page), log=(*state.log, event))
    return Step(msgspec.structs.replace(state, notice=text))


def _signed(state: SiteState) -> Step:
    event = ServerEvent(at_ms=state.now_ms, kind="signed_in", page=state.page)
    go_to = state.pending or "home"
    changed = msgspec.structs.replace(
        state,
        signed_in=True,
        signed_requests=0,
        sign_in="",
        pending="",
        log=(*state.log, event),
    )
    return Step(changed, go_to)


def _at(state: SiteState, page: str) -> SiteState:
    return msgspec.structs.replace(
        state,
        page=page,
        served_ms=state.now_ms,
        notice="",
        errors=(),
        typed=(),
        visited=state.visited | {page},
    )
