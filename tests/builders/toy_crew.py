"""A tiny suite of two seats and three sittings: the contract of a crew by example.

Each day has a door with a code. The scout can read today's code and tell it to the
opener, who opens the door with the code and with a password that is told on the first
day alone. An opener without a scout can dig out one digit of the code an action. A day
is over after eight actions; every seat starts every day with a new process. Codes may
change in the middle of a day (`new_code`).
"""

from typing import Any

import msgspec
import numpy as np

from owa_bench.canonical import record_digest
from owa_bench.drift.operator import operator
from owa_bench.interfaces import (
    DriftEvent,
    Oracle,
    PropositionTruth,
    Seated,
    SubgoalNode,
    SuiteCard,
    Task,
    ToolResult,
    ToolSpec,
)
from owa_bench.records.events import Message, Resource, WitnessedMeter
from owa_bench.records.trace import sketch
from owa_bench.seeding import stream
from owa_bench.shells.tool_env import ToolSuite

DAYS, TURNS, HOUR_MS = 3, 8, 3_600_000
DAY_MS = TURNS * HOUR_MS
SEATS = ("opener", "scout")


class Relay(msgspec.Struct, frozen=True):
    """The codes of the doors, one a day, and the password."""

    codes: tuple[str, ...]
    password: str

    def digest(self) -> str:
        return record_digest(self)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the crew is; `told` and `dug` are of today's code."""

    turns: int = 0
    seat: str = SEATS[0]
    told: str = ""
    read: bool = False
    dug: int = 0
    opened: tuple[int, ...] = ()

    @property
    def day(self) -> int:
        return min(self.turns // TURNS, DAYS - 1)


def _tool(name: str, **properties: Any) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(name=name, about=name, parameters=parameters)


_TEXT = {"type": "string", "maxLength": 200}
OFFER = {"opener": ("dig", "open", "tell", "skip"), "scout": ("read", "tell", "skip")}
STANDARD = ("note", "recall", "ask_supervisor", "finish", "declare_infeasible")


class RelaySession(Seated):
    """The crew at work."""

    def __init__(self, timeline: Any, sink: Any, setting: Any) -> None:
        self.world: Relay = timeline.worlds[0]
        self.state = Progress()
        self.seats = SEATS[: setting.role_cap]
        self._muted = setting.muted
        self._sink = sink
        self._active = list(self.seats)
        self._mail: dict[str, list[str]] = {seat: [] for seat in SEATS}

    tools = (
        *(_tool("read"), _tool("dig"), _tool("skip")),
        _tool("tell", to={"enum": list(SEATS)}, text=_TEXT),
        _tool("open", code=_TEXT, password=_TEXT),
    )

    def task_of(self, seat: str) -> Task:
        text = f"You are the {seat}. Open a door a day, for {DAYS} days."
        listed = {"changes": "The code of day 2 changes."}
        return Task(text=text, goal={"doors": DAYS}, propositions=listed)

    @property
    def offer(self) -> tuple[str, ...]:
        return (*OFFER[self.seat], *STANDARD)

    @property
    def seat(self) -> str:
        return self.state.seat

    @property
    def sitting(self) -> int:
        return self.state.day

    def look(self) -> str:
        mail, self._mail[self.seat] = self._mail[self.seat], []
        if self.state.turns == 0:
            mail = [f"password {self.world.password}", *mail]
        return "\n".join((f"day {self.state.day}", *mail))

    def retire(self, seat: str) -> None:
        self._active.remove(seat)
        self._next(opened=self.state.opened)

    def call(self, tool: str, arguments: Any, *, now_ms: int, step: int) -> ToolResult:
        state, code, events = self.state, self.world.codes[self.state.day], ()
        change: dict[str, Any] = {}
        ok = True
        match tool:
            case "read":
                text, change = f"code {code}", {"read": True}
            case "dig":
                text = f"digit {state.dug % len(code)} is {code[state.dug % len(code)]}"
                change = {"dug": state.dug + 1}
            case "tell" if self._muted or arguments["to"] not in self._active:
                text, ok = "the line is dead", False
            case "tell":
                text = "told"
                events = self._message(arguments["to"], arguments["text"], step)
                if code in arguments["text"]:
                    change = {"told": code}
            case "open":
                right = (arguments["code"], arguments["password"])
                ok = right == (code, self.world.password)
                text = "open" if ok else "it stays shut"
                if ok:
                    change = {"opened": tuple(sorted({*state.opened, state.day}))}
            case _:
                text = "skipped"
        self._next(**change)
        over = "the last day is over" if self.state.turns >= DAYS * TURNS else ""
        result = ToolResult(text=text, ok=ok, elapsed_ms=HOUR_MS, events=events)
        return result._replace(over=over)

    def _message(self, to: str, text: str, step: int) -> tuple[Any, ...]:
        self._mail[to].append(f"{self.seat} says: {text}")
        message = Message(
            step=step,
            source="env",
            sender=self.seat,
            receivers=(to,),
            tokens=len(text.split()),
            digest=self._sink.blob(text.encode()),
            sketch=sketch(text),
        )
        return message, Resource(step=step, meter="relay/messages", amount=1.0)

    def _next(self, **change: Any) -> None:
        state = msgspec.structs.replace(self.state, **change)
        turns, at = state.turns + 1, SEATS.index(state.seat)
        order = (*SEATS[at + 1 :], *SEATS[: at + 1])
        seat = next(seat for seat in order if seat in self._active)
        if turns % TURNS == 0:  # a new day
            state = msgspec.structs.replace(state, told="", read=False, dug=0)
        self.state = msgspec.structs.replace(state, turns=turns, seat=seat)

    def enter(self, world: Relay, *, now_ms: int) -> None:
        self.world = world


class RelayOracle(Oracle):
    """A door a day is a third of the quality."""

    def quality(self, timeline: Any, state: Progress) -> float:
        return len(state.opened) / DAYS

    def subgoals(self, world: Relay) -> tuple[SubgoalNode, ...]:
        return tuple(SubgoalNode(f"door{day}", 1) for day in range(DAYS))

    def solved(self, world: Any, state: Progress) -> frozenset[str]:
        return frozenset(f"door{day}" for day in state.opened)

    def gained(self, before: Progress, action: Any, after: Progress) -> frozenset[str]:
        told = {f"told{after.day}"} if after.told and not before.told else set()
        return self.solved(None, after) - self.solved(None, before) | told

    def hint(self, timeline: Any, state: Progress) -> dict[str, Any]:
        held = [at for at in timeline.starts if at <= state.turns * HOUR_MS]
        world = timeline.worlds[len(held) - 1]
        code = world.codes[state.day]
        if state.day in state.opened or (state.seat == "scout" and state.told == code):
            return {"tool": "skip", "arguments": {}}
        if state.seat == "scout":
            return {"tool": "tell", "arguments": {"to": "opener", "text": code}}
        arguments = {"code": code, "password": world.password}
        return {"tool": "open", "arguments": arguments}

    def propositions(self, timeline: Any) -> tuple[PropositionTruth, ...]:
        changed = any(c.target == "day2" for some in timeline.changes for c in some)
        return (PropositionTruth("changes", "change", changed, 2 * DAY_MS),)

    def categories(self, world: Relay) -> tuple[str, ...]:
        return ()


class RelaySchedule:
    """A code changes in the middle of its day: the suite's own times."""

    def possible(self, instance: Any, world: Relay) -> tuple[DriftEvent, ...]:
        return tuple(
            DriftEvent(day * DAY_MS + 4 * HOUR_MS, "relay/new_code", f"day{day}", 1.0)
            for day in (1, 2)
        )

    def __call__(self, instance: Any, world: Relay) -> tuple[DriftEvent, ...]:
        return self.possible(instance, world)[: instance.drift_step]

    def steps_for(self, instance: Any, world: Relay, delta: float) -> int:
        return round(2 * delta)


@operator(announcement="D2", weight=1.0, targets=lambda _: ("day1", "day2"))
def new_code(world: Relay, target: str, rng: np.random.Generator) -> Relay:
    """Change the code of a day."""
    codes = list(world.codes)
    codes[int(target[-1])] = f"{rng.integers(10_000):04d}"
    return msgspec.structs.replace(world, codes=tuple(codes))


class RelaySuite(ToolSuite):
    """The suite."""

    card = SuiteCard(
        name="relay",
        version=1,
        title="Relay",
        about="Open a door a day together.",
        source="tests",
        env_id="owa_bench/relay",
        domain="relay",
        families=("doors",),
        tiers=(1,),
        theta=0.95,
        horizon=6,
        depth_target=1,
        step_limit=60,
        categories={"tell": "messages", **dict.fromkeys(("read", "dig", "skip", "open"), "")},
        proposition_kinds=("change",),
        axes=("A", "S"),
        rules=(),
        seats=2,
        sittings=True,
        meters=(WitnessedMeter("relay/messages", "message"),),
    )
    oracle = RelayOracle()
    schedule = RelaySchedule()

    def generate(self, instance: Any) -> Relay:
        rng = stream(instance.seed, "base")
        lengths = rng.integers(3, 9, size=DAYS)
        codes = tuple(f"{rng.integers(10**n):0{n}d}" for n in lengths)
        return Relay(codes, f"{rng.integers(10**8):08d}")

    def session(
        self, timeline: Any, sink: Any, setting: Any, laboratory: Any = None
    ) -> RelaySession:
        return RelaySession(timeline, sink, setting)


SUITE = RelaySuite()
