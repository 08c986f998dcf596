"""Every vendor of a goal: its documents, its access, its collections."""

from typing import NamedTuple

from owa_bench.skills import matching
from owa_bench.skills.api_solver.authentication import AuthenticatedClient
from owa_bench.skills.api_solver.document_search import DocumentFinder, DocumentSearch
from owa_bench.skills.api_solver.http_session import HttpSession
from owa_bench.skills.api_solver.pagination import fetch_pages
from owa_bench.skills.api_solver.resource_table import (
    LEAST_MATCH,
    GoalSource,
    ResourceTable,
    resource_table,
)
from owa_bench.skills.api_solver.skill_config import ALL_SKILLS, SkillConfig
from owa_bench.skills.api_solver.task_state import DECLARE
from owa_bench.skills.memory import FactMemory
from owa_bench.skills.openapi import ApiModel, Operation, PagingScheme, Property
from owa_bench.skills.planning import ToolPlan

MOST_HINTS = 6


class ProviderClient(NamedTuple):
    """A vendor whose documents were read."""

    title: str
    model: ApiModel
    access: AuthenticatedClient

    def operation(self, method: str, about: str) -> Operation | None:
        """Return the operation of that method whose meaning is nearest to `about`."""
        choices = self.model.method(method)
        texts = {str(i): choice.about for i, choice in enumerate(choices)}
        found = matching.best(about, texts, least=LEAST_MATCH)
        return None if found is None else choices[int(found)]


class ProviderClients:
    """Opens vendors once and fetches their collections, with help when stuck.

    `infeasible` is set when the supervisor or the documents say it cannot be done.
    """

    def __init__(
        self,
        desk: HttpSession,
        memory: FactMemory,
        registry: str | None,
        habits: SkillConfig = ALL_SKILLS,
        finder: DocumentFinder | None = None,
    ) -> None:
        self._desk = desk
        self._memory = memory
        self._registry = registry
        self._habits = habits
        self._finder = finder or DocumentSearch(desk)
        self._known: dict[str, ProviderClient] = {}
        self.infeasible = False

    def open(self, source: GoalSource) -> ToolPlan[ProviderClient | None]:
        """Return the vendor of `source`, None when its documents are not found."""
        title = source.provider
        entry = source.entry or self._registry
        if title not in self._known and entry:
            model = yield from self._finder.find(title, entry)
            if model is not None:
                access = AuthenticatedClient(
                    title,
                    model.security,
                    model.server,
                    self._desk,
                    self._memory,
                    retries=self._habits.retries,
                    aliases=(model.title,),
                )
                self._known[title] = ProviderClient(title, model, access)
        return self._known.get(title)

    def fetch(self, source: GoalSource) -> ToolPlan[ResourceTable | None]:
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
        self, vendor: ProviderClient, operation: Operation, source: GoalSource
    ) -> ToolPlan[ResourceTable | None]:
        known = self._memory.recall(vendor.title, f"place of {source.resource}")
        others = [o for o in vendor.model.method("GET") if o is not operation]
        crop = yield from fetch_pages(
            vendor.access, operation, others, known, self._habits
        )
        if crop is None:
            return None
        self._memory.learn(vendor.title, f"place of {source.resource}", crop.address)
        return resource_table(source, operation, crop, guesses=self._habits.guesses)

    def _rescue(
        self,
        vendor: ProviderClient | None,
        operation: Operation | None,
        source: GoalSource,
    ) -> ToolPlan[ResourceTable | None]:
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


def imagined(source: GoalSource, server: str) -> Operation:
    """Return the operation of a source that nothing documents, by the goal's words.

    Its address is a guess; the refusal there says what is served.
    """
    fields = tuple(Property(role, "", text) for role, text in source.fields.items())
    address = f"{server}/{source.id}"
    return Operation("GET", address, source.resource, (), PagingScheme("none"), fields)
