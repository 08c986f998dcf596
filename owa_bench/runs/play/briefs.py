"""The brief of an episode, from its plan entry and the env that is ready for it."""

from owa_bench import discovery, seeding
from owa_bench.interfaces import Brief, Suite
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.runs.plan.trials import told_goal
from owa_bench.runs.play.episode_setup import PlayedEnv


def brief_of(
    plan: Plan,
    entry: PlanEntry,
    env: PlayedEnv,
    *,
    seat: str = "",
    sitting: int = 0,
    interventions_left: int | None = 0,
) -> Brief:
    """Return what an agent is told when it begins.

    Args:
        plan: The plan.
        entry: The entry that is played.
        env: After its reset.
        seat: The agent's seat, "" where there is one.
        sitting: Of the seat, from 0.
        interventions_left: How often the supervisor may still be asked; None: always.

    Returns:
        The brief.
    """
    suite: Suite = discovery.get("suites", entry.suite)
    task = env.task_of(seat)
    return Brief(
        text=task.text,
        goal={**task.goal, **told_goal(suite.card, entry)},
        propositions=task.propositions,
        budgets={
            "steps": float(env.step_limit),
            "act_s": plan.budget.act_s,
            **dict(plan.budget.episode_meters),
            **({"memory_bytes": env.memory_bytes} if env.memory_bytes else {}),
        },
        interventions_left=interventions_left,
        role=seat or "agent",
        session=entry.session + sitting,
        seed=seeding.agent_seed(env.timeline.instance.seed, entry.repeat, seat),
    )
