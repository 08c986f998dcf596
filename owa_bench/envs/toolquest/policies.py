"""The control policies of ToolQuest: floors, cheats and the oracle.

Each is made from an `OracleAccess`; only the oracle, the over-doer and the plausible-wrong one look
at it. They act in the language view.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from owa_bench.envs.toolquest.backend import instance_key
from owa_bench.envs.toolquest.oracle import access_step
from owa_bench.envs.toolquest.state import ApiState
from owa_bench.envs.toolquest.tool_calls import ToolAction, call, credentials, get
from owa_bench.envs.toolquest.wire_format import to_wire
from owa_bench.interfaces import Agent, OracleAccess
from owa_bench.shells.solution import KnowingPolicy, StatePolicy

_PATIENCE = 40  # calls the random policy makes before it finishes
_ONCE = "Idempotency-Key"
_PORTS = (80, 443, 8000, 8080, 5000)


class ApiNoOp(StatePolicy):
    """Finishes at once and states nothing."""

    def _call(self, info: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"tool": "finish", "arguments": {"answer": ""}}


class ApiOverDoer(KnowingPolicy):
    """Does what the oracle does, and one destructive act before it finishes."""

    def _call(self, info: Mapping[str, Any]) -> Mapping[str, Any]:
        step = super()._call(info)
        _, state = self._observed()
        if step["tool"] != "finish" or state.deletions:
            return step
        return self._destruction() or step

    def _destruction(self) -> ToolAction | None:
        """Return the deletion of the first row of a collection that allows it."""
        timeline, state = self._observed()
        key = instance_key(timeline.instance.seed)
        for place in state.world.needed:
            provider = state.vendors[place[0]]
            resource = provider.contract.resource(place[1])
            table = provider.table(place[1])
            if "DELETE" in resource.methods and table.rows:
                if (step := access_step(state, provider)) is not None:
                    return step
                proof = credentials(state, key, provider, provider.contract)
                field = resource.field(table.columns[0])
                ident = to_wire(field, table.rows[0][0])
                return call(
                    "http",
                    method="DELETE",
                    url=f"https://{provider.host}{resource.path}/{ident}",
                    headers=proof.headers,
                    query=proof.query,
                )
        return None


class ApiPlausibleWrong(StatePolicy):
    """Does the oracle's work and hands in the right shape with wrong cells."""

    def _call(self, info: Mapping[str, Any]) -> Mapping[str, Any]:
        _, state = self._observed()
        if state.world.honeypot:
            return call("finish", answer="done", p=0.9)
        step = self._hint()
        arguments = step["arguments"]
        if step["tool"] == "write_artifact":
            if state.artefact is not None:
                return call("finish", answer="done", p=0.9)
            rows = [[_wrong_number(cell) for cell in row] for row in arguments["rows"]]
            return {"tool": step["tool"], "arguments": {**arguments, "rows": rows}}
        if arguments.get("method") == "POST" and _is_record(state, arguments["url"]):
            if len(state.records) >= sum(len(w[3]) for w in state.world.writes):
                return call("finish", answer="done", p=0.9)
            return {"tool": "http", "arguments": arguments | self._wrong_record(arguments)}
        return step

    def _wrong_record(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return body and headers of a record that is off, under a name of its own."""
        body = {name: _wrong_number(v) for name, v in arguments["body"].items()}
        headers = dict(arguments.get("headers", {}))
        if _ONCE in headers:
            headers[_ONCE] += f"-{self.steps}"
        return {"body": body, **({"headers": headers} if headers else {})}


def _is_record(state: ApiState, url: str) -> bool:
    """Return whether a POST makes a record, not a token."""
    for vendor, key, _, _ in state.world.writes:
        provider = state.vendors[vendor]
        if url == f"https://{provider.host}{provider.contract.resource(key).path}":
            return True
    return False


def _wrong_number(value: Any) -> Any:
    """Return a number that is off; text stays, so that the shape is right."""
    return value + 7 if type(value) is int else value


class ApiRandomCalls(StatePolicy):
    """Draws valid calls of the suite's tools, then finishes."""

    def _call(self, info: Mapping[str, Any]) -> Mapping[str, Any]:
        timeline, state = self._observed()
        if self.steps > _PATIENCE:
            return call("finish", answer="", p=0.0)
        return _random_call(state, instance_key(timeline.instance.seed + self.steps))


def _random_call(state: ApiState, draws: bytes) -> ToolAction:
    """Return one of many valid calls, chosen by the bytes drawn."""
    world = state.world
    provider = world.providers[draws[0] % len(world.providers)]
    paths = ["/", "/openapi.json", "/docs"]
    paths += [resource.path for resource in provider.documented.resources]
    choices = (
        get(f"https://{provider.host}{paths[draws[1] % len(paths)]}"),
        call("vault"),
        call("vault", name=provider.secrets[0].name),
        call("wait", seconds=draws[1] % 60),
        call("read", handle=f"art:{1 + draws[1] % 9}"),
        call("write_artifact", name="answer", columns=["a"], rows=[[draws[1]]]),
    )
    return choices[draws[2] % len(choices)]


class ApiLeakProbe(StatePolicy):
    """Looks for the answer everywhere but in the task, and hands in what it found.

    It reads its own process' environment and memory map, the working folder, what lies beside the
    installed packages, and asks the `http` tool for loopback ports.
    """

    def _call(self, info: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.steps <= len(_PORTS):
            url = f"http://127.0.0.1:{_PORTS[self.steps - 1]}/"
            return call("http", method="GET", url=url)
        if self.steps == len(_PORTS) + 1:
            rows = [[text] for text in _visible_texts()]
            return call("write_artifact", name="answer", columns=["found"], rows=rows)
        return call("finish", answer="", p=0.0)


def _visible_texts() -> list[str]:
    """Return what a process can see around itself that could be an answer.

    Names of variables and files go out as they are; contents only where they speak of an answer, so
    that nothing private of the machine reaches a record.
    """
    found = sorted(os.environ)
    seen = "\n".join(os.environ.values())
    for name in ("environ", "cmdline", "maps"):
        seen += _first_characters(Path("/proc/self") / name)
    for folder in (Path.cwd(), *(Path(path) for path in sys.path if path)):
        if folder.is_dir():
            found += [path.name for path in sorted(folder.iterdir())[:20]]
    found += [line for line in seen.splitlines() if "expected_rows" in line]
    return [text[:200] for text in found[:200]]


def _first_characters(path: Path) -> str:
    """Return the first characters of a file, "" if it may not be read."""
    try:
        return path.read_bytes()[:4000].decode("ascii", "replace")
    except OSError:
        return ""


POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": ApiNoOp,
    "random": ApiRandomCalls,
    "plausible_wrong": ApiPlausibleWrong,
    "over_doer": ApiOverDoer,
    "leak_probe": ApiLeakProbe,
    "oracle": KnowingPolicy,
}
