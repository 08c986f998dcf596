"""Gate: the cognitive micro-batteries (eq 33) reach their thresholds."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult, GateStatus
from owa_bench.scoring.gate import Findings, Reading, result, verdict


class CognitiveGate:
    """Reads `numbers` (VRP@5, HR@5) and the norms (span, delayed recall)."""

    name = "cognitive"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return FAIL where a part fails, NO EVIDENCE where one has none."""
        norms, numbers, held = findings.protocol.norms, rule.numbers, findings.cognition
        false = held.get("hallucination", Reading(None, None))
        parts = {
            "VRP@5": (held.get("vrp"), numbers.get("vrp", 0.0)),
            "1 - HR@5": (
                Reading(_less(false.value), _less(false.upper)),
                1.0 - numbers.get("hallucination", 0.0),
            ),
            "span": (held.get("span"), norms.span),
            "delayed recall": (held.get("delayed"), norms.delayed_recall),
        }
        found = {
            name: self._status(name, reading, required, findings)
            for name, (reading, required) in parts.items()
        }
        lacking = [name for name, status in found.items() if status == "NO EVIDENCE"]
        failed = [name for name, status in found.items() if status == "FAIL"]
        status: GateStatus = "FAIL" if failed else "PASS"
        if lacking and not failed:
            status = "NO EVIDENCE"
        return result(
            rule,
            "cognitive",
            status,
            required=(
                f"VRP@5 >= {numbers.get('vrp', 0):g}, "
                f"HR@5 <= {numbers.get('hallucination', 0):g}, "
                f"span >= {norms.span:g}, delayed recall >= {norms.delayed_recall:g}"
            ),
            measured=self._words(parts),
            reason=self._reason(failed, lacking),
            evidence=findings.evidence if not lacking else (),
        )

    def _status(
        self, name: str, reading: Reading | None, required: float, findings: Findings
    ) -> GateStatus:
        """Return one part's status; a span is a count and has no slack."""
        if reading is None or reading.value is None:
            return "NO EVIDENCE"
        lower = reading.value if name == "span" else reading.lower
        return verdict(reading.value, lower, required, findings.protocol)

    def _words(self, parts: dict[str, tuple[Reading | None, float]]) -> str:
        known = {
            name: reading.value
            for name, (reading, _) in parts.items()
            if reading is not None and reading.value is not None
        }
        return ", ".join(f"{n} {v:.3g}" for n, v in known.items()) or "nothing"

    def _reason(self, failed: list[str], lacking: list[str]) -> str:
        words = [f"too low: {', '.join(failed)}"] if failed else []
        if lacking:
            words.append(f"no evidence on {', '.join(lacking)}")
        return "; ".join(words)


def _less(value: float | None) -> float | None:
    return None if value is None else 1.0 - value


GATE = CognitiveGate()
