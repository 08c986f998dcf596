"""A person's session in the page: a real Chromium, driven by the keyboard."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from owa_bench.bridges.person_page import PageScreen
from owa_bench.envs.changesurf.browser.host import find_browser
from owa_bench.errors import UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement, verify
from owa_bench.runs.store import files, keys


def post(url, **answer):
    body = json.dumps(answer).encode()
    with urllib.request.urlopen(f"{url}answer", body, timeout=60) as reply:
        return json.load(reply)["refused"]


def test_the_page_answers_under_its_own_path_alone_and_refuses_nonsense():
    with PageScreen(0) as screen:
        with urllib.request.urlopen(screen.url, timeout=60) as reply:
            page = reply.read().decode()
            policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert not re.search(r"https?://|src=|@import|url\(", page)
        other = re.sub(r"/[^/]+/$", "/guessed/", screen.url)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(other, timeout=60)
        assert "no meaning now" in post(screen.url, serial=0, kind="act")
        assert "not up to date" in post(screen.url, serial=7, kind="begin")
        assert "driven by a program" in post(screen.url, serial=0, kind="begin", driven=True)
        assert "Expected" in post(screen.url, serial="x", kind="begin")


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"Port {port} of 127.0.0.1 cannot"):
            PageScreen(port)


@pytest.fixture
def server(tmp_path):
    """Return a function that starts `owa-bench play --page`; the process, its URL."""
    started = []
    environment = {**os.environ, "OWA_BENCH_HOME": str(tmp_path / "home")}

    def start(*flags):
        words = ["play", "--page", "--out", str(tmp_path / "run"), *flags]
        process = subprocess.Popen(
            [sys.executable, "-m", "owa_bench", *words],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        line = process.stderr.readline()
        found = re.search(r"play at (http://\S+)", line)
        assert found, line + process.stderr.read()
        return process, found[1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture
def page():
    """A page of a headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser())
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def picture(page, name):
    """Keep a picture where OWA_PICTURES names a folder."""
    if folder := os.environ.get("OWA_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


TWO = ("--family", "reconcile,sla_report", "--person", "ada", "--scripted")


@pytest.mark.slow
@pytest.mark.browser
def test_a_person_plays_with_the_keyboard_stops_and_goes_on(server, page, tmp_path):
    process, url = server(*TWO)
    page.goto(url)
    page.get_by_text("ToolQuest: episode 1 of 2").wait_for()
    picture(page, "1-begin")
    page.keyboard.press("Enter")  # the button Begin has the focus
    page.get_by_text("200 steps left").wait_for()
    assert "Reconcile the ledger" in page.inner_text("#main")
    page.locator("summary", has_text="vault").focus()
    page.keyboard.press("Enter")
    picture(page, "2-act")
    page.locator("details[open] input[name=name]").press("Enter")
    page.get_by_text("199 steps left").wait_for()
    assert '"entries"' in page.inner_text("#exchanges")
    assert page.get_by_role("button", name="Pause").is_visible()
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused: the time stands still.").wait_for()
    assert "Reconcile" not in page.content()
    picture(page, "3-paused")
    page.get_by_role("button", name="Go on").click()
    page.get_by_text("199 steps left").wait_for()
    page.locator("summary", has_text="wait").click()
    page.locator("input[name=seconds]").fill("99999")
    page.evaluate("document.querySelector('details[open] form').noValidate = true")
    page.locator("input[name=seconds]").press("Enter")
    page.get_by_role("alert").wait_for()
    assert "must be at most 3600" in page.inner_text("#error")
    picture(page, "4-refused")
    page.reload()  # what happened in this sitting is still there
    page.get_by_text("199 steps left").wait_for()
    assert '"entries"' in page.inner_text("#exchanges")
    page.locator("summary", has_text="finish").click()
    page.locator("details[open] input[name=p]").fill("0.4")
    picture(page, "5-finish")
    page.locator("details[open] input[name=p]").press("Enter")
    page.get_by_text("Episode 2 of 2").wait_for()
    assert "Reconcile" not in page.content()  # a new page, without history
    page.get_by_role("button", name="Stop here").click()
    page.get_by_text("This session is over.").wait_for()
    _, said = process.communicate(timeout=60)
    assert "1 of 2 episodes complete" in said
    process, url = server("--resume")
    page.goto(url)
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("200 steps left").wait_for()
    assert '"entries"' not in page.content()
    page.locator("summary", has_text="declare_infeasible").click()
    page.locator("details[open] input[name=p]").fill("1")
    page.locator("details[open] input[name=p]").press("Enter")
    page.get_by_text("This session is over.").wait_for()
    _, said = process.communicate(timeout=60)
    assert "2 of 2 episodes complete" in said
    layout = RunLayout(tmp_path / "run")
    complete = [o for o in files.read_leaves(layout) if o.status == "complete"]
    found = [files.read_trace(layout, leaf).end for leaf in complete]
    assert [(end.outcome, end.steps, end.stated) for end in found] == [
        ("finished", 2, 0.4),
        ("infeasible", 1, 1.0),
    ]
    statement.write(layout.root, keys.load(tmp_path / "home", keys.DEFAULT))
    assert [check for check in verify.verify(layout.root) if not check.ok] == []


@pytest.mark.slow
@pytest.mark.browser
def test_a_driven_browser_cannot_pass_for_a_person(server, page, tmp_path):
    _, url = server("--family", "reconcile", "--person", "ada")
    page.goto(url)
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("alert").wait_for()
    assert "driven by a program" in page.inner_text("#error")
    assert "Reconcile" not in page.content()
