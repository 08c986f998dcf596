"""Nothing of a holdout can be read from an agent's process: a canary, looked for.

Whoever has the key of an episode's laboratory can derive each of its holdouts. The
agent is told its first eight bytes and looks for the others in every file, environment
and process that it can open.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from owa_bench.records.instance import Instance
from owa_bench.records.layout import RunLayout
from owa_bench.reports.read import bundle
from owa_bench.runs.laboratory_process import laboratory_key
from owa_bench.seeding import instance_seed
from tests.builders.sandboxes import needs_sandbox

ROOT = Path(__file__).parents[2]
MASTER = bytes(range(32))
HINT = 8  # bytes
pytestmark = [pytest.mark.slow, needs_sandbox]


def key_of(pair: str) -> bytes:
    """Return the key of the laboratory of a pair's first repeat."""
    seed = instance_seed(MASTER, pair)
    first = Instance(suite="selfrev", version=2, family="memory", tier=1, seed=seed)
    return laboratory_key(first)


def found_by(place: Path, sandbox: str) -> dict[str, object]:
    """Return what the agent found on one episode of SelfRev."""
    shutil.copy(ROOT / "tests" / "builders" / "canary_agent.py", place)
    key = key_of("selfrev@2/memory/T1/0000")
    told = {"hint": key[:HINT].hex(), "rest": len(key) - HINT}
    (place / "canary.json").write_text(json.dumps(told))
    words = "--suite selfrev --family memory --tier 1 --delta 0 --interventions 0"
    done = subprocess.run(
        [
            *(sys.executable, ROOT / "benchmarks" / "record_runs.py"),
            *("--under", MASTER.hex(), "run", "--out", "run", *words.split()),
            *("--agent", "canary_agent.py", "--sandbox", sandbox),
            *("--act-seconds", "120"),
        ],
        cwd=place,
        env=os.environ | {"OWA_BENCH_HOME": str(place / "data")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (place / "run").exists(), done.stderr
    [trace] = bundle.read(RunLayout(place / "run").root).traces()
    assert laboratory_key(trace.start.instance) == key, "the canary is of this episode"
    said = re.search(r"\{.*\}", trace.end.reason)
    assert said, (trace.end.reason, done.stderr)
    found: dict[str, object] = json.loads(said[0])
    found["there"] = key.hex() in found["found"]  # type: ignore[operator]
    return found


def test_the_canary_is_nowhere_in_a_sandbox(tmp_path: Path) -> None:
    found = found_by(tmp_path, "namespaces")
    assert found["found"] == []
    assert found["read"], "it could read something"


def test_without_a_sandbox_the_same_agent_finds_it(tmp_path: Path) -> None:
    """Or the test above would show nothing."""
    assert found_by(tmp_path, "none")["there"]
