"""Named random streams from one seed, and keyed seeds from one master.

Nothing else in the project makes a generator. A stream is named by a path, so adding
one never shifts another:

    instance seed --"base"--> world      --"drift"--> operators and their parameters
                  --"noise", repeat--> flaky answers      --"agent"--> tie breaks

Worlds draw only with `random`, `integers`, `permutation` and `choice`: other distributions go
through transcendental functions whose last bit differs between CPUs.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from owa_bench.canonical import keyed_digest, sha256

SEED_BITS = 63
# Set in the seeds of practice pairs and in no other keyed seed, so that an instance
# alone tells whether its world may use held-out words (it may not, in practice).
PRACTICE_BIT = 1 << 62
PRACTICE = "practice/"
_MASK = (1 << SEED_BITS) - 1
T = TypeVar("T")


def derive(root: int, *path: str | int) -> int:
    """Return the 63-bit child seed of `root` at `path`."""
    text = "/".join(str(part) for part in (root, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") & _MASK


def stream(root: int, *path: str | int) -> np.random.Generator:
    """Return the generator named `path` under `root`; equal on every machine."""
    return np.random.Generator(np.random.PCG64(derive(root, *path)))


def pick(options: Sequence[T], rng: np.random.Generator) -> T:
    """Return one of several options, drawn uniformly with one call of `integers`.

    Args:
        options: at least one.
        rng: the stream to draw from.
    """
    return options[int(rng.integers(len(options)))]


def reseat(rng: np.random.Generator, root: int, *path: str | int) -> np.random.Generator:
    """Put a generator of `stream` at the start of a stream of its own at `path`.

    Its state is a SHA-256 of root and path, so its numbers are other than those of `stream`. For
    envs that begin thousands of episodes a second: it costs a fifth.

    Args:
        rng: a generator that `stream` made; changed in place.
        root: the seed.
        path: the name of the stream under it.
    Returns: `rng` itself.
    """
    text = "/".join(map(str, ("reseat", root, *path)))
    digest = hashlib.sha256(text.encode()).digest()
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {
            "state": int.from_bytes(digest[:16], "big"),
            "inc": int.from_bytes(digest[16:], "big") | 1,
        },
        "has_uint32": 0,
        "uinteger": 0,
    }
    return rng


def instance_seed(master: bytes, pair: str) -> int:
    """Return the keyed seed of a pair: HMAC(master, "seed" | pair), cut to 62 bits.

    The 63rd bit says whether the pair is one of practice (its name begins so). Paired arms share
    the pair and so meet the same world; practice pairs carry another name and so never meet a
    checkpoint's.

    Args:
        master: the run's secret.
        pair: the pair's name.
    Returns: A seed of 63 bits.
    """
    number = int.from_bytes(keyed_digest(master, "seed", pair)[:8], "big")
    seed = number & (PRACTICE_BIT - 1)
    return seed | PRACTICE_BIT if pair.startswith(PRACTICE) else seed


def is_practice(seed: int) -> bool:
    """Return whether an instance's seed is that of a practice pair."""
    return bool(seed & PRACTICE_BIT)


def mixed_master(master: bytes, verifier_nonce: str | None) -> bytes:
    """Return the key that seeds and redaction derive from.

    A verifier who gives a nonce after the commitment is published keeps the runner from choosing a
    master by the worlds it draws.

    Args:
        master: the run's secret.
        verifier_nonce: what the verifier gave; None: nothing.
    Returns: The master, with the nonce mixed in where there is one.
    """
    if verifier_nonce is None:
        return master
    return keyed_digest(master, "verifier", verifier_nonce)


def redact_key(master: bytes) -> bytes:
    """Return the key under which secrets are replaced in records."""
    return keyed_digest(master, "redact")


def commitment(nonce: bytes, master: bytes) -> str:
    """Return what a plan publishes before episode 0.

    Args:
        nonce: random bytes, kept secret until the master is revealed.
        master: the run's secret.
    Returns: H(nonce | master) in hex.
    """
    return sha256(nonce + b"|" + master)


def fresh_bytes(count: int = 32) -> bytes:
    """Return `count` bytes from the system, for masters and nonces only."""
    return secrets.token_bytes(count)


def agent_seed(instance_root: int, repeat: int, seat: str = "") -> int:
    """Return the seed an agent may break ties with; paired arms share it.

    Args:
        instance_root: the instance's seed.
        repeat: which repetition of the instance.
        seat: of a crew, "" where there is one.
    Returns: A seed of 63 bits.
    """
    if seat:
        return derive(instance_root, "agent", repeat, seat)
    return derive(instance_root, "agent", repeat)
