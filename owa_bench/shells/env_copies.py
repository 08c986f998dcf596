"""Copies of an env: what an episode was begun with and what was done in it since.

An env is deterministic, so a pickle or a deep copy of it holds the actions of the running episode,
and plays them again where it is unpacked. An env that holds a process outside of Python refuses.
What records an env stays with the original.

Source: docs/suites.md#copies
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from owa_bench.errors import UsageError
from owa_bench.interfaces import Setting
from owa_bench.records.events import Event, Outcome
from owa_bench.records.instance import Instance
from owa_bench.shells.episode import Episode, EpisodeTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeHistory:
    """The beginning of an episode and everything that was done in it, in order.

    `entries` are the texts of actions, the (outcome, reason) of an ending from outside and the
    events that an agent declared.
    """

    instance: Instance
    terms: EpisodeTerms
    setting: Setting
    entries: list[str | tuple[Outcome, str] | Event] = field(default_factory=list)

    def play(self, begin: Callable[["EpisodeHistory"], Episode]) -> tuple[Episode, str]:
        """Play the episode again.

        Args:
            begin: Makes the episode of a history.
        Returns: The episode, and the text that it answered last.
        """
        episode = begin(self)
        text = episode.begin()
        for entry in self.entries:
            if isinstance(entry, str):
                text = episode.step(entry).text
            elif isinstance(entry, tuple):
                episode.conclude(*entry)
            else:
                episode.log.append(entry)
        return episode, text


def refuse_copy(reason: str) -> None:
    """Refuse to copy or pickle an env that holds something outside of Python.

    Args:
        reason: What it holds; "" for nothing.
    Raises: UsageError: it holds something.
    """
    if reason:
        raise UsageError(
            f"This env holds {reason}, which can be neither copied nor pickled: pickle "
            "`env.spec` and make the env again by gymnasium.make(spec), or close this "
            "env first."
        )
