"""Words of the four domains, and the names of libraries, rules and features."""

from collections.abc import Mapping

from owa_bench.worlds.project import Vocabulary

VOCABULARIES: Mapping[str, Vocabulary] = {
    "billing": Vocabulary(
        row="charge",
        kind="plan",
        kinds=("basic", "team", "trial", "void"),
        amount="cents",
        count="seats",
        age="days_open",
    ),
    "booking": Vocabulary(
        row="stay",
        kind="room",
        kinds=("single", "double", "suite", "dorm"),
        amount="price",
        count="nights",
        age="days_ahead",
    ),
    "inventory": Vocabulary(
        row="item",
        kind="shelf",
        kinds=("cold", "dry", "bulk", "yard"),
        amount="weight",
        count="units",
        age="days_stored",
    ),
    "telemetry": Vocabulary(
        row="reading",
        kind="probe",
        kinds=("flow", "heat", "load", "level"),
        amount="value",
        count="samples",
        age="minutes_old",
    ),
}
LIBRARIES = (
    *("tariffa", "gradus", "quantela", "marginel", "scalidor", "bracketo"),
    *("feelina", "stepwell", "ratiola", "tollmar", "levyne", "notchia"),
)
RULES = (
    *("settle", "grade", "weigh", "trim", "assess", "adjust", "levy", "band"),
    *("portion", "ration", "mark", "tune"),
)
STEMS: Mapping[str, tuple[str, ...]] = {
    "billing": ("invoice", "credit", "dunning", "renewal", "proration", "receipt"),
    "booking": ("quote", "deposit", "occupancy", "upgrade", "waitlist", "cleaning"),
    "inventory": ("restock", "pallet", "spoilage", "transfer", "audit", "picking"),
    "telemetry": ("alarm", "baseline", "digest", "drift", "budget", "window"),
}
ENDINGS = ("total", "score", "limit", "share", "load", "index", "delta", "peak")
