"""Attacks on norms of persons: programs pose as persons, and who watched is forged."""

import shutil
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import canonical_json, public_bytes, seal
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.layout import ATTENDANCE_TYPE
from owa_bench.records.people import Attendance, unattended
from owa_bench.records.registry import Registry, VerifierKey
from owa_bench.reports.export.norms import make_norms, sign_attendance
from tests.builders.person_runs import person_run
from tests.builders.run_directory import KEY

WATCHER = Ed25519PrivateKey.from_private_bytes(b"w" * 32)
PEOPLE = ("ada", "ben")


def hexed(key):
    return public_bytes(key.public_key()).hex()


REGISTRY = Registry(name="lab", watcher=(VerifierKey(name="a lab", key=hexed(WATCHER)),))


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Runs of two persons, or of two programs that say so: the files cannot tell."""
    folder = tmp_path_factory.mktemp("persons")
    return [person_run(folder, name, 0.8) for name in PEOPLE]


@pytest.fixture
def runs(honest, tmp_path):
    return [Path(shutil.copytree(run, tmp_path / run.name)) for run in honest]


def test_programs_that_pose_as_persons_are_unattended(runs):
    """The attack, and its control: signed for by a watcher, the same runs count."""
    assert unattended(make_norms(runs), REGISTRY) == PEOPLE
    for run in runs:
        sign_attendance(run, WATCHER)
    made = make_norms(runs)
    assert unattended(made, REGISTRY) == ()
    assert unattended(made, None) == PEOPLE
    assert unattended(made, Registry(name="other")) == PEOPLE


def test_one_person_that_nobody_watched_is_enough(runs):
    sign_attendance(runs[0], WATCHER)
    assert unattended(make_norms(runs), REGISTRY) == ("ben",)


def test_the_word_for_one_person_is_none_for_another(runs):
    """The next attack: copy the file of who was watched into the other's run."""
    path = sign_attendance(runs[0], WATCHER)
    (runs[1] / "receipts").mkdir(exist_ok=True)
    shutil.copy(path, runs[1] / "receipts" / path.name)
    assert unattended(make_norms(runs), REGISTRY) == ("ben",)


def test_nobody_watches_a_run_of_their_own(runs):
    """The next attack: the key that signed the plan signs for the person, too."""
    with pytest.raises(UsageError, match="another key"):
        sign_attendance(runs[0], KEY)
    (run, _) = make_norms(runs).runs
    word = Attendance(
        person=run.person,
        plan_digest=run.plan_digest,
        evidence_root=run.evidence_root,
        public_key=hexed(KEY),
    )
    forged = seal(ATTENDANCE_TYPE, canonical_json(word), KEY).decode()
    own = Registry(name="own", watcher=(VerifierKey(name="me", key=hexed(KEY)),))
    norms = make_norms(runs)
    changed = msgspec.structs.replace(run, attendances=(forged,))
    norms = msgspec.structs.replace(norms, runs=(changed, *norms.runs[1:]))
    assert unattended(norms, own) == PEOPLE


def test_a_word_under_another_name_does_not_hold(runs):
    """The next attack: put the watcher's public key into a word that one signs."""
    (run, _) = make_norms(runs).runs
    word = Attendance(
        person=run.person,
        plan_digest=run.plan_digest,
        evidence_root=run.evidence_root,
        public_key=hexed(WATCHER),
    )
    forged = seal(ATTENDANCE_TYPE, canonical_json(word), KEY).decode()
    norms = make_norms(runs)
    for envelope in (forged, "", "{}", "[" * 10_000):
        changed = msgspec.structs.replace(run, attendances=(envelope,))
        other = msgspec.structs.replace(norms, runs=(changed, *norms.runs[1:]))
        assert unattended(other, REGISTRY) == PEOPLE


def test_a_run_that_was_changed_cannot_be_signed_for(runs):
    plan = runs[0] / "plan.json"
    plan.write_bytes(plan.read_bytes().replace(b'"steps":', b'"stepz":', 1) + b" ")
    with pytest.raises(CheckFailure):
        sign_attendance(runs[0], WATCHER)
