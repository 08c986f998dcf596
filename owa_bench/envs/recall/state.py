"""The state of an episode: where it stands and what was answered."""

from collections.abc import Mapping

import msgspec

from owa_bench.envs.recall.script import Card, Script

_DONE = Card("page", "Nothing is left. Call finish with p.")


class RecallState(msgspec.Struct, frozen=True):
    """Where an episode stands.

    `place` is the card of the sitting; `scores` are those of the answers, by node;
    `right` the items answered in full, `linked` those that are links of a composition;
    `seen` the day on which a pair was last seen
    again; `page` is shown before the next card.
    """

    script: Script
    sitting: int = 0
    place: int = 0
    scores: Mapping[str, float] = {}
    right: frozenset[str] = frozenset()
    linked: frozenset[str] = frozenset()
    seen: Mapping[str, int] = {}
    page: str = ""

    @property
    def over(self) -> bool:
        """Whether every card was shown."""
        return self.sitting == len(self.script.days)

    @property
    def card(self) -> Card:
        """The present card."""
        if self.over:
            return _DONE
        if self.page:
            return Card("page", self.page)
        return self.script.cards(self.sitting)[self.place]

    @property
    def day(self) -> int:
        """The present day."""
        return self.script.days[min(self.sitting, len(self.script.days) - 1)]
