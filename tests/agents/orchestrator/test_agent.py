"""Roles on a live world: what each does, what is sent back."""

from pathlib import Path

import pytest
from playing import FAMILIES, Played, instance, play

from owa_bench.agents.orchestrator.team import DocumentLocator, Team
from owa_bench.agents.solvers.api_solver.http_session import HttpSession
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan, reply

DOCUMENT = '{"openapi": "3.1.0", "info": {"title": "Halden"}, "paths": {}}'
# Documented drift; silent drift, and stale documents on top, beat this agent.
TOLD = "nested:D0+D1"


def words(played: Played) -> list[str]:
    return [message.digest for move in played.moves for message in move.messages]


@pytest.mark.parametrize("tier", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_solves_drifted_worlds(family: str, tier: int, tmp_path: Path) -> None:
    given = instance(family, tier, seed=50)
    ending = play("orchestrator", given, tmp_path, delta=1.0, calendar=TOLD).ending
    assert ending.q_state == 1.0
    assert 0.0 < ending.stated < 1.0


def test_every_role_speaks(tmp_path: Path) -> None:
    played = play("orchestrator", instance(), tmp_path)
    said = [message for move in played.moves for message in move.messages]
    senders = {message.sender for message in said}
    assert senders >= {"planner", "scout", "fetcher 1", "reconciler", "verifier"}
    assert "every check passed" in words(played)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_holder_answers_the_same_without_a_word(family: str, tmp_path: Path) -> None:
    given = instance(family, tier=2, seed=21)
    told = {"delta": 0.5, "calendar": TOLD}
    whole = play("orchestrator", given, tmp_path / "a", **told)
    alone = play("orchestrator", given, tmp_path / "b", **told, crew="1")
    assert words(alone) == []
    assert words(whole)
    assert alone.ending.q_state == whole.ending.q_state == 1.0


def test_the_planner_asks_when_the_verifier_finds_faults(tmp_path: Path) -> None:
    """A supervisor is there; drift that hides everything makes some agents ask."""
    asked = 0
    for seed in range(6):
        given = instance("sla_report", tier=3, seed=seed)
        played = play("orchestrator", given, tmp_path / str(seed), delta=1.0, hints=None)
        assert played.ending.q_state == 1.0
        asked += any(a["tool"] == "ask_supervisor" for a in played.actions)
    assert asked > 0


@pytest.fixture
def lossy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make fetchers lose all but one row of the entries the first time."""
    whole = Team.fetch

    def fetch(self: Team) -> ToolPlan[None]:
        yield from whole(self)
        sheet = self.task.tables["entries"]
        sheet.fetched.rows, sheet.fetched.complete = sheet.fetched.rows[:1], False

    monkeypatch.setattr(Team, "fetch", fetch)


@pytest.mark.usefixtures("lossy")
@pytest.mark.parametrize("crew", ["none", "1"])
def test_what_the_verifier_sends_back_is_mended(crew: str, tmp_path: Path) -> None:
    played = play("orchestrator", instance(), tmp_path, crew=crew)
    assert played.ending.q_state == 1.0
    assert ("entries fails its check: whole" in words(played)) == (crew == "none")


def test_a_table_that_changed_after_the_answer_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = Team.find_changed

    def reread(self: Team) -> ToolPlan[list[str]]:
        changed = yield from still(self)
        assert changed == []
        return ["entries"]

    monkeypatch.setattr(Team, "find_changed", reread)
    played = play("orchestrator", instance(), tmp_path)
    assert played.ending.q_state == 1.0
    assert "entries reads otherwise now" in words(played)


def test_declares_a_honeypot_infeasible(tmp_path: Path) -> None:
    played = play("orchestrator", instance("reconcile-honeypot", tier=2), tmp_path)
    assert played.ending.outcome == "infeasible"


def test_a_vendor_met_before_is_found_in_fewer_steps(tmp_path: Path) -> None:
    given = instance("reconcile", tier=3)
    first = play("orchestrator", given, tmp_path)
    second = play("orchestrator", given, tmp_path)
    assert second.ending.q_state == 1.0
    assert len(second.actions) < len(first.actions)


def walk(finder: DocumentLocator, pages: dict[str, str]) -> tuple[str | None, list[str]]:
    """Return the title found from https://h.example/start and the places looked at."""
    plan = finder.find("Halden", "https://h.example/start")
    looked: list[str] = []
    try:
        call: PlanCall = next(plan)
        while True:
            url = call.arguments["url"]
            looked.append(url)
            body = pages.get(url)
            status = 404 if body is None else 200
            text = f'{{"status": {status}, "headers": {{}}, "body": {body or "{}"}}}'
            call = plan.send(reply(text))
    except StopIteration as end:
        return (end.value.title if end.value else None), looked


def test_an_entry_that_leads_nowhere_is_made_up_for_by_custom(tmp_path: Path) -> None:
    place = "https://h.example/openapi.json"
    memory = FactMemory(tmp_path)
    title, looked = walk(DocumentLocator(HttpSession(0), memory), {place: DOCUMENT})
    assert title == "Halden"
    assert looked == ["https://h.example/start", place]
    assert memory.recall("Halden", "documents") == place


def test_a_remembered_connector_of_another_vendor_is_not_trusted(tmp_path: Path) -> None:
    memory = FactMemory(tmp_path)
    memory.learn("Halden", "documents", "https://old.example/openapi.json")
    pages = {
        "https://old.example/openapi.json": DOCUMENT.replace("Halden", "Other"),
        "https://h.example/start": DOCUMENT,
    }
    title, looked = walk(DocumentLocator(HttpSession(0), memory), pages)
    assert title == "Halden"
    assert looked == ["https://old.example/openapi.json", "https://h.example/start"]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    title, looked = walk(DocumentLocator(HttpSession(0), FactMemory(tmp_path)), {})
    assert title is None
    assert len(looked) == len(set(looked)) == 5


def test_a_vendor_with_a_page_for_people_alone_is_a_model_without_operations(
    tmp_path: Path,
) -> None:
    memory = FactMemory(tmp_path)
    page = '"<html><title>Halden</title><body>Ask us for documents.</body></html>"'
    title, looked = walk(DocumentLocator(HttpSession(0), memory), {"https://h.example/start": page})
    assert title == "Halden"
    assert len(looked) == 5
    assert memory.recall("Halden", "documents") is None
