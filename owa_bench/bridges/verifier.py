"""A verifier's service: challenges signed plans, and counts those of each submitter.

    POST /challenge          body plan.dsse.json; answer the witness that a run keeps
    GET  /                   the verifier's public key
    GET  /submitters/KEY     name on the verifier's list, and plans challenged so far

A plan gets the same challenge however often it asks. Every plan is a line of the
verifier's log, and the challenge of a submitter on the list says which of their plans
it is, so that somebody who asks for many and reports the best is seen.
"""

import threading
from collections.abc import Callable
from http import HTTPStatus

import msgspec
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from owa_bench.canonical import peek, public_bytes, sha256, unseal
from owa_bench.errors import CheckFailure
from owa_bench.records.layout import PLAN_TYPE
from owa_bench.records.plan import Plan
from owa_bench.records.witness import Witness
from owa_bench.run.plan.witness import challenge_nonce, sign_nonce
from owa_bench.run.store.challenge_log import ChallengeLog

LONGEST_PLAN = 256 << 20  # bytes of a signed plan


class Verifier:
    """Challenges plans that name it, and keeps a log of them.

    Args:
        key: Signs the challenges.
        log: Of the plans, with the verifier's list of submitters.
    """

    def __init__(self, key: Ed25519PrivateKey, log: ChallengeLog) -> None:
        self._key = key
        self._log = log
        self._lock = threading.Lock()
        self.public = public_bytes(key.public_key()).hex()

    def challenge(self, envelope: bytes) -> Witness:
        """Return the challenge of a signed plan.

        Args:
            envelope: The bytes of `plan.dsse.json`.

        Returns:
            The witness; the same nonce, time and number for the same plan.

        Raises:
            CheckFailure: It is no signed plan, names another challenger, or is one too
                many of a key that is not on the list.
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
            line = self._log.note(plan, digest)
        nonce = challenge_nonce(self._key, digest)
        return sign_nonce(self._key, digest, nonce, line.time, line.name, line.number)

    def submitter(self, key: str) -> dict[str, str | int]:
        """Return what is known of a key: its submitter's name and count of plans."""
        with self._lock:
            name, plans = self._log.submitters.name_of(key), self._log.plans_of(key)
        return {"submitter": key, "name": name, "plans": plans}


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
        return JSONResponse(verifier.submitter(request.path_params["key"]))

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
