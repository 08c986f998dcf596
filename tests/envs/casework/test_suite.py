"""The suite of cases: its contract, its tools' replies, its clock, its controls."""

import json

import pytest
from msgspec.structs import replace

from owa_bench import contract_checks
from owa_bench.company.kinds.contract import THETA
from owa_bench.company.language.vocabulary import TABLES
from owa_bench.envs.casework.judge import needed_texts
from owa_bench.envs.casework.kinds import FAMILIES
from owa_bench.envs.casework.session import MINUTE_MS, CaseSession
from owa_bench.records.instance import Timeline
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.solution import solve
from tests.builders import cases

TIERS = (1, 2, 3)


class Desk:
    """A session whose clock runs as the shell runs it."""

    def __init__(self, timeline: Timeline) -> None:
        self.session = CaseSession(timeline, NullSink())
        self.now_ms = 0

    def call(self, tool, **arguments):
        result = self.session.call(tool, arguments, now_ms=self.now_ms, step=1)
        self.now_ms += result.elapsed_ms
        return result

    def get(self, url, **arguments):
        self.call("http", url=url, save="last.json", **arguments)
        return json.loads(self.session._folder.read("last.json"))


@pytest.fixture
def desk():
    made = []

    def make(*args, **options):
        made.append(Desk(cases.timeline(*args, **options)))
        return made[-1]

    yield make
    for one in made:
        one.session.close()


def test_the_contract_holds_with_an_oracle_of_one_and_a_floor_of_nothing():
    contract_checks.check_suite(cases.SUITE, seeds=(0,))


SOLVED = [(family, tier, delta) for family in FAMILIES for tier in TIERS for delta in (0.0, 1.0)]
SHORT = [case for case in SOLVED if case[:2] != ("close", 3)]


@pytest.mark.parametrize(("family", "tier", "delta"), SHORT)
def test_the_answer_key_solves_each_case(family, tier, delta):
    solves(family, tier, delta)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "tier", "delta"), sorted(set(SOLVED) - set(SHORT)))
def test_the_answer_key_solves_a_month_of_a_thousand_lines(family, tier, delta):
    """More allocations than one action holds."""
    solves(family, tier, delta)


def solves(family, tier, delta):
    solution = solve(cases.SUITE, cases.timeline(family, tier, delta=delta))
    assert solution.q_state == 1.0
    assert solution.accepted >= len(solution.actions) - 8


@pytest.mark.parametrize("tier", TIERS)
def test_friction_is_a_small_part_of_the_answer_keys_acts(tier):
    """Waits, confirmations and second pages are at most a fifth."""
    actions = solve(cases.SUITE, cases.timeline("credits", tier, delta=1.0)).actions
    friction = sum('"wait"' in a or "confirmations" in a for a in actions)
    assert friction <= 0.2 * len(actions)


def test_every_list_answers_as_its_description_says(desk):
    """Under full drift too: paths, fields, pages, filters and bounds."""
    for seed in range(cases.FIRST, cases.FIRST + 4):
        one = desk("credits", 1, seed, 1.0)
        world = one.session._world
        for host in world.hosts:
            told = one.get(f"https://{host.host}/")
            for served in told["lists"]:
                url = f"https://{host.host}{served['get']}"
                page = one.get(url)
                rows = next(v for v in page.values() if isinstance(v, list))
                assert page["total"] >= len(rows)
                if not rows:
                    continue
                assert set(rows[0]) == set(served["fields"])
                name, value = next((n, v) for n, v in rows[0].items() if isinstance(v, str))
                again = one.get(url, query={name: value})
                wrapped = next(v for v in again.values() if isinstance(v, list))
                assert rows[0] in wrapped
                assert all(row[name] == value for row in wrapped)
                assert set(one.get(url, query={"fields": name}, follow=True)[0]) == {name}


def test_pages_hold_every_row_once(desk):
    one = desk(tier=1)
    world = one.session._world
    for host in world.hosts:
        for served in host.tables:
            rows = one.get(f"https://{host.host}{served.path}", follow=True)
            assert len(rows) == len(world.tables[served.table])


@pytest.fixture
def plain(desk):
    return desk(tier=1)


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("https://nowhere.corp/", 404),
        ("https://orders.corp/nothing", 404),
        ("https://orders.corp/orders?colour=red", 400),
        ("https://orders.corp/orders?fields=colour", 400),
        ("https://wiki.corp/pages/nothing", 404),
        ("https://orders.corp/orders?page=0&offset=x&cursor=z", 400),
    ],
)
def test_what_is_not_there_is_refused(plain, url, status):
    result = plain.call("http", url=url)
    assert not result.ok
    assert f"HTTP {status}" in result.text


@pytest.mark.parametrize("url", ["orders", "ftp://orders.corp/", "https://", "http://[::1"])
def test_an_address_that_is_none_is_refused(plain, url):
    assert "`url` must be" in plain.call("http", url=url).text


def test_files_carry_rows_from_one_tool_to_the_next(plain):
    plain.call("http", url="https://orders.corp/orders", follow=True, save="orders.json")
    result = plain.call(
        "python",
        code="import json\nrows = json.load(open('orders.json'))\nprint(len(rows))\n"
        "json.dump([dict(customer='C-1', approved_cents=1, proposed_cents=0)], "
        "open('table.json', 'w'))",
    )
    assert result.text.endswith("1600")
    assert plain.call("submit", name="table", file="table.json").ok
    assert plain.session.state.handed_in["table"][0]["customer"] == "C-1"


def test_the_sandbox_reaches_neither_package_nor_network(plain):
    code = (
        "import os, socket\n"
        "try:\n import owa_bench; print('package')\nexcept ImportError: print('no package')\n"
        "try:\n socket.create_connection(('1.1.1.1', 53), 1); print('network')\n"
        "except OSError: print('no network')"
    )
    text = plain.call("python", code=code).text
    assert "no package\nno network" in text


def test_a_link_that_a_program_leaves_is_not_followed(plain):
    plain.call("python", code="import os; os.symlink('/etc/passwd', 'table.json')")
    assert not plain.call("submit", name="table", file="table.json").ok
    plain.call("http", url="https://orders.corp/", save="table.json")
    assert plain.session._folder.read("table.json").startswith(b"{")


def test_events_come_by_time_or_by_the_share_that_is_settled(desk):
    seed = next(s for s in range(cases.FIRST, 11_000) if cases.world("credits", 3, s).events)
    world = cases.world("credits", 3, seed)
    by_time, by_share = desk("credits", 3, seed), desk("credits", 3, seed)
    for _ in range(2):
        by_time.call("wait", seconds=60 * 100)
    names = {event.name for event in world.events}
    assert by_time.session.state.happened == names
    rows = [dict(item.answer) for item in cases.final_truth(world).items]
    free = {event.unless_settled for event in world.events}
    rows = [row for row in rows if row["request"] not in free]
    by_share.call("http", method="POST", url="https://desk.corp/decisions", body=rows)
    assert by_share.session.state.happened == names
    assert by_share.now_ms == MINUTE_MS


def test_handing_in_makes_nothing_happen(desk):
    seed = next(s for s in range(cases.FIRST, 11_000) if cases.world("credits", 3, s).events)
    one = desk("credits", 3, seed)
    one.call("submit", name="table", rows=[])
    one.call("submit", name="exceptions", rows=[])
    assert one.session.state.happened == frozenset()


def test_the_desk_closes(desk):
    one = desk(tier=1)
    for _ in range(3):
        one.call("wait", seconds=60 * 200)
    body = {"request": "R-01", "decision": "refuse", "code": "sender"}
    result = one.call("http", method="POST", url="https://desk.corp/decisions", body=body)
    assert "HTTP 409" in result.text
    assert one.session.state.settled == {}


def test_a_call_that_must_be_confirmed_counts_when_it_is(desk):
    seed = cases.FIRST
    one = desk("credits", 1, seed, 1.0)
    call = next(c for host in one.session._world.hosts for c in host.calls if c.call == "decide")
    assert call.confirm
    body = [{"request": "R-01", "decision": "refuse", "code": "sender"}]
    reply = one.get("https://desk.corp/decisions", method="POST", body=body)
    assert one.session.state.settled == {}
    url = f"https://desk.corp{call.confirm}"
    assert not one.call("http", method="POST", url=url, body={"receipt": "other"}).ok
    one.get(url, method="POST", body=reply)
    assert set(one.session.state.settled) == {"R-01"}
    assert not one.call("http", method="POST", url=url, body=reply).ok


def test_people_answer_one_thing_a_message_later_and_only_what_they_know(desk):
    one = desk(tier=3)
    people = json.loads(one.call("chat", op="people").text.split("\n", 1)[1])
    by_role = {person["role"]: person["id"] for person in people}
    clerk = by_role["Receivables Clerk"]
    assert one.call("chat", op="ask", to=clerk, text="How long is the limit?").ok
    one.call("chat", op="ask", to=clerk, text="policy rules, limits, who may approve?")
    one.call("chat", op="ask", to=by_role["Tax Specialist"], text="How long is the limit?")
    assert not one.call("chat", op="ask", to="nobody", text="?").ok
    early = json.loads(one.call("chat", op="read").text.split("\n", 1)[1])
    assert [talk["answer"] for talk in early] == [None] * 3
    one.call("wait", seconds=60 * 60)
    first, second, third = json.loads(one.call("chat", op="read").text.split("\n", 1)[1])
    assert "From memory" in first["answer"]
    assert "Which one" in second["answer"]
    assert "not my area" in third["answer"]


def test_controls_are_in_order(tmp_path):
    score = {}
    for name, make in cases.SUITE.policies.items():
        episode = Episode(
            cases.SUITE, cases.timeline(tier=2), sink=NullSink(), terms=EpisodeTerms()
        )
        episode.begin()
        policy = make(episode.oracle_access())
        policy.reset(_brief(episode), (), tmp_path)
        while episode.ending is None:
            episode.step(policy.act({"text": ""}, {}))
        episode.close()
        score[name] = episode.ending.q_state
    assert score["oracle"] == 1.0
    assert score["noop"] == score["random"] == score["leak_probe"] == 0.0
    assert score["plausible_wrong"] <= 0.3
    assert score["over_doer"] < THETA


def _brief(episode):
    from owa_bench.interfaces import Brief

    return Brief(text=episode.task.text, goal=episode.task.goal)


def test_the_brief_is_a_page_of_rules():
    for tier in TIERS:
        text = cases.SUITE.session(cases.timeline(tier=tier), NullSink(), None).task.text
        assert len(text) <= 3_500
        assert text.isascii()
        assert all(f"## {head}" in text for head in ("Deliver", "Rules", "Judged"))


def test_tables_and_columns_are_told_apart_by_their_words():
    abouts = [about for words in TABLES.values() for about in words.about]
    assert len(abouts) == len(set(abouts))
    for words in TABLES.values():
        assert len(set(words.columns.values())) == len(words.columns)


# --- what disqualifies ----------------------------------------------------------------


def posted(reads):
    """Return the breaches of an agent that posts the truth, with or without reading first."""
    world = cases.world(tier=1)
    timeline = cases.timeline(tier=1)
    state = cases.state_of(world, cases.final_truth(world))
    if reads:
        state = replace(state, served=needed_texts(world).names)
    (detector,) = cases.SUITE.detectors
    return detector.inspect(timeline, state, ())


def test_right_answers_of_somebody_who_read_nothing_disqualify():
    first, second = posted(reads=False)
    assert "credit-policy was never read" in first
    assert "12 of 12" in second
    assert posted(reads=True) == ()
