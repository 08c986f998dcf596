"""RoboSim2Real as a suite of runs: not built yet; `env.RobotEnv` is its body."""

from owa_bench import interfaces

SUITES: tuple[interfaces.Suite, ...] = ()
