"""Policies: what is written is read back, and amendments hold by the day of receipt."""

import datetime as dt

import pytest

from owa_bench.company.kinds.credits.policies import amendable, draw_policy, drawn_change
from owa_bench.company.language.credits_policy import FORM
from owa_bench.company.language.policy import MAILED, with_amendments
from owa_bench.seeding import stream

TODAY = dt.date(2031, 7, 3)


def drawn(seed, level=3):
    return draw_policy(TODAY, level, stream(seed, "policy"))


@pytest.mark.parametrize("level", [1, 2, 3])
def test_every_policy_is_read_back_from_its_page(level):
    for seed in range(60):
        policy = drawn(seed, level)
        read = FORM.read(FORM.write(policy, stream(seed, "text")))
        assert read is not None
        assert (read.title, read.since, read.sections) == (
            policy.title,
            policy.since,
            policy.sections,
        )
        assert read.terms == policy.terms


def test_every_wording_is_read_as_its_own_sentence_alone():
    """No wording of a sentence is read as another sentence."""
    seen = set()
    for seed in range(400):
        policy = drawn(seed)
        text = FORM.write(policy, stream(seed, "text"))
        for name, sentence in FORM.sentences.items():
            readings = list(sentence.read(text))
            assert len(readings) == (name in policy.terms), (name, text)
            if readings:
                found = text[readings[0].first : readings[0].end]
                seen |= {(name, wording) for wording in sentence.wordings if _alike(wording, found)}
    wordings = {(name, w) for name, s in FORM.sentences.items() for w in s.wordings}
    assert wordings - seen == set()


def _alike(wording, text):
    head = wording.partition("{")[0].rstrip()[:25]
    return text.startswith(head)


def test_practice_draws_no_wording_that_is_held_out():
    held_out = {
        wording.partition("{")[0][:30]
        for sentence in FORM.sentences.values()
        for wording in sentence.wordings[2 * len(sentence.wordings) // 3 :]
        if len(wording.partition("{")[0]) > 30
    }
    for seed in range(60):
        text = FORM.write(drawn(seed), stream(seed, "text"), practice=True)
        assert not any(head in text for head in held_out)


def test_amendments_hold_for_what_is_received_from_their_day_on():
    policy = drawn(4)
    plain = policy.at(TODAY)["limit_late"]["days"]
    changed = policy.amended("limit_late", TODAY, days=plain + 5)
    assert changed.at(TODAY)["limit_late"]["days"] == plain + 5
    assert changed.at(TODAY - dt.timedelta(1))["limit_late"]["days"] != plain + 5
    twice = changed.amended("limit_late", TODAY - dt.timedelta(1), days=plain + 9)
    assert twice.at(TODAY)["limit_late"]["days"] == plain + 9  # the highest number counts


def test_amendments_are_read_from_a_page_with_others_policies_left_out():
    policy = drawn(5)
    for seed, rule in enumerate(amendable(policy)):
        values = drawn_change(policy, rule, stream(seed, "change"))
        policy = policy.amended(rule, TODAY - dt.timedelta(seed), **values)
    lines = [FORM.write_amendment(policy, a, stream(1, "a")) for a in policy.amendments]
    text = "\n".join(lines)
    found = FORM.read_amendments(text, policy.title)
    told = with_amendments(policy, found)
    assert [(a.number, a.sentence, a.values, a.first) for a in told.amendments] == [
        (a.number, a.sentence, a.values, a.first) for a in policy.amendments
    ]
    assert FORM.read_amendments(text, "CP-999") == ()


def test_what_an_event_or_a_mail_tells_is_known_when_it_has_happened():
    policy = drawn(6, level=1).amended("limit_late", TODAY, event="limit changed", days=3)
    policy = policy.amended("tiers", TODAY, event=MAILED, low=9)
    assert [a.sentence for a in policy.known_with(frozenset()).amendments] == ["tiers"]
    told = policy.known_with(frozenset({"limit changed"}))
    assert [a.sentence for a in told.amendments] == ["limit_late", "tiers"]


def test_there_are_more_than_ten_thousand_policies():
    """Numbers, rules and orders of 3,000 draws: almost none comes twice."""
    forms = {(drawn(seed).sections, repr(drawn(seed).terms)) for seed in range(3_000)}
    # With fewer than 10^4 equally likely policies some 420 of 3,000 draws would be repeats.
    assert len(forms) > 2_990
