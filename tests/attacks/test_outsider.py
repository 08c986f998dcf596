"""Attacks by somebody who can edit files but holds no key."""

import json
import os
import shutil

import pytest

from owa_bench.canonical import canonical_json, peek, public_bytes, seal
from owa_bench.errors import CheckFailure
from owa_bench.records.events import Action, EpisodeEnd, Resource
from owa_bench.records.layout import PLAN_TYPE, STATEMENT_TYPE
from owa_bench.records.packs import PackEncoder, PackReader, pack_paths
from owa_bench.reports import statement, verify
from tests.attacks.tampering import attempts, change, failing, outside, write
from tests.builders.run_directory import KEY, OTHER_KEY, make_plan, make_run

pytestmark = pytest.mark.part(3)

OURS = public_bytes(KEY.public_key())
VICTIM = "000003.0"


def flip(path, where=0.5):
    data = bytearray(path.read_bytes())
    data[int(len(data) * where)] ^= 0x01
    path.write_bytes(bytes(data))


# --- flip a byte


@pytest.mark.parametrize("where", [0.1, 0.37, 0.8])
def test_flip_a_byte_of_a_shard(run, where):
    flip(run.shard(1), where)
    assert {"root", "frames", "trace files"} <= failing(run.root)


def test_flip_a_byte_of_an_event(run):
    def edit(lines):
        row = lines[VICTIM][5]
        lines[VICTIM][5] = row.replace(b'"step":1', b'"step":2')
        assert lines[VICTIM][5] != row

    outside(run, edit)
    assert {"root", "chain"} <= failing(run.root)


def test_flip_a_byte_of_a_blob(run):
    flip(run.pack(0))
    assert failing(run.root) == {"blobs"}


def test_remove_the_packs(run):
    for path in pack_paths(run):
        path.unlink()
    assert failing(run.root) == {"blobs"}


def test_cut_off_the_packs(run):
    for path in pack_paths(run):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert failing(run.root) == {"blobs"}


def test_swap_two_packs_changes_nothing_that_is_named(run):
    first, second = run.pack(0), run.pack(1)
    whole = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(whole)
    assert failing(run.root) == set()


def test_take_a_blob_out_of_the_packs(run):
    victim = next(iter(PackReader(run.pack(0)).places))
    for path in list(pack_paths(run)):
        reader, encoder = PackReader(path), PackEncoder()
        for name in reader.places.keys() - {victim}:
            encoder.add(reader.read(name))
        path.write_bytes(encoder.finish())
    assert failing(run.root) == {"blobs"}


def test_pipe_in_place_of_a_pack(run):
    run.pack(0).unlink()
    os.mkfifo(run.pack(0))
    with pytest.raises(CheckFailure, match="must be a regular file"):
        verify.verify(run.root)


def test_flip_a_byte_of_the_plan(run):
    text = run.plan.read_text()
    run.plan.write_text(text.replace('"small run"', '"smell run"'))
    assert {"plan", "signature", "chain", "root"} <= failing(run.root)


def test_flip_a_byte_of_the_report(run):
    text = run.report.read_text()
    run.report.write_text(text.replace('"agentic"', '"agentik"', 1))
    assert failing(run.root) == {"signature"}


def test_flip_a_byte_of_the_statement(run):
    document = json.loads(run.report_envelope.read_bytes())
    payload = peek(run.report_envelope.read_bytes()).replace(b"agentic", b"agentik", 1)
    forged = json.loads(seal(STATEMENT_TYPE, payload, None))
    run.report_envelope.write_text(json.dumps({**document, "payload": forged["payload"]}))
    assert "signature" in failing(run.root)


# --- drop, reorder, duplicate, truncate events


def test_drop_an_event(run):
    outside(run, lambda lines: lines[VICTIM].pop(4))
    assert {"root", "chain", "count"} <= failing(run.root)


def test_reorder_events(run):
    def edit(lines):
        rows = lines[VICTIM]
        rows[3], rows[4] = rows[4], rows[3]

    outside(run, edit)
    assert {"root", "chain"} <= failing(run.root)
    assert "count" not in failing(run.root)


def test_duplicate_an_event(run):
    outside(run, lambda lines: lines[VICTIM].insert(4, lines[VICTIM][4]))
    assert {"root", "chain", "count"} <= failing(run.root)


def test_truncate_an_episode(run):
    def edit(lines):
        lines[VICTIM] = lines[VICTIM][:6]

    outside(run, edit)
    assert {"root", "chain", "count"} <= failing(run.root)


def test_truncate_a_shard(run):
    data = run.shard(1).read_bytes()
    run.shard(1).write_bytes(data[: len(data) // 2])
    assert {"root", "chain", "count", "trace files"} <= failing(run.root)


# --- drop, swap, copy episodes


def drop_from_leaves(run, *names):
    rows = run.leaves.read_text().splitlines()
    kept = [row for row in rows if not any(f'"{name}"' in row for name in names)]
    run.leaves.write_text("".join(f"{row}\n" for row in kept))


def test_drop_an_episode(run):
    outside(run, lambda lines: lines.pop(VICTIM))
    assert {"root", "count"} <= failing(run.root)


def test_drop_the_last_episodes_and_their_leaves(run):
    last = sorted(attempts(run))[-4:]
    outside(run, lambda lines: [lines.pop(name) for name in last])
    drop_from_leaves(run, *last)
    assert {"root", "count", "plan coverage"} <= failing(run.root)


def test_swap_two_episodes(run):
    def edit(lines):
        lines[VICTIM], lines["000005.0"] = lines["000005.0"], lines[VICTIM]

    outside(run, edit)
    assert {"root", "chain", "episode id"} <= failing(run.root)


def test_copy_one_episode_over_another(run):
    def edit(lines):
        lines[VICTIM] = list(lines["000002.0"])

    outside(run, edit)
    assert {"root", "chain", "episode id"} <= failing(run.root)


# --- costs and qualities


def test_edit_a_cost(run):
    outside(run, lambda lines: change(lines[VICTIM], Resource, amount=0.0))
    assert {"root", "cost"} <= failing(run.root)


def test_replace_the_price_card(run):
    text = run.price_card.read_text().replace("100_000_000", "100_000")
    run.price_card.write_text(text)
    assert {"cost", "price card", "signed cost"} <= failing(run.root)


def test_replace_the_protocol(run):
    run.protocol.write_text(run.protocol.read_text() + "\n# easier\n")
    assert failing(run.root) == {"protocol"}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [(Action, {"reward": 1.0}), (EpisodeEnd, {"quality": 1.0, "q_state": 1.0, "success": True})],
)
def test_edit_a_reward_or_the_end_record(run, kind, fields):
    outside(run, lambda lines: change(lines["000005.0"], kind, **fields))
    assert {"root", "chain"} <= failing(run.root)


# --- seeds, reports and keys of elsewhere


def test_other_seeds(run):
    document = {"master": "00" * 32, "nonce": "11" * 32}
    run.reveal.write_bytes(canonical_json(document))
    assert failing(run.root) == {"seed"}


def test_report_of_another_run(run, tmp_path):
    other = make_run(tmp_path / "other", make_plan(2, name="another run"))
    statement.write(other.root, KEY)
    for name in ("report.json", "report.dsse.json", "report.html"):
        shutil.copy(other.root / name, run.root / name)
    assert {"signature", "root", "trace files"} <= failing(run.root)


def test_other_key_on_the_report(run):
    payload = peek(run.report_envelope.read_bytes())
    run.report_envelope.write_bytes(seal(STATEMENT_TYPE, payload, OTHER_KEY))
    assert failing(run.root) == {"signature"}


def test_other_key_everywhere_is_seen_by_who_knows_the_right_one(tmp_path):
    theirs = public_bytes(OTHER_KEY.public_key())
    plan = make_plan(1, public_key=theirs.hex())
    layout = make_run(tmp_path / "run", plan)
    layout.plan_envelope.write_bytes(seal(PLAN_TYPE, canonical_json(plan), OTHER_KEY))
    statement.write(layout.root, OTHER_KEY)
    assert failing(layout.root) == set()
    assert {"plan signature", "signature"} <= failing(layout.root, OURS)


def test_strip_the_signature(run):
    payload = peek(run.report_envelope.read_bytes())
    run.report_envelope.write_bytes(seal(STATEMENT_TYPE, payload, None))
    assert failing(run.root) == {"signature"}


# --- the report


def test_edit_an_axis_in_the_report(run):
    document = json.loads(run.report.read_bytes())
    document["judgement"]["verdicts"][1]["axes"][0]["value"] = 1.0
    run.report.write_bytes(canonical_json(document) + b"\n")
    assert failing(run.root) == {"signature"}


def test_edit_a_figure_in_the_page(run):
    text = run.page.read_text()
    run.page.write_text(text.replace("not a battery", "NOT a battery", 1) + " ")
    assert failing(run.root) == {"page"}


def test_rewrite_the_plan_afterwards(run):
    document = json.loads(run.plan.read_bytes())
    document["entries"] = document["entries"][:-2]
    run.plan.write_bytes(canonical_json(document))
    assert {"plan", "signature", "episode id"} <= failing(run.root)


def test_usage_and_cost_faked_together(run):
    def edit(lines):
        lines[VICTIM] = [r for r in lines[VICTIM] if b'"tokens_in"' not in r]

    outside(run, edit)
    assert "cost" not in failing(run.root)
    assert {"root", "chain"} <= failing(run.root)


def test_a_second_copy_of_an_attempt_in_another_shard(run):
    lines = attempts(run)
    write(run, lines)
    shutil.copy(run.shard(0), run.shard(7))
    assert {"frames", "root", "trace files"} <= failing(run.root)
