"""`owa-bench view`: where the site goes, what it says, what it refuses."""

import json
from pathlib import Path

from owa_bench.reports.page import site_server


def test_the_site_goes_into_the_run_and_harms_nothing(owa, run):
    said = owa("view run")
    assert said.code == 0
    page = run.root / "view" / "index.html"
    assert f"View: {page.resolve()}" in said.out
    assert page.is_file()
    assert owa("verify run").code == 0
    assert owa("recompute run").code == 0
    again = json.loads(owa("view run --json").out)
    assert again["attempts"] > 0
    assert Path(again["page"]).resolve() == page.resolve()


def test_a_folder_that_holds_something_else_is_refused(owa, run, place):
    (place / "mine").mkdir()
    (place / "mine" / "notes.txt").write_text("mine")
    said = owa("view run --out mine")
    assert said.code == 2
    assert "must be a new folder or an earlier site" in said.err
    assert owa("view nothing").code == 2
    with (place / "mine" / "large").open("wb") as large:
        large.truncate(1 << 30)  # no run's file, but nobody says that this is a run
    refused = owa("view mine")
    assert refused.code == 2
    assert "holds no plan.json" in refused.err


def test_serve_stands_alone(owa, run, monkeypatch):
    served = []
    monkeypatch.setattr(site_server, "serve_site", lambda *a: served.append(a))
    assert owa("view run --serve --json").code == 2
    refused = owa("view run --serve --port 99999")
    assert refused.code == 2
    assert "`--port` must lie in 0..65535" in refused.err
    assert owa("view run --serve --port 9").code == 0
    assert served == [(Path("run"), 9)]
