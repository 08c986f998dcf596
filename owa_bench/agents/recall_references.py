"""Reference agents of Recall: one reader, and a memory policy each.

Source: docs/recall.md#agents.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from owa_bench.errors import FieldError
from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.skills.handicaps import NONE, knob_options, read_handicaps
from owa_bench.skills.recall import stores
from owa_bench.skills.recall.deeds import read_passage
from owa_bench.skills.recall.induction import RuleInducer
from owa_bench.skills.recall.lists import ListMemory
from owa_bench.skills.recall.player import RecallPlayer, Solver
from owa_bench.skills.recall.tunable import OPTIONS, TunablePlayer
from owa_bench.skills.recall.weighted import WEIGHTS, WeightedPlayer

_CAPACITY = "Words of a list, and facts between sittings, that it keeps."
_HALF_LIFE = "Days after which half of what it was told is lost; none: it is kept."


def _number(config: AgentConfig, name: str, default: float) -> float:
    text = config.options.get(name, str(default))
    if text == NONE:
        return math.inf
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise FieldError(name, text, f"must be a number above 0, or `{NONE}`")
    return value


def _card(
    name: str,
    about: str,
    store: Callable[[AgentConfig], stores.StoreFactory],
    options: Mapping[str, str] | None = None,
    *,
    induces: bool = False,
) -> AgentCard:
    def make(config: AgentConfig) -> RecallPlayer:
        factory = store(config)
        capacity = _number(config, "capacity", math.inf)

        def begin(goal: Mapping[str, Any], quota: int, seed: int) -> stores.FactStore:
            made = factory(goal, quota)
            if isinstance(made, stores.FadingStore):
                made.seed = seed
            return made

        # A half-life is in days here, and in episodes elsewhere.
        given = {k: v for k, v in config.options.items() if k != "half_life"}
        limits = read_handicaps(given)
        solver = _reasoner(limits.depth) if induces else _no_answer
        return RecallPlayer(begin, ListMemory(capacity), solver, limits.calibration)

    return AgentCard(
        name=name, about=about, make=make, suites=("recall",), options=options or {}
    )


def _reasoner(depth: float) -> Solver:
    """Return a solver that reads passages and finds rules up to a depth."""
    inducer = RuleInducer(depth)

    def solve(prompt: str, pages: list[str]) -> list[str] | None:
        return read_passage(prompt, pages) or inducer.answer(prompt, pages)

    return solve


def _no_answer(prompt: str, pages: list[str]) -> None:
    """Solve nothing."""


def _bounded(config: AgentConfig) -> stores.StoreFactory:
    def make(goal: Mapping[str, Any], quota: int) -> stores.FactStore:
        store = stores.BoundedStore(goal, quota)
        store.capacity = int(_number(config, "capacity", 7))
        return store

    return make


def _fading(config: AgentConfig, default: float = 7) -> stores.StoreFactory:
    def make(goal: Mapping[str, Any], quota: int) -> stores.FactStore:
        store = stores.FadingStore(goal, quota)
        store.half_life = _number(config, "half_life", default)
        return store

    return make


AGENTS = (
    _card("no_memory", "Keeps nothing between sittings.", lambda _: stores.NoStore),
    _card(
        "bounded_buffer",
        "Keeps a fixed number of words and of facts, the last ones.",
        _bounded,
        {"capacity": _CAPACITY},
    ),
    _card(
        "fading_store",
        "Loses half of its facts within a half-life.",
        _fading,
        {"half_life": _HALF_LIFE},
    ),
    _card("exact_store", "Keeps every fact asked for.", lambda _: stores.FactStore),
    _card("bm25", "Keeps lines, answers the best match.", lambda _: stores.LineStore),
    _card(
        "bm25_verify",
        "Keeps lines, answers the best match that the register's rules bear out.",
        lambda _: stores.VerifyingStore,
    ),
    _card(
        "transcript_store",
        "Keeps whatever it was shown last.",
        lambda _: stores.TranscriptStore,
    ),
    _card(
        "program_induction",
        "Keeps every fact asked for, reads passages, finds rules by search.",
        partial(_fading, default=math.inf),
        {"half_life": _HALF_LIFE, **knob_options("depth", "calibration")},
        induces=True,
    ),
    AgentCard(
        name="tunable_player",
        about="Plays exercises under settings: the subject that SelfRev revises.",
        make=TunablePlayer,
        suites=("recall",),
        options=OPTIONS,
    ),
    AgentCard(
        name="weighted_player",
        about="Plays n-back by its weights: the model that SelfRev revises.",
        make=WeightedPlayer,
        suites=("recall",),
        options=WEIGHTS,
    ),
)
