"""The driver on a hand-made site: every way in which an input can fail or land."""

import asyncio
import json
import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest

from owa_bench.canonical import sha256
from owa_bench.envs.changesurf.browser import host as browsers
from owa_bench.envs.changesurf.browser.driver import BrowserAction, BrowserTarget
from owa_bench.envs.changesurf.browser.host import BrowserHost, Lease, find_browser
from owa_bench.envs.changesurf.browser.observation import CHECKED, page_text
from owa_bench.envs.changesurf.browser.playwright_driver import PlaywrightDriver
from owa_bench.errors import InfrastructureFailure, MissingPartError, UsageError
from tests.builders.slices import WHOLE
from tests.builders.small_site import HOST, SmallSite

pytestmark = [pytest.mark.browser, pytest.mark.part(3)]


class Visit:
    """A driver on a small site, with controls found by their names."""

    def __init__(self) -> None:
        self.site = SmallSite()
        self.driver = PlaywrightDriver()
        self.seen = self.driver.open(self.site.place)

    def ref(self, name):
        return self.control(name).ref

    def control(self, name):
        return next(c for c in self.seen.page.controls if c.name == name)

    def do(self, op, name="", text=""):
        self.seen = self.driver.act(BrowserAction(op, self.ref(name) if name else 0, text))
        return self.seen


@pytest.fixture
def visit(browser):
    visit = Visit()
    yield visit
    visit.driver.close()


def test_the_page_reads_in_order(visit):
    assert page_text(visit.seen.page, room=4000).splitlines()[2:] == [
        "# Counter",
        "The count is 0. Cookie: none.",
        '[1] button "Add one"',
        '[2] textbox "Your name" = "old" (required)',
        '[3] combobox "Colour" = "Red" options: Red | Green | Blue',
        '[4] checkbox "I agree" (not checked)',
        '[5] button "Save"',
        '[6] button "Off" (disabled)',
        '[7] button "Under"',
        '[8] button "Swap"',
        '[9] button "Drop me"',
        '[10] link "Next page"',
        '[11] link "Away"',
        '[12] link "Export"',
        '[13] link "Late"',
        '[14] button "Keep"',
        "| Room | Price |",
        "| Blue | 80 |  |",
        '[15] button "Book"',
        '[16] button "In the shadow"',
        "Inner 0",
        '[17] button "Inside"',
        '[18] button "Far below"',
    ]
    assert visit.control("Book").group == "Blue"


def test_a_long_page_is_cut_and_read_on(visit):
    short = page_text(visit.seen.page, room=210)
    assert short.endswith("more lines below: read from line 4]")
    rest = page_text(visit.seen.page, room=4000, first=4)
    assert '[2] textbox "Your name"' in rest
    assert "# Counter" not in rest


def test_a_click_submits_and_the_new_page_is_seen(visit):
    seen = visit.do("click", "Add one")
    assert seen.navigated
    assert seen.page.reached
    assert "The count is 1. Cookie: yes." in seen.page.lines


def test_a_form_is_filled_and_sent(visit):
    visit.do("type", "Your name", "Zo\u00eb \u20ac5")
    visit.do("select", "Colour", "Green")
    assert visit.do("click", "I agree").page.control(4).has(CHECKED)
    visit.do("click", "Save")
    assert visit.site.saved == {"who": "Zo\u00eb \u20ac5", "colour": "g", "ok": "on"}


def test_an_empty_required_field_stays_and_says_why(visit):
    visit.do("type", "Your name", "")
    seen = visit.do("click", "Save")
    assert not seen.navigated
    assert visit.control("Your name").fault
    assert visit.site.saved == {}


def test_enter_in_a_field_sends_its_form(visit):
    visit.do("type", "Your name", "Bo")
    assert visit.do("press", text="Enter").navigated
    assert visit.site.saved["who"] == "Bo"


@pytest.mark.parametrize(
    ("op", "name", "text", "refusal", "word"),
    [
        ("click", "Off", "", "disabled", "disabled"),
        ("click", "Under", "", "covered", 'covered by div "Curtain"'),
        ("type", "Save", "x", "unfit", "takes no text"),
        ("select", "Colour", "Mauve", "unfit", "'Green'"),
        ("select", "Colour", "Blue", "disabled", "'Blue'"),
        ("click", "Colour", "", "unfit", "use select"),
    ],
)
def test_a_refused_input_says_why(visit, op, name, text, refusal, word):
    before = visit.seen.page.digest()
    seen = visit.do(op, name, text)
    assert seen.refusal == refusal
    assert word in seen.reason
    assert seen.page.digest() == before


def test_what_is_gone_is_said_to_be_gone(visit):
    ref = visit.ref("Drop me")
    visit.do("click", "Drop me")
    seen = visit.driver.act(BrowserAction("click", ref))
    assert seen.refusal == "gone"
    assert visit.driver.act(BrowserAction("click", 4711)).refusal == "gone"


def test_client_side_swaps_are_waited_for(visit):
    seen = visit.do("click", "Swap")
    assert not seen.navigated
    assert "Swapped in" in seen.page.lines
    assert visit.control("New control").ref == 19  # numbers stay within a document


def test_what_is_in_a_shadow_a_frame_or_far_below_can_be_clicked(visit):
    assert visit.do("click", "In the shadow").page.reached
    assert visit.do("click", "Far below").page.reached
    seen = visit.do("click", "Inside")
    assert "Inner 10" in seen.page.lines


def test_a_page_that_leaves_at_once_is_followed(visit):
    assert visit.do("click", "Late").page.title == "Next"


def test_back_and_paths(visit):
    visit.do("click", "Next page")
    assert visit.do("back").page.title == "Home"
    assert visit.do("back").refusal == "unfit"
    assert visit.do("goto", text="/slow").page.title == "Next"
    assert visit.do("goto", text="/empty").page.title == "Next"


def test_going_back_sends_no_form_a_second_time(visit):
    visit.do("click", "Keep")
    assert (visit.site.kept, visit.seen.page.title) == (1, "Kept")
    visit.do("click", "Home")
    assert visit.do("back").page.title == "Kept"
    assert visit.site.kept == 1
    asked = [e for e in visit.driver.exchanges() if e.url.endswith("/keep")]
    assert [(e.method, e.request_body) for e in asked] == [("POST", b"kept=1"), ("GET", b"")]
    visit.do("click", "Keep again")
    assert visit.site.kept == 2


def test_foreign_addresses_are_refused_and_logged(visit):
    seen = visit.do("click", "Away")
    assert "no address of this site" in seen.note
    assert seen.page.title == "Home"
    assert visit.do("goto", text="https://foreign.example/y").refusal == "outside"
    denied = [e.url for e in visit.driver.exchanges() if e.denied]
    assert denied == ["https://foreign.example/pixel.png", "https://foreign.example/x"]


@pytest.mark.parametrize(
    "address",
    [
        f"javascript://{HOST}/%0Adocument.title='run'",
        f"data://{HOST}/,<title>Mine</title>",
        f"file://{HOST}/etc/passwd",
        f"ftp://{HOST}/",
        f"view-source://{HOST}/",
        f"http://{HOST}/slow",
        f"https://{HOST}:99999/slow",
        f"https://{HOST}:port/slow",
        f"https://me@{HOST}/slow",
        "https://[::1",
    ],
)
def test_no_address_says_a_script_or_fails_the_harness(visit, address):
    seen = visit.do("goto", text=address)
    assert seen.refusal == "outside"
    assert (seen.page.title, seen.page.url) == ("Home", f"https://{HOST}/")
    assert visit.do("click", "Add one").page.reached


def test_an_address_of_the_icon_is_an_address_like_any_other(visit):
    # Asked for by the browser itself it is left out of every record.
    assert visit.do("goto", text="/favicon.ico").page.lines == ("Not Found",)


def test_a_download_is_told_and_changes_no_page(visit):
    seen = visit.do("click", "Export")
    assert "a,b\n1,2" in seen.note
    assert seen.page.title == "Home"


def test_input_is_trusted_and_the_observer_leaves_no_mark(browser):
    page = (
        '<title>T</title><body><button id=b onclick="document.title='
        '[event.isTrusted, typeof owa, document.body.attributes.length].join()">'
        "Go</button>"
    )

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": page.encode()})

    driver = PlaywrightDriver()
    driver.open(BrowserTarget(app, frozenset({HOST}), f"https://{HOST}/"))
    assert driver.act(BrowserAction("click", 1)).page.title == "true,undefined,0"
    driver.close()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("document.getElementById('swap').click()", True),
        # As on a site whose own script sends its forms.
        (
            "document.forms[0].onsubmit = () => false;"
            "document.forms[0].dispatchEvent(new Event('submit', {cancelable: true}))",
            True,
        ),
        ("document.title", False),
    ],
)
def test_what_a_script_presses_or_sends_is_told_of(visit, script, told):
    visit.driver._ask(visit.driver._tab._page.evaluate(script))
    assert bool(visit.do("look").untrusted) == told


def test_a_fault_of_the_site_is_the_harness_fault(visit):
    with pytest.raises(InfrastructureFailure, match="broken"):
        visit.do("goto", text="/fault")


def test_evidence_is_a_picture_and_two_trees(visit):
    assert visit.driver.picture()[:2] == b"\xff\xd8"
    assert b"Add one" in visit.driver.snapshot()
    assert ["button", "Add one", []] in [
        [role, name, []] for role, name, _ in json.loads(visit.driver.tree())
    ]


def test_without_a_page_the_driver_says_so():
    with pytest.raises(UsageError, match="call open first"):
        PlaywrightDriver().act(BrowserAction("look"))


# --- life and death -------------------------------------------------------------------


def _alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_closed_host_leaves_no_process():
    host = BrowserHost()
    assert _alive(host.pid)
    host.close()
    host.close()
    assert not _alive(host.pid)


def test_a_killed_browser_is_infrastructure_and_the_next_one_works(browser):
    doomed = BrowserHost()
    held, Lease._host = Lease._host, doomed
    try:
        visit = Visit()
        os.kill(doomed.pid, signal.SIGKILL)
        with pytest.raises(InfrastructureFailure):
            visit.do("click", "Add one")
        visit.driver.close()
        again = Visit()
        assert again.do("click", "Add one").page.reached
        again.driver.close()
    finally:
        if Lease._host is not None:
            Lease._host.close()
        Lease._host = held


@pytest.mark.slow
def test_a_browser_that_hangs_is_infrastructure_and_the_next_one_works(browser, monkeypatch):
    doomed = BrowserHost()
    held, Lease._host = Lease._host, doomed
    try:
        visit = Visit()
        monkeypatch.setattr(browsers, "_PATIENCE_S", 2.0)
        os.kill(doomed.pid, signal.SIGSTOP)
        with pytest.raises(InfrastructureFailure, match="did not answer"):
            visit.do("click", "Add one")
        visit.driver.close()
        monkeypatch.undo()
        again = Visit()
        assert again.do("click", "Add one").page.reached
        again.driver.close()
        assert not _alive(doomed.pid)
    finally:
        if Lease._host is not None:
            Lease._host.close()
        Lease._host = held


def test_it_works_under_a_running_loop(browser):
    async def inside():
        visit = Visit()
        seen = visit.do("click", "Add one")
        visit.driver.close()
        return seen.page.reached

    assert asyncio.run(inside())


@pytest.mark.slow
def test_threads_drive_pages_of_their_own(browser):
    counts = []

    def drive():
        visit = Visit()
        for _ in range(5):
            visit.do("click", "Add one")
        counts.append(visit.site.count)
        visit.driver.close()

    threads = [threading.Thread(target=drive) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [5, 5, 5]


def test_a_tree_holds_what_a_frame_shows(visit):
    nodes = json.loads(visit.driver.tree())
    [frame] = [node for node in nodes if node[0] == "Iframe"]
    [root] = [nodes[place] for place in frame[2]]
    assert root[0] == "RootWebArea"
    below, todo = [], [*root[2]]
    while todo:
        role, name, kids = nodes[todo.pop()]
        below.append((role, name))
        todo += kids
    assert ("button", "Inside") in below
    assert ("button", "Add one") not in below


def digests(_=None):
    """Return what three pages hash to, by look, snapshot and tree."""
    visit = Visit()
    found = []
    for step in (("look",), ("click", "Add one"), ("click", "Next page")):
        seen = visit.do(*step)
        tree, dom = visit.driver.tree(), visit.driver.snapshot()
        found.append((seen.page.digest(), sha256(tree), sha256(dom)))
    visit.driver.close()
    return found


@pytest.mark.slow
def test_spawned_workers_see_equal_hashes(browser):
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, maxtasksperchild=1) as pool:
        others = pool.map(digests, [0, 1], chunksize=1)
    assert others == [digests()] * 2


def test_no_browser_is_one_sentence(monkeypatch):
    monkeypatch.setattr(browsers, "NAMES", ())
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "nowhere")
    with pytest.raises(MissingPartError, match="chromium-headless-shell") as missing:
        BrowserHost()
    assert "\n" not in str(missing.value)
    assert find_browser() is None


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_thousands_of_steps_lose_no_click_and_see_nothing_stale(browser):
    """1,000 steps in CI, ten thousand in a long run."""
    steps = 10_000 if WHOLE else 1_000
    visit = Visit()
    fresh, swapped = 0, 0
    for step in range(1, steps + 1):
        if step % 4:
            before = visit.control("I agree").has(CHECKED)
            seen = visit.do("click", "I agree")
            swapped += visit.control("I agree").has(CHECKED) != before
        else:
            seen = visit.do("click", "Add one")
            fresh += f"The count is {step // 4}. Cookie: yes." in seen.page.lines
        assert seen.page.reached, step
    assert (fresh, swapped) == (steps // 4, steps * 3 // 4)
    running = visit.driver._lease.host.browser  # after a test that killed one: another
    contexts = len(running.contexts)
    visit.driver.close()
    assert len(running.contexts) == contexts - 1


def test_what_scrolled_out_of_its_container_stays_on_the_page(browser):
    buttons = "".join(f"<button>B{i}</button>" for i in range(80))
    page = (
        "<title>S</title><div style='width:300px;overflow:auto;white-space:nowrap'>"
        f"{buttons}</div><button style='position:absolute;left:-9999px'>Away</button>"
    )

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": page.encode()})

    driver = PlaywrightDriver()
    driver.open(BrowserTarget(app, frozenset({HOST}), f"https://{HOST}/"))
    seen = driver.act(BrowserAction("click", 80))
    assert seen.page.reached
    assert [c.name for c in seen.page.controls] == [f"B{i}" for i in range(80)]
    assert driver.act(BrowserAction("click", 1)).page.reached
    driver.close()
