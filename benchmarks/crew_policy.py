"""One policy for all seats of a crew: MaskablePPO on the macros of the parallel view.

    python benchmarks/crew_policy.py [STEPS]

Trains on seeds from 1,000,000 on (STEPS agent-steps, default 200,000) and plays
held-out seeds 0..39 of the same families and tier with the best action, beside a random
choice of the same macros, scripted crews, and crews whose last seat a scripted partner
takes that it never met. Writes docs/tables/crew_policy.md. Means with 95 % intervals
over tasks; differences are paired by task.
"""

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from owa_bench.agents.references import HABITS  # noqa: E402
from owa_bench.agents.solvers.crew.player import CrewPlayer  # noqa: E402
from owa_bench.bridges.crew_learning import CrewSeats  # noqa: E402
from owa_bench.bridges.pettingzoo import CrewMacroEnv  # noqa: E402
from owa_bench.interfaces import Brief  # noqa: E402
from tests.builders import crew_episodes as episodes  # noqa: E402

FAMILIES, TIER = ("contract", "schedule"), 2
HELD_OUT, FIRST = range(40), 1_000_000
CREWS = 4  # at the same time
ARMS = ("fifo", "contract_net")
PARTNERS = ("quiet_partner", "answering_partner")  # take the last seat; never trained with
TABLE = ROOT / "docs" / "tables" / "crew_policy.md"


def crew(family, **options):
    return CrewMacroEnv(family=family, tier=TIER, **options)


def train(steps):
    import torch
    from sb3_contrib import MaskablePPO

    torch.set_num_threads(1)
    made = [crew(FAMILIES[i % len(FAMILIES)], shaping=True) for i in range(CREWS)]
    seats = CrewSeats(made, FIRST)
    model = MaskablePPO(
        "MlpPolicy",
        seats,
        n_steps=256,
        batch_size=512,
        n_epochs=6,
        gamma=0.995,
        gae_lambda=0.97,
        learning_rate=7e-4,
        ent_coef=0.01,
        seed=0,
        device="cpu",
    )
    model.learn(steps)
    return model, seats.qualities


def by_macros(choose, partner=None):
    """Return q_state of every held-out task, played by a choice of macros.

    A scripted partner may take the last seat.
    """
    found = []
    for family in FAMILIES:
        env = crew(family)
        for seed in HELD_OUT:
            chosen = episodes.instance(family, TIER, seed)
            seen, infos = env.reset(options={"instance": chosen})
            last, other = env.possible_agents[-1], None
            if partner is not None:
                task = env.rounds.env.task_of(last)
                brief = Brief(text=task.text, goal=task.goal, role=last)
                other = CrewPlayer(brief, HABITS[partner][1])
            while env.agents:
                actions = {s: choose(o) for s, o in seen.items()}
                if other is not None and infos[last]["acts"]:
                    shown = env.rounds.observed[last]["text"]
                    actions[last] = other.advance(shown).text()
                seen, *_, infos = env.step(actions)
            found.append(infos["lead"]["q_state"])
    return np.array(found)


def scripted(name):
    maker = episodes.reference(name)
    chosen = [episodes.instance(f, TIER, s) for f in FAMILIES for s in HELD_OUT]
    return np.array([episodes.play(maker, one).q_state for one in chosen])


def interval(values):
    """Return a mean with half its 95 % interval over tasks."""
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} +- {half:.3f}"


def main(steps):
    begin = time.process_time()
    model, qualities = train(steps)
    spent = time.process_time() - begin
    rng = np.random.default_rng(0)

    def best(seen):
        masks = seen["action_mask"].astype(bool)
        action, _ = model.predict(seen["features"], action_masks=masks, deterministic=True)
        return int(action)

    def random(seen):
        return int(rng.choice(np.flatnonzero(seen["action_mask"])))

    arms = {
        "random macros": by_macros(random),
        f"MaskablePPO, {steps:,} agent-steps": by_macros(best),
        **{f"`{name}`": scripted(name) for name in ARMS},
        **{f"MaskablePPO, last seat `{name}`": by_macros(best, name) for name in PARTNERS},
    }
    ours = arms[f"MaskablePPO, {steps:,} agent-steps"]
    lines = [
        f"`python benchmarks/crew_policy.py {steps}`: {', '.join(FAMILIES)} of tier "
        f"{TIER}, {len(HELD_OUT)} held-out seeds each; one policy for all seats, "
        f"trained for {spent:.0f} CPU seconds; q_state of its last 100 training "
        f"episodes {np.mean(qualities[-100:]):.3f}, of the first 100 "
        f"{np.mean(qualities[:100]):.3f}.",
        "",
        "| crew | q_state | policy less this crew, paired |",
        "|---|---|---|",
        *(
            f"| {name} | {interval(values)} | {'' if values is ours else interval(ours - values)} |"
            for name, values in arms.items()
        ),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    TABLE.write_text("# A learnt crew\n\n" + text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
