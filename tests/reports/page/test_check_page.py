"""The check page in a real browser: what is genuine, and each thing that is not, with its reason.

A case says which files a reader was handed and which key the reader has. Whatever somebody
without the signer's key can hand over is refused; what a lying signer can draw is named.
"""

import base64
import hashlib
import json
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from benchmarks import report_pages
from owa_bench.canonical import canonical_json, key_id, pre_authentication, public_bytes, seal
from owa_bench.records.layout import PLAN_TYPE, STATEMENT_TYPE
from owa_bench.reports import statement
from tests.builders.check_page import CHECK, VALID, CheckPage
from tests.builders.run_directory import KEY, OTHER_KEY, make_plan, make_run

SIGNER, OTHER = (public_bytes(key.public_key()).hex() for key in (KEY, OTHER_KEY))
ENVELOPE, PAGE = "report.dsse.json", "report.html"
SHARD = "00000.jsonl.zst"
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the files of a signed run of two agents, by name."""
    layout = make_run(tmp_path_factory.mktemp("checked") / "run", make_plan(1))
    statement.write(layout.root, KEY)
    shards = sorted(layout.shards.glob("*.zst"))
    paths = (layout.report_envelope, layout.page, layout.report, *shards)
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def browser():
    with report_pages.browser() as found:
        yield found


@pytest.fixture(scope="module")
def window(browser):
    return CheckPage(browser)


@pytest.fixture
def page(window):
    window.open()
    return window


def said_of(page, given, key=SIGNER):
    """Return what the page says of files, given the reader's key."""
    return page.say(given, key)


def payload_of(run):
    return base64.b64decode(json.loads(run[ENVELOPE])["payload"])


def with_payload(run, payload):
    """Return the envelope with another payload under the old signature."""
    document = json.loads(run[ENVELOPE])
    document["payload"] = base64.b64encode(payload).decode()
    return run | {ENVELOPE: json.dumps(document).encode()}


def signed_again(run, payload, key=KEY, kind=STATEMENT_TYPE):
    """Return the files with a payload that a key really signed."""
    return run | {ENVELOPE: seal(kind, payload, key)}


def drawn_again(run, old, new):
    """Return the files of a signer who draws something else into the page and signs that."""
    html = run[PAGE].replace(old, new)
    assert html != run[PAGE]
    document = json.loads(payload_of(run))
    document["predicate"]["page"] = hashlib.sha256(html).hexdigest()
    files = {name: data for name, data in run.items() if name != "report.json"}
    return signed_again(files | {PAGE: html}, canonical_json(document))


# --- what is genuine ------------------------------------------------------------------


def test_a_genuine_report_is_valid_under_the_signers_key(page, run):
    assert said_of(page, run) == VALID
    lines = page.lines()
    assert {outcome for outcome, _ in lines} == {"ok"}
    said = [words for _, words in lines]
    assert f"signature: by key {SIGNER}" in said
    assert "report.html: the page that was signed, byte for byte" in said
    assert "report.json: the figures that were signed" in said
    assert f"{SHARD}: as signed, byte for byte" in said
    assert "page one: its 21 figures are those of the statement" in said
    predicate = json.loads(payload_of(run))["predicate"]
    shown = page.window.inner_text("#signed")
    for verdict, one in zip(predicate["judgement"]["verdicts"], predicate["outcomes"], strict=True):
        still = one["delegation"]["still"]
        assert verdict["level_text"] in shown
        assert f"({still['successes']} of {still['episodes']})" in shown
    assert page.requests == [f"file://{CHECK}"]


def test_a_key_in_capitals_with_blanks_around_it_is_the_same(page, run):
    assert said_of(page, run, f"  {SIGNER.upper()}\t") == VALID


def test_a_key_is_given_as_the_file_that_keygen_writes(page, run):
    """A run makes the key `default` by itself: its owner has NAME.pub, and no hex."""
    pems = [
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        for key in (KEY, OTHER_KEY)
    ]
    assert said_of(page, run, pems[0]) == VALID
    assert said_of(page, run, pems[0].replace("\n", "")) == VALID
    assert said_of(page, run, pems[1]).startswith("Refused: ")
    other = X25519PrivateKey.generate().public_key()
    pem = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    for wrong in (pem, pems[0].replace("MCow", "M!ow"), pems[0].replace("MCow", "MCo")):
        assert said_of(page, run, wrong).startswith("Refused: the key")


def test_without_a_key_nothing_is_called_valid(page, run):
    said = said_of(page, run, "")
    assert said.startswith(f"Signed by key {SIGNER}, which you must compare.")
    assert "not by whom" in said
    assert "valid" not in page.window.inner_text("body").lower()


def test_without_the_page_nothing_is_called_valid(page, run):
    said = said_of(page, {ENVELOPE: run[ENVELOPE]})
    assert said.startswith("Signed by the key that you gave; no page was checked.")
    assert (
        "skip",
        f"not given: 2 of the signed files, such as {SHARD}: not checked",
    ) in page.lines()
    page.give({PAGE: run[PAGE]})  # files add up
    assert page.result() == VALID


def test_files_can_be_dropped(page, run):
    page.window.fill("#key", SIGNER)
    page.window.evaluate(
        """(given) => {
          const data = new DataTransfer();
          for (const [name, text] of given) data.items.add(new File([fromBase64(text)], name));
          document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
        }""",
        [[name, base64.b64encode(data).decode()] for name, data in run.items()],
    )
    assert page.result() == VALID
    page.window.click("#clear")
    assert page.result() == "Nothing to check yet."


# --- what somebody without the signer's key can hand over -----------------------------


def flip_payload(run):
    payload = payload_of(run)
    assert b'"counted":24' in payload
    return with_payload(run, payload.replace(b'"counted":24', b'"counted":25', 1))


def flip_page(run):
    shown = b"Alone it does"
    return run | {PAGE: run[PAGE].replace(shown, b"Alone it doez", 1)}


def flip_figure(run):
    """One digit of the success without drift."""
    shown = re.search(rb"<strong>[01]\.\d\d", run[PAGE])[0]
    other = shown[:-1] + b"%d" % (9 - int(shown[-1:]))
    return run | {PAGE: run[PAGE].replace(shown, other, 1)}


def move_signature(run):
    """The signature of this report, under that of another run by the same signer."""
    payload = json.loads(payload_of(run))
    payload["predicate"]["run"]["name"] = "another run"
    other = json.loads(seal(STATEMENT_TYPE, canonical_json(payload), KEY))
    document = json.loads(run[ENVELOPE])
    document["signatures"] = other["signatures"]
    return run | {ENVELOPE: json.dumps(document).encode()}


def other_signer(run):
    """Figures of one's own, signed with a key of one's own, which the statement names."""
    document = json.loads(payload_of(run))
    document["predicate"]["run"]["public_key"] = OTHER
    own = run | {"report.json": canonical_json(document["predicate"]) + b"\n"}
    return signed_again(own, canonical_json(document), OTHER_KEY)


def fake_signer(run):
    """The same, and the statement goes on naming the signer's key."""
    return signed_again(run, payload_of(run), OTHER_KEY)


def without_signature(run):
    return run | {ENVELOPE: seal(STATEMENT_TYPE, payload_of(run), None)}


def signatures(run, *more, **changes):
    document = json.loads(run[ENVELOPE])
    document["signatures"][0] |= changes
    document["signatures"] += more
    return run | {ENVELOPE: json.dumps(document).encode()}


def unsigned_entry(run):
    return signatures(run, {"keyid": key_id(bytes.fromhex(OTHER)), "sig": ""})


def second_signature(run):
    made = OTHER_KEY.sign(pre_authentication(STATEMENT_TYPE, payload_of(run)))
    return signatures(run, {"keyid": "a lab", "sig": base64.b64encode(made).decode()})


def field_in_signature(run):
    return signatures(run, verified=True)


def another_key_id(run):
    return signatures(run, keyid=key_id(bytes.fromhex(OTHER)))


def field_in_envelope(run):
    document = json.loads(run[ENVELOPE]) | {"level": "AAI-5"}
    return run | {ENVELOPE: json.dumps(document).encode()}


def payload_twice(run):
    """A parser that takes the first of two names reads another statement."""
    text = run[ENVELOPE].decode()
    return run | {ENVELOPE: text.replace("{", '{"payload": "e30=",', 1).encode()}


def escaped_text(run):
    return run | {ENVELOPE: run[ENVELOPE].replace(b'"payload"', b'"p\\u0061yload"', 1)}


def another_type(run):
    return run | {ENVELOPE: run[ENVELOPE].replace(STATEMENT_TYPE.encode(), PLAN_TYPE.encode())}


def signed_as_another_type(run):
    """What the signer signed as a plan, in an envelope that says that it is a report."""
    made = seal(PLAN_TYPE, payload_of(run), KEY)
    return run | {ENVELOPE: made.replace(PLAN_TYPE.encode(), STATEMENT_TYPE.encode())}


def whole_other_type(run):
    return signed_again(run, payload_of(run), kind=PLAN_TYPE)


def two_envelopes(run):
    return run | {"report (1).dsse.json": other_signer(run)[ENVELOPE]}


def flip_shard(run):
    return run | {SHARD: run[SHARD][:-1] + bytes([run[SHARD][-1] ^ 1])}


def another_shard(run):
    return run | {"00007.jsonl.zst": run[SHARD]}


def flip_report(run):
    return run | {"report.json": run["report.json"].replace(b'"counted":24', b'"counted":25', 1)}


def no_json(run):
    return run | {ENVELOPE: b"AAI-4"}


def bad_base64(run):
    return run | {ENVELOPE: run[ENVELOPE].replace(b'"payload": "', b'"payload": "\\u', 1)}


def blank_in_base64(run):
    return run | {ENVELOPE: run[ENVELOPE].replace(b'"payload": "', b'"payload": " ', 1)}


CHANGED = "signature: not by key "
HANDED_OVER = {
    flip_payload: CHANGED,
    move_signature: CHANGED,
    fake_signer: CHANGED,
    signed_as_another_type: CHANGED,
    other_signer: f"signature: by key {OTHER}, not by the key that you gave",
    flip_page: "report.html: not the page that was signed",
    flip_figure: "report.html: not the page that was signed",
    flip_report: "report.json: not the figures that were signed",
    flip_shard: f"{SHARD}: not as it was signed",
    another_shard: "00007.jsonl.zst: is not in the report",
    without_signature: "nobody signed this report",
    unsigned_entry: "holds 2 signatures; a report has one",
    second_signature: "holds 2 signatures; a report has one",
    field_in_signature: "a signature must hold keyid and sig alone",
    another_key_id: "key id: the envelope says ",
    field_in_envelope: "must hold payload, payloadType and signatures alone",
    payload_twice: "can be read in two ways",
    escaped_text: "can be read in two ways",
    bad_base64: "is not JSON",
    blank_in_base64: "the payload is not plain base64",
    another_type: f"what was signed is of type {PLAN_TYPE}",
    whole_other_type: f"what was signed is of type {PLAN_TYPE}",
    two_envelopes: "one report.dsse.json is checked",
    no_json: "report.dsse.json is not JSON",
}


@pytest.mark.parametrize("harm", HANDED_OVER, ids=lambda harm: harm.__name__)
def test_what_is_not_the_signers_report_is_refused_with_its_reason(page, run, harm):
    given = harm(run)
    assert given != run
    said = said_of(page, given)
    assert said.startswith("Refused: ")
    assert HANDED_OVER[harm] in said
    assert page.window.is_hidden("#signed")  # no figure of it is shown
    page.window.fill("#key", "")
    said = page.result()
    assert "valid" not in page.window.inner_text("body").lower()
    if harm is other_signer:  # all that passes without a key, and it says whose it is
        assert said.startswith(f"Signed by key {OTHER}, which you must compare.")
    else:
        assert said.startswith("Refused: ")


def test_another_key_of_the_reader_names_the_key_that_signed(page, run):
    assert f"by key {SIGNER}, not by the key that you gave" in said_of(page, run, OTHER)


@pytest.mark.parametrize("key", ["abc", SIGNER[:-1], SIGNER + "0", "g" * 64, "<b>" + SIGNER])
def test_what_is_no_key_is_refused(page, run, key):
    assert "the key must be 64 hex digits" in said_of(page, run, key)


def test_a_key_under_which_anybody_can_sign_is_refused(page, run):
    """Signatures of nobody hold under a key of small order: R the neutral point, S zero."""
    for key in ("01" + "00" * 31, "01" + "00" * 30 + "80"):
        document = json.loads(payload_of(run))
        document["predicate"]["run"]["public_key"] = key
        raw = bytes.fromhex(key)
        neutral = base64.b64encode(bytes([1]) + bytes(63)).decode()
        envelope = {
            "payloadType": STATEMENT_TYPE,
            "payload": base64.b64encode(canonical_json(document)).decode(),
            "signatures": [{"keyid": key_id(raw), "sig": neutral}],
        }
        said = said_of(page, run | {ENVELOPE: json.dumps(envelope).encode()}, key)
        assert "of small order" in said
    whole = "isSignedBy('01' + '00'.repeat(31), new Uint8Array(64).fill(1, 0, 1), utf8('x'))"
    assert page.window.evaluate(whole), "the browser refuses such keys itself: no test is needed"


# --- what a signer can sign who lies --------------------------------------------------


def twice(run, old, new):
    payload = payload_of(run).decode()
    assert payload.count(old) == 1
    return signed_again(run, payload.replace(old, new).encode())


def test_a_statement_with_a_name_twice_is_refused(page, run):
    """One program reads the first of two names, another the last."""
    said = said_of(page, twice(run, '{"_type"', '{"_type":"x","_type"'))
    assert "not in canonical form (RFC 8785)" in said
    level = '"schema":"owa-report-1"'
    assert "not in canonical form" in said_of(page, twice(run, level, f'"schema":"x",{level}'))


def test_a_statement_in_another_form_is_refused(page, run):
    document = json.loads(payload_of(run))
    for payload in (
        payload_of(run) + b"\n",
        json.dumps(document).encode(),
        json.dumps(dict(reversed(document.items())), separators=(",", ":")).encode(),
        b"\xef\xbb\xbf" + payload_of(run),
        payload_of(run).replace(b'"counted":24', b'"counted":24.0', 1),
    ):
        said = said_of(page, signed_again(run, payload))
        assert said.startswith("Refused: statement: ")


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("_type",), "https://in-toto.io/Statement/v0.1", "the statement's _type is"),
        (("predicateType",), "urn:owa-bench:plan:1", "the statement's predicateType is"),
        (("predicate", "schema"), "owa-report-2", "the report's schema is owa-report-2"),
        (("predicate", "run", "public_key"), OTHER, f"names key {OTHER}"),
        (("predicate", "run", "public_key"), "", "names no key"),
        (("predicate", "page"), None, "not the page that was signed"),
        (("predicate", "judgement", "replay_root"), "0" * 64, "differ on the replay root"),
        (("predicate", "judgement"), None, "is no OWA-Bench report"),
        (("subject",), None, "is no OWA-Bench report"),
    ],
)
def test_a_statement_of_something_else_is_refused(page, run, place, value, reason):
    document = json.loads(payload_of(run))
    part = document
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    said = said_of(page, signed_again(run, canonical_json(document)))
    assert said.startswith("Refused: ")
    assert reason in said


def test_a_subject_twice_is_refused(page, run):
    document = json.loads(payload_of(run))
    document["subject"].append(document["subject"][0])
    assert "names a subject twice" in said_of(page, signed_again(run, canonical_json(document)))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (rb"<strong>\d\.\d\d", b"<strong>0.99", "alone, no drift: signed"),
        (rb"assurance V\d", b"assurance V5", "assurance: signed V2, the page shows V5"),
        (rb"24 of 24 planned", b"25 of 25 planned", "episodes that count: signed 24"),
        (rb"<b>Level:</b> [^.]*", b"<b>Level:</b> AAI-4", "agent 1, level: signed"),
        (rb"\d+ of 12 counted succeed", b"12 of 12 counted succeed", "successes: signed"),
        (rb"<dt>Its own cost</dt><dd>[\d.]+", b"<dt>Its own cost</dt><dd>0.0001", "cost: signed"),
        (rb"<dt>Its own cost</dt>", b"<dt>Cost</dt>", "the page shows nothing"),
        (rb'<div class="tiles">', b'<div class="tiles"><section class="tile">', "agents: signed 2"),
        (rb'<div class="tiles">', b'<div class="other">', "agents: signed 2, the page shows 0"),
    ],
)
def test_a_page_that_shows_other_figures_than_were_signed_is_refused(page, run, old, new, reason):
    """A signer may sign any page; its first screen must say what the statement says."""
    said = said_of(page, drawn_again(run, re.search(old, run[PAGE])[0], new))
    assert said.startswith("Refused: page one: ")
    assert any(reason in words for outcome, words in page.lines() if outcome == "bad")


def test_a_page_with_a_banner_of_its_own_counts_as_it_was_signed(page, run):
    """What lies between the figures is the signer's word; here the figures are shown again."""
    banner = b"<main><h1>Valid: checked by OWA-Bench</h1>"
    assert "not the page that was signed" in said_of(
        page, run | {PAGE: run[PAGE].replace(b"<main>", banner)}
    )
    page.window.click("#clear")
    signed = said_of(page, drawn_again(run, b"<main>", banner), "")
    assert signed.startswith("Signed by key")
    assert "valid" not in page.window.inner_text("body").lower()


SCRIPT = "<script>parent.document.title = document.title = 'ran'</script>"
IMAGE = "<img src=x onerror=\"document.title = 'ran'\">"


def test_nothing_in_a_report_is_run(page, run):
    """Markup in a name is text; a page with a script is refused and read without running it."""
    title = page.window.title()
    said = said_of(page, drawn_again(run, b"<main>", f"<main>{SCRIPT}".encode()))
    assert "holds a script" in said
    said_of(page, drawn_again(run, b"<main>", f"<main>{IMAGE}".encode()))
    document = json.loads(payload_of(run))
    document["predicate"]["run"]["name"] = document["predicate"]["judgement"]["verdicts"][0][
        "level_text"
    ] = f"{IMAGE}\u202e{SCRIPT}"
    page.window.click("#clear")
    page.window.fill("#key", SIGNER)
    page.give({ENVELOPE: signed_again(run, canonical_json(document))[ENVELOPE]})
    page.result()
    shown = page.window.inner_text("#signed")
    assert f"{IMAGE}\\u{{202e}}{SCRIPT}" in shown  # and no letter turns the others around
    assert page.window.locator("#signed img, #signed script, #checks img").count() == 0
    page.window.wait_for_timeout(100)
    assert page.window.title() == title
    assert page.requests == [f"file://{CHECK}"]


# --- the browser ----------------------------------------------------------------------


REFUSES = (
    "crypto.subtle.importKey = () => Promise.reject(new DOMException('x', 'NotSupportedError'))"
)
LACKING = {
    "it has no Ed25519": (REFUSES, "lacks Ed25519"),
    "it has no cryptography here": (
        "Object.defineProperty(globalThis, 'crypto', {value: {}})",
        "open it from the disk or over https",
    ),
    "it finds any signature good": ("crypto.subtle.verify = async () => true", "lacks Ed25519"),
    "it finds none good": ("crypto.subtle.verify = async () => false", "lacks Ed25519"),
}


@pytest.mark.parametrize("lack", LACKING)
def test_a_browser_that_cannot_check_says_so(browser, run, lack):
    script, reason = LACKING[lack]
    made = CheckPage(browser, script)
    said = said_of(made, run)
    made.window.close()
    assert said.startswith("This browser cannot check signatures.")
    assert reason in said


SLOW = """
const subtle = crypto.subtle, verify = subtle.verify.bind(subtle);
const importKey = subtle.importKey.bind(subtle);
const signers = new Set();
globalThis.wait = 0;
crypto.subtle.importKey = async (form, raw, ...given) => {
  const key = await importKey(form, raw, ...given);
  if (hexOf(raw) === "SIGNER") signers.add(key);
  return key;
};
crypto.subtle.verify = async (kind, key, ...given) => {
  const found = await verify(kind, key, ...given), late = signers.has(key) ? wait : 0;
  if (late) wait = 0;
  return new Promise((done) => setTimeout(() => done(found), late));
};
"""


def test_a_result_that_comes_late_is_not_shown(browser, run):
    """The check under the good key ends after the one under another key, and must not win."""
    made = CheckPage(browser, SLOW.replace("SIGNER", SIGNER))
    made.give(run)
    made.result()
    made.window.evaluate("wait = 1500")  # of the next check under the signer's key
    made.window.fill("#key", SIGNER)
    made.window.fill("#key", OTHER)
    said = made.result()
    assert "not by the key that you gave" in said
    assert made.window.evaluate("wait") == 0  # the first one is under way
    made.window.wait_for_timeout(2000)
    assert made.result() == said
    made.window.close()


def test_the_page_runs_its_own_script_and_loads_nothing():
    text = CHECK.read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in text
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|https?:(?!//in-toto)", script
    )


@pytest.mark.parametrize(
    ("signed", "shown", "same"),
    [
        (0.125, "0.12", True),  # as Python rounds it
        (0.125, "0.13", True),  # as a browser would
        (0.125, "0.14", False),
        (12, "12", True),
        (12, "13", False),
        (0.4, "0", False),
        (0.4, "", False),
        ("V2", "V3", False),
        ("–", "–", True),
        (1e9, "1e9", False),
    ],
)
def test_a_figure_is_compared_as_far_as_the_page_rounds_it(page, signed, shown, same):
    assert page.window.evaluate("given => isShown(...given)", [signed, shown]) is same
