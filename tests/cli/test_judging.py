"""`report`, `verify` and `recompute` on runs that are whole, half, torn or none."""

import json
import re
import shutil

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from owa_bench.runs.store import keys
from owa_bench.runs.store.files import shard_paths


def tear(run):
    (shard,) = shard_paths(run)
    shard.write_bytes(shard.read_bytes()[:-40])


def flip(run):
    (shard,) = shard_paths(run)
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 0xFF
    shard.write_bytes(data)


def lose_blob(run):
    for path in run.blobs.glob("*.pack"):
        path.unlink()


def lose_leaves(run):
    run.leaves.unlink()


def lose_envelope(run):
    run.plan_envelope.unlink()


def lose_shards(run):
    shutil.rmtree(run.shards)


def lose_plan(run):
    run.plan.unlink()


def cut_plan(run):
    run.plan.write_bytes(run.plan.read_bytes()[:100])


def lose_protocol(run):
    run.protocol.unlink()


def test_report_prints_axes_and_the_place_of_the_page(owa, run):
    said = owa("report run")
    assert said.code == 0
    assert "fixed: not placed" in said.out
    assert f"Report: {run.page.resolve()}" in said.out
    assert owa("report run").out == said.out


def test_compare_prints_a_table_a_measure_and_refuses_other_arms(owa, run):
    said = owa("compare run:fixed run:noop")
    assert said.code == 0
    for words in ("Q: ", "success:", "own cost:", "class D", "Second minus"):
        assert words.lower() in said.out.lower()
    costs = said.out[said.out.index("own cost:") :].splitlines()
    assert "ratio" in costs[1] + costs[2]
    assert re.search(r"^all +\d+ +\d+ +0\.\d{4} +0\.\d{4} ", "\n".join(costs), re.M), costs
    found = json.loads(owa("compare run:fixed run:noop --json").out)
    assert {row["measure"] for row in found["figures"]} == {"quality", "success", "help", "cost"}
    money = next(row for row in found["figures"] if row["measure"] == "cost")
    assert re.search(rf"^all +\d+ +\d+ +{money['first']:.4f} ", "\n".join(costs), re.M)
    assert 0.0 < money["first"] < 1.0  # USD
    wrong = owa("compare run:fixed run:nobody")
    assert wrong.code == 2
    assert "must name one of the arms" in wrong.err


def test_compare_writes_a_page_with_what_report_prints(owa, run, place):
    printed = owa("report run").out
    said = owa("compare run --html page.html")
    assert said.code == 0, said.err
    assert "A: fixed, noop. 2 agents on the same terms and the same worlds." in said.out
    assert f"Page: {place / 'page.html'}" in said.out
    page = " ".join(re.sub(r"<[^>]+>", " ", (place / "page.html").read_text()).split())
    assert "http" not in page
    costs = re.findall(r"Its own cost: [\d.]+ USD \(([\d.]+ USD) an episode", printed)
    counts = re.findall(r"(?:it does|changes and) (\d+ of \d+)", printed)
    assert costs
    assert len(counts) > 2, printed
    assert all(words in page for words in [*costs, *counts, "not placed (no battery"])
    (found,) = json.loads(owa("compare run:fixed --html page.html --json").out)["agents"]
    assert found["label"] == "fixed"


def test_compare_refuses_what_it_cannot_do(owa, run, place):
    for words in ("run:fixed", "run:fixed run:noop run"):
        wrong = owa(f"compare {words}")
        assert wrong.code == 2
        assert "takes any number" in wrong.err
    for path in ("nowhere/page.html", "."):
        assert "must be a file in a folder that exists" in owa(f"compare run --html {path}").err
    gone = owa("compare run gone --html page.html")
    assert gone.code == 2
    assert gone.err.startswith("error: gone cannot be read: ")
    assert gone.err.count("\n") == 1
    assert not (place / "page.html").exists()


def test_report_says_which_gates_the_next_level_lacks(owa, run):
    lines = owa("report run --full").out.splitlines()
    start = lines.index(next(x for x in lines if x.startswith("gates that ")))
    assert lines[start].split()[2] == "AAI-1"
    rows = [line.split() for line in lines[start + 2 :]]
    assert any(row[0] == "T" and "EVIDENCE" in row for row in rows if row)


def test_a_campaign_names_why_there_is_no_kappa(owa):
    flags = "--suite toolquest --family restock --tier 1 --delta 0 --agent agentic"
    assert owa(f"run --out days {flags} --days 2 --in-process").code == 0
    said = owa("report days --full").out
    assert "too few days: 0 consecutive" in said
    assert "not computable: no evidence on" in said


def test_json_and_nothing_else(owa, run):
    assert len(json.loads(owa("report run --json").out)["verdicts"]) == 2
    for verb in ("verify", "recompute"):
        checks = json.loads(owa(f"{verb} run --json").out)
        assert {check["ok"] for check in checks} == {True}


def test_whole_run_holds(owa, run):
    assert owa("verify run").code == 0
    said = owa("recompute run")
    assert said.code == 0
    assert "every figure equals the signed one exactly" in said.out


def test_a_level_that_is_required(owa, run):
    said = owa("report run --require AAI-1")
    assert said.code == 1
    assert "not reached by: fixed, noop" in said.err
    wrong = owa("report run --require 9")
    assert wrong.code == 2
    assert "`--require` must be one of AAI-0 .. AAI-5, got '9'" in wrong.err


def test_keys_that_are_wrong(owa, run, place):
    assert "No key is called `mine`" in owa("report run --key mine").err
    assert owa("keygen mine").code == 0
    said = owa("report run --key mine")
    assert said.code == 2
    assert "must be the plan's key" in said.err
    home = place / "home" / ".local" / "share" / "owa-bench"
    other = keys.public_hex(keys.load(home, "mine"))
    assert owa(f"verify run --public-key {other}").code == 1
    assert "must be 64 hex digits" in owa("verify run --public-key abc").err
    assert owa("verify run --verifier-key zz").code == 2


def test_the_key_that_signed_is_pinned_by_hex_or_by_its_file(owa, run, place):
    folder = place / "home" / ".local" / "share" / "owa-bench"
    hexed = keys.public_hex(keys.load(folder))
    (place / "signer.pub").write_bytes((folder / "keys" / "default.pub").read_bytes())
    (place / "signer.hex").write_text(f"{hexed}\n")
    for given in (hexed, "signer.pub", "signer.hex"):
        said = owa(f"verify run --public-key {given}")
        assert said.code == 0
        assert "the key that you gave" in said.out
    said = owa("verify run").out
    assert "which the run names itself: nothing was changed since it was signed" in said
    assert "--   left open        V2: the chain is whole and its report signed; not shown: " in said
    [left] = [x for x in json.loads(owa("verify run --json").out) if x["name"] == "left open"]
    assert left["skipped"]
    assert left["detail"] in said


def test_files_that_are_no_public_key_are_named_with_the_rule(owa, run, place):
    folder = place / "home" / ".local" / "share" / "owa-bench" / "keys"
    bad = {
        "private.pem": ((folder / "default.pem").read_bytes(), "must be a public key, and this"),
        "curve.pub": (
            X25519PrivateKey.generate()
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            "must be 64 hex digits, as keygen prints, or the file NAME.pub",
        ),
        "torn.pub": ((folder / "default.pub").read_bytes()[:40], "must be 64 hex digits"),
        "binary.pub": (bytes(range(256)), "must be 64 hex digits"),
        "empty.pub": (b"", "must be 64 hex digits"),
        "anybody.hex": (b"01" + b"00" * 31, "must not be of small order"),
    }
    for name, (data, rule) in bad.items():
        (place / name).write_bytes(data)
        said = owa(f"verify run --public-key {name}")
        assert said.code == 2
        assert f"`--public-key` {rule}" in said.err
        assert f"got '{name}'" in said.err
    assert "got 'gone.pub'" in owa("verify run --public-key gone.pub").err


@pytest.mark.parametrize(
    ("harm", "check"),
    [
        (tear, "chain"),
        (lose_blob, "blobs"),
        (lose_leaves, "layout"),
        (lose_envelope, "plan signature"),
        (lose_shards, "plan coverage"),
    ],
)
def test_harm_is_named_by_its_check_and_nothing_is_signed_over_it(owa, run, harm, check):
    harm(run)
    said = owa("verify run")
    assert said.code == 1
    assert f"FAIL {check}" in said.out
    assert check in said.err
    signed = run.report_envelope.read_bytes()
    refused = owa("report run")
    assert refused.code in (1, 2)
    assert "error: " in refused.err
    assert run.report_envelope.read_bytes() == signed


def test_an_attempt_that_does_not_read_is_named_and_the_others_are_judged(owa, run):
    flip(run)
    said = owa("verify run")
    assert said.code == 1
    assert "FAIL frames" in said.out
    made = owa("report run")
    assert made.code == 0
    assert "does not read and counts as a failure of quality 0" in made.out
    assert owa("recompute run").code == 0
    assert owa("verify run").code == 1


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lose_plan, "holds no plan.json"),
        (cut_plan, "plan.json must be a"),
        (lose_protocol, "must hold protocol.toml"),
    ],
)
@pytest.mark.parametrize("verb", ["report", "verify", "recompute"])
def test_half_a_directory(owa, run, harm, words, verb):
    harm(run)
    said = owa(f"{verb} run")
    no_run = harm is lose_plan
    assert said.code == (2 if no_run or verb != "verify" else 1)
    assert words in said.err
    assert not said.out


@pytest.mark.parametrize("verb", ["report", "verify", "recompute", "replay", "escrow reveal"])
def test_what_is_no_run(owa, place, verb):
    (place / "empty").mkdir()
    (place / "file").write_text("")
    for name in ("gone", "empty", "file"):
        said = owa(f"{verb} {name}")
        assert said.code == 2
        assert name in said.err
        assert said.err.count("\n") == 1


def test_a_run_half_played(owa):
    flags = "--suite toolquest --family restock --tier 1 --delta 0 --agent noop"
    assert owa(f"run --out half {flags} --plan-only").code == 0
    said = owa("report half")
    assert said.code == 2
    assert "half played: 2 of 2 planned episodes were never tried" in said.err
    assert owa("verify half").code == 1
    assert "holds no report" in owa("recompute half").err
    assert owa("report half --unsigned").code == 0
    assert owa("recompute half").code == 0
