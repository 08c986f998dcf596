"""Readers as agents: a person or program that sees text files and writes `act.json`.

Each sitting of each seat has a fresh folder (`reader_folder.py`) with `brief.txt` and `next.txt`
(`reader_text.py`). `where.txt` beside the folders names the one that waits for an act. Source:
docs/readers.md.
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from owa_bench.bridges import reader_folder
from owa_bench.bridges.outside_seats import OfferedTools, OutsideSeats, refuse_other_agents
from owa_bench.bridges.reader_folder import WHERE, ReaderAct, SittingFolder, TextFolder
from owa_bench.bridges.reader_text import (
    ACT,
    BRIEF,
    MEMORY,
    MOST_UNREADABLE,
    NEXT,
    brief_text,
    next_text,
    tools_text,
)
from owa_bench.errors import AgentFailure, AgentRaised, AgentTimeout
from owa_bench.hosting import protocol
from owa_bench.interfaces import Brief
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import READER
from owa_bench.runs.plan.request import Progress, Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.play.batch import RunSummary
from owa_bench.runs.play.loop import RunStopped
from owa_bench.runs.store.memory_folder import (
    MemoryFault,
    MemoryQuota,
    packed_folder,
    read_folder,
    remove_folder,
    unpack_folder,
)

POLL_S = 0.1
_ENDED = "[the sitting has ended: your last call was taken, nothing more is read here]\n"
_UNREADABLE = (
    "{act} {number} was not played and cost no step: {fault}. The last answer again follows."
)
_EARLY = "{name} was written before this answer; it was not played."
_DROPPED = "calls of {act} {number} dropped after a refused one: {count}."


class ReaderSeats(OutsideSeats):
    """The seats of one run's reader: a folder for every sitting of every seat."""

    def __init__(
        self, layout: RunLayout, door: TextFolder, announce: Callable[[Path], None]
    ) -> None:
        super().__init__(layout, "reader")
        self._announce = announce
        self._door = door
        self._number = reader_folder.last_number(door.place)
        self._shown = ""
        self.memory_faults: dict[str, str] = {}  # by seat, of its last sitting

    def transport(self) -> "ReaderTransport":
        """Return the loop's connection for one sitting."""
        return ReaderTransport(self)

    def open_folder(self) -> SittingFolder:
        """Return a fresh folder; a number that somebody has used is left out."""
        while True:
            self._number += 1
            with contextlib.suppress(FileExistsError):
                folder = SittingFolder(self._door.place / f"{self._number:04d}")
                self._announce(folder.place)
                return folder

    def show(self, words: str) -> None:
        """Say in `where.txt` which folder is open, or how the run has ended."""
        if words != self._shown:
            self._shown = words
            self._door.write(WHERE, f"{words}\n")

    def show_end(self) -> None:
        """Say in `where.txt` that nothing more is played, if anything was."""
        if self._shown:
            whole = not batch.summary(self.layout).missing
            self.show("done" if whole else "stopped")

    def on_progress(self, progress: Progress) -> None:
        """Note that an episode has ended."""
        super().on_progress(progress)
        self.memory_faults.clear()


class ReaderTransport:
    """The loop's connection to a reader, for one sitting of one seat."""

    def __init__(self, seats: ReaderSeats) -> None:
        self._seats = seats
        self._brief = Brief(text="", goal={})
        self._memory: Path | None = None
        self._tools = OfferedTools(seats, ())
        self._described: set[str] = set()
        self._offer: list[str] = []
        self._folder: SittingFolder | None = None
        self._waiting: list[str] = []  # calls of the last act that are to be played
        self._answers: list[str] = []
        self._notes: list[str] = []
        self._unreadable = 0  # in a row
        self._use = {"characters_in": 0.0, "characters_out": 0.0}

    def ask(self, request: protocol.AgentRequest, deadline_s: float) -> protocol.AgentReply:
        """Return the reply: the next call that the reader wrote.

        Args:
            request: The loop's.
            deadline_s: Seconds for an act, those in which the reader is started too.
        Returns: The reply; it declares nothing beside the action.
        """
        if request.reset is not None:
            self._begin(request.reset)
        elif request.act is not None:
            return protocol.AgentReply(action=self._next_call(request.act, deadline_s))
        else:
            self._keep_memory()
        return protocol.AgentReply()

    def end(self) -> float:
        """Say in `next.txt` that the sitting has ended, and let go of the folder."""
        folder, self._folder = self._folder, None
        if folder is not None:
            with contextlib.suppress(AgentFailure, OSError):
                self._publish(folder, _ENDED)
            folder.close()
        return 0.0

    def take_use(self) -> Mapping[str, float]:
        """Return the characters of text given and written since the last call."""
        used, self._use = self._use, dict.fromkeys(self._use, 0.0)
        return used

    def _begin(self, terms: protocol.ResetRequest) -> None:
        """Take the terms of a sitting; the folder is opened with its first look."""
        self._brief = terms.brief
        self._tools = OfferedTools(self._seats, terms.tools)
        if terms.brief.budgets.get("memory_bytes"):
            self._memory = Path(terms.memory_dir)
        if fault := self._seats.memory_faults.pop(terms.brief.role, ""):
            raise AgentRaised(f"{MEMORY}/ {fault}")

    def _next_call(self, request: protocol.ActRequest, deadline_s: float) -> str:
        """Show what was answered and return the next call."""
        text, info = str(request.observation["text"]), request.info
        if self._folder is None:
            self._folder = self._open()
            text = text.removeprefix(self._brief.text).strip() or "Nothing yet."
        self._answers.append(text)
        if self._waiting and "error" not in info:
            return self._waiting.pop(0)
        if self._waiting:
            number, count = self._folder.taken, len(self._waiting)
            self._notes.append(_DROPPED.format(count=count, act=ACT, number=number))
        return self._ask_reader(self._folder, info, deadline_s)

    def _open(self) -> SittingFolder:
        """Make the folder of the sitting, with the brief and what memory keeps."""
        folder = self._seats.open_folder()
        if self._memory is not None:
            notes = folder.place / MEMORY
            notes.mkdir()
            unpack_folder(packed_folder(read_folder(self._memory, MemoryQuota())), notes)
        return folder

    def _ask_reader(self, folder: SittingFolder, info: Mapping[str, Any], deadline_s: float) -> str:
        """Publish the answer and wait for an act; return its first call."""
        until = time.monotonic() + deadline_s
        tools = self._offered(folder, info)
        if early := folder.set_early_aside():
            self._notes.append(_EARLY.format(name=early))
        self._show(folder, info, tools)
        with self._seats.present():
            while True:
                act = folder.take()
                if act is None:
                    if time.monotonic() > until:
                        raise AgentTimeout(f"the reader wrote no {ACT} within {deadline_s:g} s")
                    time.sleep(POLL_S)
                elif self._is_playable(folder, act):
                    break
                else:
                    self._show(folder, info, tools)
        self._seats.acting = True
        self._answers.clear()
        first, *self._waiting = act.actions
        return first

    def _is_playable(self, folder: SittingFolder, act: ReaderAct) -> bool:
        """Count a file of the reader; return whether it holds calls."""
        self._use["characters_out"] += act.characters
        self._unreadable = self._unreadable + 1 if act.fault else 0
        if self._unreadable >= MOST_UNREADABLE:
            raise AgentRaised(
                f"the reader wrote no act {MOST_UNREADABLE} times in a row; last: {act.fault}"
            )
        if act.fault:
            note = {"act": ACT, "number": folder.taken, "fault": act.fault}
            self._notes.append(_UNREADABLE.format(**note))
        return not act.fault

    def _show(self, folder: SittingFolder, info: Mapping[str, Any], tools: str) -> None:
        """Write `next.txt`, and say that this folder waits for an act."""
        steps = int(self._brief.budgets.get("steps", 0))
        text = next_text(
            folder.taken,
            self._answers,
            step=int(info["step"]),
            steps=steps,
            notes=self._notes,
            tools=tools,
        )
        self._notes.clear()
        folder.write(f"next-{folder.taken:04d}.txt", text)
        self._publish(folder, text)
        self._seats.show(f"open {folder.place.name}")

    def _publish(self, folder: SittingFolder, text: str) -> None:
        folder.write(NEXT, text)
        self._use["characters_in"] += len(text)

    def _offered(self, folder: SittingFolder, info: Mapping[str, Any]) -> str:
        """Return the tools on offer where they changed; the first are in the brief."""
        tools = self._tools.named(info.get("offer"))
        offer = [tool.name for tool in tools]
        new = [tool for tool in tools if tool.name not in self._described]
        changed = offer != self._offer
        first = not self._offer
        self._offer = offer
        self._described.update(offer)
        if first:
            text = brief_text(self._brief, tools)
            folder.write(BRIEF, text)
            self._use["characters_in"] += len(text)
        if first or not changed:
            return ""
        return "\n".join(filter(None, (", ".join(offer), tools_text(new))))

    def _keep_memory(self) -> None:
        """Hand the notes to the next sitting; the loop holds them to the quota."""
        if self._memory is None or self._folder is None:
            return
        notes = self._folder.place / MEMORY
        try:
            there = os.path.lexists(notes)
            entries = read_folder(notes, MemoryQuota()) if there else ()
        except MemoryFault as fault:
            self._seats.memory_faults[self._brief.role] = str(fault)
            return
        remove_folder(self._memory)
        self._memory.mkdir()
        unpack_folder(packed_folder(entries), self._memory)


def play_reader(
    request: Request | None,
    out: Path,
    options: RunOptions,
    folder: Path,
    *,
    announce: Callable[[Path], None] = lambda _: None,
) -> RunSummary:
    """Let a reader play the episodes of a run through files.

    Args:
        request: The run, whose one agent is the reader; None continues the one in `out`.
        out: The run directory.
        options: Of the run.
        folder: Where the folders of the sittings are made.
        announce: Called with each of them when it is made, before the brief is there.
    Returns: What the run directory holds.
    Raises:
        FieldError: The folder is not empty, or a reader would see the run in it.
        UsageError: The run to go on with is no reader's.
        UsageError: Those of `batch.play`.
    """
    layout = RunLayout(out)
    if request is None:
        refuse_other_agents(layout, (READER,))
    door = reader_folder.open_door(folder, out, options.home, resume=request is None)
    with contextlib.closing(door):
        seats = ReaderSeats(layout, door, announce)
        options = replace(options, client=seats.transport, progress=seats.on_progress)
        try:
            with contextlib.suppress(RunStopped):
                if request is None:
                    batch.resume(out, options)
                else:
                    batch.play(request, out, options)
        finally:
            with contextlib.suppress(AgentFailure):
                seats.show_end()
    return batch.summary(layout)
