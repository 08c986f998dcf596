"""A small level-giving battery of Recall, with a protocol of its own beside it."""

import re

from tests.builders.episodes import PROTOCOL_BYTES

FAMILIES = ("learning", "retrieval", "working_memory", "literacy")
BATTERY = """\
name = "recall-small"
protocol = "{protocol}"

[[suite]]
name = "recall"
tiers = {tiers}
episodes = {episodes}
deltas = {deltas}
families = {families}
interventions = [0, "protocol"]
"""


def write_terms(folder, *, deltas=(), families=(), tiers=(1, 2), episodes=1, gates="", **numbers):
    """Write battery.toml and protocol.toml; `numbers` replace those of the protocol.

    `gates` stands in place of the gates of AAI-1.
    """
    text = PROTOCOL_BYTES.decode().replace('name = "default', 'name = "small', 1)
    numbers["family_min"] = len(tiers) * episodes
    if deltas:
        numbers["magnitudes"] = list(deltas)
    for name, value in numbers.items():
        text, found = re.subn(rf"(?m)^{name} = [^#\n]+", f"{name} = {value} ", text, count=1)
        assert found == 1, name
    if gates:
        head, _, rest = text.partition("# AAI-1\n")
        text = head + gates + rest[rest.index("# AAI-2") :]
    (folder / "protocol.toml").write_text(text)
    battery = BATTERY.format(
        protocol=(folder / "protocol.toml").resolve(),
        tiers=list(tiers),
        episodes=episodes,
        deltas=list(deltas) or [0.0, 0.1, 0.25, 0.5, 0.75, 1.0],
        families=list(families),
    ).replace("'", '"')
    (folder / "battery.toml").write_text(battery)
