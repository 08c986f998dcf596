import json
import shutil

import pytest

from owa_bench.canonical import canonical_json, peek, seal
from owa_bench.records.layout import CHECKPOINT_TYPE, RunLayout
from owa_bench.report import bundle
from owa_bench.report.evidence_checks import check_evidence
from owa_bench.run.plan.campaign import Campaign
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.request import Request, RunOptions
from owa_bench.run.play import batch
from owa_bench.run.store import keys


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    home, out = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("out") / "run"
    draw = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,))
    request = Request(agents=("noop",), campaign=Campaign(checkpoint=(draw,), days=2))
    batch.play(request, out, RunOptions(home=home, in_process=True))
    return RunLayout(out), keys.ensure(home)


@pytest.fixture
def run(campaign, tmp_path):
    return RunLayout(shutil.copytree(campaign[0].root, tmp_path / "run"))


def days(layout):
    checks = {c.name: c for c in check_evidence(bundle.read(layout.root))}
    return checks["days"]


def test_an_honest_campaign_has_every_day_signed(run):
    assert days(run).ok
    assert days(run).detail == "2 simulated days, each signed"


def test_a_day_without_checkpoint_is_named(run):
    (run.receipts / "day-0001.dsse.json").unlink()
    assert days(run).detail.startswith("day 1: no signed checkpoint")


def test_a_checkpoint_by_another_key_is_named(run):
    path = run.receipts / "day-0000.dsse.json"
    path.write_bytes(seal(CHECKPOINT_TYPE, peek(path.read_bytes()), None))
    assert days(run).detail.startswith("day 0: no signed checkpoint")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"evidence_root": "0" * 64}, "another root"),
        ({"day": 7}, "another plan or day"),
        ({"attempts": []}, "made after it was signed"),
    ],
)
def test_a_checkpoint_that_says_something_else_is_named(run, campaign, change, fault):
    path = run.receipts / "day-0000.dsse.json"
    document = {**json.loads(peek(path.read_bytes())), **change}
    path.write_bytes(seal(CHECKPOINT_TYPE, canonical_json(document), campaign[1]))
    assert not days(run).ok
    assert fault in days(run).detail
