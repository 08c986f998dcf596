"""Replay of a verifier's sample of inner attempts: what is played, what is found."""

import pytest
from msgspec.structs import replace

from owa_bench.records.events import InnerAttempt
from owa_bench.runs.laboratory import laboratory as module
from owa_bench.runs.laboratory.player import InnerPlayer
from owa_bench.runs.laboratory.sampled import SampledLaboratories
from owa_bench.seeding import stream
from tests.builders import revision_campaigns as builders


@pytest.fixture(scope="module")
def recorded():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SAMPLE", 4)
        yield builders.play("random")


def inner(events):
    return [event for event in events if isinstance(event, InnerAttempt)]


def again(attempts, size):
    sampled = SampledLaboratories(size, stream(1, "replay"))
    sampled.expect(attempts)
    return builders.play("random", laboratories=sampled).events


@pytest.mark.parametrize("size", [5, 10_000])
def test_only_the_sample_is_played_and_every_event_is_made_again(recorded, size, monkeypatch):
    attempts, played = inner(recorded.events), []
    assert len(attempts) > 20
    play = InnerPlayer.play
    monkeypatch.setattr(InnerPlayer, "play", lambda *its: played.append(its) or play(*its))
    assert again(attempts, size) == recorded.events
    assert len(played) == min(size, len(attempts))


def test_an_edited_attempt_is_found_where_the_sample_holds_it(recorded):
    attempts = inner(recorded.events)
    edited = [replace(attempts[0], quality=1.0 - attempts[0].quality), *attempts[1:]]
    assert inner(again(edited, 1_000))[0] == attempts[0] != edited[0]


def test_an_attempt_of_another_version_is_played_in_any_sample(recorded):
    """The attack: record attempts of a better version than was adopted."""
    attempts = inner(recorded.events)
    last = replace(attempts[-1], version="0" * 64, quality=1.0)
    found = again([*attempts[:-1], last], 1)
    assert inner(found)[-1] == attempts[-1]


def test_attempts_that_the_record_lacks_are_played(recorded):
    assert again(inner(recorded.events)[:3], 1) == recorded.events
