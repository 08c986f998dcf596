"""Random numbers of lanes: number k of a lane is a hash of (seed, k).

A lane draws the same numbers whatever the other lanes do, on any machine. The hash is the finaliser
of SplitMix64 applied twice.
"""

import numba
import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_REST = np.uint64(64 - 24)  # of a number's bits 24 count
_UNIT = 2.0**-24

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@compiled
def hash64(x):
    """Return a hash of a 64-bit number, bit by bit unlike its input."""
    x = (x ^ (x >> _SHIFTS[0])) * _FIRST
    x = (x ^ (x >> _SHIFTS[1])) * _SECOND
    return x ^ (x >> _SHIFTS[2])


@compiled
def child_seed(seed, path):
    """Return a seed's child.

    Args:
        seed: 64 bits.
        path: A number of it, at least 0.
    Returns: The child's 64 bits.
    """
    return hash64(seed + hash64(np.uint64(path) * _GOLDEN))


@compiled
def uniform(seed, number):
    """Return one number of a seed.

    Args:
        seed: 64 bits.
        number: Which one, at least 0.
    Returns: A float in [0, 1), of 24 bits.
    """
    hashed = hash64(hash64(seed) + np.uint64(number) * _GOLDEN)
    return np.float64(hashed >> _REST) * _UNIT
