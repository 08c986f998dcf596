"""The events of memory checks."""

from owa_bench.records.event_base import Event


class Probe(Event, frozen=True, kw_only=True, tag="probe"):
    """A memory or retrieval check; the suite's world emits it when it is answered.

    `item` names what is asked for: one name at every lag, and no other item of the
    family has it. `mode` is "recall" (without tools), "assisted", "retrieve"
    (`returned` in order, each with whether it is a verified answer, `relevant` how many
    there are) or "span" (a list of `span` items). `contrary` counts the returned
    entries whose source does not exist or says the contrary, None if unchecked.
    `sitting` is the number of the sitting in which the item was shown, None where that
    was in an earlier episode. That no tools were on offer, that nobody helped and that
    the sitting is a new one is read from the `tools`, `intervention` and `sitting`
    events before it.
    """

    step: int = 0
    item: str
    lag_days: float
    span: int = 0
    guess: float = 0.0
    correct: bool
    mode: str = "recall"
    returned: tuple[tuple[str, bool], ...] = ()
    relevant: int = 1
    contrary: int | None = None
    sitting: int | None = None
