"""The family codebase: real branches and merges, code judged by what main answers."""

import subprocess

import pytest

from owa_bench.envs.multicrew import generate
from owa_bench.envs.multicrew.code_repository import CodeRepository
from owa_bench.envs.multicrew.families import codebase
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.errors import MissingPartError
from owa_bench.records.events import Evidence
from owa_bench.records.suite_events import Board
from owa_bench.records.trace import replay_line
from owa_bench.sandbox import views
from owa_bench.shells.instances import plain_instances
from tests.builders import crew_episodes as episodes
from tests.builders import crew_repositories as repositories
from tests.builders.crew_repositories import FAMILY, commit, right, same_module, source, values_of
from tests.envs.multicrew.test_suite import controls_in_order, mean

crew = repositories.crew  # a fixture
pytestmark = pytest.mark.skipif(
    bool(views.bubblewrap_fault()), reason="bubblewrap does not work here"
)


def test_it_is_drawn_by_name_only():
    assert FAMILY not in SUITE.card.families
    assert FAMILY in SUITE.card.drawable
    assert generate.REAL == (FAMILY,)
    assert plain_instances(SUITE.card, family=FAMILY)(0).family == FAMILY
    drawn = {plain_instances(SUITE.card)(seed).family for seed in range(100)}
    assert drawn == set(generate.FAMILIES)


def test_two_branches_that_append_to_one_module_conflict_and_main_stays(crew):
    world, code = crew
    one, two = same_module(world)
    commit(code, one, source(world, one), "lead")
    commit(code, two, source(world, two), "design")
    assert code.merge(one, seat="lead", tick=2) == ""
    head = code.git.head()
    assert code.merge(two, seat="design", tick=3) == codebase.path_of(two)
    assert code.git.head() == head
    commit(code, two, source(world, two), "design", 4)  # on main as it is now
    assert code.merge(two, seat="design", tick=5) == ""
    log = code.git.log()
    assert "design: Merge design/" in log
    assert "lead: Work on" in log


def test_what_conflicts_is_worked_out_anew_in_half_the_effort():
    played = episodes.play(episodes.control("oracle"), episodes.instance(FAMILY, 1, 0))
    met = [event for event in played.of(Board) if event.status == "conflict"]
    assert met
    assert {event.item for event in met} == played.state.conflicted
    assert played.q_state == 1.0
    world = SUITE.generate(episodes.instance(FAMILY, 1, 0))
    effort = sum(item.effort for item in world.items)
    again = sum(-(-world.item_of[event.item].effort // 2) for event in met)
    spent = world.hours * len(world.seats) - sum(played.state.hours.values())
    assert spent == effort + again


def test_an_item_is_accepted_for_what_main_does_and_not_for_its_text(crew):
    world, code = crew
    item = next(item for item in world.items if not item.needs)
    other = source(world, item).replace("total", "found").replace('"found"', '"total"')
    assert other != source(world, item)
    commit(code, item, other)
    code.merge(item, seat="lead", tick=2)
    assert right(world, code, [item.name]) == {item.name}


@pytest.mark.slow
def test_every_clause_of_an_item_decides(crew):
    world, code = crew
    wrong = {"tag": "zzzz-999", "cap": "61", "bonus": "31"}
    done = []
    for item in world.items:
        commit(code, item, source(world, item))
        code.merge(item, seat="lead", tick=2)
        done.append(item.name)
    assert right(world, code, done) == set(done)
    for item in world.items:
        for name in item.clauses:
            kind, values = name.rpartition(".")[2], values_of(world)
            other = wrong.get(kind) or next(
                v for v in ("amount first", "count first") if v != values[name]
            )
            text = codebase.solution(item, values | {name: other}, {})["source"]
            commit(code, item, text)
            code.merge(item, seat="lead", tick=3)
            assert item.name not in right(world, code, done), name
        commit(code, item, source(world, item))
        code.merge(item, seat="lead", tick=4)
    assert right(world, code, done) == set(done)


def test_the_history_is_kept_as_a_bundle_and_two_plays_leave_one_record(tmp_path):
    chosen = episodes.instance(FAMILY, 1, 2)
    bundles, lines = [], []
    for _ in range(2):
        played = episodes.play(episodes.reference("contract_net"), chosen)
        [kept] = [e for e in played.of(Evidence) if e.name == "history.bundle"]
        bundles.append(played.blobs[kept.blob])
        lines.append([replay_line(event) for event in played.events])
    assert bundles[0] == bundles[1]
    assert lines[0] == lines[1]
    (tmp_path / "history.bundle").write_bytes(bundles[0])
    log = ("git", "clone", "-q", "history.bundle", "copy")
    subprocess.run(log, cwd=tmp_path, check=True)
    main = ("git", "log", "--first-parent", "--format=%an", "origin/main")
    done = subprocess.run(main, cwd=tmp_path / "copy", check=True, capture_output=True, text=True)
    authors = done.stdout.split()
    assert authors[-1] == "platform"
    assert set(authors[:-1]) == {"lead", "design"}


def test_without_git_a_run_is_refused_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingPartError, match="apt-get install git"):
        SUITE.ready((FAMILY,))
    SUITE.ready(generate.FAMILIES)
    with pytest.raises(MissingPartError, match="apt-get install git"):
        CodeRepository(SUITE.generate(episodes.instance(FAMILY, 1)))


@pytest.mark.part(4)
@pytest.mark.slow
def test_who_tells_beats_who_is_muted_and_who_is_alone():
    full = mean("contract_net", FAMILY, 2)
    assert full > mean("contract_net", FAMILY, 2, muted=True) + 0.2
    assert full > mean("list_scheduler", FAMILY, 2, cap=1) + 0.2
    assert mean("list_scheduler", FAMILY, 1, muted=True) > 0.5


@pytest.mark.part(2)
@pytest.mark.slow
@pytest.mark.parametrize("tier", generate.TIERS)
def test_controls_are_in_order_in_every_tier(tier):
    controls_in_order(FAMILY, tier, 1)
