"""Negotiate: record types whose clauses have two readings, on which one role decides.

Which role that is stands in somebody's document. Fragments are those of `contract`.
"""

from owa_bench.envs.multicrew.families import contract

FAMILY = contract.FAMILY._replace(name="negotiate", decided=True)
