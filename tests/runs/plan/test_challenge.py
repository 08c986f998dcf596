"""Challenge after commitment: nobody knows a world when the plan is signed."""

import shutil

import msgspec
import pytest
from starlette.testclient import TestClient

from owa_bench.bridges import verifier
from owa_bench.bridges.verifier import Verifier, application
from owa_bench.canonical import seal
from owa_bench.errors import CheckFailure, FieldError, PlanError, UsageError
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.registry import Registry, VerifierKey
from owa_bench.reports.check import assurance
from owa_bench.reports.check.integrity_checks import check_attempts
from owa_bench.reports.read import bundle
from owa_bench.runs.plan import escrow, witness
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import draft_plan
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys
from owa_bench.runs.store.challenge_log import ChallengeLog, LogLimits, log_of
from owa_bench.seeding import instance_seed

URL = "http://verifier"


@pytest.fixture
def verifier_key(tmp_path):
    keys.keygen(tmp_path / "theirs", "verifier")
    return keys.load(tmp_path / "theirs", "verifier")


@pytest.fixture
def service(tmp_path, verifier_key):
    """The verifier's service, without a socket."""
    desk = Verifier(verifier_key, log_of(tmp_path / "theirs", "verifier"))
    return TestClient(application(desk), base_url=URL)


class Client:
    """Sends requests to a service without a socket, which has no timeouts."""

    def __init__(self, service):
        self.service = service

    def post(self, url, *, content, timeout):
        return self.service.post(url, content=content)


@pytest.fixture
def planned(tmp_path, small, run_options, verifier_key):
    """A plan that waits for the verifier's challenge."""
    request = small("noop", challenger=keys.public_hex(verifier_key))
    out = tmp_path / "run"
    batch.play(request, out, run_options, plan_only=True)
    return RunLayout(out)


def seeds(layout):
    return [attempt.events[0].instance.seed for attempt in bundle.read(layout.root).attempts()]


def test_nothing_is_played_before_the_challenge(planned, run_options):
    with pytest.raises(CheckFailure, match="waits for the challenge of key"):
        batch.resume(planned.root, run_options)
    assert not list(planned.shards.glob("*"))


def test_seeds_follow_from_the_challenge_and_verify_says_so(planned, run_options, verifier_key):
    found = witness.challenge(planned, verifier_key)
    batch.resume(planned.root, run_options)
    plan = read_plan(planned)
    master = escrow.find(run_options.home, plan.commitment).master
    pair = plan.entries[0].pair
    assert seeds(planned)[0] != instance_seed(master, pair)
    escrow.reveal(run_options.home, planned)
    root = escrow.revealed_root(planned, plan)
    assert seeds(planned) == [instance_seed(root, pair)]
    checked = check_attempts(bundle.read(planned.root))
    assert checked.faults["seed"] == []
    assert found.attempts == 0


def test_a_master_that_was_ground_before_is_worth_nothing(planned, verifier_key):
    """The attack: eight masters, the worlds of each looked at, the easiest kept."""
    digests = [f"{number:064x}" for number in range(8)]
    told = {witness.challenge_nonce(verifier_key, digest) for digest in digests}
    assert len(told) == 8  # of every plan another: none is known before it is signed


def test_worlds_of_before_the_challenge_that_were_played_are_found(
    planned, run_options, verifier_key, monkeypatch
):
    """The attack: a patched program plays the worlds of the master alone."""
    with monkeypatch.context() as patch:
        patch.setattr(escrow, "seed_nonce", lambda *_: None)
        batch.resume(planned.root, run_options)
    witness.challenge(planned, verifier_key)
    assert check_attempts(bundle.read(planned.root)).faults["seed"] == []
    escrow.reveal(run_options.home, planned)
    faults = check_attempts(bundle.read(planned.root)).faults["seed"]
    assert "not the seed that the master gives" in faults[0]


def test_equal_plans_under_equal_challenges_have_equal_replay_roots(
    planned, run_options, verifier_key, tmp_path
):
    again = RunLayout(shutil.copytree(planned.root, tmp_path / "again"))
    for layout in (planned, again):
        witness.challenge(layout, verifier_key)
        batch.resume(layout.root, run_options)
    first, second = (batch.summary(layout) for layout in (planned, again))
    assert first.replay_root == second.replay_root
    assert first.evidence_root != second.evidence_root


def test_a_witness_alone_does_not_show_that_nothing_had_been_played(
    tmp_path, small, run_options, verifier_key
):
    """The attack: have the plan witnessed after the run and write that it was before.

    What was on record then is the submitter's word. A challenge cannot come late: the
    seeds derive from it.
    """
    layout = RunLayout(tmp_path / "plain")
    batch.play(small("noop"), layout.root, run_options)
    late = witness.by_nonce(layout, "a verifier's nonce", verifier_key)
    (path,) = layout.witness.iterdir()
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(late, attempts=0)))
    named = VerifierKey(name="a lab", key=keys.public_hex(verifier_key))
    trusted = Registry(name="r", verifier=(named,))
    (found,) = assurance.witnesses(bundle.read(layout.root), trusted)
    assert (found.fault, found.shortfall) == ("", "")


def test_the_worlds_of_a_challenged_run_are_no_other_plans(planned, small):
    with pytest.raises(UsageError, match="a challenge to its own plan"):
        draft_plan(small("noop", worlds_of=planned.root))


def test_the_challenge_taken_out_or_put_beside_another_is_found(planned, run_options, verifier_key):
    witness.challenge(planned, verifier_key)
    batch.resume(planned.root, run_options)
    escrow.reveal(run_options.home, planned)
    witness.by_nonce(planned, "a second one", verifier_key)
    faults = check_attempts(bundle.read(planned.root)).faults["seed"]
    assert "must hold one challenge" in faults[0]
    for path in planned.witness.glob("*.json"):
        path.unlink()
    faults = check_attempts(bundle.read(planned.root)).faults["seed"]
    assert "waits for the challenge" in faults[0]


def test_another_key_cannot_challenge(planned, run_options, tmp_path):
    own = keys.load(run_options.home, keys.DEFAULT)
    with pytest.raises(FieldError, match="must be the challenger that the plan names"):
        witness.challenge(planned, own)
    witness.by_nonce(planned, "one of my own", own)
    with pytest.raises(CheckFailure, match="waits for the challenge"):
        batch.resume(planned.root, run_options)


def test_a_service_gives_one_plan_one_challenge(planned, service, verifier_key):
    first = witness.ask_challenge(planned, URL, client=Client(service))
    again = witness.ask_challenge(planned, URL, client=Client(service))
    assert first == again
    assert first.nonce == witness.challenge_nonce(verifier_key, first.plan_digest)
    key = read_plan(planned).public_key
    assert service.get(f"/submitters/{key}").json()["plans"] == 1
    assert service.get("/").json() == {"verifier": first.place}


def test_a_service_that_was_restarted_counts_on(planned, service, verifier_key, tmp_path):
    first = witness.ask_challenge(planned, URL, client=Client(service))
    log = log_of(tmp_path / "theirs", "verifier")
    later = Verifier(verifier_key, log)
    assert later.challenge(planned.plan_envelope.read_bytes()) == first
    assert log.count(read_plan(planned).public_key) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is not DSSE JSON"),
        (b'{"payload": "e30="}', "must be a signed plan"),
        (b"[" * 100_000, "is not DSSE JSON"),
    ],
)
def test_a_service_refuses_what_is_no_signed_plan(service, body, words):
    answer = service.post("/challenge", content=body)
    assert answer.status_code == 400
    assert words in answer.text


def test_a_service_refuses_a_plan_that_names_somebody_else(tmp_path, small, run_options, service):
    batch.play(small("noop"), tmp_path / "other", run_options, plan_only=True)
    with pytest.raises(CheckFailure, match="must name this verifier"):
        witness.ask_challenge(RunLayout(tmp_path / "other"), URL, client=Client(service))


def test_a_challenge_of_another_plan_is_refused(planned, verifier_key, monkeypatch):
    class Liar:
        def post(self, *_, **__):
            made = witness.challenge(planned, verifier_key)
            told = msgspec.structs.replace(made, nonce="another nonce")
            return witness.httpx.Response(200, content=msgspec.json.encode(told))

    with pytest.raises(CheckFailure, match="does not hold"):
        witness.ask_challenge(planned, URL, client=Liar())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"challenger": "me"}, "must be the public key of a verifier"),
        ({"challenger": "a" * 64, "verifier_nonce": "12345678"}, "and no nonce beside"),
    ],
)
def test_a_wrong_challenger_is_named(tmp_path, small, run_options, changes, words):
    with pytest.raises(PlanError, match=words):
        batch.play(small("noop", **changes), tmp_path / "r", run_options, plan_only=True)


def test_one_key_is_one_submitter_however_it_is_written(planned, service, verifier_key):
    """A key in capitals, or with a blank, would count as another submitter's."""
    plan = read_plan(planned)
    for name in (plan.public_key.upper(), f" {plan.public_key}"):
        other = msgspec.structs.replace(plan, public_key=name)
        body = seal(PLAN_TYPE, msgspec.json.encode(other), verifier_key)
        answer = service.post("/challenge", content=body)
        assert answer.status_code == 400
        assert "64 hex digits" in answer.text


def test_a_service_that_has_no_room_says_when(planned, tmp_path, verifier_key):
    desk = Verifier(verifier_key, ChallengeLog(tmp_path / "log", LogLimits(of_key_hourly=0)))
    service = TestClient(application(desk), base_url=URL)
    answer = service.post("/challenge", content=planned.plan_envelope.read_bytes())
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 3600


def test_a_body_that_is_too_long_is_not_read(service, monkeypatch):
    monkeypatch.setattr(verifier, "LONGEST_PLAN", 1000)
    assert service.post("/challenge", content=b"a" * 1001).status_code == 413
