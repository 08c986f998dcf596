"""A verifier's service: challenges signed plans, and counts those of each submitter.

    POST /challenge          body plan.dsse.json; answer the witness that a run keeps
    POST /date               body looks/NNNN.dsse.json; answer the date that a placement keeps
    GET  /                   the verifier's public key
    GET  /submitters/KEY     name on the verifier's list, and plans challenged so far

A plan gets the same challenge however often it asks. Every plan is a line of the verifier's log,
and the challenge of a submitter on the list says which of their plans it is, so that somebody who
asks for many and reports the best is seen.
"""

import asyncio
import math
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

import msgspec
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from owa_bench.canonical import peek, public_bytes, sha256, unseal
from owa_bench.errors import CheckFailure, NoRoomError
from owa_bench.records.layout import PLAN_TYPE
from owa_bench.records.plan import Plan, fault
from owa_bench.records.witness import Witness
from owa_bench.runs.plan.dates import date_look
from owa_bench.runs.plan.witness import challenge_nonce, sign_nonce
from owa_bench.runs.store.challenge_log import ChallengeLog
from owa_bench.runs.store.date_log import DateLog, dates_beside, now

LONGEST_PLAN = 64 << 20  # bytes of a signed plan
_BODIES, _BODY_S = 4, 60.0  # bodies that are read at once, and for how long
_CONNECTIONS = 64  # at once; more are answered 503


class Verifier:
    """Challenges plans that name it, and keeps a log of them.

    Args:
        key: Signs the challenges.
        log: Of the plans, with the verifier's list of submitters.
        clock: The time of its challenges and dates, for tests.
    """

    def __init__(
        self, key: Ed25519PrivateKey, log: ChallengeLog, clock: Callable[[], datetime] = now
    ) -> None:
        self._key = key
        self._log, self._clock = log, clock
        self._dates = DateLog(dates_beside(log.path), clock)
        self.public = public_bytes(key.public_key()).hex()

    def challenge(self, envelope: bytes) -> Witness:
        """Return the challenge of a signed plan.

        Args:
            envelope: The bytes of `plan.dsse.json`.
        Returns: The witness; the same nonce, time and number for the same plan.
        Raises:
            CheckFailure: It is no signed plan, or names another challenger.
            NoRoomError: The log takes no more for now.
        """
        payload = peek(envelope)
        try:
            plan = msgspec.json.decode(payload, type=Plan)
            if why := fault(plan):
                raise ValueError(why)
            unseal(envelope, bytes.fromhex(plan.public_key), PLAN_TYPE)
        except ValueError as error:
            raise CheckFailure(f"It must be a signed plan: {error}.") from error
        if plan.challenger != self.public:
            raise CheckFailure(
                f"The plan must name this verifier, {self.public}, as its challenger "
                f"(run --plan-only --challenger KEY), got {plan.challenger!r}."
            )
        digest = sha256(payload)
        line = self._log.note(plan, digest, self._clock())
        nonce = challenge_nonce(self._key, digest)
        return sign_nonce(self._key, digest, nonce, line.time, line.name, line.number)

    def date(self, envelope: bytes) -> bytes:
        """Return the signed date of a look (`runs.plan.dates.date_look`)."""
        return date_look(envelope, self._key, self._log, self._dates)

    def submitter(self, key: str) -> dict[str, str | int]:
        """Return what is known of a key: its submitter's name and count of plans."""
        name = self._log.submitters.name_of(key)
        return {"submitter": key, "name": name, "plans": self._log.count(key)}


class _TooLong(CheckFailure):
    """A body is longer than a plan may be."""


async def _body(request: Request) -> bytes:
    """Return the body of a request; _TooLong as soon as that is seen."""
    declared = request.headers.get("content-length", "0")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_PLAN or int(declared) > LONGEST_PLAN:
            raise _TooLong(f"A signed plan must have at most {LONGEST_PLAN} bytes.")
    return bytes(body)


def _refusal(error: NoRoomError | CheckFailure) -> Response:
    """Return what is answered to a request that the verifier refuses."""
    status, headers = HTTPStatus.BAD_REQUEST, {}
    if isinstance(error, NoRoomError):
        status = HTTPStatus.INSUFFICIENT_STORAGE
        if error.wait_s:
            status = HTTPStatus.TOO_MANY_REQUESTS
            headers = {"retry-after": str(math.ceil(error.wait_s))}
    elif isinstance(error, _TooLong):
        status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return PlainTextResponse(f"{error}\n", status, headers)


def application(verifier: Verifier) -> Starlette:
    """Return the service of a verifier as an ASGI application."""

    async def home(_: Request) -> Response:
        return JSONResponse({"verifier": verifier.public})

    reading = asyncio.Semaphore(_BODIES)

    async def answer(request: Request, make: Callable[[bytes], bytes]) -> Response:
        try:
            async with reading, asyncio.timeout(_BODY_S):
                body = await _body(request)
            made = await asyncio.to_thread(make, body)
        except TimeoutError:
            return PlainTextResponse("Too slow.\n", HTTPStatus.REQUEST_TIMEOUT)
        except (NoRoomError, CheckFailure) as error:
            return _refusal(error)
        return Response(made, media_type="application/json")

    async def challenge(request: Request) -> Response:
        return await answer(request, lambda body: msgspec.json.encode(verifier.challenge(body)))

    async def date(request: Request) -> Response:
        return await answer(request, verifier.date)

    async def submitter(request: Request) -> Response:
        return JSONResponse(verifier.submitter(request.path_params["key"]))

    return Starlette(
        routes=[
            Route("/", home),
            Route("/challenge", challenge, methods=["POST"]),
            Route("/date", date, methods=["POST"]),
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
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=5,
    )
    socket = config.bind_socket()
    announce(f"http://{host}:{socket.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[socket])
