"""Search of a run's episodes: each filter lets through what it names, and nothing else."""

import pytest
from msgspec.structs import replace

from owa_bench.errors import FieldError
from owa_bench.records.events import Action
from owa_bench.reports.read import bundle as bundles
from owa_bench.reports.read.search import EpisodeFilter, check_filter, matching_episodes
from tests.builders.run_directory import make_run


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    def edit(entry, events):
        if entry.index != 5:
            return events
        said = '{"note": "Grüße"}'
        return [replace(e, action=said) if isinstance(e, Action) else e for e in events]

    layout = make_run(tmp_path_factory.mktemp("search") / "run", edit=edit)
    return bundles.read(layout.root)


def names(bundle, **asked):
    return [m.episode.attempt for m in matching_episodes(bundle, EpisodeFilter(**asked))]


def test_success_parts_the_run(bundle):
    won, lost = names(bundle, success=True), names(bundle, success=False)
    assert won
    assert lost
    assert sorted(won + lost) == sorted(names(bundle))


def test_drift_is_a_magnitude_or_a_class_that_was_met(bundle):
    half = [m.episode for m in matching_episodes(bundle, EpisodeFilter(drift=("0.5",)))]
    assert {row.delta for row in half} == {0.5}
    rows = [m.episode for m in matching_episodes(bundle, EpisodeFilter())]
    (met,) = {row.drift for row in rows if row.drift}
    assert names(bundle, drift=(met,)) == [row.attempt for row in rows if row.drift]
    both = names(bundle, drift=("0", met))
    assert sorted(both) == sorted(row.attempt for row in rows)
    other = "D0" if met != "D0" else "D1"
    assert names(bundle, drift=(other,)) == []


def test_kind_and_arm(bundle):
    rows = [m.episode for m in matching_episodes(bundle, EpisodeFilter(success=False))]
    kinds = {row.kind for row in rows}
    for kind in kinds:
        assert names(bundle, kinds=(kind,)) == [r.attempt for r in rows if r.kind == kind]
    assert names(bundle, kinds=(f"{rows[0].kind}:none",)) == []
    fixed = [row.attempt for row in rows if row.arm == "fixed"]
    assert names(bundle, success=False, arm="fixed") == fixed


def test_words_are_found_in_actions_and_texts_upper_or_lower_case(bundle):
    (match,) = matching_episodes(bundle, EpisodeFilter(words="GRÜßE"))
    assert (match.episode.index, match.step) == (5, 1)
    assert "Grüße" in match.text
    assert names(bundle, words="no text of this run holds these words") == []
    everywhere = [*matching_episodes(bundle, EpisodeFilter(words="get"))]  # a request's text
    assert len(everywhere) == len(names(bundle))
    assert all("get" in match.text.lower() for match in everywhere)


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        ({"kinds": ("budgte",)}, "--kind"),
        ({"arm": "nobody"}, "--arm"),
        ({"drift": ("D9",)}, "--drift"),
        ({"drift": ("much",)}, "--drift"),
    ],
)
def test_names_that_no_run_has_are_refused(asked, flag):
    with pytest.raises(FieldError, match=flag):
        check_filter(EpisodeFilter(**asked), ("agentic", "fixed"))
    check_filter(EpisodeFilter(kinds=("budget:steps",), drift=("0.5", "D2")), ())
