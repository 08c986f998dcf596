"""Duties: bookings that somebody other than their author must approve.

Fragments are those of `schedule`. Source: docs/multicrew.md#worlds
"""

from owa_bench.envs.multicrew.families import schedule

FAMILY = schedule.FAMILY._replace(name="duties", reviewed=True)
