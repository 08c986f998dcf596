"""Levels of assurance on runs written by hand: conditions, caps, receipts."""

from types import SimpleNamespace

import msgspec
import pytest

from owa_bench.records.plan import WEAK_HOSTINGS
from owa_bench.records.witness import Witness
from owa_bench.reports.check import assurance
from owa_bench.reports.check.assurance import (
    Assurance,
    AssuranceLevel,
    AttestationCheck,
    assess,
    hosting_cap,
    open_words,
)
from owa_bench.reports.check.integrity_checks import CheckResult
from owa_bench.reports.verify import _assurance_claim

KEY, OTHER = "ab" * 32, "cd" * 32
GOOD = [CheckResult("chain", True, ""), CheckResult("seed", True, "", skipped=True)]
HOLDS = (AttestationCheck("w.json", "seen"),)


def run(*hostings, nonce=None):
    """Return a run of arms with these hostings, signed by KEY."""
    arms = tuple(
        SimpleNamespace(name=f"a{i}", hosting=hosting, root="")
        for i, hosting in enumerate(hostings or (strong(),))
    )
    plan = SimpleNamespace(public_key=KEY, arms=arms, verifier_nonce=nonce, challenger="")
    return SimpleNamespace(plan=plan, plan_digest="p", evidence_root="e", replay_root="r")


def strong():
    """Return a hosting that has no cap."""
    return "sandbox"


@pytest.fixture
def attested(monkeypatch):
    """Return a function that sets what witnesses and receipts the run has."""

    def put(witnesses=(), receipts=()):
        monkeypatch.setattr(assurance, "witnesses", lambda *_: witnesses)
        monkeypatch.setattr(assurance, "receipts", lambda *_: receipts)

    put()
    return put


def levels(found):
    return [level.met for level in found.rungs]


def test_a_level_is_the_highest_met_with_all_below_it(attested):
    assert strong() not in WEAK_HOSTINGS
    draft = assess(run(), GOOD, signed=False)
    assert (draft.level, draft.name) == (1, "V1")
    assert draft.rungs[1].evidence == "1 checks hold"
    assert draft.rungs[2].evidence.startswith("not signed")
    signed = assess(run(), GOOD, signed=True)
    assert signed.level == 2
    assert signed.rungs[2].evidence.startswith("key ")
    attested(receipts=HOLDS)
    gap = assess(run(), GOOD, signed=True)
    assert (gap.level, levels(gap)) == (2, [True, True, True, False, True, False])
    attested(witnesses=HOLDS, receipts=HOLDS)
    assert assess(run(), GOOD, signed=True).level == 4
    broken = [*GOOD, CheckResult("cost", False, ""), CheckResult("leaf", False, "")]
    found = assess(run(), broken, signed=True)
    assert (found.level, found.rungs[1].evidence) == (0, "fails: cost, leaf")


def at(level):
    return Assurance(level=level, rungs=())


@pytest.mark.parametrize(
    ("level", "shown", "left", "lift"),
    [
        (0, "nothing is shown", "those that were recorded", "FAIL names what is damaged"),
        (1, "the chain is whole", "nobody signed a report of it", "`owa-bench report RUN`"),
        (2, "its report signed", "the signer alone says so", "challenged before its first episode"),
        (3, "a verifier saw the plan", "the signer alone played them", "`owa-bench replay RUN"),
        (4, "a second party played", "an oracle inside the agent", "`owa-bench evaluate`"),
        (5, "you trust ran the agent", "that this party is honest", "nothing in this package"),
    ],
)
def test_a_level_says_what_it_leaves_open_and_what_lifts_it(attested, level, shown, left, lift):
    words = open_words(run(), at(level))
    said, lifts = words.split(". What lifts it: ")
    name, said = said.split(": ", 1)
    assert name == f"V{level}"
    assert shown in said.split("; not shown: ")[0]
    assert left in said.split("; not shown: ")[1]
    assert lift in lifts


def test_a_plan_that_was_witnessed_and_not_challenged_leaves_its_seeds_open(attested):
    """A witness shows when a plan existed, not that nobody picked its seeds."""
    one = run()
    for level, said in ((2, False), (3, True), (4, True), (5, False)):
        assert ("the plan had no challenge" in open_words(one, at(level))) == said
    one.plan.challenger = OTHER
    assert "the plan had no challenge" not in open_words(one, at(3))


def test_hosting_and_a_registry_that_lack_are_said_first(attested):
    weak = next(hosting for hosting, cap in WEAK_HOSTINGS.items() if cap == 2)
    assert "What lifts it: another hosting (agents" in open_words(run(weak), at(2))
    assert "another hosting" not in open_words(run(weak), at(1))  # a signature would lift that
    attested(receipts=(AttestationCheck("r", "seen", "", assurance._NO_REGISTRY),))
    registry = SimpleNamespace(name="lab")
    assert "What lifts it: --registry FILE" in open_words(run(), at(2))
    assert "--registry FILE" not in open_words(run(), at(2), registry)


def test_a_verifier_that_played_it_needs_no_other_party(attested):
    key = bytes.fromhex(KEY)
    found = assess(run(nonce="n"), GOOD, signed=True, verifier=key)
    assert (found.level, all(levels(found))) == (5, True)
    assert found.rungs[4].evidence == found.rungs[3].evidence
    assert "played it for the reader" in found.rungs[3].evidence
    none = assess(run(), GOOD, signed=True, verifier=key)
    assert none.rungs[5].evidence == "no verifier's nonce in the seeds"
    assert none.level == 2


@pytest.mark.parametrize(
    ("verifier", "evaluator", "nonce", "met", "words"),
    [
        (None, "", "n", False, "only the verifier can say so"),
        (KEY, "", "n", True, "plan signed by the verifier, seeds mixed"),
        (OTHER, "", "n", False, "signed by another key than the verifier's"),
        (KEY, "", None, False, "no verifier's nonce"),
        (None, "lab", "n", True, "plan signed by evaluator lab"),
        (OTHER, "lab", "n", True, "plan signed by evaluator lab"),
        (None, "lab", None, False, "no verifier's nonce"),
        (None, None, "n", False, "only the verifier can say so"),
    ],
)
def test_who_may_say_that_it_executed_a_run(verifier, evaluator, nonce, met, words):
    registry = None
    if evaluator is not None:
        registry = SimpleNamespace(evaluator_of={KEY: evaluator}.get)
    key = None if verifier is None else bytes.fromhex(verifier)
    found, text = assurance._executed(run(nonce=nonce), key, registry)
    assert found == met
    assert words in text


def test_a_weak_hosting_caps_the_level_of_a_run(attested):
    attested(witnesses=HOLDS, receipts=HOLDS)
    weak, cap = min(WEAK_HOSTINGS.items(), key=lambda item: item[1])
    assert hosting_cap(run(strong()).plan) == (5, f"agents {strong()}: V5 at most")
    found, why = hosting_cap(run(strong(), weak).plan)
    shown = weak or "hosting not recorded"
    assert (found, why) == (cap, f"agents {shown}: V{cap} at most")
    assert hosting_cap(SimpleNamespace(arms=()))[0] == 5
    capped = assess(run(strong(), weak), GOOD, signed=True)
    assert capped.level == cap
    assert capped.rungs[cap].evidence.endswith(why) is False
    assert capped.rungs[cap + 1].evidence.endswith(why)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), (False, "none")),
        (HOLDS, (True, "seen")),
        ((AttestationCheck("a", "x", fault="lies"), *HOLDS), (True, "seen")),
        (
            (AttestationCheck("a", "x", "lies"), AttestationCheck("b", "y", "", "few")),
            (False, "a lies; b few"),
        ),
    ],
)
def test_one_attestation_that_counts_is_enough(found, expected):
    assert assurance._attested(found, "none") == expected


def receipt(**changes):
    fields = {
        "plan_digest": "p",
        "evidence_root": "e",
        "replay_root": "r",
        "passed": True,
        "failed": (),
        "episodes": ("0", "1", "2"),
        "public_key": OTHER,
    }
    return SimpleNamespace(**fields | changes)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, ""),
        ({"plan_digest": "q"}, "is of another plan"),
        ({"evidence_root": "x"}, "is of other episodes"),
        ({"replay_root": "x"}, "is of other episodes"),
        ({"passed": False}, "says that 0 episodes did not replay"),
        ({"failed": ("1",)}, "says that 1 episodes did not replay"),
    ],
)
def test_a_receipt_of_this_run_says_that_all_replayed(changes, fault):
    assert assurance._fault(run(), receipt(**changes)) == fault


@pytest.mark.parametrize(
    ("changes", "shortfall"),
    [
        ({}, ""),
        ({"episodes": ("0", "1", "2", "9")}, ""),
        ({"episodes": ("0", "1")}, "leaves out 1 of 3 episodes"),
        ({"episodes": ()}, "leaves out 3 of 3 episodes"),
        ({"public_key": KEY}, "is signed by the run's own key, not by a second party"),
    ],
)
def test_a_replay_of_the_whole_run_by_another_counts(changes, shortfall):
    """Counted are 0 and 1, lost to the harness is 2, torn off is 3."""

    def leaf(name, status="complete"):
        return SimpleNamespace(attempt_id=name, status=status)

    bundle = run()
    bundle.counting_leaves = (leaf("0"), None, leaf("1"))
    bundle.leaves = (
        *(leaf("0"), leaf("1")),
        *(leaf("2", "infrastructure"), leaf("3", "unfinished")),
    )
    assert assurance._shortfall(bundle, receipt(**changes)) == shortfall


@pytest.mark.parametrize(
    ("first", "second", "before"),
    [
        ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00", True),
        ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00", False),
        ("2026-01-01T00:00:01+00:00", "2026-01-01T00:00:00+00:00", False),
        ("never", "2026-01-01T00:00:00+00:00", False),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00+00:00", False),
    ],
)
def test_a_time_is_before_another_where_both_are_times(first, second, before):
    assert assurance._is_before(first, second) == before


def claim(level, met):
    rungs = tuple(
        AssuranceLevel(name=f"V{i}", text="t", met=place, evidence="why")
        for i, place in enumerate(met)
    )
    return Assurance(level=level, rungs=rungs)


@pytest.mark.parametrize(
    ("level", "met", "faults"),
    [
        (4, (1, 1, 1, 1, 1, 0), ()),
        (4, (1, 1, 1, 1, 0, 0), ("V4",)),
        (4, (1, 1, 1, 0, 0, 0), ("V3", "V4")),
        (3, (1, 1, 1, 1, 0, 0), ()),
        (2, (1, 1, 0, 0, 0, 0), ()),  # the levels below V3 have their own checks
        (5, (0, 0, 0, 1, 1, 0), ("V5",)),
    ],
)
def test_a_claim_is_held_against_the_levels_of_other_parties(level, met, faults):
    now = claim(0, [bool(x) for x in met])
    found = _assurance_claim(claim(level, [True] * 6), now)
    assert found.ok == (not faults)
    named = [f"but {name} (t) is not met: why" for name in faults]
    assert all(words in found.detail for words in named)
    assert found.detail.count("is not met") == len(faults)
    if not faults:
        assert found.detail == f"V0 now, V{level} when signed"


LAB = SimpleNamespace(name="lab", verifier_of={OTHER: "a verifier"}.get)


@pytest.mark.parametrize(
    ("place", "attempts", "registry", "text", "shortfall"),
    [
        (OTHER, 0, LAB, "nonce by a verifier (lab)", ""),
        (OTHER, 0, None, "nonce", assurance._NO_REGISTRY),
        (OTHER, 1, LAB, "nonce", "was made when 1 attempts had begun"),
        (KEY, 0, LAB, "nonce", "is signed by the run's own key, not by a verifier"),
    ],
)
def test_a_witness_counts_by_who_signed_it_and_when(
    monkeypatch, tmp_path, place, attempts, registry, text, shortfall
):
    monkeypatch.setattr(assurance.witness, "fault", lambda *_: "")
    record = Witness(kind="nonce", plan_digest="p", attempts=attempts, place=place, evidence="")
    path = tmp_path / "w.json"
    path.write_bytes(msgspec.json.encode(record))
    bundle = run()
    bundle.plan.created = ""
    found = assurance._check_witness(bundle, registry, path)
    assert found == AttestationCheck("w.json", text, "", shortfall)
