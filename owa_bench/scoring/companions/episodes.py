"""From the episodes of a run to what the companion measures read."""

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Observables
from owa_bench.scoring.companions.generality.curve import Generality, generality
from owa_bench.scoring.companions.intelligence_test.failures import (
    Failures,
    from_attempts,
)

EVERYWHERE = "all suites"


def generality_by_suite(table: Observables) -> dict[str, dict[str, Generality]]:
    """Return each arm's generality per suite and over all, tier being the difficulty.

    Formula: `generality` of q_state over the tier of every episode that is no honeypot
    Shapes: episodes; a result per suite (and "all suites") and arm.
    Units: tiers.
    Missing: an arm that played nothing of a suite has no result there.
    Errors: ScoringError if there is no such episode.
    Source: `other-measures.md` section 3 [R].

    >>> from owa_bench.scoring.companions import episodes
    >>> episodes.EVERYWHERE
    'all suites'
    """
    plain = table.take(~table.honeypot)
    if not len(plain):
        raise ScoringError("generality needs an episode that is no honeypot, got none.")
    largest = float(plain.tier.max())
    found: dict[str, dict[str, Generality]] = {}
    for suite in (*np.unique(plain.suite).tolist(), EVERYWHERE):
        part = plain if suite == EVERYWHERE else plain.take(plain.suite == suite)
        found[suite] = {}
        for arm in np.unique(part.arm).tolist():
            own = part.take(part.arm == arm)
            found[suite][arm] = generality(
                own.q_state[None, :], own.tier.astype(np.float64), largest=largest
            )[0]
    return found


def failures_by_arm(table: Observables) -> dict[str, Failures]:
    """Return each arm's failed attempts before success, unsolved ones censored.

    Formula: X = failed attempts if the episode succeeded, X >= failed attempts if not
    Shapes: episodes; counts per arm.
    Units: attempts.
    Missing: honeypots have no right answer to reach and are left out.
    Errors: ScoringError if there is no such episode.
    Source: `other-measures.md` section 2 [R].

    >>> from owa_bench.scoring.companions.intelligence_test import failures
    >>> failures.from_attempts([2, 5], [True, False]).counts.tolist()
    [2.0, 5.0]
    """
    plain = table.take(~table.honeypot)
    if not len(plain):
        raise ScoringError(
            "failure counts need an episode that is no honeypot, got none."
        )
    return {
        arm: from_attempts(
            plain.failed_attempts[plain.arm == arm], plain.u[plain.arm == arm] > 0
        )
        for arm in np.unique(plain.arm).tolist()
    }
