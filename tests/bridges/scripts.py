"""The oracle's script of a run whose plan is written: what a perfect client plays."""

import json

from owa_bench.run import escrow, stepping
from owa_bench.run.loop import drift_free_script
from owa_bench.run.plan import read_plan


def scripts_of(layout, home):
    """Return each entry's actions, in order of the plan."""
    plan = read_plan(layout)
    root = escrow.find(home, plan.commitment).master
    return [
        [
            json.loads(action)
            for action in drift_free_script(stepping.instance_of(plan, entry, root))
        ]
        for entry in plan.entries
    ]
