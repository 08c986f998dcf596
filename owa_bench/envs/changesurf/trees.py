"""The browser's accessibility tree, frames included: each one below what holds it."""

from collections.abc import Mapping
from typing import Any

from owa_bench.envs.changesurf.interceptor import Channel

Nodes = list[list[Any]]  # [role, name, places of the children]


async def accessible_nodes(channel: Channel) -> Nodes:
    """Return the nodes of the open page; a frame's are below the node of its element.

    A node that the browser ignores has no role; it stays, since its children may count.
    """
    shown = await channel.send("Page.getFrameTree", {})
    return await _nodes(channel, shown["frameTree"])


async def _nodes(channel: Channel, frame: Mapping[str, Any]) -> Nodes:
    asked = {"frameId": frame["frame"]["id"]}
    reply = await channel.send("Accessibility.getFullAXTree", asked)
    places = {node["nodeId"]: i for i, node in enumerate(reply["nodes"])}
    nodes: Nodes = [
        [
            "" if node.get("ignored") else node.get("role", {}).get("value", ""),
            node.get("name", {}).get("value", ""),
            [places[c] for c in node.get("childIds", ()) if c in places],
        ]
        for node in reply["nodes"]
    ]
    elements = {n.get("backendDOMNodeId"): i for i, n in enumerate(reply["nodes"])}
    for inner in frame.get("childFrames", ()):
        asked = {"frameId": inner["frame"]["id"]}
        owner = await channel.send("DOM.getFrameOwner", asked)
        below, first = await _nodes(channel, inner), len(nodes)
        holder = elements.get(owner["backendNodeId"])
        if holder is not None:
            nodes[holder][2].append(first)
        nodes += [[role, name, [first + c for c in kids]] for role, name, kids in below]
    return nodes
