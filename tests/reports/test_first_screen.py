"""Pages of four real runs: the first screen says the truth, and the page fits."""

import json
import re

import pytest

from benchmarks import report_pages
from tests.builders.check_page import VALID, CheckPage

SCREENS = 6


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the page of each of the four runs."""
    folder = tmp_path_factory.mktemp("four")
    return {name: report_pages.play(folder, name, 2) for name in report_pages.RUNS}


def first_screen(path):
    """Return the words above the figures, tags taken out."""
    page = path.read_text()
    head = page[page.index("<body>") : page.index("Side by side")]
    return " ".join(re.sub(r"<[^>]+>", " ", head).split())


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_first_screen_says_the_truth(pages):
    healthy = first_screen(pages["healthy"])
    assert re.search(r"(\d+) of \1 planned episodes were played to an end", healthy)
    assert 'class="alarm"' not in pages["healthy"].read_text()
    assert re.search(r"Alone it does (\d+) of \d+ tasks when nothing changes", healthy)
    assert re.search(r"Its own cost [\d.]+ USD", healthy)
    assert re.search(r"Ten axes: .*no evidence: .*\bM\b", healthy)

    crashing = first_screen(pages["crashing"])
    assert re.search(r"\d+ of \d+ episodes of crashing \(\d+ percent\)", crashing)
    assert "crashed, KeyError" in crashing
    assert "no field `choices`" in crashing

    unreachable = first_screen(pages["unreachable"])
    assert re.search(r"(\d+) of \1 episodes of model are missing", unreachable)
    assert "nothing listens at 127.0.0.1:9 (ConnectError)" in unreachable
    assert "did not end by its own act" not in unreachable
    assert "crashed" not in unreachable

    budget = first_screen(pages["budget"])
    assert "not played: budget, the run&#39;s budget of api_calls was" in budget
    assert 'class="calm"' not in pages["budget"].read_text()


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.browser
def test_a_page_fits_every_width_in_six_screens(pages):
    with report_pages.browser() as found:
        for name, path in pages.items():
            for width in (390, 1280, 1920):
                window = report_pages.show(found, path, width)
                size = report_pages.sizes(window)
                assert size.width <= size.window, (name, size)
                assert size.height <= SCREENS * report_pages.SCREEN, (name, size)
                window.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                unfolded = report_pages.sizes(window)
                assert unfolded.width <= unfolded.window, (name, unfolded)
                window.close()


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.browser
def test_the_check_page_reads_the_first_screen_of_each(pages):
    with report_pages.browser() as found:
        for name, path in pages.items():
            files = ("report.dsse.json", "report.html")
            given = {file: (path.parent / file).read_bytes() for file in files}
            key = json.loads((path.parent / "plan.json").read_bytes())["public_key"]
            assert CheckPage(found).say(given, key) == VALID, name
