"""The reading of one arm: its sample, estimates, findings and dynamics."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.records.plan import Plan
from owa_bench.records.protocol import Protocol
from owa_bench.scoring.axes.self_revision import revision_evidence
from owa_bench.scoring.estimate.estimates import ArmEstimates, estimate
from owa_bench.scoring.gate import Findings
from owa_bench.scoring.improvement.checkpoints import Dynamics
from owa_bench.scoring.observe.attempt_sets import read_sets
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence, campaign_sets
from owa_bench.scoring.observe.references import reference_episodes
from owa_bench.scoring.observe.sample import Sample, sample_of
from owa_bench.scoring.verdict.findings import ArmEpisodes, JudgingContext, gather_findings


class ArmReading(NamedTuple):
    """What the gates and the tables of one arm rest on; `estimates` None without an episode."""

    sample: Sample
    estimates: ArmEstimates | None
    findings: Findings
    dynamics: Dynamics


def read_arm(
    context: JudgingContext, episodes: ArmEpisodes, campaigns: Sequence[CampaignEvidence]
) -> ArmReading:
    """Return the reading of one arm.

    Args:
        context: Inputs that all arms share.
        episodes: The arm's counted episodes, and those of every arm.
        campaigns: What its campaigns of SelfRev show.
    """
    plan, table, arm = context.plan, episodes.table, episodes.arm
    sample = sample_of(plan, table, context.protocol, context.prices, arm.shared_root)
    given = campaign_sets(campaigns, sample.families)
    practised = read_sets(plan, arm, episodes.every_arm, sample.families)
    declared, beside = (
        revision_evidence(sets, sample.weights, context.protocol)
        for sets in (given or practised, practised)
    )
    sample = dataclasses.replace(
        sample,
        revision=declared,
        practised=beside,
        references=reference_episodes(plan, episodes.every_arm, context.protocol),
    )
    estimates = None
    if len(sample.table):
        estimates = estimate(sample, context.axes)
    return ArmReading(sample, estimates, *gather_findings(context, sample, estimates, episodes))


def with_dynamics(protocol: Protocol, plan: Plan) -> Protocol:
    """Return the protocol with AAI_dyn over the axes that the plan names, if any.

    An axis outside the index has no weight there, named or not.

    Args:
        protocol: Published numbers.
        plan: The run's plan.
    """
    if not plan.dynamics:
        return protocol
    left_out = tuple(s for s in protocol.index.weights if s not in plan.dynamics)
    without = (*protocol.index.dynamic_without, *left_out)
    index = replace(protocol.index, dynamic_without=tuple(dict.fromkeys(without)))
    return replace(protocol, index=index)
