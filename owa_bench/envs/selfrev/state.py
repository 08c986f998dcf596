"""The state of a campaign: versions, plans, what was adopted, what was stated."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

Components = frozenset[str]


class CampaignBreach(NamedTuple):
    """A breach of a rule where it happened."""

    rule: str
    step: int
    evidence: str


class PlanState(msgspec.Struct, frozen=True, kw_only=True):
    """A registered plan: its versions, and its statistic once it is answered."""

    digest: str
    base: Components
    candidate: Components
    metric: str
    statistic: float | None = None
    e_value: float | None = None


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """Mean quality of the last, the first and the best version on one pair list."""

    before: float
    after: float
    best: float


class CampaignState(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has done so far.

    `versions` are the components of each version by id, `evidence` the digest of the answered plan
    that each component was adopted on, "" without one.
    """

    versions: Mapping[str, Components]
    current: Components = frozenset()
    evidence: Mapping[str, str] = {}
    plans: Mapping[str, PlanState] = {}
    forecasts: Mapping[str, float] = {}
    attributed: Components = frozenset()
    attempts: int = 0
    holdouts: int = 0
    changed: int = 0  # step of the last adoption or reversion
    breaches: tuple[CampaignBreach, ...] = ()
    confirmation: Confirmation | None = None
