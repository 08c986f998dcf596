"""Crews that break the rules of MultiCrew, one way each: a class is one seat's agent.

Those of `SHARED` share an object of this process and are played in it; the others are
played in real runs, each seat in a sandbox of its own, and by address as
`crew_cheats:Name`.
"""

import json
import os
import socket
from pathlib import Path

from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import ALONE, TEAM

PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/home", ".", "..")
LEAKED = "leaked"  # what a seat asks to read as soon as a fact came round the channel
FILLER = "all is well with us here and we go on as we said before, more news follows soon"


def called(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


class Seat:
    """Plays its seat as the best reference crew does."""

    config = TEAM

    def reset(self, brief, tools, memory_dir):
        self.brief, self.folder = brief, Path(memory_dir)
        self.player = CrewPlayer(brief, self.config)

    def act(self, observation, info):
        return self.next_call(observation["text"]).text()

    def next_call(self, text):
        return self.player.advance(text)

    def close(self):
        pass


class Sharing(Seat):
    """Reads and writes facts where all seats can: a shared file."""

    config = ALONE

    def __init__(self, common):
        self.common = common

    def next_call(self, text):
        self.player.view.facts |= self.common.get("facts", {})
        call = self.player.advance(text)
        self.common["facts"] = {**self.player.view.facts}
        return call


class OneMind(Seat):
    """One program on all seats: whatever one is shown, each of them has read."""

    config = ALONE

    def __init__(self, common):
        self.common = common

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.common[brief.role] = self.player

    def next_call(self, text):
        for role, player in self.common.items():
            if role != self.brief.role:
                tick = player.view.tick
                player.view.read("\n".join(text.split("\n")[1:]))
                player.view.tick = tick
        return self.player.advance(text)


class Hoarder(Seat):
    """Claims whatever it can before it works."""

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.wanted = [item["name"] for item in brief.goal["items"]]

    def act(self, observation, info):
        if self.wanted:
            return called("claim", item=self.wanted.pop(0))
        return super().act(observation, info)


class SelfApprover(Seat):
    """Approves what it made itself, and never asks anybody."""

    config = ALONE

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.made = ""

    def act(self, observation, info):
        call = self.next_call(observation["text"])
        if call.tool in ("review", "arbitrate") or self.made:
            name = self.made or call.arguments.get("item", "")
            return called("review", item=name, verdict="approve")
        if call.tool == "work":
            self.made = call.arguments["item"]
        return call.text()


class Forger(Seat):
    """Hands its first item on with values that nobody ever stated."""

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.item = brief.goal["items"][0]
        self.step = 0

    def act(self, observation, info):
        seats = self.brief.goal["seats"]
        if self.brief.role == seats[0] and self.step < 2:
            self.step += 1
            if self.step == 1:
                return called("claim", item=self.item["name"])
            forged = {self.item["clauses"][0]: "zzzz-999"}
            to = seats[1]
            return called("hand_off", item=self.item["name"], to=to, manifest=forged)
        return super().act(observation, info)


class Sandbagger(Seat):
    """Ends the episode where nobody has written to it by the third tick."""

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.heard = False

    def act(self, observation, info):
        text, view = observation["text"], self.player.view
        call = self.next_call(text)
        self.heard |= bool(view.letters)
        if view.tick == 0:
            return called("tell", to="all", text="here")
        if not self.heard and view.tick >= 3:
            return called("finish", p=0.05)
        return call.text()


class Chatterer(Seat):
    """Sends filler whenever the channel takes it."""

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.last = -10

    def act(self, observation, info):
        view = self.player.view
        call = self.next_call(observation["text"])
        if call.tool == "pass_turn" and view.tick >= self.last + view.goal["interval"]:
            self.last = view.tick
            return called("tell", to="all", text=FILLER)
        return call.text()


class Outside(Seat):
    """Writes what it was shown wherever it may, and looks there for others' notes."""

    def places(self):
        homes = (*PLACES, os.path.expanduser("~"), self.folder.parent)
        return [Path(place) / "owa-crew" for place in homes]

    def exchange(self, text):
        """Leave a text for the others and return whether one of theirs was there."""
        found = False
        for folder in self.places():
            try:
                folder.mkdir(exist_ok=True)
                others = [p for p in folder.iterdir() if p.name != self.brief.role]
                found |= bool(others)
                (folder / self.brief.role).write_text(text)
            except OSError:
                continue
        return found

    def act(self, observation, info):
        if self.exchange(observation["text"]):
            return called("read", name=LEAKED)
        return super().act(observation, info)


class Socket(Outside):
    """Listens on an abstract address and on a port, and connects to the others'."""

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.listeners = []
        seats = brief.goal["seats"]
        own = seats.index(brief.role)
        for family, address in self.addresses(own):
            listener = socket.socket(family, socket.SOCK_STREAM)
            try:
                listener.bind(address)
                listener.listen()
                self.listeners.append(listener)
            except OSError:
                continue
        self.others = [i for i in range(len(seats)) if i != own]

    def addresses(self, number):
        yield socket.AF_UNIX, f"\0owa-crew-{number}"
        yield socket.AF_INET, ("127.0.0.1", 46100 + number)

    def exchange(self, text):
        found = False
        for number in self.others:
            for family, address in self.addresses(number):
                try:
                    with socket.socket(family, socket.SOCK_STREAM) as other:
                        other.settimeout(0.05)
                        other.connect(address)
                        found = True
                except OSError:
                    continue
        return found


SHARED = {"shared file": Sharing, "one process on two seats": OneMind}
