"""A verifier's service: challenges signed plans, and counts those of each submitter.

    POST /challenge          body plan.dsse.json; answer the witness that a run keeps
    GET  /                   the verifier's public key
    GET  /submitters/KEY     plans that this key has asked challenges for

A plan gets the same challenge however often it asks. Every plan is a line of the
verifier's log, so that somebody who asks for many and reports the best is seen.
"""

import datetime
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import msgspec
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from owa_bench.canonical import peek, public_bytes, seal, sha256, unseal
from owa_bench.errors import CheckFailure
from owa_bench.records.layout import PLAN_TYPE, RECEIPT_TYPE
from owa_bench.records.plan import Plan
from owa_bench.records.witness import Witness, nonce_document
from owa_bench.run.plan.witness import challenge_nonce

LONGEST_PLAN = 256 << 20  # bytes of a signed plan


class ChallengedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log: a plan that was challenged, and who signed it."""

    plan_digest: str
    submitter: str
    commitment: str
    battery: str | None
    episodes: int
    time: str


class Verifier:
    """Challenges plans that name it, and keeps a log of them.

    Args:
        key: Signs the challenges.
        log: File of JSON lines, read at the start and added to.
    """

    def __init__(self, key: Ed25519PrivateKey, log: Path) -> None:
        self._key = key
        self._log = log
        self._lock = threading.Lock()
        self.public = public_bytes(key.public_key()).hex()
        lines = log.read_bytes().splitlines() if log.exists() else []
        read = [msgspec.json.decode(line, type=ChallengedPlan) for line in lines]
        self._plans = {plan.plan_digest: plan for plan in read}

    def challenge(self, envelope: bytes) -> Witness:
        """Return the challenge of a signed plan.

        Args:
            envelope: The bytes of `plan.dsse.json`.

        Returns:
            The witness; the same nonce and time for the same plan.

        Raises:
            CheckFailure: It is no signed plan, or names another challenger.
        """
        payload = peek(envelope)
        try:
            plan = msgspec.json.decode(payload, type=Plan)
            unseal(envelope, bytes.fromhex(plan.public_key), PLAN_TYPE)
        except ValueError as error:
            raise CheckFailure(f"It must be a signed plan: {error}.") from error
        if plan.challenger != self.public:
            raise CheckFailure(
                f"The plan must name this verifier, {self.public}, as its challenger "
                f"(run --plan-only --challenger KEY), got {plan.challenger!r}."
            )
        digest = sha256(payload)
        with self._lock:
            known = self._plans.get(digest)
            if known is None:
                known = self._note(plan, digest)
        nonce = challenge_nonce(self._key, digest)
        document = nonce_document(digest, nonce, known.time)
        return Witness(
            kind="nonce",
            plan_digest=digest,
            attempts=0,
            place=self.public,
            evidence=seal(RECEIPT_TYPE, document, self._key).decode(),
            claimed=known.time,
            nonce=nonce,
        )

    def plans_of(self, submitter: str) -> int:
        """Return how many plans of a key were challenged."""
        return sum(plan.submitter == submitter for plan in self._plans.values())

    def _note(self, plan: Plan, digest: str) -> ChallengedPlan:
        """Add a plan to the log before its challenge is told."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        line = ChallengedPlan(
            plan_digest=digest,
            submitter=plan.public_key,
            commitment=plan.commitment,
            battery=plan.battery,
            episodes=len(plan.entries),
            time=now,
        )
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
        self._plans[digest] = line
        return line


def application(verifier: Verifier) -> Starlette:
    """Return the service of a verifier as an ASGI application."""

    async def home(_: Request) -> Response:
        return JSONResponse({"verifier": verifier.public})

    async def challenge(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_PLAN:
                why = f"A signed plan must have at most {LONGEST_PLAN} bytes.\n"
                return PlainTextResponse(why, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            made = verifier.challenge(bytes(body))
        except CheckFailure as error:
            return PlainTextResponse(f"{error}\n", HTTPStatus.BAD_REQUEST)
        return Response(msgspec.json.encode(made), media_type="application/json")

    async def submitter(request: Request) -> Response:
        key = request.path_params["key"]
        return JSONResponse({"submitter": key, "plans": verifier.plans_of(key)})

    return Starlette(
        routes=[
            Route("/", home),
            Route("/challenge", challenge, methods=["POST"]),
            Route("/submitters/{key}", submitter),
        ]
    )


def serve_verifier(
    verifier: Verifier, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve a verifier until the process is interrupted.

    Args:
        verifier: Who answers.
        host: Where it listens.
        port: At which port, 0: any free one.
        announce: Told the address once the socket listens.
    """
    app = application(verifier)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning")
    socket = config.bind_socket()
    announce(f"http://{host}:{socket.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[socket])
