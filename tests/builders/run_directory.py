"""Small complete run directories: the real recorder, invented episodes, fixed keys."""

from collections.abc import Callable, Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench import protocols
from owa_bench.canonical import canonical_json, document_digest, public_bytes, seal, sha256
from owa_bench.records.events import (
    Action,
    Belief,
    Call,
    Drift,
    EpisodeEnd,
    EpisodeStart,
    Event,
    Intervention,
    Observation,
    Resolution,
    Resource,
    Subgoal,
)
from owa_bench.records.instance import Instance
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.plan import Arm, Budget, Plan, PlanEntry, SuiteEntry
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import EpisodeWriter, Recorder
from owa_bench.seeding import commitment, instance_seed, redact_key

KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)
MASTER, NONCE = b"m" * 32, b"n" * 32
FAMILIES = ("reconcile", "sla_report", "restock")
DELTAS = (0.0, 0.5, 1.0)
ARMS = ("agentic", "fixed")
PROTOCOL = (Path(protocols.__file__).parent / "default.toml").read_bytes()
PRICES = (Path(protocols.__file__).parent / "price_card.toml").read_bytes()

# Changes an episode's events before they are written.
Edit = Callable[[PlanEntry, list[Event]], list[Event]]


def make_plan(pairs: int = 2, **changes: object) -> Plan:
    """Return a plan of every arm on `pairs` pairs per family, at every magnitude."""
    cells = [
        (family, f"toolquest/v1/{family}/t1/{i}", delta, helps)
        for family in FAMILIES
        for i in range(pairs)
        for delta in DELTAS
        for helps in ((0, 2) if delta == DELTAS[0] else (0,))
    ]
    entries = tuple(
        PlanEntry(
            index=index,
            arm=arm,
            pair=pair,
            suite="toolquest",
            version=1,
            family=family,
            tier=1,
            delta=delta,
            interventions=helps,
        )
        for index, ((family, pair, delta, helps), arm) in enumerate(
            (cell, arm) for cell in cells for arm in ARMS
        )
    )
    fields: dict[str, object] = {
        "name": "small run",
        "battery": None,
        "suites": (
            SuiteEntry(
                name="toolquest", version=1, source_digest="0" * 64, families=FAMILIES, tiers=(1,)
            ),
        ),
        "arms": tuple(
            Arm(name=a, agent=a, fingerprint=sha256(a.encode()), hosting="sandboxed") for a in ARMS
        ),
        "entries": entries,
        "budget": Budget(),
        "commitment": commitment(NONCE, MASTER),
        "protocol_digest": sha256(PROTOCOL),
        "price_digest": sha256(PRICES),
        "calendar": "nested",
        "environment": (("python", "3.11"), ("owa_bench", "0.1.0")),
        "public_key": public_bytes(KEY.public_key()).hex(),
    }
    return Plan(**{**fields, **changes})  # type: ignore[arg-type]


def events(
    plan: Plan, entry: PlanEntry, blob: Callable[[bytes], str], attempt: int = 0
) -> list[Event]:
    """Return the events of one made-up episode; the fixed arm fails under drift."""
    good = entry.arm == "agentic" or entry.delta == 0.0
    if (entry.index // 2) % 7 == 6:
        good = False
    arms = {arm.name: arm for arm in plan.arms}
    step_events = [e for step in range(1, 5) for e in _step(entry, step, good, blob)]
    helps = _help(entry) if entry.interventions else []
    drift = [_drift()] if entry.delta else []
    quality = 1.0 if good else 0.25
    if entry.interventions and not good:
        quality = 0.6
    start = EpisodeStart(
        index=entry.index,
        attempt=attempt,
        arm=entry.arm,
        pair=entry.pair,
        repeat=entry.repeat,
        env_id="owa_bench/ToolQuest-v3",
        instance=Instance(
            suite=entry.suite,
            version=entry.version,
            family=entry.family,
            tier=entry.tier,
            seed=instance_seed(MASTER, entry.pair),
            drift_step=1 if entry.delta else 0,
        ),
        delta=entry.delta,
        realised=entry.delta or 0.0,
        world=sha256(entry.pair.encode()),
        agent=entry.arm,
        fingerprint=arms[entry.arm].fingerprint,
        interventions=entry.interventions,
        horizon=4,
        depth=6,
        theta=0.95,
        categories=("http_api",),
    )
    own = Resolution(proposition="own_success", kind="own_success", y=good)
    end = EpisodeEnd(
        outcome="finished",
        q_state=quality,
        quality=quality,
        success=quality >= 0.95,
        stated=0.8,
        failed_attempts=0,
        reason="finish",
        steps=4,
        simulated_s=2.0,
        wall_s=0.01,
    )
    return [start, *drift, *step_events, *helps, *_world(good), own, end]


def make_run(
    root: Path,
    plan: Plan | None = None,
    *,
    edit: Edit | None = None,
    shards: int = 2,
    entries: slice = slice(None),
    revealed: bool = True,
) -> RunLayout:
    """Return a whole, unreported run directory at `root`."""
    plan = make_plan() if plan is None else plan
    layout = write_terms(root, plan)
    digest = document_digest(plan)
    played = plan.entries[entries]
    for shard in range(shards):
        with Recorder(ShardFiles(layout, shard), digest, redact_key(MASTER), True) as recorder:
            for entry in played[shard::shards]:
                writer = recorder.episode(entry.index, 0)
                _play(writer, plan, entry, edit)
    if revealed:
        document = {"master": MASTER.hex(), "nonce": NONCE.hex()}
        layout.reveal.write_bytes(canonical_json(document))
    return layout


def write_terms(root: Path, plan: Plan, key: Ed25519PrivateKey = KEY) -> RunLayout:
    """Write what stands in a run directory before episode 0."""
    layout = RunLayout(root)
    root.mkdir(parents=True, exist_ok=True)
    layout.plan.write_bytes(canonical_json(plan))
    layout.plan_envelope.write_bytes(seal(PLAN_TYPE, canonical_json(plan), key))
    layout.protocol.write_bytes(PROTOCOL)
    layout.price_card.write_bytes(PRICES)
    return layout


def _play(writer: EpisodeWriter, plan: Plan, entry: PlanEntry, edit: Edit | None) -> None:
    """Write one episode."""
    made = events(plan, entry, writer.blob)
    for event in edit(entry, made) if edit else made:
        writer.emit(event)
    writer.close("complete")


def _step(entry: PlanEntry, step: int, good: bool, blob: Callable[[bytes], str]) -> Iterator[Event]:
    """Yield what one HTTP call leaves in the trace."""
    seen = blob(f"{entry.pair} {step} {good}".encode())
    host = ("ledger", "desk", "stock")[FAMILIES.index(entry.family)]
    yield Action(
        step=step,
        action='{"tool": "http", "arguments": {}}',
        verified=good or step < 3,
        reward=0.0,
        terminated=step == 4,
        truncated=False,
        observation=seen,
        at_ms=step * 100,
        category="http_api" if good else "",
    )
    yield Call(
        step=step,
        method="GET",
        target=f"https://{host}.example/rows",
        status=200 if good else 404,
        ok=good,
        request=blob(b"GET"),
        response=seen,
    )
    yield Resource(step=step, meter="api_calls", amount=1.0)
    for source in ("harness", "agent"):  # it declares what the gateway saw
        yield Resource(step=step, meter="tokens_in", amount=900.0, source=source)
    yield Observation(step=step, blob=seen)
    if good or step < 3:
        below = (f"node:{step - 1}",) if step > 1 else ()
        yield Subgoal(step=step, node=f"node:{step}", depth=step, prerequisites=below)


def _help(entry: PlanEntry) -> list[Event]:
    """Return what one hint leaves in the trace."""
    return [
        Intervention(step=4, kind="hint", minutes=2.0, question="?", answer="!"),
        Resource(step=4, meter="supervisor_min", amount=2.0, stream="human"),
    ]


def _drift() -> Event:
    """Return one change of the world."""
    return Drift(
        at_ms=0,
        operator="api/field_rename",
        version=1,
        target="ledger/rows/amount",
        intensity=1.0,
        announcement="D1",
        effective="D1",
        weight=1.0,
        before="0" * 64,
        after="1" * 64,
    )


def _world(good: bool) -> Iterator[Event]:
    """Yield three world propositions with what was stated of them."""
    for i, (kind, y) in enumerate((("unit", True), ("docs_agree", False), ("bound", True))):
        p = (0.9 if y else 0.1) if good else 0.5
        yield Belief(step=4, proposition=f"p{i}", kind=kind, p=p)
        yield Resolution(proposition=f"p{i}", kind=kind, y=y)
