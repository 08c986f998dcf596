"""Small worlds made by hand, drawn timelines, and sessions and runs over both."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.toolquest.session import ToolQuestSession
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.world import (
    ApiResource,
    ApiWorld,
    Auth,
    Contract,
    Field,
    Goal,
    Limit,
    Pager,
    Provider,
    Secret,
    Table,
)
from owa_bench.interfaces import Brief, ToolResult
from owa_bench.records.events import Event
from owa_bench.records.instance import Instance, Timeline
from owa_bench.records.trace import replay_line
from owa_bench.shells.episode_events import ListSink

HOST = "shop.example"
KEY = "key-abc123"
CLIENT = "client-7:s3cret-of-client"
ROWS = tuple((f"r-{i:02d}", 100 * i, "even" if i % 2 == 0 else "odd") for i in range(23))


def small_world(
    *,
    auth: Auth | None = None,
    pager: Pager | None = None,
    wrapper: str = "data",
    requests: int = 1000,
    unit: str = "cents",
) -> ApiWorld:
    """Return a world of one vendor with one collection of 23 rows."""
    auth = auth or Auth(kind="none")
    items = ApiResource(
        key="items",
        path="/v1/items",
        about="Items of the shop.",
        fields=(
            Field(key="id", name="item_id", kind="string", about="Identifier."),
            Field(
                key="price", name="price", kind="money", about="Price.", unit=unit, writable=True
            ),
            Field(
                key="kind", name="kind", kind="enum", about="Kind.", filterable=True, writable=True
            ),
        ),
        wrapper=wrapper,
        pager=pager or Pager(kind="none"),
        methods=("GET", "POST", "DELETE"),
    )
    contract = Contract(
        auth=auth, limit=Limit(requests=requests, window_ms=10_000), resources=(items,)
    )
    value = CLIENT if auth.kind == "oauth2" else KEY
    provider = Provider(
        key="shop",
        host=HOST,
        title="Shop",
        family="retail",
        contract=contract,
        documented=contract,
        original=contract,
        tables=(Table(resource="items", columns=("id", "price", "kind"), rows=ROWS),),
        secrets=(
            Secret(name="old", value="worn-out-key", about="Old key.", revoked=True),
            Secret(name="shop", value=value, about="Key of Shop."),
        ),
    )
    return ApiWorld(
        goal=Goal(family="toy", text="Report the odd items.", spec="{}"),
        tier=1,
        providers=(provider,),
        entry=(f"https://{HOST}/openapi.json",),
        expected_columns=("id", "price"),
        expected_rows=tuple(row[:2] for row in ROWS if row[2] == "odd"),
        writes=(),
        needed=(("shop", "items"),),
        propositions=(),
    )


def still(world: ApiWorld, seed: int = 7) -> Timeline:
    """Return the timeline of one world that never changes."""
    instance = Instance(suite="toolquest", version=3, family="reconcile", tier=1, seed=seed)
    return Timeline(instance=instance, starts=(0,), worlds=(world,), changes=((),), realised=0.0)


class Caller:
    """A session with a clock, and its tools as methods."""

    def __init__(self, timeline: Timeline, *, wire: bool = False) -> None:
        self.timeline = timeline
        self.sink = ListSink()
        self.session = ToolQuestSession(timeline, sink=self.sink, wire=wire)
        self.now_ms = 0
        self.steps = 0
        self.events: list[Event] = []

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        """Return a tool's result; the clock moves."""
        self.steps += 1
        result = self.session.call(tool, arguments, now_ms=self.now_ms, step=self.steps)
        self.now_ms += result.elapsed_ms
        self.events += result.events
        return result

    def read_vault(self) -> None:
        """Read every entry of the vault: who sends another secret is told once."""
        for entry in json.loads(self.call("vault").text)["entries"]:
            self.call("vault", name=entry["name"])

    def http(self, path: str, method: str = "GET", **arguments: Any) -> Any:
        """Return the parsed answer to a request to the shop."""
        url = path if path.startswith("http") else f"https://{HOST}{path}"
        return json.loads(self.call("http", method=method, url=url, **arguments).text)

    def token(self, **form: str) -> str:
        """Return an access token, asked for with the credentials in the body."""
        self.read_vault()
        name, _, secret = CLIENT.partition(":")
        body = {
            "grant_type": "client_credentials",
            "client_id": name,
            "client_secret": secret,
            **form,
        }
        return str(self.http("/token", "POST", body=body)["body"]["access_token"])


class Run(NamedTuple):
    """An episode that was played: what came of it and what it left."""

    q_state: float
    outcome: str
    events: list[Event]
    replay: bytes
    actions: list[str]
    sink: ListSink


def drawn(
    family: str = "reconcile", tier: int = 1, seed: int = 0, drift: str = "", delta: float = 1.0
) -> Timeline:
    """Return a drawn timeline, under a named calendar's drift if one is given."""
    instance = Instance(suite="toolquest", version=3, family=family, tier=tier, seed=seed)
    calendar = calendars.parse(drift or "nested", "api")
    if drift:
        step = timelines.drift_step("toolquest", instance, delta, calendar)
        instance = msgspec.structs.replace(instance, drift_step=step)
    return timelines.source("toolquest", calendar)(instance)


def play(timeline: Timeline, policy: Any, *, wire: bool = False) -> Run:
    """Play a policy (a name or a factory) on a timeline, recorded in memory."""
    sink = ListSink()
    env: Any = SUITE.env(lambda _: timeline, sink=sink, wire=wire).unwrapped
    observation, info = env.reset(options={"instance": timeline.instance})
    make = SUITE.policies[policy] if isinstance(policy, str) else policy
    agent = make(env.oracle_access())
    task = env.task
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions)
    agent.reset(brief, env.tools, Path())
    actions: list[str] = []
    over = False
    while not over:
        actions.append(agent.act(observation, info))
        observation, _, ended, cut, info = env.step(actions[-1])
        over = ended or cut
    agent.close()
    env.close()
    lines = [line for event in sink.events if (line := replay_line(event)) is not None]
    return Run(info["q_state"], info["outcome"], sink.events, b"\n".join(lines), actions, sink)
