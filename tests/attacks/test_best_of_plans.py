"""Attacks by the best of several challenged plans: a fresh key each, a flood."""

import shutil

import msgspec
import pytest

from owa_bench.bridges.verifier import Verifier
from owa_bench.canonical import seal
from owa_bench.errors import FieldError, NoRoomError
from owa_bench.records.layout import RECEIPT_TYPE, RunLayout
from owa_bench.records.registry import Registry, VerifierKey
from owa_bench.records.witness import nonce_document
from owa_bench.reports.check.assurance import assess, submission, submission_words, witnesses
from owa_bench.reports.read import bundle
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow, witness
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys
from owa_bench.runs.store.challenge_log import ChallengeLog, LogLimits, log_of

CHALLENGER = "verifier"


@pytest.fixture
def theirs(tmp_path):
    """The verifier's data folder."""
    keys.keygen(tmp_path / "theirs", CHALLENGER)
    return tmp_path / "theirs"


@pytest.fixture
def verifier_key(theirs):
    return keys.load(theirs, CHALLENGER)


def plan_of(folder, verifier_key, key="one"):
    """Return a signed plan of one episode that waits for a challenge."""
    home = folder / "home"
    if key not in keys.key_names(home):
        keys.keygen(home, key)
    draw = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,))
    challenger = keys.public_hex(verifier_key)
    request = Request(agents=("noop",), draws=(draw,), challenger=challenger)
    out = folder / f"run-{len(list(folder.iterdir()))}"
    batch.play(request, out, RunOptions(home=home, key=key), plan_only=True)
    return RunLayout(out)


def public(folder, key):
    return keys.public_hex(keys.load(folder / "home", key))


def challenged(layout, theirs, verifier_key):
    """Challenge a plan as the verifier's service does; return whose plan it is."""
    witness.challenge(layout, verifier_key, log_of(theirs, CHALLENGER))
    return submission(bundle.read(layout.root))


def test_plans_of_a_submitter_are_numbered_under_any_of_their_keys(tmp_path, theirs, verifier_key):
    """The attack: the best of three plans; the control: by key each is a first one."""
    log = log_of(theirs, CHALLENGER)
    numbers, by_key = [], []
    for key in ("one", "two", "three"):
        layout = plan_of(tmp_path, verifier_key, key)
        log.register("a lab", public(tmp_path, key))
        found = challenged(layout, theirs, verifier_key)
        numbers.append((found.submitter, found.number))
        lines = log_of(theirs, CHALLENGER)._plans.values()
        mine = public(tmp_path, key)
        by_key.append(sum(line.submitter == mine for line in lines))
    assert numbers == [("a lab", 1), ("a lab", 2), ("a lab", 3)]
    assert by_key == [1, 1, 1]  # the old count
    assert "plan 3 of a lab" in submission_words(bundle.read(layout.root))


def test_a_fresh_key_a_plan_has_no_number_and_page_one_says_so(tmp_path, theirs, verifier_key):
    layout = plan_of(tmp_path, verifier_key)
    assert challenged(layout, theirs, verifier_key) == ("", 0, 0)
    words = submission_words(bundle.read(layout.root))
    assert "not on the verifier's list of submitters" in words
    assert "the best of many plans" in words


def test_the_best_of_plans_cannot_be_registered_afterwards(tmp_path, theirs, verifier_key):
    """The next attack: ask under fresh keys, then have the key of the best listed."""
    layout = plan_of(tmp_path, verifier_key)
    challenged(layout, theirs, verifier_key)
    log_of(theirs, CHALLENGER).register("a lab", public(tmp_path, "one"))
    for path in layout.witness.iterdir():
        path.unlink()
    assert challenged(layout, theirs, verifier_key).submitter == ""
    later = plan_of(tmp_path, verifier_key)
    assert challenged(later, theirs, verifier_key).number == 2


@pytest.mark.parametrize(
    "change", [{"number": 1}, {"submitter": "another lab"}, {"submitter": "", "number": 0}]
)
def test_a_number_is_signed(tmp_path, theirs, verifier_key, change):
    """The attack: rewrite the number or the name in the file of the challenge."""
    log = log_of(theirs, CHALLENGER)
    plan_of(tmp_path, verifier_key)
    log.register("a lab", public(tmp_path, "one"))
    for _ in range(2):
        layout = plan_of(tmp_path, verifier_key)
        challenged(layout, theirs, verifier_key)
    (path,) = layout.witness.iterdir()
    told = msgspec.json.decode(path.read_bytes(), type=witness.Witness)
    assert told.number == 2
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(told, **change)))
    (check,) = witnesses(bundle.read(layout.root))
    assert "what was signed is not this nonce, time and submitter" in check.fault
    assert submission(bundle.read(layout.root)).submitter == ""


def test_a_number_of_ones_own_needs_the_challengers_key(tmp_path, theirs, verifier_key):
    """The attack: sign "plan 1 of a lab" oneself."""
    layout = plan_of(tmp_path, verifier_key)
    witness.challenge(layout, verifier_key)
    (path,) = layout.witness.iterdir()
    told = msgspec.json.decode(path.read_bytes(), type=witness.Witness)
    forged = msgspec.structs.replace(told, submitter="a lab", number=1)
    own = keys.load(tmp_path / "home", "one")
    envelope = seal(RECEIPT_TYPE, nonce_document(forged), own).decode()
    forged = msgspec.structs.replace(forged, evidence=envelope)
    (layout.witness / "nonce-2.json").write_bytes(msgspec.json.encode(forged))
    assert submission(bundle.read(layout.root)).submitter == ""


def test_plans_after_the_first_are_counted_when_it_is_replayed(tmp_path, theirs, verifier_key):
    """The next attack: hand in the first of ten, whose number is 1."""
    log = log_of(theirs, CHALLENGER)
    layout = plan_of(tmp_path, verifier_key)
    log.register("a lab", public(tmp_path, "one"))
    challenged(layout, theirs, verifier_key)
    options = RunOptions(home=tmp_path / "home", key="one")
    batch.resume(layout.root, options)
    escrow.reveal(options.home, layout)
    for _ in range(2):
        challenged(plan_of(tmp_path, verifier_key), theirs, verifier_key)
    assert submission(bundle.read(layout.root)) == ("a lab", 1, 0)
    replay.sign(layout, replay.replay_run(layout), verifier_key, log)
    assert submission(bundle.read(layout.root)) == ("a lab", 1, 3)
    named = VerifierKey(name="a lab", key=keys.public_hex(verifier_key))
    found = assess(
        bundle.read(layout.root), (), signed=True, registry=Registry(name="r", verifier=(named,))
    )
    assert "plan 1 of a lab" in found.rungs[3].evidence


def test_a_flood_of_fresh_keys_takes_no_place_of_a_listed_submitter(tmp_path, theirs, verifier_key):
    log = ChallengeLog(log_of(theirs, CHALLENGER).path, LogLimits(lines=4))
    desk = Verifier(verifier_key, log)
    plans = [plan_of(tmp_path, verifier_key, f"k{n}") for n in range(4)]
    for layout in plans[:2]:
        desk.challenge(layout.plan_envelope.read_bytes())
    with pytest.raises(NoRoomError, match="is full"):
        desk.challenge(plans[2].plan_envelope.read_bytes())
    desk.challenge(plans[0].plan_envelope.read_bytes())  # known already
    log.register("a lab", public(tmp_path, "k3"))
    assert desk.challenge(plans[3].plan_envelope.read_bytes()).number == 1
    assert len(log.path.read_bytes().splitlines()) == 3


def test_a_line_that_was_cut_off_is_written_anew(tmp_path, theirs, verifier_key):
    log = log_of(theirs, CHALLENGER)
    first = plan_of(tmp_path, verifier_key)
    log.register("a lab", public(tmp_path, "one"))
    challenged(first, theirs, verifier_key)
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + whole[:40])
    second = plan_of(tmp_path, verifier_key)
    assert challenged(second, theirs, verifier_key).number == 2
    lines = log.path.read_bytes().splitlines()
    assert [msgspec.json.decode(line)["number"] for line in lines] == [1, 2]
    assert challenged(first, theirs, verifier_key).number == 1


@pytest.mark.parametrize("name", ["", " a", "a" * 65, 'a"\nb', "<b>"])
def test_a_name_that_no_page_can_show_is_refused(theirs, name):
    with pytest.raises(FieldError, match="letters, digits, blanks"):
        log_of(theirs, CHALLENGER).register(name, "ab" * 32)


def test_a_key_has_one_name(theirs):
    log = log_of(theirs, CHALLENGER)
    log.register("a lab", "ab" * 32)
    log.register("a lab", "cd" * 32)
    with pytest.raises(FieldError, match="must be no key of 'a lab'"):
        log.register("another lab", "cd" * 32)
    with pytest.raises(FieldError, match="64 hex digits"):
        log.register("a lab", "x")
    assert log.submitters.keys_of("a lab") == {"ab" * 32, "cd" * 32}


def test_the_service_and_the_command_share_a_log(tmp_path, theirs, verifier_key):
    """Two processes of one verifier never give one number twice."""
    service, command = (log_of(theirs, CHALLENGER) for _ in range(2))
    plans = [plan_of(tmp_path, verifier_key) for _ in range(4)]
    service.register("a lab", public(tmp_path, "one"))
    numbers = [
        witness.challenge(layout, verifier_key, log).number
        for layout, log in zip(plans, (service, command) * 2, strict=True)
    ]
    assert numbers == [1, 2, 3, 4]
    copy = RunLayout(shutil.copytree(plans[0].root, tmp_path / "copy"))
    assert witness.challenge(copy, verifier_key, command).number == 1
