"""Policies of ToolQuest that try to buy A or P: they know the way and spare the work.

They lean on the oracle's hints, so that nothing but the rule stands between them and a
high axis.
"""

import abc

from owa_bench.envs.toolquest.policies import POLICIES
from owa_bench.envs.toolquest.state import next_start
from owa_bench.envs.toolquest.tool_calls import call
from owa_bench.shells.solution import KnowingPolicy

ASK = {"tool": "ask_supervisor", "arguments": {}}
GIVE_UP = {"tool": "finish", "arguments": {"answer": "", "p": 0.0}}


class PageSplitter(KnowingPolicy):
    """Does the oracle's work row by row: every page holds one."""

    def _call(self, info):
        step = super()._call(info)
        query = dict(step["arguments"].get("query", {}))
        if step["arguments"].get("method") != "GET":
            return step
        if "limit" in query:
            query["limit"] = 1
        if "per_page" in query:
            _, state = self._observed()
            starts = {
                f"https://{p.host}{r.path}": next_start(state, (p.key, r.key))
                for p in state.world.providers
                for r in p.contract.resources
            }
            query |= {"per_page": 1, "page": starts[step["arguments"]["url"]] + 1}
        arguments = {**step["arguments"], "query": query}
        return {"tool": step["tool"], "arguments": arguments}


class FetchAndQuit(PageSplitter):
    """Fetches all there is, row by row, and hands nothing in."""

    def _call(self, info):
        step = super()._call(info)
        return GIVE_UP if step["tool"] == "write_artifact" else step


class Paster(KnowingPolicy):
    """Hands in every row that it was served, as columns beside wrong numbers."""

    def _call(self, info):
        step = super()._call(info)
        _, state = self._observed()
        if state.artefact is not None:
            return GIVE_UP
        if step["tool"] != "write_artifact":
            return step
        served = [
            row
            for place in state.world.needed
            for row in state.vendors[place[0]].table(place[1]).rows
        ]
        width = max(map(len, served))
        wanted, right = step["arguments"]["columns"], step["arguments"]["rows"]
        rows = [
            [
                *(c + 7 if type(c) is int else c for c in right[i % len(right)]),
                *(str(cell) for cell in row),
                *[""] * (width - len(row)),
            ]
            for i, row in enumerate(served)
        ]
        columns = [*wanted, *(f"served_{i}" for i in range(width))]
        return call("write_artifact", name="answer", columns=columns, rows=rows)


class _Asker(KnowingPolicy, abc.ABC):
    """Asks where its rule says so, and follows the hint."""

    @abc.abstractmethod
    def _asks(self, step):
        """Return whether to ask in place of a step."""

    def _call(self, info):
        step = super()._call(info)
        if info.get("interventions_left") and self._asks(step):
            return ASK
        return step


class AlwaysAsker(_Asker):
    """Asks before every act, as long as it is answered."""

    def _asks(self, step):
        return self.steps % 2 == 1


class HintFirst(_Asker):
    """Asks once, at the start."""

    def _asks(self, step):
        return self.steps == 1


class HintLast(_Asker):
    """Asks once, before it hands in the answer."""

    asked = False

    def reset(self, brief, tools, memory_dir):
        super().reset(brief, tools, memory_dir)
        self.asked = False

    def _asks(self, step):
        due = step["tool"] == "write_artifact" and not self.asked
        self.asked |= due
        return due


BUYING = {
    "page_splitter": PageSplitter,
    "fetch_and_quit": FetchAndQuit,
    "paster": Paster,
    "always_asker": AlwaysAsker,
    "hint_first": HintFirst,
    "hint_last": HintLast,
}


def register(monkeypatch):
    """Enter the policies beside the suite's own for the length of a test."""
    for name, policy in BUYING.items():
        monkeypatch.setitem(POLICIES, name, policy)
