"""Share of attempts that failed through the harness or a model's provider, as a limit.

An agent whose model is gone would have every episode scored as its own failure; the
run stops instead, and what was not played is left to `--resume`. Attempts of earlier
calls are not counted, so that a resumed run has its chance.
"""

from collections import Counter

from owa_bench.errors import FailureLimitError
from owa_bench.records.protocol import Stopping
from owa_bench.run.play.loop import AttemptResult


class FailureLimit:
    """Counts closed attempts by arm.

    Args:
        rule: The protocol's, None for one that has none.
        share: In place of the protocol's share; None: the protocol's.
    """

    def __init__(self, rule: Stopping | None, share: float | None) -> None:
        self._least = rule.failures_min if rule else 1
        self._share = rule.failure_share if rule and share is None else share
        self._attempts = Counter[str]()
        self._failures = Counter[str]()
        self._first: dict[str, str] = {}

    def add(self, arm: str, result: AttemptResult) -> None:
        """Count one closed attempt.

        Args:
            arm: The arm it was made for.
            result: The attempt.

        Raises:
            FailureLimitError: More than the share of the arm's attempts failed so.
        """
        self._attempts[arm] += 1
        cause = result.provider_failure
        if not cause and result.leaf.status != "infrastructure":
            return
        self._failures[arm] += 1
        self._first.setdefault(arm, cause or result.end.reason)
        failures, attempts = self._failures[arm], self._attempts[arm]
        if self._share is None or failures < self._least:
            return
        if failures > self._share * attempts:
            raise FailureLimitError(
                f"{failures} of {attempts} attempts of {arm} failed through the harness"
                f" or a model's provider, more than a share of {self._share:g} "
                f"(--failure-share). The first: {self._first[arm]}"
            )
