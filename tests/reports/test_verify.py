import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from owa_bench.canonical import peek, public_bytes, seal, sha256
from owa_bench.errors import CheckFailure, RunDirectoryError
from owa_bench.records.layout import STATEMENT_TYPE, RunLayout
from owa_bench.records.registry import Registry
from owa_bench.reports import statement, verify
from owa_bench.reports.page import render_html
from owa_bench.reports.read.bundle import read
from tests.builders.run_directory import KEY, OTHER_KEY, make_plan, make_run

EXPECTED = (
    "layout",
    "plan signature",
    "plan",
    "frames",
    "chain",
    "count",
    "episode id",
    "leaf",
    "plan coverage",
    "seed",
    "blobs",
    "price card",
    "protocol",
    "cost",
    "signed cost",
    "signature",
    "root",
    "replay root",
    "trace files",
    "page",
    "witness",
    "assurance",
    "left open",
)


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    layout = make_run(tmp_path_factory.mktemp("signed") / "run", make_plan(1))
    statement.write(layout.root, KEY)
    return layout


def test_an_honest_run_passes_every_check_and_recomputes(signed):
    checks = verify.verify(signed.root, public_bytes(KEY.public_key()))
    assert tuple(check.name for check in checks) == EXPECTED
    assert all(check.ok for check in checks)
    assert [check.name for check in checks if check.skipped] == ["witness", "left open"]
    again = verify.recompute(signed.root)
    assert [check.name for check in again] == ["recompute", "assurance", "page"]
    assert all(check.ok and not check.skipped for check in again)
    for found in (checks[-2], again[1]):
        assert (found.name, found.detail) == ("assurance", "V2 now, V2 when signed")


def test_who_executed_the_run_with_own_nonce_sees_it_in_the_ladder(signed):
    key = public_bytes(KEY.public_key())
    *_, last, left = verify.verify(signed.root, verifier=key)
    assert last.detail.startswith("V2 now")
    assert left.detail.startswith("V2: the chain is whole and its report signed; not shown: ")


def test_without_report_or_reveal_these_checks_are_skipped_not_passed(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1), revealed=False)
    checks = {check.name: check for check in verify.verify(layout.root)}
    skipped = {name for name, check in checks.items() if check.skipped}
    assert skipped == {
        "seed",
        "signed cost",
        "signature",
        "root",
        "replay root",
        "trace files",
        "page",
        "witness",
        "left open",
    }
    left = checks["left open"].detail
    assert left.startswith("V1: the chain is whole; not shown: who wrote it")
    assert all(checks[name].detail.startswith("not checked") for name in skipped - {"left open"})
    with pytest.raises(RunDirectoryError, match="owa-bench report"):
        verify.recompute(layout.root)


def test_a_torn_report_is_a_clear_error(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    layout.report_envelope.write_text('{"payload": "')
    with pytest.raises(CheckFailure, match="must be a signed report"):
        verify.verify(layout.root)


def test_a_part_file_left_behind_is_named(signed, tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    (layout.root / ".report.json.part").write_text("{")
    found = {check.name: check for check in verify.verify(layout.root)}
    assert not found["layout"].ok
    assert ".report.json.part was left half written" in found["layout"].detail


def test_a_page_made_elsewhere_is_not_compared_byte_for_byte(signed, monkeypatch):
    monkeypatch.setattr("owa_bench.reports.composition.RENDERER", "0.0")
    checks = {check.name: check for check in verify.recompute(signed.root)}
    assert checks["page"].skipped
    assert "here are" in checks["page"].detail
    assert checks["recompute"].ok


@pytest.mark.parametrize(
    ("signed_value", "again", "where"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, None),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a.1: signed 2, recomputed 3"),
        ({"a": [1]}, {"a": [1, 3]}, "a: 1 entries signed, 2 recomputed"),
        ({"a": 1}, {"a": None}, "a: signed 1, recomputed None"),
        ({"a": True}, {"a": 1}, "a: signed True, recomputed 1"),
        ({"a": 1}, {"a": True}, "a: signed 1, recomputed True"),
        ({"a": 1, "b": 2}, {"b": 3, "a": 1}, "b: signed 2, recomputed 3"),
        ({"a": []}, {"a": {}}, "a: signed [], recomputed {}"),
        ({"a": {}}, {}, "a: signed {}, recomputed None"),
        (
            [{"gate": 1, "name": "n", "v": 1}],
            [{"gate": 1, "name": "n", "v": 2}],
            "n.v: signed 1, recomputed 2",
        ),
        (
            {"verdicts": [{"arm": "x", "axes": [{"symbol": "A", "value": 0.5}]}]},
            {"verdicts": [{"arm": "x", "axes": [{"symbol": "A", "value": 0.6}]}]},
            "verdicts.x.axes.A.value: signed 0.5, recomputed 0.6",
        ),
    ],
)
def test_first_difference_names_the_place(signed_value, again, where):
    assert verify.first_difference(signed_value, again) == where


@pytest.fixture(scope="module")
def draft(tmp_path_factory):
    """Return a whole run with an unsigned report, which is V1; its page is a word."""
    layout = make_run(tmp_path_factory.mktemp("draft") / "run", make_plan(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render_html, "render_page", lambda *_: b"page")
        statement.write(layout.root, None)
    return layout


def test_an_unsigned_draft_of_a_whole_run_is_v1_now_and_then(draft, monkeypatch):
    monkeypatch.setattr(render_html, "render_page", lambda *_: b"page")
    checks = {check.name: check for check in verify.verify(draft.root)}
    assert all(check.ok for check in checks.values())
    assert checks["signature"].detail == "not checked: an unsigned draft (V1)"
    assert checks["assurance"].detail == "V1 now, V1 when signed"
    again = {check.name: check for check in verify.recompute(draft.root)}
    assert again["assurance"].detail == "V1 now, V1 when signed"
    assert again["recompute"].ok


@pytest.fixture
def copied(signed, tmp_path):
    """Return a copy of the signed run that a test may change."""
    return RunLayout(shutil.copytree(signed.root, tmp_path / "run"))


def signature(layout, public=None):
    bundle = read(layout.root)
    return verify._signature(bundle, verify.read_signed_report(bundle), public)


def test_a_report_that_claims_v2_without_a_signature_fails(copied):
    envelope = json.loads(copied.report_envelope.read_bytes())
    copied.report_envelope.write_text(json.dumps(envelope | {"signatures": []}))
    found = signature(copied)
    assert not found.ok
    assert not found.skipped


def test_the_signature_is_checked_with_the_key_that_the_reader_trusts(copied):
    own = signature(copied)
    assert own.ok
    assert "which the run names itself: nothing was changed since" in own.detail
    assert "by whom is not shown (--public-key KEY" in own.detail
    pinned = signature(copied, public_bytes(KEY.public_key()))
    assert pinned.ok
    assert pinned.detail.endswith("the key that you gave")
    assert not signature(copied, public_bytes(OTHER_KEY.public_key())).ok


def test_a_statement_that_can_be_read_in_two_ways_is_refused(copied):
    """The signer writes a name twice: one program reads the first, another the last."""
    payload = peek(copied.report_envelope.read_bytes())
    twice = payload.replace(b'{"_type"', b'{"_type":"x","_type"', 1)
    for other in (twice, payload + b"\n"):
        copied.report_envelope.write_bytes(seal(STATEMENT_TYPE, other, KEY))
        assert "not in canonical form" in signature(copied).detail
    copied.report_envelope.write_bytes(seal(STATEMENT_TYPE, payload, KEY))
    assert signature(copied).ok


def test_a_report_json_that_is_gone_or_changed_is_named(copied):
    whole = copied.report.read_bytes()
    copied.report.write_bytes(whole.rstrip(b"\n"))
    assert signature(copied).detail == "report.json is not what was signed"
    copied.report.unlink()
    assert signature(copied).detail == "report.json is missing"


def test_a_report_of_another_plan_is_named(signed):
    bundle = read(signed.root)
    report = verify.read_signed_report(bundle)
    other = SimpleNamespace(plan=bundle.plan, layout=bundle.layout, plan_digest="another")
    found = verify._signature(other, report, None)
    assert found.detail == "the report is of another plan"


def priced(costs, *episodes, monkeypatch):
    """Return the check of signed costs over episodes of (arm, cost by stream)."""
    prices = {i: cost for i, (_, cost) in enumerate(episodes)}
    monkeypatch.setattr(verify, "episode_cost", lambda _, events: prices[events])
    traces = [
        SimpleNamespace(start=SimpleNamespace(arm=arm), events=i)
        for i, (arm, _) in enumerate(episodes)
    ]
    verdicts = [SimpleNamespace(arm=arm, cost_micro_usd=cost) for arm, cost in costs.items()]
    judgement = SimpleNamespace(verdicts=verdicts)
    signed = SimpleNamespace(report=SimpleNamespace(judgement=judgement))
    return verify._cost(SimpleNamespace(prices=None, traces=lambda: traces), signed)


@pytest.mark.parametrize(
    ("costs", "fault"),
    [
        ({"x": {"agent": 7, "human": None}, "y": {"agent": 11}}, ""),
        ({"x": {"agent": 8}}, "x, agent stream: signed 0.000008 USD, its events cost 0.000007 USD"),
        ({"x": {"human": 2}}, "x, human stream: signed 0.000002 USD, its events cost unknown"),
        ({"y": {"human": 0}}, ""),
        ({"z": {"agent": 0}}, ""),
        ({"z": {"agent": 1}}, "z, agent stream: signed 0.000001 USD, its events cost 0.000000 USD"),
        ({"y": {"human": 1}}, "y, human stream: signed 0.000001 USD, its events cost 0.000000 USD"),
        ({"y": {"agent": 3}, "x": {"agent": 7}}, "y, agent stream: signed 0.000003"),
    ],
)
def test_the_cost_of_an_arm_is_the_sum_of_its_episodes_by_stream(monkeypatch, costs, fault):
    """X costs 3 + 4, and for humans unknown before and after 2; y costs 11."""
    found = priced(
        costs,
        ("x", {"agent": 3, "human": 2}),
        ("y", {"agent": 11}),
        ("x", {"agent": 4, "human": None}),
        ("x", {"agent": 0, "human": 2}),
        monkeypatch=monkeypatch,
    )
    assert found.ok == (fault == "")
    assert found.detail.startswith(fault or "every agent's cost")


def test_roots_are_those_of_the_statement_and_of_the_report():
    root, other = "r" * 20, "o" * 20
    bundle = SimpleNamespace(evidence_root=root)

    def check(stated, reported):
        judgement = SimpleNamespace(evidence_root=reported)
        subjects = {} if stated is None else {"evidence root": stated}
        report = SimpleNamespace(judgement=judgement)
        signed = SimpleNamespace(subjects=subjects, report=report)
        return verify._root(bundle, signed, "root", "evidence_root")

    assert check(root, root) == ("root", True, root, False)
    given = f"the shards give {root[:16]}"
    assert check(other, root).detail == f"the statement says {other[:16]}, {given}"
    assert check(root, other).detail == f"the report says {other[:16]}, {given}"
    assert check(None, root).detail == f"the statement says nothing, {given}"


def test_shards_that_lack_are_new_or_differ_are_named(copied):
    bundle = read(copied.root)
    report = verify.read_signed_report(bundle)
    first, second = sorted(copied.shards.glob("*.jsonl.zst"))
    assert verify._trace_files(bundle, report).detail == "2 shards as signed"
    (copied.shards / "shard-9.jsonl.zst").write_bytes(first.read_bytes())
    first.write_bytes(second.read_bytes())
    second.unlink()
    assert verify._trace_files(bundle, report).detail == (
        f"trace/{second.name} is missing; trace/shard-9.jsonl.zst is not in the report;"
        f" trace/{first.name} is not as it was signed"
    )


@pytest.mark.parametrize(
    ("named", "found", "detail"),
    [
        ({}, {}, None),
        ({"plan": "1"}, {}, None),
        ({"n.dsse.json": "1", "plan": "2"}, {"n.dsse.json": "1"}, ""),
        ({"registry.toml": "1"}, {"registry.toml": "1"}, ""),
        ({"n.dsse.json": "1"}, {}, "n.dsse.json is missing"),
        ({"registry.toml": "1"}, {}, "registry.toml is missing"),
        ({}, {"n.dsse.json": "1"}, "n.dsse.json is not in the report"),
        ({"n.dsse.json": "1"}, {"n.dsse.json": "2"}, "n.dsse.json is not as it was"),
    ],
)
def test_what_was_read_beside_the_events_is_as_signed(monkeypatch, named, found, detail):
    monkeypatch.setattr(verify, "input_digests", lambda _: found)
    bundle = SimpleNamespace(layout=RunLayout(Path("run")))
    checks = list(verify._inputs(bundle, SimpleNamespace(subjects=named)))
    if detail is None:
        assert checks == []
    else:
        (check,) = checks
        assert check.ok == (detail == "")
        assert check.detail.startswith(detail or f"{next(iter(found))} as signed")


def test_a_page_that_is_gone_or_changed_is_named(copied, monkeypatch):
    bundle = read(copied.root)
    report = verify.read_signed_report(bundle)
    again, page = report.report, copied.page.read_bytes()
    monkeypatch.setattr(render_html, "render_page", lambda *_: page)
    assert verify._page(bundle, report) == ("page", True, "report.html", False)
    drawn = verify._redrawn_page(bundle, report, again)
    assert (drawn.ok, drawn.detail) == (True, "drawn again, equal byte for byte")
    copied.page.write_bytes(copied.page.read_bytes() + b" ")
    changed = "report.html is not as it was signed"
    assert verify._page(bundle, report) == ("page", False, changed, False)
    assert not verify._redrawn_page(bundle, report, again).ok
    copied.page.unlink()
    assert not verify._page(bundle, report).ok
    assert not verify._redrawn_page(bundle, report, again).ok


def test_figures_are_equal_but_for_the_versions_that_drew_them(signed):
    report = verify.read_signed_report(read(signed.root))
    replace = msgspec.structs.replace
    same = replace(report.report, version="0", renderer="0", page=sha256(b""))
    assert verify._figures(report, same).ok
    other = verify._figures(report, replace(same, environment=()))
    assert not other.ok
    assert other.detail == "environment: 2 entries signed, 0 recomputed"


@pytest.mark.parametrize(
    ("pictures", "pruned", "skipped"),
    [((), {}, False), (("p",), {}, False), ((), {"a": 1}, False), (("p",), {"a": 1}, 1)],
)
def test_a_page_whose_pictures_were_pruned_is_not_drawn_again(
    signed, monkeypatch, pictures, pruned, skipped
):
    monkeypatch.setattr(verify, "read_pruned", lambda _: pruned)
    monkeypatch.setattr(render_html, "render_page", lambda *_: b"")
    bundle = read(signed.root)
    report = verify.read_signed_report(bundle)
    gallery = SimpleNamespace(pictures=pictures)
    again = msgspec.structs.replace(report.report, failures=gallery)
    assert verify._redrawn_page(bundle, report, again).skipped == skipped


@pytest.mark.parametrize("changed", ["version", "renderer"])
def test_a_page_of_another_version_is_not_drawn_again(signed, changed):
    bundle = read(signed.root)
    report = verify.read_signed_report(bundle)
    other = msgspec.structs.replace(report.report, **{changed: "0"})
    assert verify._redrawn_page(bundle, report, other).skipped


def test_an_entry_is_named_by_its_own_name_or_by_its_place():
    assert verify._label({"name": "n", "arm": "a"}, 3) == "a"
    assert verify._label({"arm": 1, "title": "t"}, 3) == "t"
    assert verify._label({"arm": 1}, 3) == "3"
    assert verify._label("name", 3) == "3"


WITNESS = SimpleNamespace(file="w", text="seen", fault="", shortfall="")


@pytest.mark.parametrize(
    ("witnesses", "receipts", "ok", "detail"),
    [
        ((), (), True, "not checked: nobody witnessed"),
        ((WITNESS,), (), True, "seen"),
        ((), (WITNESS,), True, "seen"),
        ((WITNESS,), ({"shortfall": "few"},), True, "seen; seen: few"),
        (({"fault": "lies"},), (WITNESS,), False, "w lies"),
        (({"shortfall": "few"},), (), True, "lifts nothing: seen: few"),
        (({"fault": "lies", "shortfall": "few"},), (), False, "w lies"),
    ],
)
def test_a_witness_or_receipt_that_does_not_hold_fails(
    monkeypatch, witnesses, receipts, ok, detail
):
    def made(found):
        return tuple(
            SimpleNamespace(**vars(WITNESS) | one) if isinstance(one, dict) else one
            for one in found
        )

    monkeypatch.setattr(verify.assurance, "witnesses", lambda *_: made(witnesses))
    monkeypatch.setattr(verify.assurance, "receipts", lambda *_: made(receipts))
    found = verify._witness(None, None)
    assert found.ok == ok
    assert found.detail.startswith(detail)
    assert found.skipped == (not witnesses + receipts or detail.startswith("lifts nothing"))


@pytest.mark.parametrize(
    ("own", "asked", "level", "ok", "detail"),
    [
        (True, False, 2, True, "V2 now; V2 when signed, by a registry that the run"),
        (True, True, 2, True, "V2 now, V2 when signed"),
        (False, True, 2, True, "V2 now, V2 when signed"),
        (True, False, 3, False, "the report says V3, but V3 (plan witnessed"),
    ],
)
def test_nobodys_word_is_taken_for_a_claim_under_the_runs_own_registry(
    signed, monkeypatch, own, asked, level, ok, detail
):
    bundle, lab = read(signed.root), Registry(name="lab")
    vars(bundle)["registry"] = lab if own else None
    report = verify.read_signed_report(bundle)
    claim = msgspec.structs.replace(report.report.assurance, level=level)
    changed = msgspec.structs.replace(report.report, assurance=claim)
    monkeypatch.setattr(verify, "read_signed_report", lambda _: report._replace(report=changed))
    found = verify._report_checks(bundle, (), None, None, lab if asked else None)
    last = list(found)[-2]
    assert last.ok == ok
    assert last.detail.startswith(detail)
