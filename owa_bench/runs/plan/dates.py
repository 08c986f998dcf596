"""Dates of a placement's looks: given by its plan's challenger, or asked of their service."""

from typing import NamedTuple

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import canonical_json, keyed_digest, seal, unseal
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.dated import LookDate, date_path, read_date
from owa_bench.records.layout import DATE_TYPE, LOOK_TYPE, RunLayout
from owa_bench.records.placement import SignedLook, signed_look, signed_looks
from owa_bench.records.witness import challenge_of
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.witness import ask_challenge, ask_verifier
from owa_bench.runs.store.challenge_log import ChallengeLog
from owa_bench.runs.store.date_log import DateLog
from owa_bench.runs.store.files import plan_digest, write_whole


class VerifierService(NamedTuple):
    """A verifier's service (`owa-bench verifier serve`): its address, and who sends requests."""

    url: str
    client: httpx.Client | None = None

    def public(self) -> str:
        """Return the verifier's public key.

        Raises:
            FieldError: `url` is no address.
            CheckFailure: It does not answer, or says no key.
        """
        reply = ask_verifier(self.url, "", None, self.client)
        try:
            return msgspec.json.decode(reply, type=dict[str, str])["verifier"]
        except (msgspec.DecodeError, KeyError) as error:
            raise CheckFailure(f"{self.url} is no verifier: it says no key.") from error

    def challenge(self, layout: RunLayout) -> None:
        """Ask for the challenge of a plan that waits for it."""
        plan = read_plan(layout)
        if plan.challenger and challenge_of(layout, plan, plan_digest(layout)) is None:
            ask_challenge(layout, self.url, client=self.client)

    def date(self, layout: RunLayout) -> LookDate:
        """Ask for the date of the last look."""
        return ask_date(layout, self.url, client=self.client)


def date_look(envelope: bytes, key: Ed25519PrivateKey, log: ChallengeLog, dates: DateLog) -> bytes:
    """Return a verifier's answer for a look: closed, or opened when its time has come.

    Args:
        envelope: The signed look.
        key: The verifier's.
        log: Of the plans that they challenged.
        dates: Of the looks that they dated.
    Returns: The signed date.
    Raises:
        CheckFailure: It is no look of a plan that they challenged, by who signed the plan; or the
            plan goes on from another look.
        NoRoomError: The plan has had too many.
    """
    look, digest, _ = signed_look(envelope)
    line = log.line(look.plan_digest)
    if line is None:
        raise CheckFailure(
            f"This verifier challenged no plan {look.plan_digest[:16]}: its looks have no dates."
        )
    unseal(envelope, bytes.fromhex(line.submitter), LOOK_TYPE)

    def nonce() -> str:
        return keyed_digest(key.private_bytes_raw(), "date", f"{look.plan_digest} {digest}").hex()

    return seal(DATE_TYPE, canonical_json(dates.note(look, digest, nonce)), key)


def ask_date(layout: RunLayout, url: str, *, client: httpx.Client | None = None) -> LookDate:
    """Ask a verifier's service for the date of a placement's last look.

    Args:
        layout: The run directory.
        url: Address of the service.
        client: Sends the request; None for a fresh client.
    Returns: The date, written to `dates/`.
    Raises:
        FieldError: `url` is no address.
        UsageError: There is no look.
        CheckFailure: The service does not answer, refuses, or signs something else.
    """
    signed = _last_look(layout)
    reply = ask_verifier(url, "date", signed.envelope, client)
    try:
        return _keep(layout, signed, reply)
    except CheckFailure as error:
        raise CheckFailure(f"The date of {url} does not hold: {error}.") from error


def date_last_look(
    layout: RunLayout, key: Ed25519PrivateKey, log: ChallengeLog, dates: DateLog
) -> LookDate:
    """Date a placement's last look as its verifier, without a service.

    Args:
        layout: The run directory, or a copy that the submitter sent.
        key: The verifier's.
        log: Of the plans that they challenged.
        dates: Of the looks that they dated.
    Returns: The date, written to `dates/`.
    Raises:
        UsageError: There is no look.
        CheckFailure: The key is not the plan's challenger, or the plan goes on from another look.
    """
    signed = _last_look(layout)
    try:
        return _keep(layout, signed, date_look(signed.envelope, key, log, dates))
    except CheckFailure as error:
        raise CheckFailure(f"{layout.root} cannot be dated: {error}") from error


def _last_look(layout: RunLayout) -> SignedLook:
    looks = list(signed_looks(layout))
    if not looks:
        raise UsageError(f"{layout.root} has no look to date: `owa-bench place` makes the first.")
    return looks[-1]


def _keep(layout: RunLayout, signed: SignedLook, answer: bytes) -> LookDate:
    """Write a verifier's answer for a look, when it holds."""
    date = read_date(answer, read_plan(layout), plan_digest(layout), signed)
    path = date_path(layout, date.look)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, answer)
    return date
