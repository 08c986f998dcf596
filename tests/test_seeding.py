import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench import seeding
from owa_bench.canonical import keyed_digest, sha256

ROOT = 2**63 - 1


@given(st.integers(0, ROOT), st.lists(st.text(max_size=6), max_size=3))
def test_child_seed_is_63_bits_of_the_path(root: int, path: list[str]) -> None:
    child = seeding.derive(root, *path)
    assert 0 <= child < 2**63
    text = "/".join([str(root), *path])
    whole = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    assert child == whole % 2**63


def test_streams_are_equal_on_every_machine() -> None:
    drawn = seeding.stream(7, "drift", 0).integers(0, 2**32, size=4).tolist()
    assert drawn == [392267412, 1928158874, 108324424, 3228751701]
    assert seeding.stream(7, "base").random() == seeding.stream(7, "base").random()


def test_streams_have_names_of_their_own() -> None:
    names = [("base",), ("drift",), ("noise", 0), ("noise", 1), ("agent",)]
    first = {seeding.derive(7, *name) for name in names}
    assert len(first) == len(names)
    assert seeding.agent_seed(7, 0) != seeding.agent_seed(7, 1)
    assert seeding.agent_seed(7, 0) == seeding.derive(7, "agent", 0)


def test_drawing_from_one_stream_shifts_no_other() -> None:
    first = seeding.stream(7, "base")
    first.random(1_000)
    again = seeding.stream(7, "drift").random(3)
    assert np.array_equal(again, seeding.stream(7, "drift").random(3))


def test_instance_seed_is_keyed_by_master_and_pair() -> None:
    seed = seeding.instance_seed(b"m", "p")
    whole = int.from_bytes(keyed_digest(b"m", "seed", "p")[:8], "big")
    assert seed == whole % 2**63
    assert seed != seeding.instance_seed(b"m", "q")
    assert seed != seeding.instance_seed(b"n", "p")


def test_redact_key_is_not_a_seed() -> None:
    assert seeding.redact_key(b"m") == keyed_digest(b"m", "redact")
    assert seeding.redact_key(b"m") != keyed_digest(b"m", "seed", "redact")


def test_commitment_hides_and_binds() -> None:
    assert seeding.commitment(b"n", b"m") == sha256(b"n|m")
    assert seeding.commitment(b"n", b"m") != seeding.commitment(b"o", b"m")
    assert seeding.commitment(b"n", b"m") != seeding.commitment(b"n", b"o")


@pytest.mark.parametrize("nonce", ["", "verifier"])
def test_verifiers_nonce_changes_every_seed(nonce: str) -> None:
    assert seeding.mixed_master(b"m", None) == b"m"
    mixed = seeding.mixed_master(b"m", nonce)
    assert mixed == keyed_digest(b"m", "verifier", nonce)
    assert seeding.instance_seed(mixed, "p") != seeding.instance_seed(b"m", "p")


def test_fresh_bytes_are_fresh() -> None:
    assert len(seeding.fresh_bytes()) == 32
    assert seeding.fresh_bytes() != seeding.fresh_bytes()
