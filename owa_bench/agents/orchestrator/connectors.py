"""Finds the way to a vendor nobody has worked with, and remembers the ways found."""

from urllib.parse import urljoin

from owa_bench.skills import openapi
from owa_bench.skills.api_solver.http_session import HttpSession
from owa_bench.skills.api_solver.providers import DocumentSearch
from owa_bench.skills.memory import FactMemory
from owa_bench.skills.openapi import ApiModel
from owa_bench.skills.planning import ToolPlan

# Where documents stand by custom, for vendors whose entry leads nowhere.
CUSTOMARY = ("/openapi.json", "/", "/docs", "/.well-known/api-catalog")


class Connectors:
    """Finds documents: by hearsay, by memory, by the entry, by custom, in this order.

    A vendor without any is a model without operations, of its page for people. `heard`
    holds the models that another role has told of, by title.
    """

    def __init__(self, desk: HttpSession, memory: FactMemory) -> None:
        self.heard: dict[str, ApiModel] = {}
        self._desk = desk
        self._memory = memory
        self._scout = DocumentSearch(desk)

    def find(self, title: str, address: str) -> ToolPlan[ApiModel | None]:
        """Return the model of the vendor `title`, None when no way leads there."""
        if title in self.heard:
            return self.heard[title]
        model = yield from self._remembered(title)
        tried = [urljoin(address, place) for place in CUSTOMARY]
        for place in [] if model else dict.fromkeys((address, *tried)):
            found = yield from self._scout.find(title, place)
            if title in self._scout.places:
                self._memory.learn(title, "documents", self._scout.places[title])
                return found
            model = model or found
        return model

    def _remembered(self, title: str) -> ToolPlan[ApiModel | None]:
        """Return the model that stands where it stood before, if it is the vendor's."""
        place = self._memory.recall(title, "documents")
        if place is None:
            return None
        reply = yield from self._desk.http("GET", place)
        if not reply.ok or not openapi.is_openapi(reply.body):
            return None
        model = openapi.parse(reply.body, place)
        return model if title in model.title else None
