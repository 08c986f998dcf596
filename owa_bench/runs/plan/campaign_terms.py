"""Terms of campaigns, as a battery file states them."""

import msgspec


class CampaignTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terms of a campaign over simulated days.

    Per day, family and tier `practice` new tasks are played, with the smallest intervention budget
    of the checkpoint. `drift_per_day` is the share of all drift that is applied each day;
    `calendar`, where given, is another calendar of days in its place.

    `holdout`, `sustain` and `maintenance` count tasks per family and tier of each attempt set, 0
    none. `adopt_by` is the day whose morning ends the revision's window (None: the one after the
    last). With `daily_holdout` the worlds of a revision drift as on its two days, else by the
    checkpoint's magnitudes. The placebo lane practises on `placebo`, families of the suites; none:
    those that the checkpoint leaves out. `dynamics` are the axes whose index kappa reads from day
    to day; none: all of the protocol's index but R. `seed` draws the order within attempt sets.
    """

    days: int = 7
    practice: int = 1
    drift_per_day: float = 0.05
    calendar: str = ""
    control: bool = True
    holdout: int = 0
    adopt_by: int | None = None
    daily_holdout: bool = False
    sustain: int = 0
    placebo: tuple[str, ...] = ()
    maintenance: int = 0
    dynamics: tuple[str, ...] = ()
    seed: int = 0
