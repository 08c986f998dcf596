"""The contract of every registered agent."""

from pathlib import Path

import msgspec
import pytest
from playing import instance, play

from owa_bench.discovery import find, get
from owa_bench.interfaces import Agent, AgentConfig

CARDS = {name: found.plugin for name, found in find("agents").items()}
PLAYABLE = sorted(
    name
    for name, card in CARDS.items()
    if card.make is not None and not card.required and not card.suites
)
CONTROLS = sorted(name for name, card in CARDS.items() if card.needs == "privilege")


def test_the_archetypes_are_there() -> None:
    assert {"noop", "random", "fixed", "agentic", "oracle"} <= set(CARDS)


@pytest.mark.parametrize("name", sorted(CARDS))
def test_a_card_says_what_it_is(name: str) -> None:
    card = CARDS[name]
    assert card.name == name
    assert card.about.endswith(".")
    assert (card.make is None) == (card.needs == "privilege")


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_a_policy_of_the_suite(name: str) -> None:
    assert name in get("suites", "toolquest").policies


@pytest.mark.parametrize("name", PLAYABLE)
def test_an_agent_ends_its_episode_and_repeats_it(name: str, tmp_path: Path) -> None:
    assert isinstance(CARDS[name].make(AgentConfig()), Agent)
    first = play(name, instance(), tmp_path / "a")
    second = play(name, instance(), tmp_path / "b")
    assert first.actions == second.actions
    assert first.ending == second.ending


@pytest.mark.parametrize("name", PLAYABLE)
def test_an_agent_writes_nothing_but_its_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "cwd"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    memory = tmp_path / "memory"
    play(name, instance(), memory)
    assert list(place.iterdir()) == []
    if memory.exists():
        for path in memory.iterdir():
            msgspec.json.decode(path.read_bytes())
