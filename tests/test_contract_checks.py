"""The contract tests over every registered plug-in, and that they find a fault."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from owa_bench.contract_checks import check_agent, check_operator, check_suite
from owa_bench.discovery import find, get
from owa_bench.drift.operator import operator
from owa_bench.errors import CheckFailure, DriftError, FieldError
from owa_bench.interfaces import AgentCard
from owa_bench.records.instance import Instance
from owa_bench.shells.instances import plain_instances
from owa_bench.shells.tool_env import ToolSuite
from tests.builders.toy_suite import (
    CARD,
    SUITE,
    CorridorOracle,
    CorridorSession,
    CorridorSuite,
    World,
)

TOOLQUEST = get("suites", "toolquest")
API = sorted(name for name in find("operators") if name.startswith("api/"))
ONE_KIND = {tool: kind and "cloud" for tool, kind in CARD.categories.items()}
AGENTS = sorted(name for name, entry in find("agents").items() if not entry.plugin.suites)


def worlds() -> list[object]:
    """Base worlds of ToolQuest in which every api operator has a target."""
    card = TOOLQUEST.card
    return [
        TOOLQUEST.generate(Instance(suite="toolquest", version=3, family=family, tier=2, seed=0))
        for family in card.families[:6]
    ]


def test_toolquest_holds_the_contract() -> None:
    check_suite(TOOLQUEST, seeds=(0,))


def test_the_toy_suite_holds_the_contract() -> None:
    check_suite(SUITE)


@pytest.mark.physics
def test_the_native_suite_holds_the_contract() -> None:
    suite = get("suites", "cartpole3d")
    check_suite(suite, seeds=(0,))


@pytest.mark.parametrize("name", API)
def test_api_operators_hold_the_contract(name: str) -> None:
    check_operator(get("operators", name), worlds())


@pytest.mark.parametrize("name", AGENTS)
def test_agents_hold_the_contract(name: str, tmp_path) -> None:
    check_agent(get("agents", name), TOOLQUEST, tmp_path)


class GenerousOracle(CorridorOracle):
    def quality(self, timeline, state):
        return 1.0


class LazyOracle(CorridorOracle):
    def quality(self, timeline, state):
        return 0.5 * state.opened


def broken(**changes):
    """Return a corridor that breaks the contract by what is given."""
    return type("Broken", (CorridorSuite,), changes)()


class UnsteadySuite(CorridorSuite):
    def generate(self, instance):
        return World(cells=3, code=instance.drift_step)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"card": replace(CARD, rules=())}, "every detector's rule"),
        ({"card": replace(CARD, features=4)}, r"\(4,\), as `features` .* got \(3,\)"),
        ({"card": replace(CARD, macros=())}, "0 as in the card's `macros`, got 4"),
        ({"card": replace(CARD, categories=ONE_KIND)}, "`categories`, got files"),
        ({"card": replace(CARD, categories={"open": "cloud"})}, "`walk`, `read`, `wait` has none"),
        ({"card": replace(CARD, proposition_kinds=("x",))}, "`proposition_kinds`, got parity"),
        ({"oracle": GenerousOracle()}, "doing nothing"),
        ({"oracle": LazyOracle()}, "q_state 1"),
    ],
)
def test_a_suite_that_breaks_a_rule_is_named(changes, message: str) -> None:
    with pytest.raises(CheckFailure, match=message):
        check_suite(broken(**changes), seeds=(0,))


class Stranger:
    """What has the words of the contract and no base class of it."""

    card = CARD
    name = "stranger"
    targets = session = generate = env = None


class Toolless(ToolSuite):
    card = CARD
    generate = CorridorSuite.generate


class Stateless(CorridorSession):
    def __init__(self, timeline, sink):
        super().__init__(timeline, sink)
        del self.state


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        (Stranger(), "`Stranger`: is no Suite: subclass `owa_bench.Suite`"),
        (Toolless(), "`corridor`: must define `oracle`, as every suite with tools"),
        (broken(oracle=Stranger()), "`Stranger`: is no Oracle: subclass"),
        (broken(session=lambda *_, **__: Stranger()), "`Stranger`: is no Session: subclass"),
        (broken(session=lambda _, *given: Stateless(*given[:2])), "`Stateless`: must have `state`"),
    ],
)
def test_a_part_without_its_base_class_is_named_with_the_fix(suite, message):
    with pytest.raises(CheckFailure, match=message):
        check_suite(suite, seeds=(0,))
    with pytest.raises(CheckFailure, match="is no Operator: decorate its function"):
        check_operator(Stranger(), [World(cells=3, code=7)])


def test_a_world_that_depends_on_the_drift_step_is_named() -> None:
    with pytest.raises(CheckFailure, match="repeat and drift step"):
        check_suite(UnsteadySuite(), seeds=(0,))


def relocked(world, rng):
    """Change the code."""
    return msgspec.structs.replace(world, code=int(rng.integers(100, 200)))


def unchanged(world):
    """Change nothing."""
    return world


def unsteady(world):
    """Change the code by nobody's stream."""
    return msgspec.structs.replace(world, code=int(np.random.default_rng().integers(9**9)))


def test_an_operator_that_breaks_a_rule_is_named() -> None:
    corridor = [World(cells=3, code=7)]
    decorate = operator(announcement="D3", weight=1.0, targets="door")
    check_operator(decorate(relocked), corridor)
    with pytest.raises(CheckFailure, match="must change 'door'"):
        check_operator(decorate(unchanged), corridor)
    with pytest.raises(CheckFailure, match="repeat with its stream"):
        check_operator(decorate(unsteady), corridor)
    nowhere = operator(announcement="D3", weight=1.0, targets=lambda _: ())
    with pytest.raises(CheckFailure, match="find a target"):
        check_operator(nowhere(relocked), corridor)
    anywhere = operator(announcement="D3", weight=1.0, targets=lambda _: ("door",))
    with pytest.raises(CheckFailure, match="raise DriftError"):
        check_operator(anywhere(relocked), corridor)
    with pytest.raises(DriftError):
        decorate(relocked).apply(corridor[0], "?", 1.0, rng=np.random.default_rng(0))


class ConstantWorld(World, frozen=True):
    """A corridor whose digest leaves its fields out."""

    def digest(self):
        return "0" * 64


class ConstantSuite(CorridorSuite):
    def generate(self, instance):
        world = super().generate(instance)
        return ConstantWorld(**msgspec.structs.asdict(world))


def test_a_world_whose_digest_is_constant_is_named_itself() -> None:
    message = r"World `ConstantWorld`: `digest\(\)` must differ between worlds"
    decorate = operator(announcement="D3", weight=1.0, targets="door")
    with pytest.raises(CheckFailure, match=message):
        check_operator(decorate(relocked), [ConstantWorld(cells=3, code=7)])
    with pytest.raises(CheckFailure, match=message):
        check_suite(ConstantSuite(), seeds=(0,))


class Forgetful:
    """An agent whose actions depend on the process, not on its brief."""

    count = 0

    def reset(self, brief, tools, memory_dir):
        Forgetful.count += 1

    def act(self, observation, info):
        return f'{{"tool": "finish", "arguments": {{"answer": "{Forgetful.count}"}}}}'

    def close(self):
        pass


def test_an_agent_that_breaks_a_rule_is_named(tmp_path) -> None:
    card = AgentCard(name="forgetful", about="Counts.", make=lambda _: Forgetful())
    with pytest.raises(CheckFailure, match="repeat its actions"):
        check_agent(card, SUITE, tmp_path)
    with pytest.raises(CheckFailure, match="sentence"):
        check_agent(replace(card, about="Counts"), SUITE, tmp_path)
    with pytest.raises(CheckFailure, match="reset, act, close"):
        check_agent(replace(card, make=lambda _: object()), SUITE, tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"announcement": "D9"}, "`announcement` must be one of D0, D1, D2, D3"),
        ({"weight": 0.0}, "`weight` must be a finite number above 0, got 0.0"),
        ({"weight": "x"}, "`weight` must be a finite number above 0, got 'x'"),
        ({"version": "1"}, "`version` must be a whole number, at least 1, got '1'"),
    ],
)
def test_an_operator_outside_its_range_is_refused_where_it_is_made(changes, words):
    given = {"announcement": "D3", "weight": 1.0, "targets": "door"}
    with pytest.raises(FieldError, match=words):
        operator(**given | changes)(relocked)


def test_an_operator_that_returns_nothing_is_named():
    def forgetful(world):
        """Change nothing and return nothing."""

    made = operator(announcement="D3", weight=1.0, targets="door")(forgetful)
    with pytest.raises(DriftError, match="`forgetful` must return the changed world"):
        made.apply(World(cells=3, code=7), "door", 1.0, rng=np.random.default_rng(0))


def test_targets_that_are_one_text_are_refused():
    made = operator(announcement="D3", weight=1.0, targets=lambda world: "door")
    with pytest.raises(DriftError, match="must return several names, got the one text"):
        made(relocked).targets(World(cells=3, code=7))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"families": "short"}, "`families` must be a tuple of names, got 'short'"),
        ({"categories": ()}, r"`categories` must map each tool to its kind of tool \(http_api, "),
        ({"categories": {"open": "door"}}, "`categories.open` must be one of http_api, "),
        ({"tiers": (0, 1)}, "`tiers` must hold a whole number, at least 1"),
        ({"theta": 95}, "`theta` must be above 0 and at most 1, got 95"),
        ({"step_limit": 0}, "`step_limit` must be a whole number, at least 1, got 0"),
        ({"axes": ("autonomy",)}, "`axes` must be one of A, G, P, M, T, R, S, E, W"),
        ({"version": "1"}, "`version` must be a whole number, at least 1, got '1'"),
    ],
)
def test_a_card_outside_its_range_is_refused_where_it_is_made(changes, words):
    with pytest.raises(FieldError, match=words):
        replace(CARD, **changes)


def test_an_agent_card_that_needs_something_unknown_is_refused():
    with pytest.raises(FieldError, match="`needs` must be one of nothing, script"):
        AgentCard(name="x", about="X.", make=None, needs="scrpt")


def test_an_env_of_a_suite_without_tier_1_starts_in_its_first_tier():
    card = replace(CARD, tiers=(3, 4))
    assert plain_instances(card)(7).tier == 3
