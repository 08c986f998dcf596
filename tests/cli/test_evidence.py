"""`keygen`, `escrow`, `witness` and `replay`."""

import json
import re

import pytest

from owa_bench.records.layout import RunLayout
from tests.builders.sandboxes import needs_namespaces


def test_keygen_never_overwrites(owa):
    said = owa("keygen verifier --json")
    public = json.loads(said.out)["public_hex"]
    assert re.fullmatch("[0-9a-f]{64}", public)
    again = owa("keygen verifier")
    assert again.code == 2
    assert "choose another name" in again.err
    # Who signed with a key that `run` made was told its public key by nothing.
    assert f"its public key is {public}" in again.err
    assert owa("keygen a/b").code == 2


def test_escrow_commit_prints_the_commitment(owa):
    assert re.fullmatch("[0-9a-f]{64}\n", owa("escrow commit").out)
    found = json.loads(owa("escrow commit --json").out)
    assert len(found["commitment"]) == 64


def test_replay_waits_for_the_reveal(owa, run):
    early = owa("replay run")
    assert early.code == 2
    assert "owa-bench escrow reveal" in early.err
    assert json.loads(owa("escrow reveal run --json").out).keys() == {"master", "nonce"}
    assert owa("escrow reveal run").code == 0
    assert "No key is called `second`" in owa("replay run --sign --key second").err
    assert owa("keygen second").code == 0
    said = owa("replay run --sign --key second")
    assert said.code == 0
    assert "4 of 4 episodes happened again" in said.out
    found = json.loads(owa("replay run --episodes 1 --json").out)
    assert found["passed"] is True
    assert found["attempts"][0]["outcome"] == "same"
    assert owa("replay run --episodes 0").code == 2


def test_reveal_without_the_master(owa, run, monkeypatch, tmp_path):
    monkeypatch.setenv("OWA_BENCH_HOME", str(tmp_path / "elsewhere"))
    said = owa("escrow reveal run")
    assert said.code == 2
    assert "No master lies in" in said.err


def test_a_reveal_that_was_edited(owa, run):
    run.reveal.write_text('{"master": "00", "nonce": "00"}')
    said = owa("replay run")
    assert said.code == 1
    assert "is not what the commitment" in said.err
    run.reveal.write_text("{")
    assert owa("replay run").code == 2


@pytest.mark.parametrize(
    ("ways", "code", "words"),
    [
        ("", 2, "Name one way to witness"),
        ("--rfc3161 http://x/ --nonce 0123456789", 2, "Name one way to witness"),
        ("--nonce short", 2, "must have at least 8 characters, got 'short'"),
        ("--rfc3161 nonsense", 2, "must be an http:// or https:// address"),
        ("--rfc3161 http://127.0.0.1:9/", 1, "gave no token"),
    ],
)
def test_ways_to_witness_that_are_none(owa, run, ways, code, words):
    said = owa(f"witness run {ways}")
    assert said.code == code
    assert words in said.err
    assert not run.witness.exists()


def test_a_witness_that_comes_late_is_kept_and_told(owa, run):
    said = owa("witness run --nonce 0123456789")
    assert said.code == 0
    assert "4 attempts were already on record" in said.err
    assert json.loads(owa("witness run --nonce 0123456789 --json").out)["attempts"] == 4


@needs_namespaces
def test_a_witnessed_plan_stands_higher(owa, place):
    flags = "--suite toolquest --family restock --tier 1 --delta 0 --agent noop"
    assert owa(f"run --out x {flags} --plan-only").code == 0
    assert "own key" in owa("witness x --nonce 0123456789").err
    key = json.loads(owa("keygen verifier --json").out)["public_hex"]
    assert not owa("witness x --nonce 0123456789 --key verifier").err
    assert owa("run --out x --resume").code == 0
    (place / "trusted.toml").write_text(
        f'name = "mine"\n[[verifier]]\nname = "a lab"\nkey = "{key}"\n'
    )
    assert owa("report x --registry trusted.toml").code == 0
    assert "V2 now; V3 when signed" in owa("verify x").out
    said = owa("verify x --registry trusted.toml")
    assert said.code == 0
    assert "V3 now" in said.out
    (place / "other.toml").write_text('name = "other"\n')
    assert owa("verify x --registry other.toml").code == 1
    (place / "bad.toml").write_text('name = "b"\n[[verifier]]\nname = "x"\nkey = "1"\n')
    for words in ("verify x --registry bad.toml", "report x --registry bad.toml"):
        assert "bad.toml: verifier.0.key" in owa(words).err
    assert "must be a file" in owa("verify x --registry gone.toml").err
    assert RunLayout(place / "x").witness.is_dir()


def test_a_folder_named_like_markup_is_printed_as_it_is(owa, run, monkeypatch):
    assert "Revealed in [b]/../run/reveal.json." in named(owa, run, monkeypatch).out
    monkeypatch.setenv("OWA_BENCH_HOME", "[/red]home")
    said = owa("keygen other")
    assert said.code == 0
    assert "private key  [/red]home/keys/other" in said.out


def named(owa, run, monkeypatch):
    """Reveal a run by a path that has markup in it."""
    (run.root.parent / "[b]").mkdir()
    return owa("escrow reveal ./[b]/../run")
