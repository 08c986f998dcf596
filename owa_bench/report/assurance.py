"""The assurance ladder: how far a run can be trusted, from what is in its folder.

    V0  unsigned draft
    V1  chain and root consistent
    V2  signed, figures recomputed from the events
    V3  plan witnessed before episode 0
    V4  replay passed by a second party
    V5  executed by the verifier, with the verifier's seeds

Source: `traces-and-audit.md` section 4.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.canonical import key_id, peek, unseal
from owa_bench.errors import CheckFailure, TraceError
from owa_bench.records import witness
from owa_bench.records.layout import RECEIPT_TYPE
from owa_bench.records.witness import Receipt, Witness
from owa_bench.report.bundle import Bundle
from owa_bench.report.check import Check
from owa_bench.report.contents import Assurance, Rung


class Testimony(NamedTuple):
    """A witness or receipt in the run directory.

    `fault` says what is wrong with it, `short` why a sound one does not lift the
    level; it counts when both are empty.
    """

    file: str
    text: str
    fault: str = ""
    short: str = ""


_TEXTS = (
    ("V0", "unsigned draft"),
    ("V1", "chain and root consistent"),
    ("V2", "signed and recomputed"),
    ("V3", "plan witnessed before episode 0"),
    ("V4", "replay passed by a second party"),
    ("V5", "executed by the verifier, with the verifier's seeds"),
)


def assess(
    bundle: Bundle,
    evidence: Sequence[Check],
    *,
    signed: bool,
    verifier: bytes | None = None,
) -> Assurance:
    """Return the ladder as the run directory supports it now.

    `evidence` are the checks of the raw evidence; `verifier` is the public key of the
    party that asks, which alone can know that it executed the run itself.
    """
    broken = [check.name for check in evidence if not check.ok]
    found = (
        (True, "the least: figures from a run directory"),
        (not broken, f"fails: {', '.join(broken)}" if broken else _all(evidence)),
        (signed, f"key {_own_key(bundle)}" if signed else "not signed"),
        _attested(witnesses(bundle), "no witness of the plan"),
        _attested(receipts(bundle), "no signed replay"),
        _executed(bundle, verifier),
    )
    rungs = tuple(
        Rung(name=name, text=text, met=met, evidence=why)
        for (name, text), (met, why) in zip(_TEXTS, found, strict=True)
    )
    level = 0
    while level + 1 < len(rungs) and rungs[level + 1].met:
        level += 1
    return Assurance(level=level, rungs=rungs)


def witnesses(bundle: Bundle) -> tuple[Testimony, ...]:
    """Return every witness of the plan, checked against it."""
    found = sorted(bundle.layout.witness.glob("*.json"))
    return tuple(_witness(bundle, path) for path in found)


def receipts(bundle: Bundle) -> tuple[Testimony, ...]:
    """Return every signed replay, checked against the run."""
    found = sorted(bundle.layout.receipts.glob("replay*.dsse.json"))
    return tuple(_receipt(bundle, path) for path in found)


def _witness(bundle: Bundle, path: Path) -> Testimony:
    """Return one witness."""
    try:
        said = msgspec.json.decode(path.read_bytes(), type=Witness)
    except (OSError, msgspec.DecodeError) as error:
        return Testimony(path.name, "", f"does not read: {error}")
    text = " ".join(part for part in (said.kind, said.claimed or "") if part)
    fault = witness.fault(said, bundle.plan_digest)
    short = ""
    if said.attempts:
        short = f"was made when {said.attempts} attempts had begun"
    elif said.place == bundle.plan.public_key:
        short = "is signed by the run's own key, not by a verifier"
    return Testimony(path.name, text, fault, short)


def _receipt(bundle: Bundle, path: Path) -> Testimony:
    """Return one receipt."""
    try:
        said = msgspec.json.decode(peek(path.read_bytes()), type=Receipt)
        key = bytes.fromhex(said.public_key)
        unseal(path.read_bytes(), key, RECEIPT_TYPE)
    except (OSError, CheckFailure, ValueError) as error:
        return Testimony(path.name, "", f"is no signed receipt: {error}")
    text = f"{len(said.episodes)} episodes replayed by key {key_id(key)}"
    try:
        return Testimony(path.name, text, _unlike(bundle, said), _short(bundle, said))
    except TraceError as error:
        return Testimony(path.name, text, str(error))


def _unlike(bundle: Bundle, said: Receipt) -> str:
    """Return what is wrong with a signed receipt, "" if nothing."""
    if said.plan_digest != bundle.plan_digest:
        return "is of another plan"
    if (said.evidence_root, said.replay_root) != (
        bundle.evidence_root,
        bundle.replay_root,
    ):
        return "is of other episodes"
    if not said.passed or said.failed:
        return f"says that {len(said.failed)} episodes did not replay"
    return ""


def _short(bundle: Bundle, said: Receipt) -> str:
    """Return why a sound receipt is not a second party's replay of the whole run."""
    counting = {leaf.attempt_id for leaf in bundle.counted if leaf is not None}
    left = counting - set(said.episodes) - set(said.exempt)
    if left:
        return f"leaves out {len(left)} of {len(counting)} episodes"
    if said.public_key == bundle.plan.public_key:
        return "is signed by the run's own key, not by a second party"
    return ""


def _attested(found: Iterable[Testimony], none: str) -> tuple[bool, str]:
    """Return whether one of these holds, and what they say."""
    kept = list(found)
    good = [one.text for one in kept if not one.fault and not one.short]
    bad = [f"{one.file} {one.fault or one.short}" for one in kept]
    return bool(good), "; ".join(good or bad) or none


def _executed(bundle: Bundle, verifier: bytes | None) -> tuple[bool, str]:
    """Return whether the party that asks ran this run with seeds of its own."""
    if verifier is None:
        return False, "only the verifier can say so"
    if verifier.hex() != bundle.plan.public_key:
        return False, "the plan is signed by another key than the verifier's"
    if bundle.plan.verifier_nonce is None:
        return False, "no verifier's nonce in the seeds"
    return True, "plan signed by the verifier, seeds mixed with the verifier's nonce"


def _own_key(bundle: Bundle) -> str:
    """Return the short name of the plan's key."""
    return key_id(bytes.fromhex(bundle.plan.public_key))


def _all(evidence: Sequence[Check]) -> str:
    """Return how many checks hold."""
    return f"{sum(not check.skipped for check in evidence)} checks hold"
