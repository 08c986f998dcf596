"""The oracle's script of a run whose plan is written: what a perfect client plays."""

import json

from owa_bench.run.plan import escrow
from owa_bench.run.plan.plan import read_plan
from owa_bench.run.play import episode_setup
from owa_bench.run.play.loop import drift_free_script
from owa_bench.seeding import instance_seed


def scripts_of(layout, home):
    """Return each entry's actions, in order of the plan."""
    plan = read_plan(layout)
    root = escrow.find(home, plan.commitment).master
    return [
        [
            json.loads(action)
            for action in drift_free_script(
                episode_setup.instance_of(plan, entry, instance_seed(root, entry.pair))
            )
        ]
        for entry in plan.entries
    ]
