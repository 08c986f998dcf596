"""The base of every event, and the words and meters that events use."""

from typing import Annotated, Literal

import msgspec

DECIMALS = 6

SCHEMA = "owa-trace-2"
Source = Literal["env", "harness", "agent"]
Stream = Literal["agent", "human", "evaluation"]
Side = Literal["sim", "surrogate", "real"]
Phase = Literal["practice", "checkpoint", "holdout"]
# Attempt sets of a campaign, each on throw-away copies of a lane's memory, "control_.."
# on none: see `docs/scoring.md#attempt-sets`.
# fmt: off
Condition = Literal[
    "", "before", "after", "control_before", "control_after", "ablated", "placebo",
    "clean", "drifted",
]
# fmt: on
Outcome = Literal[
    "finished", "infeasible", "truncated", "agent_raised", "agent_timeout", "infrastructure"
]
# One of METERS, or SUITE/NAME, which the card of that suite declares.
Meter = Annotated[str, msgspec.Meta(pattern=r"^([a-z0-9_]+/)?[a-z][a-z0-9_]*$")]
# fmt: off
METERS = (
    "api_calls", "tokens_in", "tokens_out", "cpu_s", "gpu_s", "wall_s",
    "supervisor_min", "bytes", "exposure_s", "tokens_cached", "characters_in",
    "characters_out",
)
# fmt: on

# Bytes. What one action, or all that is declared beside it, may have; a line of a trace
# may have more, since it holds an action escaped. The reader takes each whole frame
# of lines that are no longer.
LARGEST_ACTION = 1 << 20  # [D]
LARGEST_LINE = 7 << 20

# Meters that differ from machine to machine: they stay out of the replay digest.
VOLATILE_METERS: frozenset[str] = frozenset({"cpu_s", "gpu_s", "wall_s"})


def fixed(value: float) -> float:
    """Return `value` with the six decimals every quality and probability carries."""
    return round(float(value), DECIMALS) + 0.0


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """Base of every event."""

    source: Source = "env"
    role: str = ""


class WitnessedMeter(msgspec.Struct, frozen=True):
    """A meter of a suite, and the events that show each amount.

    `witness` is the tag of an event of the env or the harness; `field` is the number in it that
    adds up to the amount, "" where each such event counts 1.
    """

    meter: Meter
    witness: str
    field: str = ""
