"""Challenge of a verifier: a nonce given after the plan was signed, which enters seeds.

A plan that names a `challenger` commits to a master first; its seeds derive from the
master and from what that verifier then signs with the plan's digest, so nobody can pick
a master by the worlds that it draws. The signed nonce lies among the witnesses.
Source: docs/check-a-report.md#challenge.
"""

import msgspec

from owa_bench.errors import CheckFailure
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan
from owa_bench.records.witness import Witness, fault


def seed_nonce(layout: RunLayout, plan: Plan, plan_digest: str) -> str | None:
    """Return what is mixed into a run's master before seeds derive from it.

    Args:
        layout: The run directory.
        plan: Its plan.
        plan_digest: Of the plan, in hex.

    Returns:
        The challenger's nonce, without one that of the plan, None: nothing.

    Raises:
        CheckFailure: The plan waits for a challenge, or holds two.
    """
    if not plan.challenger:
        return plan.verifier_nonce
    nonces = {
        witness.nonce
        for witness in _witnesses(layout)
        if (witness.kind, witness.place) == ("nonce", plan.challenger)
        and not fault(witness, plan_digest)
    }
    if len(nonces) > 1:
        raise CheckFailure(
            f"{layout.witness} must hold one challenge of key {plan.challenger[:16]}, "
            f"got {len(nonces)}: remove those that the verifier did not send."
        )
    if not nonces:
        raise CheckFailure(
            f"{layout.root} waits for the challenge of key {plan.challenger[:16]}: its "
            "seeds do not exist before. Ask the verifier's service (`owa-bench "
            f"challenge {layout.root} --url URL`), or have the verifier run `owa-bench "
            f"challenge {layout.root} --key NAME`."
        )
    return nonces.pop()


def _witnesses(layout: RunLayout) -> list[Witness]:
    """Return the witnesses that read; `verify` names the others."""
    found = []
    for path in sorted(layout.witness.glob("*.json")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Witness))
        except (OSError, msgspec.DecodeError):
            continue
    return found
