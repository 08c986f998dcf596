"""An agent in Python: played, reported, checked and compared with another.

Run: python from_python.py
"""

import owa_bench


def act(observation, info):
    """Only asks what to do; a place to begin. A class has reset, act and close."""
    return '{"tool": "ask_supervisor", "arguments": {"question": "What next?"}}'


if __name__ == "__main__":  # the agent's own process imports this file, too
    tasks = {"suite": "toolquest", "family": "restock", "tier": 1, "delta": 0}
    run = owa_bench.run(act, "noop", **tasks, episodes=2, out="run")
    for verdict in owa_bench.report(run).verdicts:
        print(verdict.arm, verdict.level_text)
    assert all(check.ok for check in (*owa_bench.verify(run), *owa_bench.recompute(run)))
    quality = owa_bench.compare(f"{run}:from_python", f"{run}:noop").figures[0]
    print(f"quality: {quality.first} and {quality.second}, difference {quality.difference}")
