"""Axis S on rows written by hand: which crew counts, what is pooled, what is faulty."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from owa_bench.records.observables import NEAR
from owa_bench.scoring.axes import sociality
from owa_bench.scoring.axes.sociality import lift
from owa_bench.scoring.statistics.statistics_table import (
    ResamplingUnits,
    StatisticsTable,
    Totals,
    weighted_totals,
)
from tests.builders.episodes import PROTOCOL

DEFAULTS = {"q": 0.5, "u": 1, "tier": 1, "pair": "p0", "repeat": 0, "steps": 8}
NONE_OF = (
    *("conflict", "idle", "cycle", "same", "messages", "tokens", "declared", "asks"),
    *("reached", "answered", "gives", "news", "refused", "handoffs", "untrue"),
    *("no_lift", "muted", "control"),
)
ONE_OF = ("cap", "seats", "channel", "answers", "verified")
CREW = dict.fromkeys(NONE_OF, 0) | dict.fromkeys(ONE_OF, 1) | {"bound": 0.9}
BOOLEAN = ("muted", "control", "channel", "conflict", "no_lift")
RULES = PROTOCOL.sociality


def sample_of_rows(*rows, families=("s/f",), family=None, alike=None):
    """Return a sample of these rows; `alike` are the last columns of `same_words`."""

    def column(name, default):
        values = np.array([row.get(name, default) for row in rows])
        return values.astype(bool) if name in BOOLEAN else values

    crew = {name: column(name, default) for name, default in CREW.items()}
    crew["same_words"] = np.zeros((len(rows), NEAR), int)
    if alike is not None:
        crew["same_words"][:, RULES.near_bits] = alike
    table = {name: column(name, default) for name, default in DEFAULTS.items()}
    table["suite"] = np.full(len(rows), "s")
    table["family"] = np.array(family or [families[0]] * len(rows))
    return SimpleNamespace(
        table=SimpleNamespace(crew=SimpleNamespace(**crew), channel_gaps=lambda _: "", **table),
        crews=np.ones(len(rows), bool),
        families=families,
        weights=np.full(len(families), 1 / len(families)),
        protocol=PROTOCOL,
        references=None,
    )


def collected(sample):
    """Return the coverage of a sample and the sums of its rows, each a unit."""
    table = sample.table
    pairs, task = np.unique(table.pair, return_inverse=True)
    family = [sample.families.index(table.family[list(table.pair).index(pair)]) for pair in pairs]
    statistics = StatisticsTable(
        ResamplingUnits(
            families=sample.families,
            row=np.arange(len(task)),
            task=task,
            repeat=table.repeat,
            day=np.zeros(len(task), int),
            family=np.array(family),
        )
    )
    coverage = sociality._collect(sample, statistics)
    weights = np.ones((1, len(task)))
    families = statistics.units.unit_family
    columns = statistics.columns()
    return coverage, weighted_totals(weights, columns, families, sample.weights)


def crew(size, quality, **more):
    """Return the rows of a crew on repeats 3, 4, ..: a quality for each."""
    return [
        {"cap": size, "seats": size, "repeat": 3 + i, "q": value, **more}
        for i, value in enumerate(quality)
    ]


def test_m_star_of_one_half_counts_on_the_other():
    """Repeats 3 and 5 choose size 2 (.8 over .6), 4 and 6 choose 3 (.7 over .5)."""
    sample = sample_of_rows(
        *crew(1, (0.3, 0.3, 0.3, 0.3)),
        *crew(2, (0.8, 0.5, 0.8, 0.5), conflict=1),
        *crew(3, (0.6, 0.7, 0.6, 0.7)),
        *crew(2, (0.4, 0.45, 0.4, 0.45), muted=1),
    )
    coverage, totals = collected(sample)
    assert coverage == (16 - 4, 16, None)
    gain = ((0.5 + 0.6) / 2 - 0.3) / 0.7
    penalty = RULES.penalty * 0.5  # size 2, which one half chose, has conflicts
    assert sociality._raw(totals, sample) == pytest.approx([gain - penalty])
    beside = sociality._secondary(totals, sample)
    assert beside["lift"] == pytest.approx([gain])
    assert beside["conflict"] == pytest.approx([0.5])
    assert np.isnan(beside["S_net"])  # size 3 was never muted
    assert np.isnan(beside["asks answered"])  # nothing was asked


def test_the_muted_crew_is_a_rival_of_s_net():
    sample = sample_of_rows(
        *crew(1, (0.2, 0.2)), *crew(2, (0.8, 0.6)), *crew(2, (0.5, 0.3), muted=1)
    )
    _, totals = collected(sample)
    beside = sociality._secondary(totals, sample)
    assert beside["lift"] == pytest.approx([0.5 / 0.8])
    assert beside["lift over the muted crew"] == pytest.approx([0.3 / 0.6])
    assert beside["S_net"] == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("messages", "steps", "chosen"),
    [((4, 2), (8, 8), 3), ((2, 4), (8, 8), 2), ((2, 3), (1, 8), 3), ((1, 2), (0, 1), 2)],
)
def test_of_equal_crews_the_one_with_fewer_messages_an_action_counts(messages, steps, chosen):
    sample = sample_of_rows(
        *crew(1, (0.3, 0.3)),
        *crew(2, (0.6, 0.6), messages=messages[0], steps=steps[0], conflict=1),
        *crew(3, (0.6, 0.6), messages=messages[1], steps=steps[1]),
    )
    _, totals = collected(sample)
    assert totals.constants["S:messages:2"] == messages[0] / max(steps[0], 1)
    shares = sociality._fault_shares(totals, sociality._best(totals))
    assert shares["conflict"] == pytest.approx([float(chosen == 2)])


def test_one_role_is_the_better_of_all_its_rows_and_its_base_rows():
    for control, alone in ((0.1, 0.4), (0.6, 0.5)):
        sample = sample_of_rows(
            *crew(1, (0.4, 0.4)), *crew(1, (control,) * 2, control=1), *crew(2, (0.9,) * 2)
        )
        _, totals = collected(sample)
        assert sociality._raw(totals, sample) == pytest.approx([(0.9 - alone) / (1 - alone)])


def test_families_are_pooled_in_a_suite_before_the_better_rival_is_taken():
    totals = SimpleNamespace(family_weights=np.array([0.25, 0.25, 0.5]))
    sample = SimpleNamespace(families=("a/x", "a/y", "b/z"))
    full, one, base = np.array([[[0.6, 0.8, 0.5]], [[0.2, 0.6, 0.4]], [[0.5, 0.2, 0.3]]])
    found = sociality._pooled(totals, sample, (full,), (one, base))
    assert np.ravel(found) == pytest.approx([0.35 + 0.25, 0.2 + 0.2])
    lacking = np.array([[0.6, np.nan, 0.5]])  # a/y is left out of both sides
    found = sociality._pooled(totals, sample, (lacking,), (one, base))
    assert np.ravel(found) == pytest.approx([0.4 / 0.75, 0.325 / 0.75])
    found = sociality._pooled(totals, sample, (full * np.nan,), (one, base))
    assert np.isnan(found).all()


def test_a_fault_begins_where_the_protocol_says():
    turns, alike = RULES.loop_turns, RULES.collapse_turns
    usual = RULES.chatter_floor + 20
    rows = [
        {"cap": 2, "tokens": 3 * usual, "verified": 3},
        {"cap": 2, "tokens": usual + 1, "idle": turns, "conflict": 1},
        {"cap": 2, "tokens": usual + 1, "cycle": turns, "same": alike, "verified": 0},
        {"cap": 2, "tokens": usual},
        {"cap": 2, "tokens": usual},
        {"cap": 3, "tokens": 5 * usual, "idle": turns - 1, "cycle": turns - 1},
        {"cap": 2, "tokens": 9 * usual, "muted": 1, "same": alike - 1},
        {"cap": 3, "tokens": usual - 1},
    ]
    faults = sociality._faults(sample_of_rows(*rows, alike=[0, 0, 0, 0, 0, alike, 0, 0]))
    assert {name: np.flatnonzero(flags).tolist() for name, flags in faults.items()} == {
        "conflict": [1],
        "loop": [1, 2],
        "chatter": [1, 2, 5, 6],
        "collapse": [2, 5],
    }
    floor = RULES.chatter_floor  # no crew of two, or a quiet one: the floor holds
    for cap in (2, 3):
        rows = [{"cap": cap, "tokens": n} for n in (1, 1, 1, floor, floor + 1)]
        talk = sociality._faults(sample_of_rows(*rows))["chatter"]
        assert talk.tolist() == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("spent", "answers", "why"),
    [
        ((4, 8), (1, 1), ""),
        ((3, 8), (1, 1), "fails after 3.0 actions a seat, the full crew takes 8.0"),
        ((8, 8), (2, 4), ""),
        ((8, 8), (1, 4), "fails after 1.0 new answers a seat, the full crew takes 4.0"),
    ],
)
@pytest.mark.parametrize("muted", [False, True])
def test_a_control_that_gives_up_early_is_not_played(spent, answers, why, muted):
    """Half of what the full crew does a seat is enough; a success always is."""
    size, name = (2, "the muted crew") if muted else (1, "one role")
    rows = [
        {"cap": 1, "u": 1, "steps": 0, "answers": 0},
        {"cap": 2, "u": 1, "muted": 1, "steps": 0, "answers": 0},
        {
            "cap": size,
            "seats": size,
            "muted": muted,
            "u": 0,
            "steps": spent[0] * size,
            "answers": answers[0] * size,
        },
        {"cap": 2, "seats": 2, "u": 0, "steps": spent[1] * 2, "answers": answers[1] * 2},
    ]
    sample = sample_of_rows(*rows)
    found = sociality._idle_control(sample, sample.crews)
    assert found == (f"control not played: {name} {why}" if why else "")


def test_each_reason_why_crews_cannot_be_compared_has_words():
    one, two = crew(1, (0.3, 0.3)), crew(2, (0.6, 0.6))
    for rows, words in (
        ([dict(row, no_lift=1) for row in one + two], "critical path of every world"),
        (one, "no crew of more than one role"),
        ([dict(row, cap=0) for row in two], "no crew of more than one role"),
        ([dict(row, channel=0) for row in one + two], "no channel of the environment"),
        (two, "no crew of one role"),
        (one[:1] + two[:1], "m* needs two repeats"),
    ):
        coverage, _ = collected(sample_of_rows(*rows))
        assert words in coverage.reason
        assert coverage.used == 0
    sample = sample_of_rows(*one, *two)
    sample.table.channel_gaps = lambda rows: "a provider's store" if rows.all() else ""
    assert "a provider's store" in collected(sample)[0].reason
    silent = [dict(row, channel=0) for row in one]  # one role has nobody to talk to
    beside = [dict(one[0], no_lift=1), dict(one[0], cap=0)]
    assert collected(sample_of_rows(*silent, *two, *beside))[0].reason is None
    assert "critical path" in collected(sample_of_rows(*beside))[0].reason


@pytest.mark.parametrize(("alone", "fits"), [(0.9, True), (0.901, False)])
def test_a_tenth_of_room_is_enough(alone, fits):
    rules = msgspec.structs.replace(RULES, room_min=1.0 - 0.9)
    sample = sample_of_rows(*crew(1, (alone, alone)), *crew(2, (0.95, 0.95)))
    sample.protocol = msgspec.structs.replace(PROTOCOL, sociality=rules)
    coverage, _ = collected(sample)
    assert (coverage.reason is None) == fits
    if not fits:
        assert coverage.reason == "no room: 1 - C_1* is 0.099, at least 0.1 is needed"


def test_diagnostics_show_tasks_tiers_and_sizes():
    sample = sample_of_rows(
        *crew(1, (0.2, 0.4), pair="a", declared=2),
        *crew(2, (0.5, 0.7), pair="a", bound=np.nan),
        *crew(3, (0.3, 0.5), pair="a", tier=2),
        *crew(2, (0.1, 0.2), pair="a", muted=1, tier=2),
        *crew(1, (1.0,), pair="b", tier=2),
        *crew(2, (1.0,), pair="b", tier=2),
        *crew(3, (0.9,), pair="c", tier=2, bound=np.nan),
        *crew(0, (0.9,), pair="c", declared=5),
        *crew(1, (0.3,), pair="d", tier=3),
    )
    found = sociality._diagnostics(sample)
    assert found["lift_naive"] == pytest.approx(((0.6 - 0.3) / 0.7 + 0.0) / 2)
    assert found["roles played"] == [1, 2, 3]
    assert found["messages declared"] == 4
    by_tier = {tier: dict(sorted(row.items())) for tier, row in found["C_m by tier"].items()}
    assert by_tier["1"] == pytest.approx({"1": 0.3, "1 bound": 0.9, "2": 0.6})
    assert by_tier["2"] == pytest.approx(
        {"1": 1.0, "1 bound": 0.9, "2": 1.0, "2 bound": 0.9, "2:muted": 0.15}
        | {"3": (0.3 + 0.5 + 0.9) / 3}
    )
    assert sociality._diagnostics(sample_of_rows(*crew(2, (0.5,))))["lift_naive"] is None


def test_how_a_crew_worked_together_is_a_share_of_sums():
    """Shares of sums over the crews that could talk."""
    counts = {"asks": 3, "reached": 2, "answered": 1, "gives": 5, "news": 4}
    counts |= {"refused": 2, "handoffs": 4, "untrue": 1}
    sample = sample_of_rows(
        *crew(1, (0.3, 0.3), **dict.fromkeys(counts, 50)),
        *crew(2, (0.6, 0.6), muted=1, **dict.fromkeys(counts, 70)),
        *crew(2, (0.6, 0.6), **counts, steps=5),
    )
    _, totals = collected(sample)
    beside = sociality._secondary(totals, sample)
    shares = {name: float(beside[name][0]) for name in sociality.TOGETHER}
    assert shares == pytest.approx(
        {
            "asks that reach who knows": 2 / 3,
            "asks answered": 1 / 2,
            "facts told that were needed": 4 / 5,
            "calls refused": 2 / 5,
            "manifests untrue": 1 / 4,
        }
    )


def test_lift_at_its_ends():
    ends = np.array([-1e-9, 0.5, 0.3, 1.0, np.nan])
    alone = np.array([0.5, 1.0, 0.3, 0.2, 0.4])
    assert lift(ends, alone)[:4].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert np.isnan(lift(ends, alone)[4])
    assert np.isnan(lift(alone[4:], ends[4:])).all()
    full = np.array([1 + 1e-9, 0.5])  # rounding is no error
    assert lift(full, full[::-1]).tolist() == [1.0, 0.0]
    for bad in (-1e-8, 1 + 1e-8):
        with pytest.raises(sociality.ScoringError, match="Capability must lie in"):
            lift(np.array([0.5]), np.array([bad]))
        with pytest.raises(sociality.ScoringError, match="Capability must lie in"):
            lift(np.array([0.5, bad]), np.array([0.5, 0.5]))


def test_a_family_that_lacks_a_size_never_chooses_it():
    """Size 3 was played in one family alone: NaN elsewhere, and no best there."""
    names = {}
    table = np.zeros((1, 2, 8))
    played = {("2", 0): (0.4, 0.4), ("2", 1): (0.4, 0.4)}
    played |= {("3", 0): (0.9, np.nan), ("3", 1): (0.9, np.nan)}
    for place, ((size, half), values) in enumerate(played.items()):
        names[f"S:{size}:{half}"] = 2 * place
        names[f"S:{size}:{half}#"] = 2 * place + 1
        table[0, :, 2 * place] = np.nan_to_num(values)
        table[0, :, 2 * place + 1] = ~np.isnan(values)
    constants = {"S:messages:2": 5.0, "S:messages:3": 1.0}
    totals = Totals(names, table, np.full(2, 0.5), constants)
    best = sociality._best(totals)
    assert best.sizes == (2, 3)
    assert [place.tolist() for place in best.places] == [[[1, 0]]] * 2
    assert sociality._halved(totals, best).tolist() == [[0.9, 0.4]]


def test_every_muted_crew_is_used_and_bits_stop_at_the_last_column():
    muted = crew(3, (0.4, 0.4), muted=1)
    sample = sample_of_rows(*crew(1, (0.3, 0.3)), *crew(2, (0.6, 0.6)), *muted)
    assert collected(sample)[0] == (4, 6, None)
    rules = msgspec.structs.replace(RULES, near_bits=NEAR + 5)
    sample.protocol = msgspec.structs.replace(PROTOCOL, sociality=rules)
    sample.table.crew.same_words[2, NEAR - 1] = RULES.collapse_turns
    assert np.flatnonzero(sociality._faults(sample)["collapse"]).tolist() == [2]
