import pytest

from owa_bench.canonical import public_bytes
from owa_bench.errors import CheckFailure, RunDirectoryError
from owa_bench.report import statement, verify
from tests.builders.run_directory import KEY, make_plan, make_run

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
    assert [check.name for check in checks if check.skipped] == ["witness"]
    again = verify.recompute(signed.root)
    assert [check.name for check in again] == ["recompute", "assurance", "page"]
    assert all(check.ok and not check.skipped for check in again)


def test_who_executed_the_run_with_own_nonce_sees_it_in_the_ladder(signed):
    key = public_bytes(KEY.public_key())
    last = verify.verify(signed.root, verifier=key)[-1]
    assert last.detail.startswith("V2 now")


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
    }
    assert all(checks[name].detail.startswith("not checked") for name in skipped)
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
    monkeypatch.setattr("owa_bench.report.composition.RENDERER", "0.0")
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
