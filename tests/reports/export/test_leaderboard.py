"""Leaderboard: what gives a row, what does not, and the page."""

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks import report_pages
from owa_bench.errors import CheckFailure, OwaError
from owa_bench.records.plan import Arm
from owa_bench.records.registry import Registry, VerifierKey, read_registry
from owa_bench.reports.check.assurance import Assurance, AssuranceLevel, Submission
from owa_bench.reports.export import leaderboard as boards
from owa_bench.reports.export.leaderboard import leaderboard, write_board
from owa_bench.runs.plan.request import Request, draft_plan
from tests.builders.ceremony_run import hold_ceremony
from tests.builders.check_page import VALID, CheckPage
from tests.builders.columns import Columns
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


def test_the_first_agent_outside_a_sandbox_is_named(plan, monkeypatch):
    monkeypatch.setattr(boards, "own_terms", lambda _: "")
    arms = [
        replace(plan.arms[0], name=name, hosting=hosting)
        for name, hosting in (("in", "sandboxed"), ("out", "client"), ("far", "remote"))
    ]
    found = boards._unfit(replace(plan, arms=tuple(arms)), REGISTRY, None)
    assert found == "agent out was client, not in a sandbox"


def test_a_control_policy_beside_an_agent_gives_no_row_and_takes_none():
    asked = Request(agents=("agentic", "policy:oracle"), battery="toolquest", sandbox="namespaces")
    plan = replace(draft_plan(asked).plan, challenger=KEY)
    assert boards._unfit(plan, REGISTRY, None) == ""
    assert [boards.arm_role(arm) for arm in plan.arms] == ["learner", "reference"]


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
    folder = tmp_path / "some" / "board"
    write_board(board, folder)
    page = write_board(board, folder).read_text()  # over the first
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
    assert "own terms: protocol and battery small_place" in board.refused[0].reason


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.browser
def test_the_check_page_finds_a_placement_valid_under_its_submitters_key(place):
    names = ("report.dsse.json", "report.html", "registry.toml")
    given = {name: (place / "run" / name).read_bytes() for name in names}
    key = json.loads((place / "submitter.json").read_bytes())["public_hex"]
    with report_pages.browser() as found:
        assert CheckPage(found).say(given, key) == VALID


@pytest.mark.slow
class TestTermsAside:
    """The rest of the checks, on a placement over a pool that is too small for a level."""

    @pytest.fixture(autouse=True)
    def fit(self, monkeypatch):
        monkeypatch.setattr(boards, "_unfit", lambda *_: "")

    def test_a_run_at_v4_gives_a_row_an_agent(self, place, trusted, tmp_path):
        board = leaderboard([place / "run"], trusted)
        assert board.refused == ()
        [row] = board.rows
        assert (row.agent, row.rung, row.battery) == ("fixed", "V4", "small_place")
        # A mean over what was played until a stop ranks nobody: the gates stand there.
        assert (row.composite, row.success, row.cost, row.axes) == (None, None, None, ())
        assert [gate.gate for gate in row.gates] == ["A", "G", "P", "T"]
        assert "BELOW" in {gate.status for gate in row.gates}
        page = plain(write_board(board, tmp_path).read_text())
        assert "Gates of placements" in page
        assert f"<td>{row.gates[0].measured}</td>" in page
        assert "<h2>Axes</h2>" not in page
        checked = files("owa_bench.reports.page").joinpath("check.html").read_bytes()
        assert (tmp_path / "check.html").read_bytes() == checked

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


def episodes(**changes):
    """Return four episodes of an agent and one of another; costs in micro-USD."""
    fields = {
        "arm": np.array(["a", "a", "a", "a", "b"]),
        "condition": np.array([""] * 5),
        "interventions": np.array([0, 0, 2, 0, 0]),
        "phase": np.array(["holdout", "holdout", "holdout", "practice", "holdout"]),
        "pair": np.array(["p", "q", "p", "r", "p"]),
        "u": np.array([1.0, 0.0, 1.0, 1.0, 0.0]),
        "cost_agent": np.array([1e6, 2e6, 3e6, 4e6, 9e6]),
        "cost_human": np.array([0.0, 0.0, 2e6, 0.0, 9e6]),
    }
    return Columns(**fields | changes)


def outcomes(monkeypatch, **changes):
    monkeypatch.setattr(boards, "observe", lambda *_: episodes(**changes))
    bundle = SimpleNamespace(traces=lambda: (), prices=None)
    return boards._outcomes(bundle, "a")


def test_success_is_of_unaided_episodes_and_cost_of_all(monkeypatch):
    success, cost, supervisor = outcomes(monkeypatch)
    assert (success.value, cost.value) == (0.5, 2.5)
    assert supervisor.value == 0.5  # of nobody's money, and in no other figure
    assert success.low < 0.5 < success.high
    assert cost.low < 2.5 < cost.high
    sets = np.array(["after", "", "", "", ""])
    success, cost, _ = outcomes(monkeypatch, condition=sets)
    assert (success.value, cost.value) == (0.0, 3.0)


def test_what_is_not_known_has_no_figure(monkeypatch):
    nothing = boards.Figure(None)
    unknown = np.array([1e6, np.nan, 3e6, 4e6, 9e6])
    success, cost, supervisor = outcomes(monkeypatch, cost_agent=unknown)
    assert (success.value, cost) == (0.5, nothing)
    assert supervisor.value == 0.5
    helped = np.array([2, 2, 2, 0, 0])
    assert outcomes(monkeypatch, interventions=helped) == (nothing, nothing, nothing)
    assert outcomes(monkeypatch, arm=np.full(5, "b")) == (nothing, nothing, nothing)


def test_a_figure_without_both_ends_is_shown_alone():
    for low, high in ((None, 0.6), (0.4, None)):
        assert boards.figure_text(boards.Figure(0.5, low, high)) == "0.500"


def test_rows_stand_by_level_then_index_then_name(monkeypatch, tmp_path):
    def row(agent, order, value):
        made = dict.fromkeys(boards.BoardRow._fields, "")
        figure = boards.Figure(value)
        return boards.BoardRow(**made | {"agent": agent, "order": order, "composite": figure})

    given = [
        row("low", -1, 0.9),
        row("b", 2, 0.5),
        row("a", 2, 0.5),
        row("none", 2, None),
        row("high", 3, 0.1),
        row("first", 2, 0.7),
    ]
    bundle = SimpleNamespace(plan_digest="d")
    monkeypatch.setattr(boards, "read", lambda _: bundle)
    monkeypatch.setattr(boards, "_rows", lambda *_: iter(given))
    found = leaderboard([tmp_path], REGISTRY)
    names = [one.agent for one in found.rows]
    assert names == ["high", "first", "a", "b", "none", "low"]
    twice = leaderboard([tmp_path, tmp_path / "again"], REGISTRY)
    assert twice.rows == ()
    assert len(twice.refused) == 2


def plain(page):
    """Return a page without the labels that its cells have on a phone."""
    return re.sub(r' data-label="[^"]*"', "", page)


@pytest.mark.browser
def test_the_page_of_four_agents_fits_a_phone_and_a_desk(tmp_path):
    """On a phone a row showed agent and level, and the rest of it beside the screen."""
    made = dict.fromkeys(boards.BoardRow._fields, "words of some length")
    gate = SimpleNamespace(
        level=1,
        gate="T",
        required="3 kinds of tool, success >= 0.6 at drift 0.25",
        measured="0.028, 24 worlds",
        status="UNDECIDED",
    )
    figures = dict.fromkeys(("composite", "success", "cost", "supervisor"), boards.Figure(0.5))
    axes = tuple((symbol, boards.Figure(0.25)) for symbol in "AGPMTRSEW$")
    whole = {**made, **figures, "axes": axes, "gates": (gate,)}
    rows = tuple(boards.BoardRow(**{**whole, "agent": f"agent {n}"}) for n in range(4))
    page = write_board(boards.Standings("lab", rows, ()), tmp_path)
    with report_pages.browser() as found:
        for width in (390, 1280):
            window = report_pages.show(found, page, width)
            over = window.evaluate(
                "Math.max(document.documentElement.scrollWidth - innerWidth, ...[..."
                "document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth))"
            )
            assert over <= 0 or width == 1280, (width, over)
            label = "getComputedStyle(document.querySelector('td.why'), '::before').content"
            assert ("level" in window.evaluate(label)) == (width == 390)
            window.close()


def test_a_page_of_a_placement_above_a_profile_has_the_axes_of_the_profile(tmp_path):
    """A placement has no axes; what stands first on a board must not decide its tables."""
    made = dict.fromkeys(boards.BoardRow._fields, "")
    none = dict.fromkeys(("composite", "success", "cost", "supervisor"))
    gate = SimpleNamespace(level=1, gate="A", required="A >= .5", measured=".9", status="PASS")
    placed = boards.BoardRow(**made | none | {"agent": "placed", "axes": (), "gates": (gate,)})
    figures = dict.fromkeys(none, boards.Figure(0.5))
    axes = (("A", boards.Figure(0.25)),)
    profile = boards.BoardRow(**made | figures | {"agent": "profile", "axes": axes, "gates": ()})
    page = plain(write_board(boards.Standings("lab", (placed, profile), ()), tmp_path).read_text())
    first, second = page.split("<h2>Axes</h2>")
    assert first.count('<td class="num">–</td>') == 4
    assert "<td>placed</td>" not in second.split("<h2>Gates of placements</h2>")[0]
    assert '<td class="num">0.250</td>' in second
    assert "<td>AAI-1: A</td><td>PASS</td><td>.9</td><td>A &gt;= .5</td>" in second
    said = placed._replace(level="undecided (A .9 <b>)")
    alone = plain(write_board(boards.Standings("lab", (said,), ()), tmp_path).read_text())
    assert "success, unaided" in first
    assert "success, unaided" not in alone
    assert "<summary>undecided</summary>(A .9 &lt;b&gt;)</details>" in alone


def test_the_first_check_that_fails_is_named():
    held, broken = (SimpleNamespace(ok=ok, name="n", detail="d") for ok in (1, 0))
    boards._refuse_broken([held, held])
    with pytest.raises(CheckFailure, match="n fails: d"):
        boards._refuse_broken([held, broken])


def rows_of(
    monkeypatch, *, level=4, words="", missing=(), checks=(), signed=True, lost=0, submitter="a lab"
):
    """Return the arms that get a row in a run of a learner and three controls.

    `checks` are of `recompute`; `signed` says whether the run holds a report.
    """
    asked = {}

    def assess(_bundle, found, **options):
        asked.update(options)
        rungs = [
            AssuranceLevel(name=f"V{i}", text="", met=i <= level, evidence=f"e{i}")
            for i in range(6)
        ]
        return Assurance(level=level, rungs=tuple(rungs))

    roles = ("learner", "frozen", "placebo", "baseline")
    arms = [replace(ARM, name=role, **{role: True} if role != "learner" else {}) for role in roles]
    verdicts = [SimpleNamespace(arm=role) for role in roles]
    report = SimpleNamespace(judgement=SimpleNamespace(verdicts=verdicts))
    held = SimpleNamespace(ok=True)
    monkeypatch.setattr(boards, "_unfit", lambda *_: words)
    monkeypatch.setattr(boards.verify, "verify", lambda *_: [held])
    monkeypatch.setattr(boards.verify, "recompute", lambda _: list(checks))
    monkeypatch.setattr(
        boards.verify,
        "read_signed_report",
        lambda _: SimpleNamespace(report=report) if signed else None,
    )
    monkeypatch.setattr(boards, "assess", assess)
    monkeypatch.setattr(boards, "_row", lambda _, verdict, found: verdict.arm)
    monkeypatch.setattr(boards, "submission", lambda _: Submission(submitter, 1, 1))
    bundle = SimpleNamespace(
        plan=SimpleNamespace(arms=arms, public_key=KEY, entries=range(100)),
        layout=SimpleNamespace(root="run"),
        missing=missing,
        leaves=[SimpleNamespace(status="provider")] * lost,
    )
    found = list(boards._rows(bundle, REGISTRY, b"evaluator"))
    assert asked == {"signed": True, "verifier": b"evaluator", "registry": REGISTRY}
    return found


ARM = Arm(name="a", agent="a", fingerprint="f", hosting="sandboxed")


def test_a_run_from_v4_on_gives_a_row_of_each_learner(monkeypatch):
    assert rows_of(monkeypatch) == ["learner"]
    assert rows_of(monkeypatch, level=5) == ["learner"]
    assert rows_of(monkeypatch, level=5, submitter="") == ["learner"]
    assert rows_of(monkeypatch, lost=2) == ["learner"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"words": "own terms"}, "own terms"),
        ({"lost": 3}, "3 attempts were laid to a model's provider, more than 2 per"),
        ({"missing": (3, 4)}, "2 planned episodes were not played"),
        ({"level": 3}, r"V3, and V4 is asked for: V4 is not met \(e4\)"),
        ({"level": 0}, r"V0, and V4 is asked for: V1 is not met \(e1\)"),
        ({"submitter": ""}, "it may be the best of many plans"),
        ({"signed": False}, "it holds no report"),
        ({"checks": (SimpleNamespace(ok=False, name="n", detail="d"),)}, "n fails: d"),
    ],
)
def test_what_a_run_lacks_for_a_row_is_said(monkeypatch, changes, words):
    with pytest.raises(OwaError, match=words):
        rows_of(monkeypatch, **changes)


def test_a_row_shows_the_verdict_and_the_interval_over_tasks(monkeypatch):
    one, other = boards.Figure(0.5), boards.Figure(2.0)
    monkeypatch.setattr(boards, "_outcomes", lambda *_: (one, other, one))
    band = SimpleNamespace(low=0.3, high=0.6)
    verdict = SimpleNamespace(
        agent="x",
        arm="a",
        level=None,
        level_text="not placed",
        indices=[
            SimpleNamespace(name="core", value=0.9, tasks_like_these=None),
            SimpleNamespace(name="AAI", value=0.4, tasks_like_these=band),
        ],
        axes=[SimpleNamespace(symbol="A", value=0.45, tasks_like_these=band)],
        gates=("a gate",),
    )
    terms = {"battery": None, "public_key": KEY, "created": "2026-01-02T03:04"}
    plan = SimpleNamespace(placement=None, **terms)
    bundle = SimpleNamespace(plan=plan, layout=SimpleNamespace(root=Path("some/run")))
    monkeypatch.setattr(boards, "submission", lambda _: Submission("a lab", 1, 3))
    found = boards._row(bundle, verdict, SimpleNamespace(name="V4"))
    assert (found.order, found.level, found.battery) == (-1, "not placed", "")
    assert found.composite == boards.Figure(0.4, 0.3, 0.6)
    assert found.axes == (("A", boards.Figure(0.45, 0.3, 0.6)),)
    assert (found.success, found.cost, found.supervisor) == (one, other, one)
    assert found.gates == ()
    assert (found.run, found.rung, found.made) == ("run", "V4", "2026-01-02")
    assert (found.submitter, found.plans) == ("a lab", "1 of 3")
    # The attack: the replay of another verifier, who counts no plans of the challenger.
    assert boards._which_plan(Submission("a lab", 1, 0)) == "1 of an unknown count"
    # Who was not told from AAI-1 must not stand behind who was told to be below it.
    verdict.level_text = "undecided between AAI-0 and AAI-1 (A 0.580 [0.520, 0.640] against 0.60)"
    assert boards._row(bundle, verdict, SimpleNamespace(name="V4")).order == 0
    verdict.level = 2
    assert boards._row(bundle, verdict, SimpleNamespace(name="V4")).order == 2
    assert boards._which_plan(Submission("", 0, 0)) == ""
    verdict.level = 0
    assert boards._row(bundle, verdict, SimpleNamespace(name="V4")).order == 0
