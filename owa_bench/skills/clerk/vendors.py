"""Every vendor of a goal: its documents, its access, its collections."""

from typing import NamedTuple

from owa_bench.skills import matching
from owa_bench.skills.clerk.access import Access
from owa_bench.skills.clerk.case import DECLARE
from owa_bench.skills.clerk.desk import Desk
from owa_bench.skills.clerk.habits import ALL, Habits
from owa_bench.skills.clerk.harvest import harvest
from owa_bench.skills.clerk.scout import Finder, Scout
from owa_bench.skills.clerk.sheet import LEAST_MATCH, Sheet, Source, sheet
from owa_bench.skills.memory import Memory
from owa_bench.skills.openapi import ApiModel, Operation, Pager, Property
from owa_bench.skills.planning import Plan

MOST_HINTS = 6


class Vendor(NamedTuple):
    """A vendor whose documents were read."""

    title: str
    model: ApiModel
    access: Access

    def operation(self, method: str, about: str) -> Operation | None:
        """Return the operation of that method whose meaning is nearest to `about`."""
        choices = self.model.method(method)
        texts = {str(i): choice.about for i, choice in enumerate(choices)}
        found = matching.best(about, texts, least=LEAST_MATCH)
        return None if found is None else choices[int(found)]


class Vendors:
    """Opens vendors once and fetches their collections, with help when stuck.

    `infeasible` is set when the supervisor or the documents say it cannot be done.
    """

    def __init__(
        self,
        desk: Desk,
        memory: Memory,
        registry: str | None,
        habits: Habits = ALL,
        finder: Finder | None = None,
    ) -> None:
        self._desk = desk
        self._memory = memory
        self._registry = registry
        self._habits = habits
        self._finder = finder or Scout(desk)
        self._known: dict[str, Vendor] = {}
        self.infeasible = False

    def open(self, source: Source) -> Plan[Vendor | None]:
        """Return the vendor of `source`, None when its documents are not found."""
        title = source.provider
        entry = source.entry or self._registry
        if title not in self._known and entry:
            model = yield from self._finder.find(title, entry)
            if model is not None:
                access = Access(
                    title,
                    model.security,
                    model.server,
                    self._desk,
                    self._memory,
                    retries=self._habits.retries,
                    aliases=(model.title,),
                )
                self._known[title] = Vendor(title, model, access)
        return self._known.get(title)

    def fetch(self, source: Source) -> Plan[Sheet | None]:
        """Return the sheet of `source`, None when it cannot be had."""
        vendor = yield from self.open(source)
        operation = vendor.operation("GET", source.resource) if vendor else None
        if vendor is not None and not vendor.model.documented:
            operation = imagined(source, vendor.model.server)
        found = None
        if vendor is not None and operation is not None:
            found = yield from self._harvest(vendor, operation, source)
        if found is None and not source.optional:
            found = yield from self._rescue(vendor, operation, source)
        return found

    def _harvest(
        self, vendor: Vendor, operation: Operation, source: Source
    ) -> Plan[Sheet | None]:
        known = self._memory.recall(vendor.title, f"place of {source.resource}")
        others = [o for o in vendor.model.method("GET") if o is not operation]
        crop = yield from harvest(vendor.access, operation, others, known, self._habits)
        if crop is None:
            return None
        self._memory.learn(vendor.title, f"place of {source.resource}", crop.address)
        return sheet(source, operation, crop, guesses=self._habits.guesses)

    def _rescue(
        self, vendor: Vendor | None, operation: Operation | None, source: Source
    ) -> Plan[Sheet | None]:
        """Ask for the next right step until it leads to the collection."""
        for _ in range(MOST_HINTS):
            hint = yield from self._desk.ask(f"Where is: {source.resource}")
            if hint is None:
                break
            if hint.tool == DECLARE:
                self.infeasible = True
                return None
            address = str(hint.arguments.get("url", "")).partition("?")[0]
            if hint.tool != "http" or vendor is None or operation is None:
                yield hint
                continue
            moved = operation._replace(address=address)
            found = yield from self._harvest(vendor, moved, source)
            if found is not None:
                found.crop.lags.add("path")
                return found
        self.infeasible = vendor is not None and operation is None
        return None


def imagined(source: Source, server: str) -> Operation:
    """Return the operation of a source that nothing documents, by the goal's words.

    Its address is a guess; the refusal there says what is served.
    """
    fields = tuple(Property(role, "", text) for role, text in source.fields.items())
    address = f"{server}/{source.id}"
    return Operation("GET", address, source.resource, (), Pager("none"), fields)
