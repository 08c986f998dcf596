"""Many dense networks at once: one padded block of numbers, one product a layer.

A population holds networks of hidden layers of rectified units, each of its own number
and width. They are padded to the deepest and the widest; a network with fewer layers
passes through the identity, which changes nothing behind a rectifier. What a padded
place holds never changes, so each network learns and counts as if it were alone.
"""

import itertools
from collections.abc import Sequence
from copy import copy

import numpy as np
import torch
from torch import Tensor

LAYERS = 3
WIDEST = 32
Architecture = tuple[int, ...]


def architectures(count: int, *, rng: np.random.Generator) -> list[Architecture]:
    """Return random architectures: 1 to 3 layers of 1 to 32 units each.

    Source: AIQ seed, section 3.1.4 [S].
    """
    return [
        tuple(rng.integers(1, WIDEST + 1, rng.integers(1, LAYERS + 1)).tolist())
        for _ in range(count)
    ]


def size(architecture: Architecture, inputs: int, outputs: int) -> int:
    """Return how many parameters a network has, biases included.

    >>> size((2,), 10, 5)
    37
    """
    widths = (inputs, *architecture, outputs)
    return sum((a + 1) * b for a, b in itertools.pairwise(widths))


class Population:
    """Networks as tensors (networks, inputs + 1, outputs), one per layer.

    `weights` are what is learnt; the last row of a layer is its bias.
    """

    def __init__(
        self,
        networks: Sequence[Architecture],
        inputs: int,
        outputs: int,
        *,
        generator: torch.Generator,
    ) -> None:
        self.networks = list(networks)
        self.sizes = [size(one, inputs, outputs) for one in networks]
        wide = max(max(one) for one in networks)
        deep = max(len(one) for one in networks)
        shapes = [(inputs, wide), *[(wide, wide)] * (deep - 1), (wide, outputs)]
        count = len(self.networks)
        self.masks = [torch.zeros(count, i + 1, o) for i, o in shapes]
        self.fixed = [torch.zeros(count, i + 1, o) for i, o in shapes]
        self.weights = [torch.zeros(count, i + 1, o) for i, o in shapes]
        for k, one in enumerate(self.networks):
            self._fill(k, one, inputs, outputs, generator)
        for part in self.weights:
            part.requires_grad_(True)

    def scores(self, seen: Tensor, weights: Sequence[Tensor] | None = None) -> Tensor:
        """Return scores (networks, rows, outputs) of rows of (networks, rows, n).

        `weights`: others than the population's own, of the same shapes.
        """
        last = len(self.weights) - 1
        for place, mask in enumerate(self.masks):
            layer = (weights or self.weights)[place] * mask + self.fixed[place]
            seen = torch.baddbmm(layer[:, -1:], seen, layer[:, :-1])
            seen = seen if place == last else seen.relu()
        return seen

    def chosen(self, at: Sequence[int]) -> "Population":
        """Return some of the networks as they are now, as a population to act with."""
        found = copy(self)
        found.networks = [self.networks[k] for k in at]
        found.sizes = [self.sizes[k] for k in at]
        places = torch.tensor(list(at))
        found.weights = [part.detach()[places] for part in self.weights]
        found.masks = [part[places] for part in self.masks]
        found.fixed = [part[places] for part in self.fixed]
        return found

    def _fill(
        self,
        k: int,
        one: Architecture,
        inputs: int,
        outputs: int,
        generator: torch.Generator,
    ) -> None:
        """Give a network its mask and its first weights."""
        before = inputs
        deep = len(self.weights) - 1
        for place in range(deep + 1):
            width = outputs if place == deep else 0
            width = one[place] if place < len(one) else width
            if not width:
                wide = self.fixed[place].shape[2]
                self.fixed[place][k, :wide] = torch.eye(wide)
                continue
            self.masks[place][k, :before, :width] = 1.0
            self.masks[place][k, -1, :width] = 1.0
            drawn = torch.randn(before, width, generator=generator)
            self.weights[place][k, :before, :width] = drawn / before**0.5
            before = width
