"""Failures of harness, providers and agents that end a run, or one arm of it, early.

Attempts of earlier calls are not counted, so that a resumed run has its chance.
"""

from collections import Counter, defaultdict

from owa_bench.errors import FailureLimitError, ProviderFailure
from owa_bench.records.protocol import Stopping
from owa_bench.runs.play.loop import AttemptResult

MOST_IN_A_ROW = 3  # attempts of an arm that a provider failed, or that never began [D]
_NEVER = 1.0  # the share that stops nothing


class FailureLimit:
    """Watches closed attempts: ends the run, or stops an arm, that only fails.

    Args:
        rule: The protocol's, None for one that has none.
        share: In place of the protocol's share; None: the protocol's.
        acted: Arms with complete episodes from earlier calls.
    """

    def __init__(
        self, rule: Stopping | None, share: float | None, acted: frozenset[str] = frozenset()
    ) -> None:
        self._least = rule.failures_min if rule else 1
        self._share = rule.failure_share if rule and share is None else share
        self._attempts = Counter[str]()
        self._failures = Counter[str]()
        self._first: dict[str, str] = {}
        self._in_a_row = Counter[str]()
        self._acted = set(acted)
        self._idle: dict[str, list[str]] = defaultdict(list)
        self.provider: dict[str, str] = {}  # the words of the provider, by stopped arm
        self.idle: dict[str, str] = {}  # the first failure, by arm that never acted

    def is_stopped(self, arm: str) -> bool:
        """Return whether nothing more of an arm is played in this call."""
        return arm in self.provider or arm in self.idle

    def add(self, arm: str, result: AttemptResult) -> None:
        """Count one closed attempt.

        Args:
            arm: The arm it was made for.
            result: The attempt.
        Raises: FailureLimitError: More than the share of the arm's attempts failed through the
            harness.
        """
        status, reason = result.leaf.status, result.end.reason
        self._attempts[arm] += 1
        self._count_provider(arm, status, reason)
        self._count_idle(arm, result)
        if status != "infrastructure":
            return
        self._failures[arm] += 1
        self._first.setdefault(arm, reason)
        failures, attempts = self._failures[arm], self._attempts[arm]
        if self._share is None or failures < self._least:
            return
        if failures > self._share * attempts:
            raise FailureLimitError(
                f"{failures} of {attempts} attempts of {arm} failed through the "
                f"harness, more than a share of {self._share:g} (--failure-share). The "
                f"first: {self._first[arm]}"
            )

    def _count_provider(self, arm: str, status: str, reason: str) -> None:
        """Stop an arm whose last attempts all failed through its model's provider."""
        if status != "provider":
            self._in_a_row[arm] = 0
            return
        self._in_a_row[arm] += 1
        if self._in_a_row[arm] >= MOST_IN_A_ROW and self._share != _NEVER:
            words = reason.removeprefix(f"{ProviderFailure.__name__}: ")
            self.provider.setdefault(arm, words)

    def _count_idle(self, arm: str, result: AttemptResult) -> None:
        """Stop an arm whose set-up fails: no episode has come to an accepted act."""
        if arm in self._acted or result.leaf.status != "complete":
            return
        failed = result.end.outcome in ("agent_raised", "agent_timeout")
        if not (result.helpless and failed):
            self._acted.add(arm)
            return
        self._idle[arm].append(f"{result.end.outcome}: {result.end.reason}")
        if len(self._idle[arm]) >= MOST_IN_A_ROW and self._share != _NEVER:
            self.idle.setdefault(arm, self._idle[arm][0])
