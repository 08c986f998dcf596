import json
import stat

import msgspec
import pytest

from owa_bench.canonical import canonical_json
from owa_bench.errors import CheckFailure, RunDirectoryError, TraceError, UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan import escrow
from owa_bench.seeding import commitment, mixed_master


@pytest.fixture
def held(tmp_path, layout, toy_plan):
    """A run whose plan commits to a master that lies in `home`."""
    kept = escrow.commit(tmp_path / "home")
    plan = msgspec.structs.replace(toy_plan, commitment=kept.commitment)
    layout.plan.write_bytes(canonical_json(plan))
    return kept, plan


def test_commitment_is_to_nonce_and_master(tmp_path) -> None:
    kept = escrow.commit(tmp_path)
    assert kept.commitment == commitment(kept.nonce, kept.master)
    assert len(kept.master) == len(kept.nonce) == 32
    assert escrow.find(tmp_path, kept.commitment) == kept
    assert escrow.commit(tmp_path).master != kept.master


def test_given_master_is_kept(tmp_path) -> None:
    first = escrow.commit(tmp_path, b"m" * 32)
    second = escrow.commit(tmp_path, b"m" * 32)
    assert first.master == second.master == b"m" * 32
    assert first.commitment != second.commitment


def test_only_the_owner_may_read_it(tmp_path) -> None:
    kept = escrow.commit(tmp_path)
    path = tmp_path / "escrow" / f"{kept.commitment}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(UsageError, match="0600"):
        escrow.find(tmp_path, kept.commitment)


def test_reveal_writes_what_the_plan_commits_to(tmp_path, layout, held) -> None:
    kept, plan = held
    shown = escrow.reveal(tmp_path / "home", layout)
    assert json.loads(layout.reveal.read_bytes()) == shown._asdict()
    assert bytes.fromhex(shown.master) == kept.master
    assert escrow.revealed_root(layout, plan) == kept.master
    assert escrow.reveal(tmp_path / "elsewhere", layout) == shown


def test_nothing_of_the_master_is_in_the_run_before(tmp_path, layout, held) -> None:
    kept, plan = held
    for path in layout.root.rglob("*"):
        assert kept.master.hex() not in path.read_text()
        assert kept.nonce.hex() not in path.read_text()
    with pytest.raises(UsageError, match="escrow reveal"):
        escrow.revealed_root(layout, plan)


def test_verifiers_nonce_is_mixed_in(tmp_path, layout, held) -> None:
    kept, plan = held
    escrow.reveal(tmp_path / "home", layout)
    mixed = msgspec.structs.replace(plan, verifier_nonce="a verifier's nonce")
    root = escrow.revealed_root(layout, mixed)
    assert root == mixed_master(kept.master, "a verifier's nonce") != kept.master


def test_reveal_of_something_else_is_caught(tmp_path, layout, held) -> None:
    kept, plan = held
    forged = {"master": "00" * 32, "nonce": kept.nonce.hex()}
    layout.reveal.write_text(json.dumps(forged))
    with pytest.raises(CheckFailure, match="not what the commitment"):
        escrow.revealed_root(layout, plan)
    with pytest.raises(CheckFailure, match="not what the commitment"):
        escrow.reveal(tmp_path / "home", layout)
    layout.reveal.write_text('{"master":"xyz"')
    with pytest.raises(TraceError, match="does not hold a master"):
        escrow.revealed_root(layout, plan)


def test_master_that_is_elsewhere_is_said_to_be(tmp_path, layout, held) -> None:
    with pytest.raises(UsageError, match="No master lies in"):
        escrow.reveal(tmp_path / "another home", layout)
    with pytest.raises(UsageError, match="64 hex digits"):
        escrow.find(tmp_path, "../../etc/passwd")


def test_folder_without_a_plan_is_no_run(tmp_path) -> None:
    with pytest.raises(RunDirectoryError):
        escrow.reveal(tmp_path, RunLayout(tmp_path))
