"""Events of a laboratory: inner attempts, registered holdouts and their answers.

All of them are the env's: no agent can declare one. Source: `docs/selfrev.md#records`.
"""

from typing import Literal

import msgspec

from owa_bench.records.event_base import Event
from owa_bench.records.holdout import HoldoutMetric, HoldoutRule

InnerCondition = Literal[
    "",
    "base",
    "candidate",
    "before",
    "after",
    "control_before",
    "control_after",
    "ablated",
    "dropped",
    "best",
]


class InnerAttempt(
    Event, frozen=True, kw_only=True, tag="inner_attempt", forbid_unknown_fields=True
):
    """One attempt that the laboratory played inside an episode.

    Its address is ATTEMPT/BATCH/NUMBER, ATTEMPT being that of the episode. `version` is the digest
    of the subject, `draw` names the instances of which it is number `pair`. `quality` is what the
    inner suite's oracle says, `logged` the score an item in the subject's own log. `replay` is the
    SHA-256 of the attempt's lines, which are kept as a blob of that name where `full`.
    """

    step: int
    batch: str
    number: int
    version: str
    draw: str
    condition: InnerCondition = ""
    pair: int
    repeat: int = 0
    quality: float
    logged: float
    steps: int
    replay: str
    full: bool = False


class HoldoutRegistration(Event, frozen=True, kw_only=True, tag="holdout_registration"):
    """A test that was registered before its holdout existed; `plan` is its digest."""

    step: int
    plan: str
    base: str
    candidate: str
    components: tuple[str, ...]
    metric: HoldoutMetric
    pairs: int
    rule: HoldoutRule
    level: float


class HoldoutAnswer(Event, frozen=True, kw_only=True, tag="holdout_answer"):
    """The answer to a registered test: the declared statistic, and its e-value.

    The agent is told the statistic and the number of pairs alone.
    """

    step: int
    plan: str
    batch: str
    pairs: int
    statistic: float
    e_value: float


class AdoptedComponent(msgspec.Struct, frozen=True, kw_only=True):
    """A component of the last version, and the answered plan that it was adopted on.

    `plan` is "" where none was answered before the adoption.
    """

    name: str
    plan: str = ""


class CampaignRevision(Event, frozen=True, kw_only=True, tag="campaign_revision"):
    """What became of a campaign: first and last version, and the ablations of the last.

    `step` is that of the last adoption or reversion, 0 where there was none. `lines` are the
    settings that changed, `ablations` the versions with one component left out, in the order of the
    components.
    """

    step: int
    start: str
    final: str
    components: tuple[AdoptedComponent, ...] = ()
    lines: int = 0
    ablations: tuple[str, ...] = ()
    proposals: int = 0
