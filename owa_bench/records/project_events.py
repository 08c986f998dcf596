"""The event of a project's day, as its suite's world measured it."""

from owa_bench.records.event_base import Event


class ProjectDay(Event, frozen=True, kw_only=True, tag="project_day"):
    """A day of a project is over.

    `acceptance` and `service` are the weight shares of what is due that the main branch
    and the deployed product answer rightly, None where nothing is due. `held` features
    worked on the evening before, `regressed` of them do not now. `minutes` of
    integration were used, `green`: the last run of integration on what the day ends
    with was. `release` is the mark of the week's release notes, on the last day of a
    week alone. `stopped`: production had stopped in the morning; `postmortem` is the
    mark of the one whose last day this is.
    """

    step: int
    day: int
    acceptance: float | None = None
    service: float | None = None
    held: int = 0
    regressed: int = 0
    minutes: int = 0
    green: bool = False
    release: float | None = None
    stopped: bool = False
    postmortem: float | None = None
