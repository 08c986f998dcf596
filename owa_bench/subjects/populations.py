"""Many dense networks at once: one padded block of numbers, one product a layer.

A population holds networks of one to `LAYERS` hidden layers of rectified units, each
of its own width. They are padded to the widest; a network with fewer layers passes
through the identity, which changes nothing behind a rectifier. What a padded place
holds never changes, so each network learns and counts as if it were alone.
"""

import itertools
from collections.abc import Sequence

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
        shapes = [(inputs, wide), *[(wide, wide)] * (LAYERS - 1), (wide, outputs)]
        count = len(self.networks)
        self._masks = [torch.zeros(count, i + 1, o) for i, o in shapes]
        self._fixed = [torch.zeros(count, i + 1, o) for i, o in shapes]
        self.weights = [torch.zeros(count, i + 1, o) for i, o in shapes]
        for k, one in enumerate(self.networks):
            self._fill(k, one, inputs, outputs, generator)
        for part in self.weights:
            part.requires_grad_(True)

    def scores(self, seen: Tensor) -> Tensor:
        """Return scores (networks, rows, outputs) of rows of (networks, rows, n)."""
        last = len(self.weights) - 1
        for place, mask in enumerate(self._masks):
            layer = self.weights[place] * mask + self._fixed[place]
            seen = torch.baddbmm(layer[:, -1:], seen, layer[:, :-1])
            seen = seen if place == last else seen.relu()
        return seen

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
        for place in range(LAYERS + 1):
            width = outputs if place == LAYERS else 0
            width = one[place] if place < len(one) else width
            if not width:
                wide = self._fixed[place].shape[2]
                self._fixed[place][k, :wide] = torch.eye(wide)
                continue
            self._masks[place][k, :before, :width] = 1.0
            self._masks[place][k, -1, :width] = 1.0
            drawn = torch.randn(before, width, generator=generator)
            self.weights[place][k, :before, :width] = drawn / before**0.5
            before = width
