"""What a machine lacks is said before anything is played, with the way to get it."""

import importlib.util

import pytest

from owa_bench.envs.changesurf.browser import host as browser

RUN = "run --suite changesurf --family stay/find --tier 1 --delta 0 --agent noop"


@pytest.fixture
def bare(place, monkeypatch):
    """A machine on which no program is found; the home folder is empty."""
    monkeypatch.setenv("PATH", str(place / "no-programs"))
    monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH", raising=False)
    monkeypatch.delenv("OWA_CHROMIUM", raising=False)
    there = importlib.util.find_spec
    monkeypatch.setattr(
        browser.importlib.util,
        "find_spec",
        lambda name: name if name == "playwright" else there(name),
    )
    return place


def test_without_a_browser_nothing_is_played(owa, bare):
    said = owa(f"{RUN} --out r")
    assert said.code == 3
    assert "A Chromium browser is not installed" in said.err
    for way in (
        "playwright install --only-shell chromium",
        "apt-get install chromium-headless-shell",
        "OWA_CHROMIUM=",
    ):
        assert way in said.err
    assert said.err.count("\n") == 1
    assert not (bare / "r").exists()


def test_a_plan_can_be_signed_where_no_browser_is(owa, bare):
    assert owa(f"{RUN} --out r --plan-only").code == 0
    said = owa("run --out r --resume")
    assert said.code == 3
    assert not list((bare / "r" / "trace").glob("*"))


def test_playwrights_own_browser_is_enough(bare, monkeypatch):
    monkeypatch.setattr(browser, "_require_node", lambda: None)
    folder = bare / "home" / ".cache" / "ms-playwright" / "chromium_headless_shell-1"
    folder.mkdir(parents=True)
    with pytest.raises(browser.MissingPartError):
        browser.require()
    (folder / "INSTALLATION_COMPLETE").touch()
    browser.require()


def test_without_playwright_its_extra_is_named(bare, monkeypatch):
    monkeypatch.setattr(browser.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(browser.MissingPartError, match=r"owa_bench\[browser\]"):
        browser.require()


def test_a_named_browser_must_run(owa, bare, monkeypatch):
    monkeypatch.setenv("OWA_CHROMIUM", str(bare / "nothing"))
    said = owa(f"{RUN} --out r")
    assert said.code == 2
    assert "`OWA_CHROMIUM` must name a Chromium that can be run" in said.err
    assert owa("doctor").code == 0
    named = bare / "my-chromium"
    named.write_text("#!/bin/sh\n")
    named.chmod(0o755)
    monkeypatch.setenv("OWA_CHROMIUM", str(named))
    assert browser.find_browser() == str(named)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "echo 'node: error while loading shared libraries: libatomic.so.1: cannot "
            "open shared object file' >&2; exit 127",
            "libatomic.so.1, which the node of Playwright needs, is not installed. "
            "Install it with: apt-get install libatomic1",
        ),
        ("echo 'libfoo.so.3: no such file' >&2; exit 1", "holds libfoo.so.3"),
        ("echo broken >&2; exit 1", "A node that Playwright can start (broken) is not installed"),
        (None, "No such file or directory"),
    ],
)
def test_a_node_that_does_not_start_says_what_it_lacks(owa, bare, monkeypatch, script, words):
    driver = pytest.importorskip("playwright._impl._driver")
    node = bare / "node"
    if script:
        node.write_text(f"#!/bin/sh\n{script}\n")
        node.chmod(0o755)
    monkeypatch.setattr(driver, "compute_driver_executable", lambda: (node, "cli.js"))
    chromium = bare / "chromium"
    chromium.write_text("#!/bin/sh\n")
    chromium.chmod(0o755)
    monkeypatch.setenv("OWA_CHROMIUM", str(chromium))
    assert words in owa("doctor").out
    said = owa(f"{RUN} --out r")
    assert said.code == 3
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not (bare / "r").exists()
