"""Checks of the model probe, in order of importance."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable

import httpx

from owa_bench.hosting.gateway import probe_requests as requests
from owa_bench.hosting.gateway.probe_client import ProbeClient, ServerReply, dig
from owa_bench.hosting.gateway.probe_context import probe_context, probe_told_context
from owa_bench.hosting.gateway.probe_requests import (
    CAPS,
    FindingName,
    ProbeState,
    ProbeVerdict,
    calls_in,
    reasoning_in,
)
from owa_bench.records.calls_as_text import PARSER, is_call_as_text, said_in
from owa_bench.shells import addresses

_LONGER_CAP = 2_048  # for a model that thinks before it calls


class ServerProbe:
    """The checks of one server and what they have found.

    Args:
        client: Asks the server.
        model: Name of the model.
        at_once: Checks that run at the same time.
    """

    def __init__(self, client: ProbeClient, model: str, at_once: int) -> None:
        self.state = ProbeState(client, model)
        self._gate = asyncio.Semaphore(at_once)

    async def run(self, seconds: float) -> None:
        """Run the checks, for at most so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                if not await self._check_tools():
                    return
                async with asyncio.TaskGroup() as group:
                    for check in self._checks():
                        group.create_task(self._in_turn(check))
        except TimeoutError:
            if "chat" not in self.state.rows:
                detail = f"no chat reply within {seconds:g} s"
                fix = "a model that still loads or is slow: --seconds 60"
                self.state.put("chat", "no", detail, fix)

    def _checks(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        state = self.state
        return (
            lambda: probe_told_context(state),  # costs the server nothing
            self._check_required,
            self._check_second_turn,
            self._check_name,
            self._check_stream,
            self._check_temperature,
            self._check_parallel,
            self._check_seed,
            lambda: probe_context(state),
        )

    async def _in_turn(self, check: Callable[[], Awaitable[None]]) -> None:
        async with self._gate:
            await check()

    # --- the checks -------------------------------------------------------------------

    async def _check_tools(self) -> bool:
        """Ask for a tool call; return whether the server answers chat requests."""
        state, reply = self.state, ServerReply(0, "")
        for state.cap in CAPS:
            reply = await state.ask(requests.ONE_CALL, tools=True)
            refused_cap = reply.is_refusal and state.cap in reply.words
            if not (state.cap and refused_cap):
                break
            state.refused_caps.append(f"{state.cap}: {reply.words}")
        if not reply.is_completion:
            plain = ServerReply(0, "")
            if reply.is_refusal and "tool" in reply.words:
                plain = await state.ask(requests.ONE_CALL)
            if not plain.is_completion:
                await self._say_unreachable(reply)
                return False
            state.put("tools", "refused", reply.words, PARSER)
            self._say_answer(plain)
        else:
            self._say_answer(reply)
            if not calls_in(reply.message):  # as the agent asks, or with more room
                more = {"temperature": 0, "cap": requests.CAP}
                if requests.is_cut(reply):
                    more = {"cap": _LONGER_CAP}
                second = await state.ask(requests.ONE_CALL, tools=True, **more)
                state.first = second if second.is_completion else reply
                self._say_usage(state.first)
            self._say_tools(state.first)
        return True

    def _say_answer(self, reply: ServerReply) -> None:
        """Record what the first completion shows by itself."""
        self.state.first = reply
        name = dig(reply.body, "model")
        detail = f"the replies name {name}" if name else "the replies name no model"
        self.state.put("chat", "yes", detail)
        self._say_usage(reply)
        self._say_cap()

    def _say_tools(self, reply: ServerReply) -> None:
        calls = calls_in(reply.message)
        if calls:
            faults = [fault for call in calls for fault in call.faults]
            said = f"calls {calls[0].name}"
            self.state.put("tools", "yes", "; ".join([said, *faults]))
        elif is_call_as_text(said_in(reply.message), requests.TOOL_NAMES):
            detail = "the call is written into the text, tool_calls is empty"
            self.state.put("tools", "no", detail, PARSER)
        elif requests.is_cut(reply):
            detail = "the reply ended at its cap of tokens before a call"
            fix = "a model that thinks for long: max_tokens=8192 and --act-seconds 300"
            self.state.put("tools", "no", detail, fix)
        else:
            detail = "it answers in prose, though asked for a call"
            fix = f"try tool_choice=required, see below; perhaps {PARSER}"
            self.state.put("tools", "no", detail, fix)

    async def _say_unreachable(self, reply: ServerReply) -> None:
        """Record why no chat reply came, with the way out."""
        state = self.state
        state.stopped = "no chat reply to go by"
        detail, fix = reply.words, "is the server running, is --model-url right?"
        listing = await state.client.models()
        names = requests.names_in(listing)
        told = state.model in reply.words or "model" in reply.words.lower()
        if reply.cause == "key":
            fix = (
                "--model-key-env names the variable of the key; another header than "
                "Authorization: --model-header NAME=ENV_VARIABLE"
            )
        elif names and state.model not in names and (told or reply.is_refusal):
            near = difflib.get_close_matches(state.model, names, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}? " if near else ""
            fix = f"{hint}the server lists {', '.join(names[:8])}"
        elif reply.status == httpx.codes.SERVICE_UNAVAILABLE:
            fix = "it may still be loading the model: ask again in a minute"
        elif reply.cause == "no completion" or (reply.cause == "model" and not names):
            detail = f"no chat completion: {reply.words}"
            fix = "the address must end where /chat/completions follows, often in /v1"
            below = await state.client.models("/v1")
            if requests.names_in(below):
                fix = f"--model-url {addresses.endpoint_of(state.client.base, '/v1')}"
            elif reply.body is None:
                fix += "; for a sign-in page: a key, VPN or cookie is missing"
        state.put("chat", "refused" if reply.status else "no", detail, fix)

    def _say_cap(self) -> None:
        state = self.state
        written = state.first.usage.tokens_out if state.first.usage else 0
        if state.cap and written > requests.CAP and not state.thinks:
            detail = f"{state.cap} is accepted and ignored: {written} tokens"
            state.put("reply cap", "no", detail, "cap replies at the server")
        elif state.cap == CAPS[0]:
            state.put("reply cap", "yes", "max_tokens is accepted")
        elif state.cap:
            detail = "max_completion_tokens; " + "; ".join(state.refused_caps)
            state.put("reply cap", "yes", detail, "max_completion_tokens=4096")
        else:
            detail = "; ".join(state.refused_caps)
            state.put("reply cap", "refused", detail, "max_tokens=none")

    def _say_usage(self, reply: ServerReply) -> None:
        state = self.state
        if reply.usage is None:
            detail = "replies count no tokens: cost and axis $ will be unknown"
            state.put("usage", "no", detail)
        else:
            sent, written, _ = reply.usage
            state.put("usage", "yes", f"{sent} tokens read, {written} written")
            state.measure_speed(reply, least=True)
        fields = reasoning_in(reply.message)
        thought = dig(reply.body, "usage", "completion_tokens_details", "reasoning_tokens")
        state.thinks = bool(fields or thought)
        if fields:
            state.put("reasoning", "yes", f"the message holds {', '.join(fields)}")
        elif thought:
            state.put("reasoning", "yes", f"hidden: {thought} tokens of usage alone")
        else:
            state.put("reasoning", "no", "the message holds no field of reasoning")
            state.put("reasoning echoed", "not tried", "there is none")

    async def _check_required(self) -> None:
        await self._choose("tool_choice=required", "required")

    async def _check_name(self) -> None:
        choice = {"type": "function", "function": {"name": requests.OTHER}}
        await self._choose("tool_choice=NAME", choice)

    async def _choose(self, name: FindingName, choice: object) -> None:
        """Ask for prose and demand a call."""
        reply = await self.state.ask(requests.PROSE, tools=True, tool_choice=choice)
        calls = calls_in(reply.message) if reply.is_completion else []
        if not reply.is_completion:
            self.state.put_refusal(name, reply)
        elif not calls and requests.is_cut(reply):
            detail = "accepted, but text up to the cap and no call"
            self.state.put(name, "no", detail)
        elif not calls:
            self.state.put(name, "no", "accepted, but no call follows")
        elif choice != "required" and calls[0].name != requests.OTHER:
            detail = f"accepted, but it calls {calls[0].name or 'nothing'}"
            self.state.put(name, "no", detail)
        else:
            faults = "; ".join(fault for call in calls for fault in call.faults)
            self.state.put(name, "yes", faults or "a call follows")

    async def _check_second_turn(self) -> None:
        """Answer the first call, with the message as it came and without reasoning."""
        state, message = self.state, self.state.first.message
        calls = calls_in(message)
        if not calls:
            detail = "there is no call to answer"
            state.put("second turn", "not tried", detail)
            if state.thinks:
                state.put("reasoning echoed", "not tried", detail)
            return
        reply = await state.ask(requests.turns_after(message), tools=True)
        if reply.is_completion:
            state.put("second turn", "yes", "the result of a call is accepted")
        else:
            state.put_refusal("second turn", reply)
        if not state.thinks:
            return
        fields = reasoning_in(message)
        if not fields:
            state.put("reasoning echoed", "not tried", "it is hidden")
            return
        bare = {name: part for name, part in message.items() if name not in fields}
        without = await state.ask(requests.turns_after(bare), tools=True)
        if not (reply.status and without.status):
            state.put("reasoning echoed", "not tried", "a reply did not come")
            return
        verdict: ProbeVerdict = "yes" if reply.is_completion else "refused"
        missing = "accepted too" if without.is_completion else f"is {without.words}"
        detail = f"as it came: {verdict}; a turn without it {missing}"
        state.put("reasoning echoed", verdict, detail)

    async def _check_stream(self) -> None:
        """Measure speed and usage of a streamed reply."""
        state = self.state
        options = {"include_usage": True}
        reply = await state.ask(requests.COUNT, cap=64, stream=True, stream_options=options)
        if not reply.is_completion:
            state.put_refusal("usage in streams", reply)
            reply = await state.ask(requests.COUNT, cap=64, stream=True)
        elif reply.usage is None:
            state.put("usage in streams", "no", "streams count no tokens")
        else:
            written = reply.usage.tokens_out
            state.put("usage in streams", "yes", f"{written} tokens written")
        state.measure_speed(reply)

    async def _check_temperature(self) -> None:
        reply = await self.state.ask(requests.SHORT, cap=16, temperature=0)
        if reply.is_completion:
            self.state.put("temperature=0", "yes", "accepted")
        else:
            fix = "temperature=none"
            self.state.put_refusal("temperature=0", reply, fix)

    async def _check_parallel(self) -> None:
        reply = await self.state.ask(requests.TWO_CALLS, tools=True)
        if not reply.is_completion:
            self.state.put_refusal("parallel calls", reply)
            return
        calls = calls_in(reply.message)
        verdict: ProbeVerdict = "yes" if len(calls) > 1 else "no"
        detail = f"{len(calls)} calls in one reply when asked for 2"
        self.state.put("parallel calls", verdict, detail)

    async def _check_seed(self) -> None:
        """Ask the same with one seed twice, at temperature 1."""
        state = self.state
        texts = []
        for _ in range(2):
            reply = await state.ask(requests.DRAW, cap=32, temperature=1, seed=7)
            if not reply.is_completion:
                state.put_refusal("seed", reply, "seed=none")
                return
            texts.append(said_in(reply.message))
        if not any(texts):
            state.put("seed", "yes", "accepted; whether it counts: both replies empty")
        elif texts[0] == texts[1]:
            state.put("seed", "yes", "accepted, and the same seed says the same")
        else:
            state.put("seed", "no", "accepted, but the same seed says other things")
