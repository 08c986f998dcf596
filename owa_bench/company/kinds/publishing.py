"""The pages of a world: those of the case, the policy and its page of changes."""

import datetime as dt
from collections.abc import Mapping

from owa_bench.company.kinds.contract import CaseKind, CaseWorld
from owa_bench.company.messages import Page
from owa_bench.seeding import stream

_SEVERAL = (
    "If several amendments of a rule cover the day of receipt, the one with the highest number "
    "counts."
)


def published_pages(kind: CaseKind, world: CaseWorld) -> Mapping[str, Page]:
    """Return every page of the wiki at the beginning of a case, by its slug.

    Amendments that an event tells of are not on the page of changes.

    Args:
        kind: Of the world.
        world: The one that is played.
    """
    policy, form = world.policy, kind.form
    owner = next(row.name for row in world.tables["people"] if row.role == kind.policy_owner)
    text = form.write(policy, stream(world.text_seed, "policy"), practice=world.practice)
    pages = [
        Page(slug=kind.policy_slug, title=form.name, updated=policy.since, by=owner, text=text)
    ]
    told = [a for a in policy.amendments if not a.event]
    if told:
        rng = stream(world.text_seed, "amendments")
        lines = [form.write_amendment(policy, a, rng, practice=world.practice) for a in told]
        pages.append(
            Page(
                slug=f"{kind.policy_slug}-changes",
                title=f"{form.name}: changes",
                updated=min(told[-1].first, world.begins.date()) - dt.timedelta(1),
                by=owner,
                text="\n".join((_SEVERAL, *lines)),
            )
        )
    return {page.slug: page for page in (*pages, *world.pages)}
