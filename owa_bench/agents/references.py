"""Reference agents of crews, Recall and CartPole3D: a player, and settings each.

Source: docs/multicrew.md#agents, docs/recall.md#agents, docs/cartpole3d.md#agents.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.balancing import control
from owa_bench.agents.solvers.balancing.control import BalanceState
from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import (
    ALONE,
    ANSWERING,
    IN_ORDER,
    QUIET,
    STAR,
    TEAM,
    SeatConfig,
)
from owa_bench.agents.solvers.handicaps import NONE, knob_options, read_handicaps
from owa_bench.agents.solvers.recall import stores
from owa_bench.agents.solvers.recall.induction import ListMemory, RuleInducer
from owa_bench.agents.solvers.recall.player import RecallPlayer, Solver
from owa_bench.agents.solvers.recall.reading import read_passage
from owa_bench.agents.solvers.recall.tunable import OPTIONS, TunablePlayer
from owa_bench.agents.solvers.recall.weighted import WEIGHTS, WeightedPlayer
from owa_bench.errors import FieldError
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec


class _Seat:
    """An agent that plays its seat as configured."""

    def __init__(self, config: SeatConfig) -> None:
        self._config = config
        self._player: CrewPlayer | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Take a seat."""
        self._player = CrewPlayer(brief, self._config)

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call."""
        assert self._player is not None  # noqa: S101  reset comes first
        return self._player.advance(str(observation["text"])).text()

    def close(self) -> None:
        """Leave the seat; nothing is kept."""


HABITS = {
    "list_scheduler": (
        "Works alone whoever else is there: longest chain first, reads all itself.",
        ALONE,
    ),
    "fifo": ("Takes its own items in order; asks, and answers what it was asked.", IN_ORDER),
    "contract_net": ("Tells what others' items need, proposes on law, waits for messages.", TEAM),
    "star_critic": (
        "Tells the lead alone, who passes it on; the last seat checks what is merged.",
        STAR,
    ),
    "quiet_partner": ("Works on its own items in order and says nothing.", QUIET),
    "answering_partner": (
        "Works on its own items in order and answers what it is asked.",
        ANSWERING,
    ),
}


def _seat_card(name: str, about: str, seat_config: SeatConfig) -> AgentCard:
    def make(config: AgentConfig) -> _Seat:
        return _Seat(seat_config)

    return AgentCard(name=name, about=about, make=make, suites=("multicrew",))


CREW_AGENTS = tuple(_seat_card(name, *entry) for name, entry in HABITS.items())


# --- Recall: one reader, and a memory policy each -------------------------------------


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


def _reader_card(
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

    return AgentCard(name=name, about=about, make=make, suites=("recall",), options=options or {})


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


RECALL_AGENTS = (
    _reader_card("no_memory", "Keeps nothing between sittings.", lambda _: stores.NoStore),
    _reader_card(
        "bounded_buffer",
        "Keeps a fixed number of words and of facts, the last ones.",
        _bounded,
        {"capacity": _CAPACITY},
    ),
    _reader_card(
        "fading_store",
        "Loses half of its facts within a half-life.",
        _fading,
        {"half_life": _HALF_LIFE},
    ),
    _reader_card("exact_store", "Keeps every fact asked for.", lambda _: stores.FactStore),
    _reader_card("bm25", "Keeps lines, answers the best match.", lambda _: stores.LineStore),
    _reader_card(
        "bm25_verify",
        "Keeps lines, answers the best match that the register's rules bear out.",
        lambda _: stores.VerifyingStore,
    ),
    _reader_card(
        "transcript_store", "Keeps whatever it was shown last.", lambda _: stores.TranscriptStore
    ),
    _reader_card(
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


# --- CartPole3D: no push, the PD rule, look-ahead of one or two ticks -----------------
# Look-ahead tries all sequences of actions on the linear model of level 0 and makes way
# for balls. None keeps anything between ticks.


class _Rule:
    """Plays a function of the present state."""

    def __init__(self, action: Callable[[BalanceState], int]) -> None:
        self._action = action

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode; nothing is kept."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the action of the rule."""
        return self._action(control.parse_observation(observation))

    def close(self) -> None:
        """End the episode."""


def _rule_card(name: str, about: str, action: Callable[[BalanceState], int]) -> AgentCard:
    def make(_config: AgentConfig) -> _Rule:
        return _Rule(action)

    return AgentCard(name=name, about=about, make=make, suites=("cartpole3d",))


BALANCE_AGENTS = (
    _rule_card("nothing", "Never pushes; the floor of CartPole3D.", lambda _state: 0),
    _rule_card(
        "pd", "A proportional-derivative rule; the reference row of CartPole3D.", control.pd_action
    ),
    _rule_card(
        "one_step",
        "Looks one tick ahead on a model of level 0; makes way for balls.",
        lambda state: control.plan_action(control.LEVEL_0, state, depth=1),
    ),
    _rule_card(
        "two_step",
        "Looks two ticks ahead on a model of level 0; makes way for balls.",
        lambda state: control.plan_action(control.LEVEL_0, state, depth=2),
    ),
)

AGENTS = (*CREW_AGENTS, *RECALL_AGENTS, *BALANCE_AGENTS)
