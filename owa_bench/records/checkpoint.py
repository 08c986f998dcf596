"""The daily checkpoint of a campaign: what one day's receipt signs.

File: `receipts/day-NNNN.dsse.json`, a DSSE envelope of CHECKPOINT_TYPE over the
RFC 8785 JSON of a DayCheckpoint, by the key that signed the plan.
"""

from typing import Literal

import msgspec


class DayCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence root over the attempts on record when a day was over.

    `attempts` are the ids of those attempts, of this day and all before it, in plan
    order; the root over their leaves must be `evidence_root`.
    """

    kind: Literal["checkpoint"] = "checkpoint"
    plan_digest: str
    day: int
    evidence_root: str
    attempts: tuple[str, ...]
    simulated: bool
    public_key: str
