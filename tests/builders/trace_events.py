"""Fixtures: events and an empty run directory; conftest.py takes them in."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from owa_bench.canonical import canonical_json, sha256
from owa_bench.records.events import Call, EpisodeEnd, EpisodeStart, Subgoal
from owa_bench.records.instance import Instance
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Arm, Budget, Plan, PlanEntry, SuiteEntry


@pytest.fixture
def start() -> Callable[..., EpisodeStart]:
    """Make the first event of an attempt."""

    def make(index: int = 0, attempt: int = 0, **changes: object) -> EpisodeStart:
        event = EpisodeStart(
            index=index,
            attempt=attempt,
            arm="a",
            pair=f"p{index}",
            repeat=0,
            env_id="owa_bench/Toy-v1",
            instance=Instance(suite="toy", version=1, family="f", tier=1, seed=7),
            delta=0.0,
            realised=0.0,
            world="0" * 64,
            agent="noop",
            fingerprint="f" * 64,
            interventions=None,
            horizon=3,
            depth=2,
            theta=0.95,
        )
        return msgspec.structs.replace(event, **changes)

    return make


@pytest.fixture
def end() -> Callable[..., EpisodeEnd]:
    """Make the last event of an attempt."""

    def make(**changes: object) -> EpisodeEnd:
        event = EpisodeEnd(
            outcome="finished",
            q_state=1.0,
            quality=0.975,
            success=True,
            stated=None,
            failed_attempts=0,
            reason="finished",
            steps=3,
            simulated_s=1.5,
            wall_s=0.25,
        )
        return msgspec.structs.replace(event, **changes)

    return make


@pytest.fixture
def call() -> Callable[..., Call]:
    """Make one of the events between."""

    def make(step: int, **changes: object) -> Call:
        event = Call(
            step=step,
            method="GET",
            target=f"https://api.ledger.example/v2/invoices?page={step}",
            status=200,
            ok=True,
            request=sha256(b"request %d" % step),
            response=sha256(b"response %d" % step),
        )
        return msgspec.structs.replace(event, **changes)

    return make


@pytest.fixture
def subgoal() -> Callable[..., Subgoal]:
    """Make an event so short that a frame is full of lines before it is of bytes."""

    def make(step: int) -> Subgoal:
        return Subgoal(step=step, node="rows", depth=1)

    return make


@pytest.fixture
def toy_plan() -> Plan:
    """A plan of forty episodes of no real suite."""
    return Plan(
        name="toy",
        battery=None,
        suites=(
            SuiteEntry(name="toy", version=1, source_digest="0" * 64, families=("f",), tiers=(1,)),
        ),
        arms=(Arm(name="a", agent="noop", fingerprint="f" * 64),),
        entries=tuple(
            PlanEntry(
                index=index, arm="a", pair=f"p{index}", suite="toy", version=1, family="f", tier=1
            )
            for index in range(40)
        ),
        budget=Budget(),
        commitment="c" * 64,
        protocol_digest="0" * 64,
        price_digest="0" * 64,
        calendar="nested",
    )


@pytest.fixture
def layout(tmp_path: Path, toy_plan: Plan) -> RunLayout:
    """A run directory that holds a plan and nothing else."""
    place = RunLayout(tmp_path / "run")
    place.root.mkdir()
    place.plan.write_bytes(canonical_json(toy_plan))
    return place
