"""Recorded procedure: the oracle's actions, answers replaced by how to derive them.

A replay that hands in the recorded answer would be right whatever its requests return.
So the lines that hand in or post carry `derive` in place of what the oracle computed:
where each list stood, how it was wrapped, and the names and units of its columns.
"""

import json
from collections.abc import Sequence
from typing import Any

from owa_bench.envs.toolquest.access import TOKEN_KINDS
from owa_bench.worlds.api import ApiWorld


def recorded_procedure(world: ApiWorld, actions: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a script that derives its answer from what it is served.

    Args:
        world: The undrifted world.
        actions: The oracle's actions in it.

    Returns:
        JSON lines. `derive` stands on those that hand in or post, `record` (from 0) on
        the latter: which row of the answer it posts.
    """
    lists, posted, lines = _lists(world), 0, []
    for line in map(json.loads, actions):
        arguments = line["arguments"]
        if line["tool"] == "write_artifact":
            del arguments["rows"]
            line["derive"] = lists
        elif arguments.get("method") == "POST" and not _asks_token(world, arguments):
            del arguments["body"]
            line |= {"derive": lists, "record": posted}
            posted += 1
        lines.append(json.dumps(line))
    return tuple(lines)


def _asks_token(world: ApiWorld, arguments: dict[str, Any]) -> bool:
    """Return whether a POST goes to a token endpoint."""
    return any(
        arguments["url"]
        == f"https://{provider.host}{provider.contract.auth.token_path}"
        for provider in world.providers
        if provider.contract.auth.kind in TOKEN_KINDS
    )


def _lists(world: ApiWorld) -> dict[str, dict[str, Any]]:
    """Return how each needed list is read, by source."""
    found: dict[str, dict[str, Any]] = {}
    for vendor, source in world.needed:
        provider = world.provider(vendor)
        resource = provider.contract.resource(source)
        found[source] = {
            "url": f"https://{provider.host}{resource.path}",
            "wrapper": resource.wrapper,
            "names": {field.key: field.name for field in resource.fields},
            "units": {f.key: f.unit for f in resource.fields if f.unit},
        }
    return found
