"""Configuration of an API solver: the skills that are on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillConfig:
    """Switches of the skills of one solver.

    waits      goes on after the wait that a server asks for
    pages      fetches every page of a list, not only the first
    repages    takes over the pager that a refusal names
    retries    tries another proof of who it is when one is refused
    searches   looks for a collection that is gone where the refusal points
    remembers  begins with what other episodes taught about a vendor of the same title
    guesses    names renamed fields by the likeness of words
    weighs     names renamed fields by what their values must be
    adds_up    settles units of money by control totals
    grants     gets OAuth2 tokens; without it connectors alone do (`connectors.py`)
    asks_below odds under which the supervisor is asked
    carries    share of its answer's rows that it gives (a handicap)
    """

    waits: bool = True
    pages: bool = True
    repages: bool = True
    retries: bool = True
    searches: bool = True
    remembers: bool = True
    guesses: bool = True
    weighs: bool = True
    adds_up: bool = True
    grants: bool = True
    asks_below: float = 0.9
    carries: float = 1.0


ALL_SKILLS = SkillConfig()
