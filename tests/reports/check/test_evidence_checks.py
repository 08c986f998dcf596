"""Checks of raw evidence: on a campaign that was played, and each by hand."""

import json
import shutil
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from owa_bench.canonical import (
    canonical_json,
    document_digest,
    key_id,
    peek,
    public_bytes,
    seal,
    sha256,
)
from owa_bench.records.layout import CHECKPOINT_TYPE, PLAN_TYPE, RunLayout
from owa_bench.records.packs import PackEncoder, PrunedPacks
from owa_bench.records.trace import Leaf, evidence_root
from owa_bench.records.witness import DayCheckpoint
from owa_bench.reports.check.evidence_checks import (
    _blobs,
    _cost,
    _days,
    _layout,
    _plan,
    _seeds,
    _terms,
    check_evidence,
)
from owa_bench.reports.read import bundle
from owa_bench.runs.plan.campaign import Campaign
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys
from tests.builders.run_directory import KEY, OTHER_KEY


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    home, out = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("out") / "run"
    draw = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,))
    request = Request(agents=("noop",), campaign=Campaign(checkpoint=(draw,), days=2))
    batch.play(request, out, RunOptions(home=home, in_process=True))
    return RunLayout(out), keys.ensure(home)


@pytest.fixture
def run(campaign, tmp_path):
    return RunLayout(shutil.copytree(campaign[0].root, tmp_path / "run"))


def days(layout):
    checks = {c.name: c for c in check_evidence(bundle.read(layout.root))}
    return checks["days"]


def test_an_honest_campaign_has_every_day_signed(run):
    assert days(run).ok
    assert days(run).detail == "2 simulated days, each signed"


def test_a_day_without_checkpoint_is_named(run):
    (run.receipts / "day-0001.dsse.json").unlink()
    assert days(run).detail.startswith("day 1: no signed checkpoint")


def test_a_checkpoint_by_another_key_is_named(run):
    path = run.receipts / "day-0000.dsse.json"
    path.write_bytes(seal(CHECKPOINT_TYPE, peek(path.read_bytes()), None))
    assert days(run).detail.startswith("day 0: no signed checkpoint")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"evidence_root": "0" * 64}, "another root"),
        ({"day": 7}, "another plan or day"),
        ({"attempts": []}, "made after it was signed"),
    ],
)
def test_a_checkpoint_that_says_something_else_is_named(run, campaign, change, fault):
    path = run.receipts / "day-0000.dsse.json"
    document = {**json.loads(peek(path.read_bytes())), **change}
    path.write_bytes(seal(CHECKPOINT_TYPE, canonical_json(document), campaign[1]))
    assert not days(run).ok
    assert fault in days(run).detail


def test_checks_are_printed_in_their_order_under_the_key_that_is_asked_for(run):
    read = bundle.read(run.root)
    own = check_evidence(read)
    assert [check.name for check in own] == [
        *("layout", "plan signature", "plan"),
        *("frames", "chain", "count", "episode id", "leaf"),
        *("plan coverage", "seed", "blobs", "price card", "protocol", "cost", "days"),
    ]
    assert check_evidence(read, bytes.fromhex(read.plan.public_key))[3:] == own[3:]
    assert [c.name for c in check_evidence(read, PUBLIC[1]) if not c.ok] == [
        *("plan signature", "days")
    ]


PUBLIC = tuple(public_bytes(key.public_key()) for key in (KEY, OTHER_KEY))
ID = tuple(key_id(key) for key in PUBLIC)
DOCUMENT = {"name": "a plan"}


def plan_checks(folder, key=KEY, *, names=PUBLIC[0], public=None, signed=DOCUMENT):
    """Return (name, ok, detail) of a plan that `key` signed and that names a key."""
    layout = RunLayout(folder)
    layout.plan_envelope.write_bytes(seal(PLAN_TYPE, canonical_json(signed), key))
    plan = SimpleNamespace(public_key=names.hex())
    digest = document_digest(DOCUMENT)
    run = SimpleNamespace(layout=layout, plan=plan, plan_digest=digest)
    return [tuple(check)[:3] for check in _plan(run, public)]


def test_a_plan_is_signed_by_its_own_key_or_the_one_that_is_given(tmp_path):
    digest = ("plan", True, f"digest {document_digest(DOCUMENT)[:16]}")
    by = f"by key {ID[0]}"
    assert plan_checks(tmp_path) == [
        ("plan signature", True, f"{by} (named by the plan itself)"),
        digest,
    ]
    assert plan_checks(tmp_path, public=PUBLIC[0]) == [("plan signature", True, by), digest]


def test_a_plan_under_another_key_or_none_is_named(tmp_path):
    none = plan_checks(tmp_path, names=b"")
    reason = "the plan names no key and none was given"
    assert none == [("plan signature", False, reason)]
    for options in ({"public": PUBLIC[1]}, {"names": PUBLIC[1]}, {"key": OTHER_KEY}):
        [(name, ok, _)] = plan_checks(tmp_path, **options)
        assert (name, ok) == ("plan signature", False)
    other = {"key": OTHER_KEY, "public": PUBLIC[1]}
    for names, said in ((PUBLIC[0], ID[0]), (b"", "none")):
        signature, plan = plan_checks(tmp_path, names=names, **other)
        assert signature == ("plan signature", True, f"by key {ID[1]}")
        assert plan == ("plan", False, f"the plan names key {said} as its own")


def test_a_plan_that_was_edited_is_not_the_one_that_was_signed(tmp_path):
    words = "plan.json is not the plan that was signed"
    found = plan_checks(tmp_path, signed={"name": "another"})
    assert found[1:] == [("plan", False, words)]


def test_parts_that_are_missing_or_half_written_are_named(tmp_path):
    layout = RunLayout(tmp_path)
    run = SimpleNamespace(layout=layout)
    for folder in (layout.shards, layout.blobs, tmp_path / ".cache"):
        folder.mkdir(exist_ok=True)
    for part in (layout.plan_envelope, layout.leaves, layout.protocol):
        part.touch()
    missing = f"{layout.price_card.name} is missing"
    assert _layout(run)[1:3] == (False, missing)
    layout.price_card.touch()
    assert _layout(run)[1:3] == (True, str(tmp_path))
    for folder in (layout.root, layout.shards, layout.blobs):
        part = folder / ".0000.partial"
        part.touch()
        assert _layout(run)[1:3] == (False, ".0000.partial was left half written")
        part.unlink()


def test_seeds_are_not_checked_before_the_reveal_unless_they_differ():
    def seeds(*faults, revealed):
        found = _seeds(SimpleNamespace(faults={"seed": faults}, revealed=revealed))
        return found.ok, found.skipped

    assert seeds(revealed=True) == (True, False)
    assert seeds(revealed=False) == (True, True)
    assert seeds("two seeds", revealed=False) == (False, False)


@pytest.fixture
def packed(tmp_path):
    """The layout of a run with one blob in its pack."""
    layout, encoder = RunLayout(tmp_path), PackEncoder()
    encoder.add(b"blob")
    layout.blobs.mkdir()
    (layout.blobs / "0000.pack").write_bytes(encoder.finish())
    return layout


def blobs(layout, *digests, transcripts=True):
    plan = SimpleNamespace(transcripts=transcripts)
    run = SimpleNamespace(layout=layout, plan=plan)
    found = _blobs(run, SimpleNamespace(digests=frozenset(digests)))
    return found.ok, found.detail


def test_a_blob_is_in_a_pack_unless_transcripts_are_off_or_pruned(packed):
    here, gone = sha256(b"blob"), "f" * 64
    good = "1 blobs hash to their names"
    assert blobs(packed, here) == (True, good)
    assert blobs(packed, here, gone) == (False, f"blob {gone[:16]} is in no pack")
    alone = f"{good}; of 1 the digest is kept alone"
    off = blobs(packed, here, gone, transcripts=False)
    assert off == (True, f"{alone} (transcripts off)")
    packed.pruned.write_bytes(msgspec.json.encode(PrunedPacks(packs={"1.pack": 9})))
    for transcripts in (True, False):
        pruned = blobs(packed, here, gone, transcripts=transcripts)
        assert pruned == (True, f"{alone} (transcripts pruned)")


def test_a_pack_that_does_not_read_is_named(packed):
    (packed.blobs / "0001.pack").write_bytes(b"no pack")
    assert blobs(packed)[0] is False
    assert blobs(packed)[1].startswith("0001.pack: ")
    (packed.blobs / "0001.pack").unlink()
    (packed.blobs / "0002.pack").mkdir()
    assert "must be a regular file" in blobs(packed)[1]


@pytest.mark.parametrize("changed", ["card", "protocol", ""])
def test_price_card_and_protocol_are_those_of_the_plan(changed):
    data = {name: name.encode() for name in ("card", "protocol")}
    fixed = {name: sha256(text) for name, text in data.items()}
    fixed |= {changed: "0" * 64}
    run = SimpleNamespace(
        price_bytes=data["card"],
        protocol_bytes=data["protocol"],
        plan=SimpleNamespace(price_digest=fixed["card"], protocol_digest=fixed["protocol"]),
    )
    card, protocol = _terms(run)
    assert (card.ok, protocol.ok) == (changed != "card", changed != "protocol")
    assert _cost(run, []).ok == card.ok
    assert not _cost(run, ["a meter"]).ok


LEAF = Leaf(
    attempt_id="",
    index=0,
    attempt=0,
    status="complete",
    count=1,
    head="h",
    replay="r",
    shard="s",
    frames=(),
)


def leaf(index, attempt=0, status="complete"):
    name = f"{index:06d}.{attempt}"
    return replace(LEAF, attempt_id=name, index=index, attempt=attempt, status=status)


LEAVES = [leaf(i) for i in range(4)]
# Entries 0 and 1 are played on day 0, 2 on day 1, 3 on none.
PLAN = SimpleNamespace(
    entries=[SimpleNamespace(index=i, day=day) for i, day in enumerate((0, 0, 1, None))],
    simulated_days=False,
)


def sign(layout, day, signed, *, listed=None, digest="d"):
    """Write a day's checkpoint over some leaves; `listed` are names in their place."""
    names = [one.attempt_id for one in signed] if listed is None else listed
    document = DayCheckpoint(
        plan_digest=digest,
        day=day,
        evidence_root=evidence_root(PLAN, signed),
        attempts=tuple(names),
        simulated=False,
        public_key="",
    )
    layout.receipts.mkdir(exist_ok=True)
    path = layout.receipts / f"day-{day:04d}.dsse.json"
    path.write_bytes(seal(CHECKPOINT_TYPE, canonical_json(document), KEY))


def dated(folder, leaves=LEAVES, missing=(), due=None, **day_0):
    """Return (ok, detail) of days of which the first was signed as `day_0` says."""
    layout = RunLayout(folder)
    sign(layout, 0, **({"signed": LEAVES[:2]} | day_0))
    sign(layout, 1, [one for one in leaves if one.index < 3])
    due = PLAN.entries if due is None else due
    run = SimpleNamespace(plan=PLAN, missing=missing, layout=layout, plan_digest="d", due=due)
    return [(c.ok, c.detail) for c in _days(run, tuple(leaves), PUBLIC[0])]


ROOT = "day 0: the shards give another root than the one signed that day"
LATE = "day 0: 1 of its attempts were made after it was signed"


def test_a_day_is_over_the_attempts_up_to_it(tmp_path):
    assert dated(tmp_path) == [(True, "2 real days, each signed")]
    torn = [leaf(0, status="infrastructure"), leaf(0, 1), *LEAVES[1:]]
    late = dated(tmp_path, torn, signed=torn[1:3])  # what does not count may be late
    assert late == [(True, "2 real days, each signed")]
    assert dated(tmp_path, torn, signed=torn[:3])[0][0]
    assert dated(tmp_path, missing=(2,)) == []


def test_a_placement_has_the_days_whose_every_episode_it_announced(tmp_path):
    entries = PLAN.entries
    assert dated(tmp_path, LEAVES[:2], due=entries[:2]) == [(True, "1 real days, each signed")]
    assert dated(tmp_path, LEAVES[:1], due=[entries[0], entries[2]], signed=LEAVES[:1]) == []


@pytest.mark.parametrize(
    ("day_0", "faults"),
    [
        ({"signed": LEAVES[:1]}, [LATE]),
        ({"signed": LEAVES[:3]}, [ROOT]),  # one of day 1
        ({"listed": ["000000.0", "000001.0", "000009.0"]}, [ROOT]),
        ({"listed": ["000000.0"]}, [LATE, ROOT]),
        ({"signed": [replace(LEAVES[0], head="x"), LEAVES[1]]}, [ROOT]),
        ({"digest": "e"}, ["day 0: is of another plan or day"]),
    ],
)
def test_a_day_that_was_signed_otherwise_is_named(tmp_path, day_0, faults):
    assert dated(tmp_path, **day_0) == [(False, "; ".join(faults))]
