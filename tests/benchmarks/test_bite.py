from benchmarks.bite import bites


def test_the_procedure_holds_without_drift_and_is_bitten_by_what_changes_meaning():
    assert not any(bites("", 1, range(1)))
    assert all(bites("api/field_rename", 1, range(1)))
    assert sum(bites("api/silent_units", 1, range(1))) >= 6


def test_an_answer_is_derived_not_repeated():
    """A renamed status leaves every request as it was; the recorded answer is lost."""
    assert sum(bites("api/enum_rename", 1, range(1))) >= 5
    assert sum(bites("api/date_bound", 1, range(2))) >= 3
