import re
from html.parser import HTMLParser

import msgspec
import pytest

from owa_bench.records.score import TotalGain
from owa_bench.reports.page.render_html import openssl_lines, render
from tests.builders.report_record import report
from tests.builders.run_directory import PRICES, PROTOCOL

VOID = {"meta", "br", "link", "img", "hr", "path", "use"}


class Strict(HTMLParser):
    """Fails where a tag is left open or closed twice; collects addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        held = dict(attrs)
        self.ids += [held["id"]] if "id" in held else []
        self.links += [v for k, v in attrs if k in ("href", "src", "xlink:href")]

    def handle_startendtag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("href", "src", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page() -> str:
    return render(report(), protocol_text=PROTOCOL.decode(), price_text=PRICES.decode())


def test_page_is_whole_small_and_loads_nothing(page):
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    assert all(link.startswith("#") for link in parser.links)
    targets = {link[1:] for link in re.findall(r'<a href="(#[^"]+)"', page)}
    assert targets <= set(parser.ids)
    assert "default-src 'none'" in page
    assert "url(http" not in page
    assert len(page.encode()) < 2_000_000


def test_same_report_same_bytes(page):
    again = render(report(), protocol_text=PROTOCOL.decode(), price_text=PRICES.decode())
    assert again == page


def test_names_are_escaped(page):
    assert "fixed <b>" not in page
    assert "fixed &lt;b&gt;" in page


def test_first_screen_holds_level_assurance_and_violations(page):
    first = page[: page.index("Side by side")]
    assert "not placed" in first
    assert "not computable: missing M memory, R, S" in first
    assert "broke <code>made_up</code> in 1 episode, each scored 0" in first
    assert "Assurance: V2" in first


def test_no_evidence_never_looks_like_a_pass(page):
    badges = re.findall(r'<span class="badge (\w+)">([A-Z ]+)</span>', page)
    assert ("none", "NO EVIDENCE") in badges
    assert ("none", "NOT TESTED") in badges
    for kind, word in (("pass", "PASS"), ("fail", "BELOW"), ("open", "UNDECIDED")):
        assert {said for shown, said in badges if shown == kind} == {word}


def test_every_part_of_the_judgement_is_on_the_page(page):
    text = re.sub(r"<[^>]+>", " ", page)
    for part in (
        "ToolQuest has no memory probes",
        "same tasks, new seeds",
        "tasks like these",
        "too few checkpoints: 3 of 7",
        "maintenance",
        "By family",
        "api/field_rename",
        "numpy",
        "Fabricated usage",
        "The best of several whole runs",
        "A human or an oracle inside the agent",
        "Seed grinding without a challenge",
        "A plan rewritten afterwards",
        "owa-protocol-1",
        "Evaluation",
        "unknown",
        "20 tasks a family",
    ):
        assert part in text, part


def test_an_unsigned_draft_says_so_and_shows_no_key():
    draft = report()
    ladder = msgspec.structs.replace(draft.assurance, level=0)
    run = msgspec.structs.replace(draft.run, public_key="", key_id="")
    draft = msgspec.structs.replace(draft, assurance=ladder, run=run)
    page = render(draft, protocol_text="", price_text="")
    assert "unsigned draft" in page
    assert "no signature to check" in openssl_lines("")
    assert "none: unsigned" in page


def test_kappa_says_gain_spending_and_unit_in_words():
    """43.978 a unit is what .0007 for a hundredth of a unit looks like alone."""
    made = report()
    first = made.judgement.verdicts[0]
    gain = TotalGain(
        value=0.0007, low=-0.0003, p=0.1, units=0.01, usd=0.27, unit_usd=27.0, days=4, tasks=20
    )
    kappas = tuple(msgspec.structs.replace(kappa, gain=gain) for kappa in first.kappas)
    verdicts = (msgspec.structs.replace(first, kappas=kappas), *made.judgement.verdicts[1:])
    judgement = msgspec.structs.replace(made.judgement, verdicts=verdicts)
    shown = render(
        msgspec.structs.replace(made, judgement=judgement),
        protocol_text=PROTOCOL.decode(),
        price_text=PRICES.decode(),
    )
    words = (
        "gained 0.0007 (at least -0.0003) over its frozen control on the last 4 mornings of "
        "20 tasks, having spent 0.27 USD, 0.01 units of 27 USD"
    )
    assert shown.count(words) == len(kappas)
    assert (
        render(made, protocol_text=PROTOCOL.decode(), price_text=PRICES.decode()).count(
            "frozen control on the last"
        )
        == 0
    )
