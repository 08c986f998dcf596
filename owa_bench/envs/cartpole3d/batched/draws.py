"""Random numbers that depend on a lane's seed and a counter, and on nothing else.

A lane draws the same numbers whatever the other lanes do, on any device: number k of a
lane is a hash of (seed, k). The hash is the finaliser of SplitMix64 applied twice.
"""

import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed number
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB
_BITS = 24  # of a uniform number: exact in float32


def mixed(x: Tensor) -> Tensor:
    """Return a hash of 64-bit integers, bit by bit unlike its input."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        x = (x ^ _down(x, shift)) * factor
    return x ^ _down(x, 31)


def uniform(seeds: Tensor, first: int, count: int, dtype: torch.dtype) -> Tensor:
    """Return numbers `first` .. `first + count` of each seed, uniform in [0, 1).

    Shapes: seeds (lanes,) of int64; (count, lanes).
    """
    counters = torch.arange(first, first + count, device=seeds.device)[:, None]
    hashed = mixed(mixed(seeds)[None] + counters * _GOLDEN)
    return _down(hashed, 64 - _BITS).to(dtype) * 2.0**-_BITS


def derived(seeds: Tensor, path: int | Tensor) -> Tensor:
    """Return each lane's child seed at `path`."""
    return mixed(seeds + mixed(torch.as_tensor(path, device=seeds.device) * _GOLDEN))


def _down(x: Tensor, bits: int) -> Tensor:
    """Return x shifted right without its sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
