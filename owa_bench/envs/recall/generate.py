"""Instances into worlds: families, tiers and forms.

Source: docs/recall.md#worlds
"""

from collections.abc import Callable, Mapping
from typing import Any

from owa_bench.envs.recall.draws import FORMS, Draws, draws_of
from owa_bench.envs.recall.families import (
    counterfactual,
    learning,
    literacy,
    n_back,
    reasoning,
    retrieval,
    spaced,
    working_memory,
)
from owa_bench.envs.recall.world import Form, RecallWorld
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive

VERSION = 2
TIERS = (1, 2, 3, 4)
QUOTAS = (65_536, 16_384, 4_096, 1_024)  # bytes of memory_dir, by tier
_DRAW: Mapping[str, Callable[[Draws], dict[str, Any]]] = {
    "learning": learning.draw,
    "retrieval": retrieval.draw,
    "working_memory": working_memory.draw,
    "n_back": n_back.draw,
    "reasoning": reasoning.draw,
    "literacy": literacy.draw,
    "spaced": spaced.draw,
    "counterfactual": counterfactual.draw,
}
FAMILIES = tuple(_DRAW)


def generate(instance: Instance) -> RecallWorld:
    """Return the instance's base world; its form is drawn from its seed."""
    form = FORMS[derive(instance.seed, "form") % len(FORMS)]
    return draw_world(instance.seed, instance.family, instance.tier, form)


def draw_world(seed: int, family: str, tier: int, form: Form) -> RecallWorld:
    """Return the world of a seed in one of the isomorphic forms.

    Args:
        seed: Decides structure and, with the form, words and names.
        family: One of FAMILIES.
        tier: One of TIERS.
        form: The surface.
    """
    content = _DRAW[family](draws_of(seed, family, tier, form))
    return RecallWorld(
        family=family,
        tier=tier,
        form=form,
        code=f"{derive(seed, 'code', family, tier):016x}",
        quota=QUOTAS[tier - 1],
        **content,
    )
