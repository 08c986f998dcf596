"""The oracle's script of a run whose plan is written: what a perfect client plays."""

import json

from owa_bench.discovery import get
from owa_bench.drift import timeline as timelines
from owa_bench.interfaces import Setting
from owa_bench.runs import assembly
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.resolve import Resolver
from owa_bench.seeding import instance_seed
from owa_bench.shells.episode_events import NullSink


def scripts_of(layout, home):
    """Return each entry's actions, in order of the plan."""
    return [
        [json.loads(action) for action in assembly.script(one.suite, one)]
        for one in instances_of(layout, home)
    ]


def tasks_of(layout, home):
    """Return the text of each entry's task, in order of the plan."""
    return [
        get("suites", one.suite)
        .session(timelines.source(one.suite)(one), NullSink(), Setting())
        .task.text
        for one in instances_of(layout, home)
    ]


def instances_of(layout, home):
    """Return each entry's instance, in order of the plan."""
    plan = read_plan(layout)
    root = escrow.find(home, plan.commitment).master
    resolver = Resolver(plan)
    return [resolver(e, instance_seed(root, e.pair)).instance for e in plan.entries]
