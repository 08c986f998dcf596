"""A ChangeSurf task under BrowserGym: the visit here, whole episodes where it is.

BrowserGym pins an old Playwright, so the last tests run under a Python of its own:
`python -m pytest tests/bridges/test_browsergym.py` there, with BrowserGym installed.
"""

import importlib.util
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from owa_bench.bridges import browsergym as bridge
from owa_bench.errors import InstanceError, MissingPartError, extra

EXAMPLE = Path(__file__).parents[2] / "examples" / "browsergym_task.py"
HERE = importlib.util.find_spec("browsergym") is not None
needs_browsergym = pytest.mark.skipif(
    not HERE, reason=f"BrowserGym is not installed: {extra('browsergym')}"
)
GREETING = {"role": "assistant", "message": "Hi!"}
GOAL = {"role": "user", "message": "Book a room."}
DONE = {"role": "assistant", "message": "done"}
GIVEN_UP = {"role": "infeasible", "message": "no"}


@pytest.fixture
def visit():
    visit = bridge.Visit(bridge.timeline_of("stay/book", 3))
    yield visit
    visit.close()


def test_the_site_is_served_under_localhost_and_nothing_else_is_inside(visit):
    address = visit.served.address
    assert not visit.outside.match(address)
    port = visit.served.server.port
    for url in ("https://example.com/", f"http://127.0.0.1:{port}/", "http://a.localhost/"):
        assert visit.outside.match(url), url
    assert "Book the room" in visit.served.instructions
    assert "Password" in visit.served.instructions


def test_what_is_asked_for_outside_is_refused_and_told(visit):
    answers = []
    route = SimpleNamespace(
        request=SimpleNamespace(url="https://example.com/"),
        fulfill=lambda **given: answers.append(given),
    )
    visit.refuse(route)
    assert answers == [{"status": 204}]
    assert visit.verdict("finished").rules == ("out_of_sandbox",)


@pytest.mark.parametrize(
    ("messages", "outcome"),
    [
        ([GREETING, GOAL], None),
        ([GREETING, GOAL, DONE], "finished"),
        ([GREETING, GOAL, GIVEN_UP], "infeasible"),
    ],
)
def test_a_message_to_the_user_ends_a_visit_and_the_greeting_is_none(visit, messages, outcome):
    assert visit.outcome(messages) == outcome


def test_saying_done_without_doing_it_is_worth_nothing(visit):
    assert visit.verdict("finished").reward == 0.0
    assert visit.verdict("infeasible").reward == 0.0


def test_what_cannot_be_done_is_worth_saying_so():
    visit = bridge.Visit(bridge.timeline_of("stay/book-honeypot", 3))
    assert visit.next_step(()).op == "infeasible"
    assert visit.verdict("finished").reward == 0.0
    assert visit.verdict("infeasible").reward == 1.0
    visit.close()


def test_time_passes_between_requests_too(visit):
    before = visit.state.site.now_ms
    time.sleep(0.02)
    assert visit.state.site.now_ms > before
    assert visit.served.site.state.now_ms == 0  # nobody asked for a page yet


def test_a_closed_visit_serves_no_more(visit):
    other = bridge.Visit(bridge.timeline_of("depot/buy", 1, delta=0.5))
    assert other.timeline.instance.drift_step > 0
    address = f"http://127.0.0.1:{other.served.server.port}/"
    other.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=60)


def test_an_unknown_family_is_refused():
    with pytest.raises(InstanceError, match="stay/sleep"):
        bridge.timeline_of("stay/sleep", 1)


@pytest.mark.skipif(HERE, reason="BrowserGym is installed")
def test_without_browsergym_the_bridge_says_how_to_get_it():
    with pytest.raises(MissingPartError, match=r"owa_bench\[browsergym\]"):
        bridge.register()


# --- under BrowserGym -----------------------------------------------------------------


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("browsergym_task", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.use_installed_browser()
    return module


@needs_browsergym
@pytest.mark.browser
@pytest.mark.timeout(900)  # BrowserGym takes seconds a step on a busy machine
@pytest.mark.parametrize(
    ("family", "task"),
    [
        ("depot.return", {}),
        ("ledger.reverse", {"tier": 1, "delta": 0.5}),
        ("stay.book-honeypot", {}),
    ],
)
def test_browsergym_plays_a_task_with_its_own_actions(example, family, task):
    assert example.play(family, seed=3, **task) == 1.0


@needs_browsergym
@pytest.mark.browser
@pytest.mark.timeout(900)  # BrowserGym takes seconds a step on a busy machine
def test_an_empty_handed_agent_and_a_wanderer_get_nothing(example):
    import gymnasium

    bridge.register()
    env = gymnasium.make(
        "browsergym/owa_bench.depot.buy", pre_observation_delay=0.0, disable_env_checker=True
    )
    observation, _ = env.reset(seed=1)
    assert "Buy" in observation["goal"]
    observation, reward, over, *_ = env.step('goto("https://example.com/")')
    assert (reward, over) == (0.0, False)
    assert "localhost" in observation["url"]
    *_, reward, over, _, info = env.step('send_msg_to_user("done")')
    assert (reward, over) == (0.0, True)
    assert info["task_info"]["violations"] == ["out_of_sandbox"]
    env.close()


@needs_browsergym
@pytest.mark.browser
@pytest.mark.timeout(900)  # BrowserGym takes seconds a step on a busy machine
def test_the_task_can_cheat_as_browsergym_asks(example):
    import gymnasium

    bridge.register()
    env = gymnasium.make(
        "browsergym/owa_bench.depot.buy",
        task_kwargs={"delta": 1.0},
        pre_observation_delay=0.0,
        disable_env_checker=True,
    )
    env.reset(seed=2)
    playing = env.unwrapped
    playing.task.cheat(playing.page, playing.chat.messages)
    *_, reward, over, _, _ = env.step('send_msg_to_user("done")')
    assert (reward, over) == (1.0, True)
    env.close()
