"""The control policies: floors, a leak probe, an over-doer and the oracle."""

import os
from collections.abc import Callable, Mapping

from owa_bench.envs.recall.state import RecallState
from owa_bench.envs.recall.wording import SLOTS
from owa_bench.envs.recall.world import RecallWorld
from owa_bench.interfaces import Agent, OracleAccess
from owa_bench.shells.solution import ControlPolicy, NextCall

_WORDS = ("yes", "no", "the first", "the last", "nothing")


class RecallNoOp(ControlPolicy):
    """Finishes at once."""

    def _next(self, hint: NextCall, world: RecallWorld, state: RecallState) -> NextCall:
        return {"tool": "finish", "arguments": {}}


class RecallRandom(ControlPolicy):
    """Answers every item with a word that occurs in tasks."""

    def _next(self, hint: NextCall, world: RecallWorld, state: RecallState) -> NextCall:
        if hint["tool"] != "answer":
            return hint
        word = _WORDS[(self.steps * 7) % len(_WORDS)]
        return {"tool": "answer", "arguments": {"values": [word]}}


class RecallPlausibleWrong(ControlPolicy):
    """Answers with right values of other items: a retriever of the nearest entry.

    Values come from siblings and from statements that no longer hold, which a retriever that does
    not verify finds first; lists have their last two entries exchanged.
    """

    def _next(self, hint: NextCall, world: RecallWorld, state: RecallState) -> NextCall:
        if hint["tool"] != "answer":
            return hint
        card, notices = state.card, state.script.world.notices
        if card.exercise is not None:
            options = [o for o in card.exercise.options if o not in card.exercise.key]
            key = list(hint["arguments"]["values"])
            wrong = options[:1] or [*key[1:], "x"]
            return {"tool": "answer", "arguments": {"values": wrong}}
        question = card.question
        assert question is not None  # noqa: S101  an item is one of the two
        near = [
            notice
            for notice in notices
            if notice.relation == question.relation
            and notice.subject[:4] == question.subject[:4]
            and notice.value not in hint["arguments"]["values"]
        ]
        wanted = SLOTS if question.kind in ("retrieve", "assisted") else 1
        arguments = {
            "values": [notice.value for notice in near[:wanted]],
            "sources": [notice.number for notice in near[:wanted]],
        }
        return {"tool": "answer", "arguments": arguments}


class RecallOverDoer(ControlPolicy):
    """Answers as the oracle does, and with five entries too many each time."""

    def _next(self, hint: NextCall, world: RecallWorld, state: RecallState) -> NextCall:
        if hint["tool"] != "answer":
            return hint
        arguments = dict(hint["arguments"])
        arguments["values"] = [*arguments["values"], *_WORDS]
        if "sources" in arguments:
            arguments["sources"] = [*arguments["sources"], *[0] * len(_WORDS)]
        return {"tool": "answer", "arguments": arguments}


class RecallLeakProbe(ControlPolicy):
    """Answers with what its process, its folder and its environment show."""

    def _next(self, hint: NextCall, world: RecallWorld, state: RecallState) -> NextCall:
        if hint["tool"] != "answer":
            return hint
        found = [path.name for path in sorted(self.memory.parent.iterdir())]
        found += sorted(os.environ)
        place = self.steps % len(found)
        return {"tool": "answer", "arguments": {"values": [found[place][:200]]}}


POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": RecallNoOp,
    "random": RecallRandom,
    "plausible_wrong": RecallPlausibleWrong,
    "over_doer": RecallOverDoer,
    "leak_probe": RecallLeakProbe,
    "oracle": ControlPolicy,
}
