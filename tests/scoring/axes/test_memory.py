"""Axis M: encoding, forgetting, retrieval, and agents that have no memory."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Intervention, Probe, Sitting, ToolOffer
from owa_bench.records.score import AxisScore
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes.memory import Retention, _clusters, memory
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import sample_of
from tests.builders.episodes import PRICES, PROTOCOL, episode, plan_of
from tests.builders.verdicts import axis

LAGS = (1.0, 2.0, 4.0, 7.0, 14.0)
NO_TOOLS = ToolOffer(step=0, names=("answer", "go_on", "finish", "declare_infeasible"))
NONE = np.zeros(1)


def asked(known: dict[float, float], *, trials: int = 20, task: int = 0) -> list[Probe]:
    """Return recall probes; `known` is the share right at each lag."""
    return [
        Probe(item=f"i{task}-{k}", lag_days=lag, correct=k < round(share * trials))
        for lag, share in known.items()
        for k in range(trials)
    ]


def sought(found: bool, *, slots: int = 5, **changes: object) -> Probe:
    fields = {
        "item": "q",
        "lag_days": 1.0,
        "correct": found,
        "mode": "retrieve",
        "returned": tuple((f"d{j}", found and j == 0) for j in range(slots)),
        "contrary": 0,
    }
    return Probe(**(fields | changes))  # type: ignore[arg-type]


def run(
    known: dict[float, float],
    recall: float = 1.0,
    tasks: int = 12,
    *before: object,
    **changes: object,
) -> list[Trace]:
    return [
        episode(
            index=k,
            pair=f"p{k}",
            extra=(  # type: ignore[arg-type]
                *(before or (NO_TOOLS,)),
                *asked(known, task=k),
                sought(k < recall * tasks, **{"item": f"q{k}"} | changes),
            ),
        )
        for k in range(tasks)
    ]


def test_full_encoding_and_no_forgetting_reads_one() -> None:
    assert axis(run(dict.fromkeys(LAGS, 0.9)), "M").value == pytest.approx(1.0)


def test_retrieval_alone_is_no_memory() -> None:
    """Nothing retained, everything found again: sqrt(0 x 1) = 0."""
    assert axis(run(dict.fromkeys(LAGS, 0.0), 1.0), "M").value == 0.0


def test_a_flat_five_percent_retains_five_percent() -> None:
    rules = PROTOCOL.memory
    found = memory(Retention(np.array([0.05]), NONE), np.ones(1), NONE, NONE, rules)
    assert found[0] ** 2 == pytest.approx(0.0556, abs=1e-4)
    fast = Retention(np.ones(1), np.array([math.log(2) / rules.half_life_days]))
    assert memory(fast, np.ones(1), NONE, NONE, rules)[0] == 0.0


@pytest.mark.parametrize("recall", [0.0, 0.1, 1.0])
def test_agents_without_memory_have_none(recall: float) -> None:
    for known in ((0.0,) * 5, (0.4, 0.05, 0.0, 0.0, 0.0)):
        found = axis(run(dict(zip(LAGS, known, strict=True)), recall), "M")
        assert found.value is not None
        assert found.value <= PROTOCOL.admissibility.floor_max


def test_what_was_never_known_is_not_called_unforgotten() -> None:
    """A flat 27 percent of answers with one in four right by chance."""
    traces = run(dict.fromkeys(LAGS, 0.25))
    guessed = [
        episode(
            index=k,
            pair=f"p{k}",
            extra=(
                NO_TOOLS,
                *(
                    Probe(item=p.item, lag_days=p.lag_days, correct=p.correct, guess=0.25)
                    for p in asked(dict.fromkeys(LAGS, 0.27), task=k)
                ),
                sought(True),
            ),
        )
        for k in range(len(traces))
    ]
    score = axis(guessed, "M")
    assert score.value == 0.0
    [words] = score.details["half-life in days, low, high"].values()
    assert words.startswith("never known")


def test_recall_at_k_is_the_share_of_what_there_is_to_find() -> None:
    full = dict.fromkeys(LAGS, 0.9)
    two = (("a", True), ("b", False), ("c", True), ("d", False), ("e", False))
    for relevant, share in ((2, 1.0), (4, 0.5), (9, 0.4)):
        traces = run(full, returned=two, relevant=relevant)
        assert axis(traces, "M").value == pytest.approx(math.sqrt(share))


def left_out(score: AxisScore) -> dict[str, int]:
    found: dict[str, int] = score.details["left out"]
    return found


def test_recall_must_be_proved_to_be_without_tools() -> None:
    full = dict.fromkeys(LAGS, 0.9)
    open_ = ToolOffer(step=0, names=("answer", "recall"))
    helpful = ToolOffer(step=0, names=("answer", "ask_supervisor"))
    for offers in ((open_,), (helpful,), (NO_TOOLS, open_), (Sitting(step=0, number=0),)):
        score = axis(run(full, 1.0, 12, *offers), "M")
        assert score.value is None
        assert "proved to be without tools" in str(score.reason)


def test_answers_after_help_leave() -> None:
    full = dict.fromkeys(LAGS, 0.9)
    refused = Intervention(step=1, kind="refused", minutes=0.0)
    assert axis(run(full, 1.0, 12, NO_TOOLS, refused), "M").value == pytest.approx(1.0)
    helped = run(dict.fromkeys(LAGS, 1.0), 1.0, 6, NO_TOOLS)
    hint = Intervention(step=1, kind="hint", minutes=2.0)
    helped += [
        episode(
            index=6 + k,
            pair=f"h{k}",
            extra=(NO_TOOLS, hint, *asked(dict.fromkeys(LAGS, 0.0), task=6 + k)),
        )
        for k in range(6)
    ]
    score = axis(helped, "M")
    assert score.value == pytest.approx(1.0)
    assert left_out(score)["answered after help"] == 6 * 20 * len(LAGS)


def test_a_disqualified_episode_forgets_all() -> None:
    """Who breaks a rule where it does not know the answers gains nothing."""
    known = run(dict.fromkeys(LAGS, 0.9), 1.0, 6)
    for unknown in (0.0, 0.9):
        broken = [
            episode(
                index=6 + k,
                pair=f"v{k}",
                violations=(("out_of_band", "disqualify"),),
                extra=(
                    NO_TOOLS,
                    *asked(dict.fromkeys(LAGS, unknown), task=6 + k),
                    sought(unknown > 0, item=f"q{6 + k}"),
                ),
            )
            for k in range(6)
        ]
        value = axis([*known, *broken], "M").value
        assert value == pytest.approx(math.sqrt(0.45 / 0.9 * 0.5), abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [({}, True), ({"lag_days": 0.9}, False), ({"sitting": 0}, True), ({"sitting": 1}, False)],
)
def test_retrieval_is_asked_a_day_later_in_a_new_sitting(
    changes: dict[str, object], counts: bool
) -> None:
    second = Sitting(step=0, number=1)
    traces = run(dict.fromkeys(LAGS, 0.9), 1.0, 12, NO_TOOLS, second, **changes)
    score = axis(traces, "M")
    assert (score.value is not None) == counts
    if not counts:
        assert "new session" in str(score.reason)


def test_half_life_and_interval_are_shown() -> None:
    known = {lag: 0.9 * 0.5 ** (lag / 10) for lag in LAGS}
    details = axis(run(known), "M").details
    days, low, high = details["half-life in days, low, high"]["toolquest/reconcile"]
    assert days == pytest.approx(10, rel=0.1)
    assert low < days < high


def test_the_lags_of_one_item_are_one_cluster() -> None:
    """Each lag asked in an episode of its own: as if one episode asked them all."""
    known = dict.fromkeys(LAGS, 0.9)
    whole = run(known)
    apart = []
    for k in range(12):
        for j, lag in enumerate(LAGS):
            extra = (NO_TOOLS, *asked({lag: 0.9}, task=k), *([sought(True)] if not j else []))
            apart.append(episode(index=k * 5 + j, pair=f"p{k}-{j}", extra=extra))
    one, other = axis(whole, "M"), axis(apart, "M")
    assert one.value == other.value
    sample = sample_of(plan_of(apart), observe(apart, PRICES), PROTOCOL, PRICES)
    rows = _clusters(sample)[sample.table.probes.mode == "recall"]
    assert sorted(set(rows.tolist())) == list(range(0, 60, 5))


def test_what_is_missing_is_named() -> None:
    full = dict.fromkeys(LAGS, 0.9)
    assert "no memory probes" in str(axis([episode()], "M").reason)
    for known, tasks, words in (
        (dict.fromkeys((1.0, 14.0), 0.9), 12, "at 2 lags up to 14 days"),
        (dict.fromkeys((1.0, 2.0, 13.0), 0.9), 12, "3 lags up to 13 days"),
        (full, 1, "has 20 items"),
    ):
        assert words in str(axis(run(known, tasks=tasks), "M").reason)
    bare = [
        episode(index=k, pair=f"p{k}", extra=(NO_TOOLS, *asked(full, task=k))) for k in range(2)
    ]
    assert "recall@K" in str(axis(bare, "M").reason)


def test_bad_probes_cost_m_and_nothing_else() -> None:
    for bad in ({"lag_days": -1.0}, {"guess": 1.0}, {"relevant": 0}):
        wrong = Probe(**({"item": "i", "lag_days": 2.0, "correct": True} | bad))  # type: ignore[arg-type]
        traces = [
            *run(dict.fromkeys(LAGS, 0.9)),
            episode(index=99, pair="x", extra=(NO_TOOLS, wrong)),
        ]
        assert f"impossible `{next(iter(bad))}`" in str(axis(traces, "M").reason)
        assert axis(traces, "P").value == 1.0
    one = np.ones(1)
    with pytest.raises(ScoringError, match="guess rate must lie below"):
        memory(Retention(one, one), one, one, one, PROTOCOL.memory)
