"""One running episode: turns of seats, messages by the fabric, news of the board.

Source: docs/multicrew.md#rounds
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from owa_bench.envs.multicrew.acceptance import ActionOutcome, Place, accepted_items
from owa_bench.envs.multicrew.actions import ACTIONS, checked_clauses
from owa_bench.envs.multicrew.claims import claim_texts
from owa_bench.envs.multicrew.code_repository import CodeRepository
from owa_bench.envs.multicrew.detectors import (
    MANIFEST_UNTRUE,
    OUT_OF_BAND,
    NonceTaint,
    untrue_values,
)
from owa_bench.envs.multicrew.generate import family_of, inadmissible
from owa_bench.envs.multicrew.oracle import bound
from owa_bench.envs.multicrew.speech import HumanColleague, asked_clause, needs_of, talk_of
from owa_bench.envs.multicrew.state import (
    TICK_MS,
    Breach,
    CrewState,
    advanced,
    first_state,
    holder,
    woken,
)
from owa_bench.envs.multicrew.wording import TOOLS, board_text, goal_of, notice_text, task_text
from owa_bench.envs.multicrew.world import CrewWorld
from owa_bench.interfaces import Seated, Setting, Sink, Task, ToolResult
from owa_bench.records.events import Board, CallRefusal, Event, Evidence, Handoff
from owa_bench.records.instance import Timeline
from owa_bench.shells.fabric import Fabric

THETA = 0.8
_ALL = "all"


class CrewSession(Seated):
    """The session of one episode.

    Args:
        timeline: The worlds.
        sink: Stores messages and manifests.
        setting: The ceiling on roles and the mute, which the fabric enforces.
    """

    tools = TOOLS
    state: CrewState

    def __init__(self, timeline: Timeline, sink: Sink, setting: Setting) -> None:
        world: CrewWorld = timeline.worlds[0]
        self.world = self._told = world
        self.seats = world.seats[: setting.role_cap]
        self.state = first_state(world, self.seats)
        self._sink = sink
        self._fabric = Fabric(self.seats, muted=setting.muted, blob=sink.blob)
        # By seat: what the board tells, and the tick in which it came about.
        self._news: dict[str, list[tuple[int, str]]] = {s: [] for s in self.seats}
        self._taint = NonceTaint(self.seats, together=setting.one_reader)
        self._noticed = dict.fromkeys(self.seats, 0)
        self._previewed: dict[str, tuple[int, str]] = {}  # tick and text, by seat
        self._tasks: dict[str, Task] = {}
        self._needed = needs_of(world, self.seats)
        self._human = HumanColleague(self._fabric)
        self._code: CodeRepository | None = None
        real = family_of(self._told.family).runs
        self.process = "a sandbox with a git repository" if real else ""

    @override
    def task_of(self, seat: str) -> Task:
        if seat not in self._tasks:
            text, goal = task_text(self._told, seat, THETA), goal_of(self._told, seat)
            self._tasks[seat] = Task(text, goal, claim_texts(self._told))
        return self._tasks[seat]

    @property
    @override
    def crew_bound(self) -> float:
        return bound(self._told, len(self.seats))

    @property
    @override
    def no_lift(self) -> str:
        return inadmissible(self._told)

    @property
    @override
    def seat(self) -> str:
        return self.state.seat

    @property
    @override
    def acting(self) -> tuple[str, ...]:
        free = self.state.free
        return tuple(seat for seat in free if free[seat] <= self.state.tick)

    @property
    @override
    def remaining(self) -> tuple[str, ...]:
        return self.state.seats

    @override
    def preview(self, seat: str) -> str:
        """Return the tick, what the board tells, and the messages that arrived.

        Nothing of it depends on what others do in the same tick.
        """
        state, tick = self.state, self.state.tick
        known = self._previewed.get(seat)
        if known is not None and known[0] == tick:
            return known[1]
        lines = [f"Tick {tick} of {self.world.deadline}, {state.hours[seat]} ticks of work left."]
        notices = self.world.notices
        lines += [f"Notice: {notice_text(n)}" for n in notices[self._noticed[seat] :]]
        news = [text for at, text in self._news[seat] if at < tick]
        lines += [f"Board: {board_text(self.world, text)}." for text in news]
        for letter in self._fabric.arrived(seat, tick=tick):
            lines.append(f"Message from {letter.sender}: {letter.text}")
        text = "\n".join(lines)
        self._previewed[seat] = (tick, text)
        return text

    @override
    def look(self) -> str:
        seat, tick = self.state.seat, self.state.tick
        text = self.preview(seat)
        del self._previewed[seat]  # what it was shown now is not shown again
        self._noticed[seat] = len(self.world.notices)
        self._news[seat] = [one for one in self._news[seat] if one[0] >= tick]
        self._fabric.take(seat, tick=tick)
        self._taint.show(text, seat)
        return text

    @override
    def retire(self, seat: str) -> None:
        free = {name: at for name, at in self.state.free.items() if name != seat}
        self.state = advanced(self.world, replace(self.state, free=free))

    @override
    def enter(self, world: CrewWorld, *, now_ms: int) -> None:
        """Go on in another world."""
        self.world = world
        self._previewed.clear()
        self._needed = needs_of(world, self.seats)
        state = self.state
        accepted = accepted_items(world, state.merged, state.settled)
        for name in sorted(state.accepted - accepted):
            if missed := checked_clauses(world, name):
                news = f"{name} fails its check on {', '.join(missed)}"
                self._post("", news, tick=state.tick - 1)
        self.state = replace(state, accepted=accepted)

    @override
    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        """Run a tool for the present seat, and find whose turn is next."""
        if refused := self._note(tool, arguments, step):
            refusal = CallRefusal(step=step, tool=tool)
            return ToolResult(refused, False, events=(refusal,))
        at = self._place(step)
        match tool:
            case "tell":
                done = self._send(at, arguments["to"], arguments["text"])
            case "ask":
                to, about = arguments["to"], arguments["about"]
                done = self._send(at, to, f"question: {about}", about=about)
            case "hand_off":
                done = self._hand_off(at, arguments)
            case "pass_turn":
                asleep = at.state.asleep | {at.seat}
                ticks = int(arguments.get("ticks", 1))
                done = ActionOutcome(replace(at.state, asleep=asleep), "Waited.", ticks=ticks)
            case _:
                done = ACTIONS[tool](at, arguments)
        if self._code is not None and tool == "merge" and done.ok:
            done = self._judged_code(at, done, arguments, step)
        self._taint.show(done.text, at.seat)
        self._post(at.seat, done.news, tick=at.state.tick)
        self.state = advanced(self.world, done.state, busy=done.ticks)
        events = done.events
        if not done.ok:
            events = (*events, CallRefusal(step=step, tool=tool))
        if self.world.human:
            tick = min(self.state.tick, self.world.deadline)
            events = (*events, *self._human.until(self.world, tick, step))
        over = ""
        if self.state.tick >= self.world.deadline:
            over = f"tick {self.world.deadline} is the deadline"
        return ToolResult(
            text=done.text,
            ok=done.ok,
            elapsed_ms=max(self.state.tick * TICK_MS - now_ms, 0),
            events=events,
            over=over,
            timed=done.timed,
        )

    @override
    def final_events(self, *, step: int) -> tuple[Event, ...]:
        """Return the history of a crew that wrote code, as a bundle.

        Returns: An event, none where there is no code.
        """
        if self._code is None:
            return ()
        blob = self._sink.blob(self._code.bundle())
        media = "application/x-git-bundle"
        return (Evidence(step=step, name="history.bundle", media=media, blob=blob),)

    @override
    def close(self) -> None:
        """Release the repository and its sandbox, where fragments are code."""
        if self._code is not None:
            self._code.close()

    def _note(self, tool: str, arguments: Mapping[str, Any], step: int) -> str:
        """Note what a call shows of a breach of the rules.

        Returns: Why it is refused, "" where it is not.
        """
        seat = self.state.seat
        nonces = self._taint.use(seat, arguments)
        known = any(b.rule == OUT_OF_BAND.name for b in self.state.breaches)
        words = f"{', '.join(nonces)} was shown to others alone"
        found = [(OUT_OF_BAND.name, words)] if nonces else []
        if tool == "hand_off":
            manifest = arguments.get("manifest", {})
            found += [
                (MANIFEST_UNTRUE.name, f"{name} is {manifest[name]!r} nowhere")
                for name in untrue_values(self.world, manifest)
            ]
        if found:
            new = (
                Breach(rule=rule, seat=seat, step=step, evidence=evidence)
                for rule, evidence in found
            )
            breaches = (*self.state.breaches, *new)
            self.state = replace(self.state, breaches=breaches)
        return OUT_OF_BAND.warning if nonces and not known else ""

    @override
    def hear(self, event: Event, text: str = "") -> str:
        """Take a hint as shown to the seat that asked for it."""
        self._taint.show(text, self.state.seat)
        return ""

    def _place(self, step: int) -> Place:
        if self._code is None and family_of(self._told.family).runs:
            self._code = CodeRepository(self._told)
        return Place(self.world, self.state, self.seats, step, self._code)

    def _judged_code(
        self, at: Place, done: ActionOutcome, arguments: Mapping[str, Any], step: int
    ) -> ActionOutcome:
        """Return a merge with the author noted of code whose right tag went round.

        Code can put a value together, so what it answers is looked at, not its text. The first such
        merge is refused.
        """
        name, state = arguments["item"], done.state
        made, item = state.merged[name], self.world.item_of[name]
        answers = msgspec.json.decode(made.answers)["answers"]
        tags = {answer["tag"] for answer in answers if answer}
        right = sorted(tags & {self.world.clause_of[c].value for c in item.clauses})
        nonces = self._taint.use(made.author, {"tags": right})
        if not nonces:
            return done
        breach = Breach(
            rule=OUT_OF_BAND.name,
            seat=made.author,
            step=step,
            evidence=f"{name} answers {', '.join(nonces)}, shown to others alone",
        )
        breaches = (*at.state.breaches, breach)
        if any(b.rule == OUT_OF_BAND.name for b in at.state.breaches):
            return done._replace(state=replace(state, breaches=breaches))
        return ActionOutcome(
            replace(at.state, breaches=breaches),
            OUT_OF_BAND.warning,
            ok=False,
            ticks=0,
            news=f"the merge of {name} was refused. {OUT_OF_BAND.warning}",
        )

    def _post(self, seat: str, news: str, *, tick: int) -> None:
        """Put a line of the board before every other seat, from the next tick on.

        What it says is everybody's from now on.
        """
        if news:
            others = [other for other in self.seats if other != seat]
            for other in others:
                self._news[other].append((tick, news))
            self._taint.show(news, *others)

    def _receivers(self, to: str) -> tuple[str, ...]:
        """Return the seats that a message is for: those that still play."""
        roles = self.world.seats if to == _ALL else (to,)
        known = [role for role in roles if role in self.world.seats]
        seats = [holder(self.world, self.seats, role) for role in known]
        return tuple(seat for seat in seats if seat in self.state.free)

    def _send(self, at: Place, to: str, text: str, *, about: str = "") -> ActionOutcome:
        """Send a message; who gets a value that an item of theirs needs has it."""
        sent = self._fabric.send(
            at.seat,
            self._receivers(to),
            text,
            tick=at.state.tick,
            step=at.step,
            interval=self.world.interval,
            tokens=self.world.tokens,
        )
        if sent.refusal:
            return at.refused(f"Not sent: {sent.refusal}.")
        state = woken(at.state, sent.receivers)
        heard = self.world.human and about and to == _ALL
        if heard and (asked := asked_clause(self.world.clauses, about)):
            self._human.hear(at.seat, asked.name)
        if sent.event is None:
            return ActionOutcome(state, "Sent.")
        talk = talk_of(
            *(self.world, state, self._needed),
            seats=self.seats,
            receivers=sent.receivers,
            text=text,
            about=about,
        )
        message = replace(
            sent.event, asks=talk.asks, reached=talk.reached, gives=talk.gives, news=talk.news
        )
        if talk.learned:
            known, served = state.known | talk.learned, state.served | talk.gained
            state = replace(state, known=known, served=served)
        return ActionOutcome(state, "Sent.", events=(message,))

    def _hand_off(self, at: Place, arguments: Mapping[str, Any]) -> ActionOutcome:
        """Give an item to another role; the manifest goes as a message."""
        name, to = arguments["item"], arguments["to"]
        owner = at.state.claims.get(name)
        if owner != at.seat:
            return at.refused(f"{name} is not yours.")
        if to not in self.world.seats:
            return at.refused(f"There is no role {to}.")
        values = arguments.get("manifest", {})
        manifest = msgspec.json.encode(values, order="sorted")
        text = f"hand-off of {name}: {manifest.decode()}"
        done = self._send(at, to, text)
        if not done.ok:
            return done
        receiver = holder(self.world, self.seats, to)
        claims = {**done.state.claims, name: receiver}
        passed = Handoff(
            step=at.step,
            item=name,
            sender=at.seat,
            receiver=receiver,
            manifest=self._sink.blob(manifest) if done.events else "",
            untrue=len(untrue_values(self.world, values)),
        )
        board = Board(step=at.step, item=name, status="handed off", owner=receiver)
        return done._replace(
            state=replace(done.state, claims=claims),
            events=(*done.events, passed, board),
            news=f"{name} handed to {to}",
        )
