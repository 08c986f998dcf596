"""Site of a run: what stands in its files, whatever agents wrote."""

import base64
import json
import re
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from starlette.testclient import TestClient

import owa_bench
from owa_bench.errors import RunDirectoryError, UsageError
from owa_bench.records.control_blocks import command_words, packed_commands
from owa_bench.records.events import Action, ControlBlock, EpisodeEnd, Evidence, Violation
from owa_bench.reports.page import site
from owa_bench.reports.page.site import SiteParts
from owa_bench.reports.page.site_server import SiteEditions, site_app
from tests.builders.run_directory import make_plan, make_run

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>'
SCRIPT = (Path(site.__file__).parent / "site.js").read_text()


def parts_of(folder):
    """Return every part of a site, by number."""
    parts = []
    for path in sorted((folder / "data").glob("*.js")):
        text = re.fullmatch(r'owaParts\(\d+,"([\w+/=]*)"\)\n', path.read_text())[1]
        parts += inflated(text)
    return parts


def inflated(text):
    return json.loads(zlib.decompress(base64.b64decode(text), wbits=-15))


def list_of(page):
    text = re.search(r'<script type="text/plain" id="data">([^<]*)<', page)[1]
    data = inflated(text)
    return [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    def edit(entry, events):
        if entry.index:
            return events
        made = [
            msgspec.structs.replace(e, action=HOSTILE) if isinstance(e, Action) else e
            for e in events
        ]
        end = msgspec.structs.replace(made.pop(), reason=HOSTILE)
        assert isinstance(end, EpisodeEnd)
        rule = Violation(step=4, rule=HOSTILE, severity="disqualify", evidence=HOSTILE)
        return [*made, rule, end]

    root = tmp_path_factory.mktemp("site") / "run"
    return make_run(root, make_plan(2, name=HOSTILE), edit=edit)


@pytest.fixture(scope="module")
def written(layout, tmp_path_factory):
    return site.write_site(layout.root, tmp_path_factory.mktemp("out") / "view")


def test_the_list_holds_what_the_tables_hold(layout, written):
    rows = list_of(written.page.read_text())
    episodes = owa_bench.open_run(layout.root).episodes()
    assert written.attempts == len(rows) == len(episodes)
    for row, episode in zip(rows, episodes, strict=True):
        assert row["attempt"] == episode.attempt
        assert row["success"] == episode.success
        assert row["quality"] == episode.q_state
        assert row["steps"] == episode.steps
        assert row["cost"] == round(1e6 * episode.usd_agent)
        assert row["supervisor"] == round(1e6 * episode.usd_human)
        assert row["drift"] == episode.classes
        assert row["state"] == "counts"


def test_every_event_and_text_of_an_episode_is_in_its_parts(layout, written):
    parts = parts_of(written.page.parent)
    row = list_of(written.page.read_text())[1]
    events = parts[row["part"]]
    assert events[0]["instance"]["seed"].isdecimal()
    assert events[-1]["event"] == "episode_end"
    run = owa_bench.open_run(layout.root)
    steps = [step for step in run.steps() if step.attempt == row["attempt"]]
    seen = [e for e in events if e["event"] == "observation"]
    assert [parts[e["blob"]] for e in seen] == [run.text(step.observation) for step in steps]
    assert "0" * 64 not in json.dumps(events)  # what is no blob is left out


def test_texts_are_stored_once(written):
    texts = [part for part in parts_of(written.page.parent) if isinstance(part, str)]
    assert len(texts) == len(set(texts)) > 0


def test_what_agents_wrote_stands_nowhere_as_markup(written):
    page = written.page.read_text()
    assert page.count("<script") == 2
    assert "<img" not in page.replace(SCRIPT, "")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
        assert word not in SCRIPT
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]


def test_a_second_site_replaces_the_first_byte_for_byte(layout, tmp_path):
    folder = tmp_path / "view"
    first = {}
    for turn in range(2):
        site.write_site(layout.root, folder)
        files = {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        first = first or files
        assert files == first, turn


def test_another_folder_is_never_replaced(layout, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my own page")
    with pytest.raises(UsageError, match="must be a new folder or an earlier site"):
        site.write_site(layout.root, tmp_path / "mine")
    assert (tmp_path / "mine" / "index.html").read_text() == "my own page"


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(RunDirectoryError):
        site.write_site(tmp_path / "nothing", tmp_path / "view")


def test_pictures_are_files_and_arrays_are_rows(tmp_path):
    import io

    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, np.array([[1.0, 2.00004], [3.0, 4.0]], dtype=np.float32))
    blobs = {"a" * 64: b"\xff\xd8 jpeg", "b" * 64: buffer.getvalue(), "c" * 64: b"no"}

    class Held:
        def read(self, name):
            return blobs[name]

    parts = SiteParts(tmp_path, Held())
    parts.add_events(
        tuple(
            Evidence(step=1, name="n", media=media, blob=name)
            for media, name in zip(
                ("image/jpeg", "application/x-npy", "application/x-npy"), blobs, strict=True
            )
        )
    )
    parts.flush()
    (array, broken, events) = parts_of(tmp_path)
    assert array == [[1.0, 2.0], [3.0, 4.0]]
    assert broken is None
    assert (tmp_path / events[0]["blob"]).read_bytes() == b"\xff\xd8 jpeg"
    assert [event["blob"] for event in events[1:]] == [0, 1]


def test_evidence_leads_to_the_attempts_it_names():
    links = str(site.evidence_links("000000.0 to 000255.0, <b>256</b> attempts"))
    assert links.startswith('<a href="view/index.html#000000.0">000000.0</a> to <a')
    assert "&lt;b&gt;256" in links
    assert site.evidence_links("day 1.5 <i>") == "day 1.5 &lt;i&gt;"


def test_a_live_site_is_made_anew_when_the_run_has_grown(tmp_path):
    plan = make_plan(1)
    layout = make_run(tmp_path / "run", plan, shards=1, entries=slice(2))
    editions = SiteEditions(layout.root, tmp_path / "editions")
    client = TestClient(site_app(editions), base_url="http://127.0.0.1")
    page = client.get("/")
    assert page.url.path == "/1/index.html"
    assert len(list_of(page.text)) == 2
    assert '"live":true' in json.dumps(
        inflated(re.search(r'id="data">([^<]*)<', page.text)[1]), separators=(",", ":")
    )
    assert client.get("/").url.path == "/1/index.html"
    grown = make_run(tmp_path / "more", plan, shards=2)
    layout.shard(1).write_bytes(grown.shard(1).read_bytes())
    editions._next = 0.0
    page = client.get("/")
    assert page.url.path == "/2/index.html"
    assert len(list_of(page.text)) > 2
    assert client.get("/1/index.html").status_code == 200


def test_a_live_site_serves_its_files_alone(layout, tmp_path):
    (tmp_path / "secret").write_text("s")
    client = TestClient(
        site_app(SiteEditions(layout.root, tmp_path / "e")), base_url="http://127.0.0.1"
    )
    assert client.get("/").status_code == 200
    assert client.get("/..%2fsecret").status_code == 404
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400


def test_the_list_has_the_kind_of_each_failure(layout, tmp_path):
    rows = list_of(site.write_site(layout.root, tmp_path / "site").page.read_text())
    assert rows[0]["kind"] == "rule"  # disqualified by the fixture
    assert all((row["kind"] == "") is row["success"] for row in rows)
    assert '"kind"' in re.search(r"const CHOICES = .*", SCRIPT)[0]


def test_a_blocks_commands_are_read_for_the_page_and_counted_as_steps(tmp_path):
    rows = [command_words(one, 2) for one in (np.array([0.5, -1.0]), None, np.zeros(2))]
    good = ControlBlock(step=3, ticks=3, actions=packed_commands(np.stack(rows)), observation="")
    broken = msgspec.structs.replace(good, step=6, actions="?")

    def edit(entry, events):
        acts = [event for event in events if not isinstance(event, Action)]
        return [acts[0], good, broken, *acts[1:]] if entry.index == 0 else events

    layout = make_run(tmp_path / "run", make_plan(2), edit=edit)
    made = site.write_site(layout.root, tmp_path / "site")
    row = list_of(made.page.read_text())[0]
    events = parts_of(made.page.parent)[row["part"]]
    blocks = [event for event in events if event["event"] == "control"]
    assert [each["actions"] for each in blocks] == [[[0.5, -1.0], None, [0.0, 0.0]], None]
    assert row["steps"] == 6
