# ---
# A notebook as a script: Jupyter (with jupytext), VS Code and Spyder show its cells.
# ---
# %% [markdown]
# # Read a run
# Plays two agents on a few episodes, then reads the run: tables, a comparison, a site.
# Needs `pip install "owa_bench[export]"` for the data frames.
#
# Run: python examples/read_a_run.py [FOLDER]

# %%
"""Play two agents, read the run as tables, compare them, and write its site."""

import sys
import tempfile
from pathlib import Path

import owa_bench
from owa_bench.reports.page.site import write_site
from owa_bench.reports.read.comparison import compare
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
draw = Draw(
    name="toolquest",
    families=("restock", "reconcile"),
    tiers=(1,),
    deltas=(0.0, 1.0),
    interventions=(0,),
    episodes=2,
)
request = Request(agents=("agentic", "fixed"), draws=(draw,), name="read")
options = RunOptions(home=folder / "keys", in_process=True)
summary = batch.play(request, folder / "run", options)
print(summary.complete, "episodes in", summary.root)

# %% [markdown]
# ## Episodes as a data frame

# %%
run = owa_bench.open_run(summary.root)
episodes = run.episodes().to_pandas()
by_drift = episodes.groupby(["arm", "delta"])[["success", "quality", "steps"]].mean()
print(by_drift)

# %% [markdown]
# ## Which steps gained something, and what the agent saw

# %%
steps = run.steps()
gains = [step for step in steps if step.subgoals]
print(len(gains), "of", len(steps), "steps solved a subgoal; the first:")
print(gains[0].action[:200])
print(run.text(gains[0].observation)[:200])

# %% [markdown]
# ## What it cost

# %%
costs = run.costs().to_pandas()
print(costs.groupby(["arm", "stream", "meter"])[["amount", "usd"]].sum())

# %% [markdown]
# ## The two agents, pair by pair

# %%
comparison = compare(f"{summary.root}:agentic", f"{summary.root}:fixed")
for row in comparison.figures:
    if row.group in ("all", "class"):
        print(row.measure, row.group, row.name, row.difference, row.interval.low)

# %% [markdown]
# ## A site to look at

# %%
site = write_site(summary.root, summary.root / "view")
print(site.attempts, "attempts, open", site.page)
