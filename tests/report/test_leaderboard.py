"""Leaderboard: what gives a row, what does not, and the page."""

import shutil

import pytest
from msgspec.structs import replace

from owa_bench.records.registry import Registry, VerifierKey, read_registry
from owa_bench.report import leaderboard as boards
from owa_bench.report.leaderboard import leaderboard, write_board
from owa_bench.run.plan.request import Request, draft_plan
from tests.builders.ceremony_run import hold_ceremony
from tests.builders.sandboxes import needs_namespaces

pytestmark = needs_namespaces  # a row needs agents in sandboxes
KEY = "ab" * 32
REGISTRY = Registry(name="lab", verifier=(VerifierKey(name="a lab", key=KEY),))


@pytest.fixture(scope="module")
def plan():
    """The plan of a shipped battery that places agents, challenged by the lab."""
    asked = Request(agents=("agentic",), battery="toolquest", sandbox="namespaces")
    return replace(draft_plan(asked).plan, challenger=KEY)


def test_a_challenged_plan_of_a_shipped_battery_is_fit(plan):
    assert boards._unfit(plan, REGISTRY, None) == ""


def test_what_makes_a_plan_unfit_is_said(plan):
    arm = plan.arms[0]
    changes = {
        "plays no battery": {"battery": None},
        "own terms": {"entries": plan.entries[:-1]},
        "agent agentic was remote": {"arms": (replace(arm, hosting="remote"),)},
        "agent agentic was anywhere": {"arms": (replace(arm, hosting=""),)},
        "wait for no challenge": {"challenger": ""},
        "of a verifier that the registry names": {"challenger": "cd" * 32},
    }
    for words, change in changes.items():
        assert words in boards._unfit(replace(plan, **change), REGISTRY, None)


def test_a_battery_that_is_underpowered_gives_no_row():
    asked = Request(agents=("agentic",), battery="demo", sandbox="namespaces")
    small = replace(draft_plan(asked).plan, challenger=KEY)
    assert "under-powered" in boards._unfit(small, REGISTRY, None)


def test_an_evaluators_own_run_needs_no_challenge(plan):
    own = replace(plan, challenger="", public_key="ef" * 32)
    assert boards._unfit(own, REGISTRY, bytes.fromhex("ef" * 32)) == ""
    assert boards._unfit(own, REGISTRY, bytes.fromhex("ee" * 32)) != ""


def test_a_folder_that_is_no_run_is_named(tmp_path):
    board = leaderboard([tmp_path], REGISTRY)
    assert board.rows == ()
    assert "is no run directory" in board.refused[0].reason
    page = write_board(board, tmp_path / "board").read_text()
    assert "No run directory gives a row" in page
    assert str(tmp_path) in page


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ceremony")
    hold_ceremony(folder)
    return folder / "place"


@pytest.fixture
def trusted(place):
    return read_registry((place / "registry.toml").read_bytes(), "registry.toml")


@pytest.mark.part(4)
@pytest.mark.slow
def test_a_run_on_terms_of_ones_own_gives_no_row(place, trusted):
    board = leaderboard([place / "run"], trusted)
    assert board.rows == ()
    assert "own terms: battery short" in board.refused[0].reason


@pytest.mark.slow
class TestTermsAside:
    """The rest of the checks, on a battery that is too short to place anybody."""

    @pytest.fixture(autouse=True)
    def fit(self, monkeypatch):
        monkeypatch.setattr(boards, "_unfit", lambda *_: "")

    def test_a_run_at_v4_gives_a_row_an_agent(self, place, trusted, tmp_path):
        board = leaderboard([place / "run"], trusted)
        assert board.refused == ()
        [row] = board.rows
        assert (row.agent, row.rung, row.battery) == ("agentic", "V4", "short")
        assert 0.0 <= row.success.value <= 1.0
        assert row.cost.value > 0.0
        page = write_board(board, tmp_path).read_text()
        assert "agentic" in page
        assert "V4" in page

    def test_one_plan_in_two_directories_gives_none(self, place, trusted, tmp_path):
        """The attack: play a plan twice, hand in both, or the better one twice."""
        shutil.copytree(place / "run", tmp_path / "again")
        board = leaderboard([place / "run", tmp_path / "again"], trusted)
        assert board.rows == ()
        assert {r.reason for r in board.refused} == {
            "its plan was played in several directories here"
        }

    def test_nobodys_registry_gives_none(self, place):
        board = leaderboard([place / "run"], REGISTRY)
        assert board.rows == ()
        assert "fails" in board.refused[0].reason  # V4 claimed, V2 by this registry

    def test_a_figure_that_was_edited_gives_none(self, place, trusted, tmp_path):
        shutil.copytree(place / "run", tmp_path / "run")
        envelope = tmp_path / "run" / "report.dsse.json"
        envelope.write_bytes(envelope.read_bytes().replace(b'"sig": "', b'"sig": "A'))
        board = leaderboard([tmp_path / "run"], trusted)
        assert board.rows == ()
        assert "signature" in board.refused[0].reason
