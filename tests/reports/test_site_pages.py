"""Site of a run in a real browser, from the disk: every suite, no agent's script."""

import io
import re

import msgspec
import numpy as np
import pytest

from benchmarks.report_pages import browser
from owa_bench.records.events import Action, Artifact, ModelCall
from owa_bench.records.layout import RunLayout
from owa_bench.reports.page.site import write_site
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from tests.builders.run_directory import make_plan, make_run
from tests.golden.test_stored_runs import ARCHIVES, unpack

pytestmark = [pytest.mark.slow, pytest.mark.browser]
HOSTILE = '</pre><script>document.title="owned"</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


class Window:
    """A window that notes errors, and whatever it loads that is no file of the site."""

    def __init__(self, chromium, page):
        self.page = page
        self.faults = []
        self.tab = chromium.new_page(viewport={"width": 1280, "height": 900})
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.on("console", lambda said: self.faults.append(said.text))
        self.tab.on("request", self._asked)

    def _asked(self, request):
        if not request.url.startswith(self.page.parent.as_uri()):
            self.faults.append(request.url)

    def go(self, place):
        self.tab.goto(f"{self.page.as_uri()}#{place}")
        self.tab.wait_for_selector(f"html[data-ready='#{place}']")

    def until(self, expression):
        for _ in range(200):
            if self.tab.evaluate(expression):
                return
            self.tab.wait_for_timeout(50)
        pytest.fail(f"{expression} did not become true")

    def text(self, selector):
        return self.tab.inner_text(selector)

    def count(self, selector):
        return self.tab.locator(selector).count()


@pytest.fixture
def opened(chromium, tmp_path):
    """Return a function that writes a run's site and opens it."""
    windows = []

    def open_site(run_dir):
        made = write_site(run_dir, tmp_path / f"site{len(windows)}")
        windows.append(Window(chromium, made.page))
        return windows[-1]

    yield open_site
    for window in windows:
        window.tab.close()
        assert window.faults == []


def hostile(entry, events):
    """Return events whose action, model's reply and reason try to be markup."""
    call = ModelCall(step=1, source="harness", model=HOSTILE, prompt="", reply="", status=200)
    made = [
        msgspec.structs.replace(event, action=HOSTILE)
        if isinstance(event, Action) and event.step == 1
        else event
        for event in events
    ]
    end = msgspec.structs.replace(made.pop(), reason=HOSTILE)
    return [*made, call, end]


HASTY = '''
class Hasty:
    """Presses down until it is stopped, and sends four commands that cannot be read."""

    def reset(self, brief, tools, memory_dir):
        self.tick = 0

    def act(self, observation, info):
        self.tick += 1
        return "none" if self.tick in (5, 6, 7, 8) else [0.1, 0.0, -1.0, 0.0, 1.0, 1.0]

    def close(self):
        pass


AGENT = Hasty
'''


def test_an_attempt_of_a_body_shows_commands_incidents_and_exposure(opened, tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "hasty.py").write_text(HASTY)
    agents = ("arm_adaptive", "random", str(tmp_path / "hasty.py"))
    draw = Draw(name="robosim2real", families=("reach",), tiers=(1,), deltas=(0.0,), repeats=1)
    run = tmp_path / "run"
    batch.play(
        Request(agents=agents, draws=(draw,)),
        run,
        RunOptions(home=tmp_path / "home", in_process=True),
    )
    window = opened(run)
    window.go("")
    names = window.tab.locator("#episodes tbody tr").all_inner_texts()
    for width in (1280, 390):
        window.tab.set_viewport_size({"width": width, "height": 900})
        for line in names:
            name = line.split()[0]
            window.go(name)
            assert window.count("svg[aria-label='commands over time'] path") == 6
            assert window.count("svg[aria-label='commands over time'] text:has-text('tool x')") == 1
            assert window.count("svg[aria-label='exposure'] rect") == 2
            wide = window.tab.evaluate("document.documentElement.scrollWidth")
            assert wide == width
            hasty = "hasty" in line
            assert window.count("svg[aria-label='incidents over time'] circle") >= hasty
            if hasty:
                table = window.text("#episode table")
                assert "commands that cannot be read" in table
                assert "near miss" in table
            window.go("")


def test_a_list_is_searched_chosen_and_sorted(opened, tmp_path):
    layout = make_run(tmp_path / "run", make_plan(2))
    window = opened(layout.root)
    window.go("")
    rows = "#episodes tbody tr"
    assert window.count(rows) == 48
    window.tab.select_option("select[name=agent]", "fixed")
    assert window.count(rows) == 24
    window.tab.fill("input[type=search]", "restock")
    assert window.count(rows) == 8
    window.tab.click("th:has-text('quality')")
    places = window.tab.locator(f"{rows} td:nth-child(7)").all_inner_texts()
    assert places == sorted(places)
    window.tab.click("th:has-text('quality')")
    first = window.tab.locator(f"{rows} td:first-child a").first
    name = first.inner_text()
    first.click()
    window.tab.wait_for_selector(f"html[data-ready='#{name}']")
    assert name in window.text("h2")
    window.tab.click("text=all attempts")
    window.tab.wait_for_selector("#list:not([hidden])")
    assert window.count(rows) == 8  # the filters are kept


def test_an_episode_shows_steps_drift_subgoals_and_costs(opened, tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    window = opened(layout.root)
    window.go("000004.0/3")  # drifted
    text = window.text("#episode")
    for words in ("Drift at 0 ms: api/field_rename", "✓ node:1", "api_calls 1", "p0: true"):
        assert words in text
    facts = window.text("dl.facts")
    assert "own cost" in facts
    assert "USD (simulated, paid by nobody); " in facts
    assert "q_state" not in facts
    assert "step 3" in window.text(".step.here")
    window.tab.click("#step-3 summary:has-text('response')")
    window.tab.wait_for_selector("#step-3 details[open] pre")
    assert " 3 " in window.text("#step-3 details[open] pre")
    window.go("nothing.0")
    assert "holds no attempt nothing.0" in window.text("#fault")


def test_what_an_agent_wrote_is_text(opened, tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1, name=HOSTILE), edit=hostile)
    window = opened(layout.root)
    for place in ("", "000000.0"):
        window.go(place)
        assert "owned" not in window.tab.title() or HOSTILE in window.tab.title()
        assert window.count("img") == 0
        assert window.count("script") >= 2
    assert HOSTILE in window.text("#step-1")
    assert HOSTILE in window.text("dl.facts")


def test_a_cart_pole_is_played_and_stepped(opened, tmp_path):
    table = np.zeros((5, 18), dtype=np.float32)
    table[:, 7] = 1.0  # the pole stands
    table[:, 11] = 1.0  # one ball
    table[:, 12] = np.arange(5)
    buffer = io.BytesIO()
    np.save(buffer, table)
    plan = make_plan(1)
    layout = RunLayout(tmp_path / "run")

    def edit(entry, events):
        media = "application/x-npy"
        blob = blobs.setdefault("blob", "")
        artifact = Artifact(step=4, name="observations", media=media, blob=blob)
        return [*events[:-1], artifact, events[-1]]

    blobs = {"blob": packed(layout, buffer.getvalue())}
    make_run(layout.root, plan, edit=edit)
    window = opened(layout.root)
    window.go("000000.0")
    drawn = "document.querySelector('canvas').toDataURL()"
    window.until("document.querySelector('.bar a').textContent !== ''")
    before = window.tab.evaluate(drawn)
    window.tab.click("button:has-text('+1')")
    assert "step 1, pole 0.00°" in window.text(".player")
    assert window.tab.evaluate(drawn) != before
    window.tab.click("button:has-text('play')")
    window.until("document.querySelector('.bar a').textContent.startsWith('step 4')")


def packed(layout, data):
    """Write a pack of one blob beside those of the run, and return its digest."""
    from owa_bench.canonical import sha256
    from owa_bench.records.packs import PackEncoder

    encoder = PackEncoder()
    encoder.add(data)
    layout.blobs.mkdir(parents=True)
    layout.pack(90).write_bytes(encoder.finish())
    return sha256(data)


def test_changesurf_shows_pictures_and_dom(opened, tmp_path):
    (archive,) = [path for path in ARCHIVES if path.name.startswith("web")]
    window = opened(unpack(archive, tmp_path))
    window.go("000001.0")
    window.tab.locator("#episode img").first.scroll_into_view_if_needed()
    window.until("document.querySelector('#episode img').naturalWidth > 100")
    window.tab.locator("summary:has-text('dom')").first.click()
    window.tab.wait_for_selector("details[open] pre")
    assert "<html" in window.text("details[open] pre")
    assert 'link "' in window.text("#episode")


SUITES = {  # an agent, a draw, and texts that the page of its last episode must show
    "toolquest": ("agentic", "restock", 1.0, ("Drift at 0 ms: ", " changes: api/")),
    "recall": ("exact_store", "retrieval", 0.5, ("memory check", "sitting 2")),
    "multicrew": ("fifo", "schedule", 0.5, ("Message from ", "board: ", "lead")),
    "selfrev": ("revise_greedy", "memory", 0.0, ("batch d1: 12 attempts of ", "adopted")),
    "projforge_fast": ("codemod", "billing", 0.5, ("30 days simulated", "sitting 2")),
    "changesurf": ("oracle", "depot/quote", 1.0, ("Drift as the agent sees it: ",)),
    "cartpole3d": ("pd", "table1/1", 0.5, ("physics/cart_mass", "reward 0.005")),
}
WIDTHS = (1280, 390)  # px: of a notebook, of a phone


@pytest.mark.parametrize("suite", SUITES)
def test_an_episode_of_every_suite_is_read_at_both_widths(opened, suite, tmp_path):
    if suite == "cartpole3d":
        pytest.importorskip("pybullet")
    agent, family, delta, texts = SUITES[suite]
    draw = Draw(name=suite, families=(family,), tiers=(1,), deltas=(delta,), episodes=1)
    batch.play(
        Request(agents=(agent,), draws=(draw,), name=suite),
        tmp_path / "run",
        RunOptions(home=tmp_path / "home"),
    )
    window = opened(tmp_path / "run")
    window.go("")
    name = window.tab.evaluate("order")[-1]
    window.go(name)
    window.until("document.querySelectorAll('.step').length > 3")
    page = window.tab.text_content("#episode")
    for text in texts:
        assert text in page
    assert '{"' not in "".join(window.tab.locator(".step > p").all_inner_texts())
    assert not re.search(r"\b[0-9a-f]{64}\b", page.replace(name, ""))
    assert len(window.tab.locator(".struck").all()) < 30
    for width in WIDTHS:
        window.tab.set_viewport_size({"width": width, "height": 900})
        assert window.tab.evaluate("document.documentElement.scrollWidth") <= width
        top = "document.querySelector('#step-1').getBoundingClientRect().top + scrollY"
        assert window.tab.evaluate(top) < 1.5 * 900, width


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_every_page_of_the_stored_runs_opens(opened, archive, tmp_path):
    window = opened(unpack(archive, tmp_path))
    window.go("")
    names = window.tab.evaluate("order")
    assert names
    for name in names[:: max(1, len(names) // 12)]:
        window.go(name)
        assert window.count(".step") > 0, name
        assert not window.tab.is_visible("#fault"), name
    window.go("")
    if "trials" not in archive.name:  # a native suite has no gates
        assert window.count("details a[href^='#0']") > 0
