"""Instances, timelines and walks for the tests, without suite or browser."""

import re
from functools import cache

from owa_bench.discovery import get
from owa_bench.drift import calendar as calendars
from owa_bench.envs.changesurf.browser.observation import group_name, html_controls, parse_html
from owa_bench.envs.changesurf.generate import generate
from owa_bench.envs.changesurf.oracle.goal import q_state
from owa_bench.envs.changesurf.oracle.walk import walk
from owa_bench.records.instance import Instance, Timeline
from owa_bench.seeding import stream
from owa_bench.shells.calls import call_text


def instance(family="depot/buy", tier=1, seed=0, drift_step=0, repeat=0):
    return Instance(
        suite="changesurf",
        version=3,
        family=family,
        tier=tier,
        seed=seed,
        drift_step=drift_step,
        repeat=repeat,
    )


@cache
def world(family="depot/buy", tier=1, seed=0):
    return generate(instance(family, tier, seed))


def timeline(of, made=None):
    return Timeline(
        instance=of, starts=(0,), worlds=(made or generate(of),), changes=((),), realised=0.0
    )


def drifted(of, delta, calendar=None):
    """Return the timeline of an instance at a nominal magnitude.

    As assembly makes it, but without the suite, whose browser half is not needed here.
    """
    calendar = calendar or calendars.nested("web")
    made = generate(of)
    step = calendar.steps_for(of, made, delta)
    of = instance(of.family, of.tier, of.seed, step, of.repeat)
    for event in calendar(of, made):
        rng = stream(of.seed, "drift", event.operator, event.target)
        operator = get("operators", event.operator)
        made = operator.apply(made, event.target, event.intensity, rng=rng)
    return timeline(of, made)


def walked(of, delta=0.0, calendar=None):
    return walk(drifted(of, delta, calendar))


def said(hint):
    """Return a hint as the action's text."""
    return call_text(hint["tool"], hint["arguments"])


def solved(found):
    """Check a walk that reached the goal, once and honestly."""
    assert found.ending == "done", (found.state.page, found.steps[-4:])
    assert q_state(found.state) == 1.0
    assert found.state.breaches == ()
    assert [event.kind for event in found.state.log].count("commit") == 1


def readable(html):
    """Check a page: named controls, told apart, nothing from outside."""
    root = parse_html(html)
    seen = set()
    idents = [n.attributes["id"] for n in root.elements() if "id" in n.attributes]
    assert len(idents) == len(set(idents))
    for node in html_controls(root):
        assert node.role, (node.tag, node.attributes)
        assert node.name.strip(), (node.tag, node.attributes)
        row = node.within("row") or node.within("listitem")
        key = (node.role, node.name, group_name(node), id(row))
        assert key not in seen, key
        seen.add(key)
    for address in re.findall(r"https?://[^/\"' <>]+", html):
        assert address.endswith(".test"), address
