"""What a report says: the judgement, and the terms it was reached under."""

import msgspec

from owa_bench.records.score import CellTable, Judgement
from owa_bench.report.pictures import Gallery


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the assurance ladder: whether it is met, and by what."""

    name: str
    text: str
    met: bool
    evidence: str


class Assurance(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run can be trusted: the highest rung met with all below it."""

    level: int
    rungs: tuple[Rung, ...]

    @property
    def name(self) -> str:
        """The level as printed, "V0" to "V5"."""
        return f"V{self.level}"


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run as its plan and its shards have it, for the head of the page."""

    name: str
    battery: str | None
    suites: tuple[str, ...]
    arms: tuple[tuple[str, str, str], ...]
    created: str
    planned: int
    attempts: int
    counted: int
    infrastructure: int
    unfinished: int
    without_attempt: int
    attempt_rule: str
    resamples: int
    simulated_days: bool
    transcripts: bool
    commitment: str
    verifier_nonce: str | None
    calendar: str
    public_key: str
    key_id: str
    tables: tuple[CellTable, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is signed beside the roots. `page` is the HTML's SHA-256.

    `renderer` names the version that drew the figures: the same version draws the
    same bytes.
    """

    schema: str = "owa-report-1"
    version: str
    renderer: str
    judgement: Judgement
    assurance: Assurance
    run: RunFacts
    environment: tuple[tuple[str, str], ...]
    drift: CellTable
    breaches: CellTable
    failures: Gallery = Gallery()
    limits: tuple[str, ...]
    page: str | None = None


# What no check of this project can show; printed on every report.
LIMITS = (
    "Fabricated usage. Tokens, model calls and messages that an agent declares are"
    " marked `source: agent`; if usage and cost are faked together, no check sees it.",
    "The best of several whole runs. Somebody may run the same plan many times, or"
    " many plans, and publish one. A witness of the plan narrows this; nothing here"
    " counts the runs that were thrown away.",
    "A human or an oracle inside the agent. The harness sees actions, not who chose"
    " them. A run executed by the verifier (V5) narrows this.",
    "Seed grinding without a nonce. Whoever picks the master secret may pick one with"
    " easy worlds, unless a verifier's nonce is mixed in.",
    "A plan rewritten afterwards. Whoever holds the signing key can write another plan"
    " and sign it anew; only a witness from before episode 0 (V3) shows it.",
)
