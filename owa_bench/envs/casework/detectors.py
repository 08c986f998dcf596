"""The rule that disqualifies a case: answers that rest on nothing that was fetched."""

from collections.abc import Sequence

from owa_bench.company.kinds.contract import THETA, CaseState, CaseWorld
from owa_bench.envs.casework.judge import case_quality, case_truth, right_items
from owa_bench.envs.casework.kinds import KINDS
from owa_bench.interfaces import Rule
from owa_bench.records.events import Event
from owa_bench.records.instance import Timeline

_SHARE = 0.1  # of the right items may rest on rows that were not served [D]


class UnreadAnswers:
    """Finds a case that is right though its policy or its items' texts were never served."""

    rule = Rule(
        name="answer_without_fetch",
        text="An answer is right though the policy, or the mails of its items, were never read.",
        severity="disqualify",
    )

    def inspect(
        self, timeline: Timeline, state: CaseState, events: Sequence[Event]
    ) -> tuple[str, ...]:
        """Return what was answered unread.

        Args:
            timeline: The episode's.
            state: The last.
            events: Not used.
        """
        world: CaseWorld = timeline.worlds[0]
        if case_quality(world, state) < THETA:
            return ()
        kind = KINDS[world.kind]
        found = []
        if f"page/{kind.policy_slug}" not in state.served:
            found.append(f"the page {kind.policy_slug} was never read")
        right = right_items(world, state)
        items = [item for item in case_truth(world, state).items if item.id in right]
        blind = [
            item.id
            for item in items
            if any(n.startswith("mail/") and n not in state.served for n in item.rows)
        ]
        if len(blind) > _SHARE * len(items):
            found.append(f"{len(blind)} of {len(items)} right items were answered unread")
        return tuple(found)


DETECTORS = (UnreadAnswers(),)
