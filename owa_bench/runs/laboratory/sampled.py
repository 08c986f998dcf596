"""A laboratory that plays a drawn sample of recorded inner attempts, and no other.

What it does not play it takes from the record, so statistics, sets and texts are made again from
all of them. An attempt on record that is not the one asked for is played.
"""

from collections.abc import Collection, Iterator, Sequence

from numpy.random import Generator

from owa_bench.interfaces import PlayedAttempt, Subject
from owa_bench.records.events import InnerAttempt
from owa_bench.records.instance import Instance
from owa_bench.runs.laboratory.laboratory import LocalLaboratory
from owa_bench.runs.laboratory_process import laboratory_key

_KEPT = b"kept"  # stands for lines that are on record


class SampledLaboratory(LocalLaboratory):
    """The laboratory of one recorded episode.

    Args:
        key: Of the episode.
        recorded: Its inner attempts, in order.
        sample: Places among them that are played.
    """

    def __init__(
        self, key: bytes, recorded: Sequence[InnerAttempt], sample: Collection[int]
    ) -> None:
        super().__init__(key)
        self._recorded: Iterator[tuple[int, InnerAttempt]] = enumerate(recorded)
        self._sample = sample

    def _attempt(self, subject: Subject, draw: str, number: int, repeat: int) -> PlayedAttempt:
        place, recorded = next(self._recorded, (-1, None))
        asked = (subject.digest, draw, number, repeat)
        if recorded is None or place in self._sample or asked != _names(recorded):
            return super()._attempt(subject, draw, number, repeat)
        return PlayedAttempt(
            version=recorded.version,
            draw=draw,
            pair=number,
            repeat=repeat,
            quality=recorded.quality,
            logged=recorded.logged,
            steps=recorded.steps,
            replay=recorded.replay,
            lines=_KEPT if recorded.full else b"",
        )


class SampledLaboratories:
    """Laboratories of recorded episodes, one after the other.

    Args:
        size: Inner attempts of each episode that are played.
        rng: Draws them.
    """

    def __init__(self, size: int, rng: Generator) -> None:
        self._size, self._rng = size, rng
        self._recorded: Sequence[InnerAttempt] = ()
        self._made: SampledLaboratory | None = None

    def expect(self, recorded: Sequence[InnerAttempt]) -> None:
        """Take the inner attempts of the episode that comes next."""
        self._recorded = recorded

    def of(self, instance: Instance) -> SampledLaboratory:
        """Return the laboratory of that episode."""
        self.close()
        count = len(self._recorded)
        sample = self._rng.choice(count, min(self._size, count), replace=False)
        self._made = SampledLaboratory(
            laboratory_key(instance), self._recorded, frozenset(sample.tolist())
        )
        return self._made

    def close(self) -> None:
        """End the laboratory of the last episode."""
        if self._made is not None:
            self._made.close()
            self._made = None


def _names(recorded: InnerAttempt) -> tuple[str, str, int, int]:
    return recorded.version, recorded.draw, recorded.pair, recorded.repeat
