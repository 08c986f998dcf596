"""Runs that persons might have played: the real recorder, invented episodes."""

import msgspec

from owa_bench.canonical import sha256
from owa_bench.records.events import EpisodeEnd
from tests.builders.run_directory import make_plan, make_run


def person_plan(person, *, scripted=False, **changes):
    """Return a plan that one person plays."""
    whole = make_plan(pairs=1, **changes)
    spec = f"{'scripted-person' if scripted else 'person'}:{person}"
    kept = [entry for entry in whole.entries if entry.arm == "agentic"]
    entries = tuple(
        msgspec.structs.replace(entry, index=place, arm=person) for place, entry in enumerate(kept)
    )
    arm = msgspec.structs.replace(
        whole.arms[0], name=person, agent=spec, fingerprint=sha256(spec.encode()), hosting="person"
    )
    return msgspec.structs.replace(whole, arms=(arm,), entries=entries)


def person_run(folder, person, quality=1.0, *, scripted=False, wall_s=40.0, plan=None, **more):
    """Return the run directory of a person who does every task equally well."""

    def edit(_, events):
        return [
            msgspec.structs.replace(event, quality=quality, q_state=quality, wall_s=wall_s)
            if isinstance(event, EpisodeEnd)
            else event
            for event in events
        ]

    plan = plan or person_plan(person, scripted=scripted)
    return make_run(folder / person, plan, edit=edit, **more).root
