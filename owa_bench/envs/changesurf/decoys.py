"""Decoys: what carries, in this attempt, the names of one drift step before."""

from owa_bench.envs.changesurf.aliases import former_aliases
from owa_bench.envs.changesurf.elements import Block, Form, Page
from owa_bench.envs.changesurf.maker import Maker
from owa_bench.records.instance import Instance

PRESSED, FILLED = "Save draft", "Private note"  # what decoys are honestly called


def with_decoys(maker: Maker, instance: Instance, page: Page) -> Page:
    """Return the page with what carries the ids of one drift step before.

    Whoever learnt an id presses `PRESSED`; whoever reads labels does not.
    """
    if instance.drift_step == 0:
        return page
    past = Maker(maker.world, former_aliases(instance))
    blocks = tuple(_baited(past, maker, block) for block in page.blocks)
    return page._replace(blocks=blocks)


def _baited(past: Maker, maker: Maker, block: Block) -> Block:
    if not isinstance(block, Form) or block.method != "post":
        return block
    bait = tuple(
        past.button(button.ref, PRESSED, href=maker.route("decoy"))
        for button in block.buttons[:1]
    )
    old = [
        field._replace(
            ref=f"decoy:{field.ref}",
            ident=past.aliases.of("id", f"field:{field.ref}"),
            name=past.aliases.of("field", field.ref),
            css=past.aliases.of("class", "field"),
            label=FILLED,
            control="text",
            placement="label",
            choices=(),
            parts=(),
            value="",
            hint="",
            error="",
            required=False,
        )
        for field in block.fields[:1]
    ]
    marked = tuple(button._replace(ref=f"decoy:{button.ref}") for button in bait)
    return block._replace(buttons=(*block.buttons, *marked), decoys=tuple(old))
