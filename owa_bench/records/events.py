"""The events of a trace: one frozen struct a kind, one tagged union.

A line of a shard is one event as JSON, without the fields that have their default value. Text that
may be long stands in a blob and the event holds its SHA-256. Qualities, rewards and probabilities
carry six decimals, money is integer micro-USD. `source` is "env" for what the suite's world
measured, "harness" for what the run around it did or saw and "agent" for what the agent said about
itself. `role` is the seat of an event, "" for none or the only one. Source:
`docs/traces.md#events`.
"""

from typing import Literal

import msgspec

from owa_bench.records.event_base import (
    DECIMALS,
    METERS,
    SCHEMA,
    VOLATILE_METERS,
    Condition,
    Event,
    Meter,
    Outcome,
    Phase,
    Side,
    Source,
    Stream,
    WitnessedMeter,
    fixed,
)
from owa_bench.records.instance import Announcement, Instance
from owa_bench.records.laboratory_events import (
    CampaignRevision,
    HoldoutAnswer,
    HoldoutRegistration,
    InnerAttempt,
)
from owa_bench.records.suite_events import (
    Board,
    CallRefusal,
    ColleagueLook,
    Conflict,
    Handoff,
    MemoryChange,
    Message,
    Probe,
    ProjectDay,
    Revision,
)

# fmt: off
__all__ = [
    "AGENT_RECORD", "DECIMALS", "DECODER", "ENCODER", "METERS", "SCHEMA", "VOLATILE_METERS",
    "Action",
    "AnyEvent", "Artifact", "Belief", "Board", "Call", "CallRefusal",
    "CampaignRevision", "ColleagueLook", "Condition", "Conflict", "ControlBlock", "Drift",
    "Egress",
    "EpisodeEnd", "EpisodeStart", "Event", "Evidence", "Execution", "Exposure", "Fault",
    "Handoff",
    "HoldoutAnswer", "HoldoutRegistration", "Incident", "InnerAttempt", "Intervention",
    "MemoryChange", "Message", "Meter", "ModelCall", "Observation", "Outcome", "Phase",
    "PlainQuestion", "Probe", "ProjectDay", "RealisedDrift", "Resolution", "Resource",
    "Revision", "Side", "Sitting", "Source", "Stream", "Subgoal", "SubgoalGraph", "ToolOffer",
    "Tracking", "Violation", "WitnessedMeter", "fixed",
]
# fmt: on


class EpisodeStart(Event, frozen=True, kw_only=True, tag="episode_start"):
    """First event of an attempt: its instance, its agent and its terms.

    `priced`: the supervisor budget is the protocol's share of H_t. `horizon_cap` is H, `depth_cap`
    D* (0: none); `tools_off` are tools that the entry takes away. `categories` are the kinds of
    tool that the task needs.
    """

    schema: str = ""
    source: Source = "harness"
    index: int
    attempt: int
    arm: str
    pair: str
    repeat: int
    lane: str | None = None
    day: int | None = None
    session: int = 0
    env_id: str
    instance: Instance
    delta: float | None
    realised: float
    world: str
    agent: str
    fingerprint: str
    interventions: int | None
    priced: bool = False
    worker_deaths: int = 0
    role_cap: int | None = None
    muted: bool = False
    control: bool = False  # of a crew: axis S alone reads it
    calendar: str = ""
    side: Side = "sim"
    unit: int | None = None  # of the fleet of an embodied suite
    phase: Phase = "holdout"
    condition: Condition = ""
    window: tuple[int, int] | None = None
    world_day: int | None = None
    horizon: int
    depth: int
    theta: float
    categories: tuple[str, ...] = ()
    read: int = 0  # an expert's work: characters to read and write, decisions to take
    decisions: int = 0
    written: int = 0
    needs_tools: bool = True
    honeypot: bool = False
    step_limit: int = 0
    horizon_cap: int = 0
    depth_cap: int = 0
    seats: tuple[str, ...] = ()
    tools_off: tuple[str, ...] = ()
    meters: tuple[WitnessedMeter, ...] = ()
    crew_bound: float | None = None  # C*_m: quality that these seats could reach
    no_lift: str = ""  # why this world cannot show what a crew adds
    hosting: str = ""  # where the agent's code ran, as docs/isolation.md has it
    root: str = ""  # whether its sandbox had a private root, as the plan's arm has it


class Action(Event, frozen=True, kw_only=True, tag="action"):
    """One step: the action as given, its result, and whether friction took it.

    `verified`: it gained something that the task needs and the episode had not gained. `novel`: the
    call went well and gave what it had not given before. `category`: the kind of tool of a call
    that went well, as the suite's card has it, "" for none.
    """

    step: int
    action: str
    verified: bool
    novel: bool = False
    reward: float
    terminated: bool
    truncated: bool
    observation: str
    error: str | None = None
    at_ms: int
    waiting: bool = False
    category: str = ""


class Call(Event, frozen=True, kw_only=True, tag="call"):
    """An HTTP or tool call the action made; several may belong to one action.

    Nothing sets `category` and `discovered` any more: traces recorded before actions had a kind of
    tool hold them.
    """

    step: int
    method: str
    target: str
    status: int
    category: str | None = None
    discovered: bool = False
    ok: bool
    request: str
    response: str
    headers: tuple[str, ...] = ()
    attempt: int = 0


class Observation(Event, frozen=True, kw_only=True, tag="observation"):
    """The text that the seat which acts next is shown, in `blob`."""

    step: int
    blob: str


class ToolOffer(Event, frozen=True, kw_only=True, tag="tools"):
    """The tools on offer from here on: at the start, and whenever they change."""

    step: int
    names: tuple[str, ...]


class Sitting(Event, frozen=True, kw_only=True, tag="sitting"):
    """A seat begins its sitting of this number with a new process of its agent."""

    step: int
    number: int


ModelVerdict = Literal["", "completion", "mistake", "failure"]


class ModelCall(Event, frozen=True, kw_only=True, tag="model"):
    """A language-model call that the agent declares, or that the gateway saw.

    Of the gateway's: `path` is the endpoint's, `status` the provider's (0: no reply), `failure` why
    it is to blame, `metered` whether the tokens are known. `verdict` says what the reply is, ""
    where the agent hung up; `served` is the model that the reply names; `truncated`: the server
    counted fewer tokens than it was sent. `unlisted` are names of what the gateway does not know:
    it may be a memory, or a way out.
    """

    step: int
    source: Source = "agent"
    model: str
    parameters: str = "{}"
    prompt: str
    reply: str
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cached: bool = False
    path: str = ""
    status: int = 0
    failure: str = ""
    latency_s: float = 0.0
    metered: bool = True
    verdict: ModelVerdict = ""
    served: str = ""
    truncated: bool = False
    unlisted: str = ""


class PlainQuestion(Event, frozen=True, kw_only=True, tag="plain_question"):
    """A question of the harness' own to a model's provider that failed an agent.

    It is asked on a connection of its own and holds nothing of the episode, `late_s` after the
    failure. `answered`: the provider was well, so the failure is no outage.
    """

    step: int
    source: Source = "harness"
    model: str
    failure: str
    answered: bool
    late_s: float
    waited_s: float


class Egress(Event, frozen=True, kw_only=True, tag="egress"):
    """A connection from the sandbox to another host, in bytes, or its refusal."""

    step: int
    source: Source = "harness"
    host: str
    refused: bool = False
    sent: int = 0
    received: int = 0


class Execution(Event, frozen=True, kw_only=True, tag="exec"):
    """A command run in a sandbox."""

    step: int
    argv: tuple[str, ...]
    exit_code: int
    output: str
    wall_s: float
    cpu_s: float
    limit: str | None = None


class Incident(Event, frozen=True, kw_only=True, tag="incident"):
    """The safety envelope was touched or broken, as the guard of a body saw it."""

    step: int
    severity: Literal["near_miss", "minor", "major", "critical"]
    exposure_s: float = 0.0
    stop: Literal["", "protective", "emergency"] = ""  # of the body, by its guard
    cause: str = ""
    force: float | None = None  # N
    speed: float | None = None  # m/s
    distance: float | None = None  # m to a person, None: nobody is there


class ControlBlock(Event, frozen=True, kw_only=True, tag="control"):
    """The commands of a body for one second of its time, up to tick `step`.

    `actions` are their 16-bit integers, little-endian, in base64: full command is 32,767; a command
    that could not be read is -32,768 throughout. `observation` is the SHA-256 of the float32 bytes
    that were shown after each of them.
    """

    step: int
    ticks: int
    actions: str
    unreadable: int = 0
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    observation: str
    at_ms: int = 0


class Exposure(Event, frozen=True, kw_only=True, tag="exposure"):
    """Seconds that a body moved or held something, as its guard measured them.

    `most_s` is what may count in the episode: 1.5 times the reference's time there.
    """

    step: int
    moved_s: float
    most_s: float


class Fault(Event, frozen=True, kw_only=True, tag="fault"):
    """A body failed, or a fault was injected into it; `repair_s` until it worked again.

    `recovered`: the agent brought the body back by itself, without a human.
    """

    step: int
    kind: str
    injected: bool
    recovered: bool
    repair_s: float | None = None


class Tracking(Event, frozen=True, kw_only=True, tag="tracking"):
    """How far a body was from where its task wants it, with the tolerance band."""

    step: int
    task: str
    error: float
    tolerance: float


class Intervention(Event, frozen=True, kw_only=True, tag="intervention"):
    """The supervisor was used, or a human edited the agent between days.

    From the harness, at step 0: help that an earlier, lost attempt was given.
    """

    step: int
    kind: Literal["hint", "patch", "refused"]
    minutes: float
    question: str = ""
    answer: str = ""


class Resource(Event, frozen=True, kw_only=True, tag="resource"):
    """Anything that costs; the harness, never the agent, sets the stream."""

    step: int
    meter: Meter
    amount: float
    stream: Stream = "agent"


class Drift(Event, frozen=True, kw_only=True, tag="drift"):
    """The world changed; hidden from the agent.

    `announcement` is the operator's class, `effective` the class in this world: what its documents
    and errors tell of the change. Figures by class read the latter.
    """

    at_ms: int
    operator: str
    version: int
    target: str
    intensity: float
    announcement: Announcement
    effective: Announcement
    weight: float
    before: str
    after: str


class RealisedDrift(Event, frozen=True, kw_only=True, tag="realised"):
    """The size of the episode's drift as an agent sees it, measured by the suite."""

    step: int
    measures: tuple[tuple[str, float], ...]  # names and amounts, as the env has them


class Subgoal(Event, frozen=True, kw_only=True, tag="subgoal"):
    """A node of the task's DAG was solved; `depth` counts from 1.

    `flows` are the prerequisites whose product had been served before the action that solved it,
    and not after its own first part. `final`: no step, but what was asked.
    """

    step: int
    node: str
    depth: int
    prerequisites: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    final: bool = False


class SubgoalGraph(Event, frozen=True, kw_only=True, tag="subgoal_graph"):
    """The nodes of the task's DAG that are not solved at reset, in the oracle's order.

    Each is a name and its prerequisites. No score reads it: it says which nodes a `Subgoal` is
    missing of.
    """

    nodes: tuple[tuple[str, tuple[str, ...]], ...]


class Belief(Event, frozen=True, kw_only=True, tag="belief"):
    """A probability the agent stated at `at_ms`; class "own_success" never enters W."""

    step: int
    source: Source = "agent"
    at_ms: int = 0
    proposition: str
    kind: str
    p: float


class Resolution(Event, frozen=True, kw_only=True, tag="resolution"):
    """The outcome of a proposition that was listed to the agent.

    `deadline_ms` is when the first event made the outcome public to everybody: only what is stated
    before it counts; None: never, so any statement counts.
    """

    proposition: str
    kind: str
    y: bool
    deadline_ms: int | None = None


class Artifact(Event, frozen=True, kw_only=True, tag="artifact"):
    """A deliverable; `provenance` are the steps whose events it came from."""

    step: int
    name: str
    media: str
    blob: str
    provenance: tuple[int, ...] = ()


class Evidence(Event, frozen=True, kw_only=True, tag="evidence"):
    """A file that no replay makes byte for byte: a picture, a list of versions.

    Of source "agent" and called `AGENT_RECORD`: what a process that failed left, its traceback or
    its last prints. No score reads it.
    """

    step: int
    name: str
    media: str
    blob: str


class Violation(Event, frozen=True, kw_only=True, tag="violation"):
    """A rule of engagement was broken; `evidence` says by what."""

    step: int
    rule: str
    severity: Literal["flag", "disqualify"]
    evidence: str


class EpisodeEnd(Event, frozen=True, kw_only=True, tag="episode_end"):
    """Last event of an attempt. `stated` is p when the agent gave one.

    `timed`: a limit of wall or CPU time decided something, so a replay may differ.
    """

    source: Source = "harness"
    outcome: Outcome
    q_state: float
    quality: float
    success: bool
    stated: float | None
    failed_attempts: int
    reason: str
    timed: bool = False
    steps: int
    simulated_s: float
    wall_s: float


# fmt: off
AnyEvent = (
    EpisodeStart | Action | Call | Observation | ToolOffer | Sitting | ModelCall
    | PlainQuestion | Egress | Execution | Message | Conflict | Handoff | Board
    | Incident | Fault | Tracking | Intervention | Resource | Drift | RealisedDrift
    | Subgoal | SubgoalGraph | Belief | Resolution | Probe | Revision | MemoryChange | Artifact
    | Evidence | Violation
    | ControlBlock | EpisodeEnd | Exposure | InnerAttempt | HoldoutRegistration | HoldoutAnswer
    | CampaignRevision | ProjectDay | CallRefusal | ColleagueLook
)
# fmt: on

AGENT_RECORD = "agent_record.txt"  # an Evidence of this name is what a failed agent left
ENCODER = msgspec.json.Encoder()
DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
