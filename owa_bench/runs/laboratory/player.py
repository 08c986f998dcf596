"""Player of inner attempts: an agent with options, on one instance of a tool suite.

The attempt runs through the same shell as any episode; its events, in the bytes that a replay
compares, are its lines, and their SHA-256 its replay digest.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from owa_bench import seeding
from owa_bench.canonical import sha256
from owa_bench.discovery import get
from owa_bench.drift import timeline as timelines
from owa_bench.envs.selfrev.world import PROGRAM
from owa_bench.interfaces import Agent, AgentCard, AgentConfig, Brief, InnerDraw, Subject, Suite
from owa_bench.records.events import EpisodeEnd, Event, Probe, fixed
from owa_bench.records.instance import Instance
from owa_bench.records.trace import replay_line
from owa_bench.runs.laboratory.programs import OWN_LOG, ProgramFailure, ProgramSandboxes
from owa_bench.shells.calls import CallParser
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.solution import solve
from owa_bench.shells.standard_tools import tools_of

_REASON = 200  # characters
EXPERT_LOG = "expert_log.json"  # of the development instances, in the subject's folder


class LineSink:
    """Sink that keeps the lines of one inner attempt and counts its items."""

    active = True

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.items = 0

    def emit(self, event: Event) -> None:
        """Keep the event's line."""
        line = replay_line(event)
        if line is not None:
            self.lines.append(line)
        self.items += isinstance(event, Probe)

    def blob(self, data: bytes) -> str:
        """Return the SHA-256; the text itself is made again by a replay."""
        return sha256(data)

    def secret(self, name: str, value: str) -> None:
        """Do nothing: an inner suite has no secrets.

        Args:
            name: Plays no part.
            value: Plays no part.
        """


class InnerResult(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one inner attempt, with its lines; `failure`: why a program failed."""

    quality: float
    logged: float
    steps: int
    lines: bytes
    failure: str = ""

    @property
    def replay(self) -> str:
        """The replay digest."""
        return sha256(self.lines)


class InnerPlayer:
    """Plays one inner suite in this process.

    Args:
        inner: The instances.
        folder: An empty folder: the memory of every subject, and beside it the files of programs.
    """

    def __init__(self, inner: InnerDraw, folder: Path) -> None:
        self.inner = inner
        self._folder = folder / "memory"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._programs = ProgramSandboxes(folder, self._folder)
        self._suite: Suite = get("suites", inner.suite)
        self._source = timelines.source(inner.suite)
        self._parser: CallParser | None = None

    def instance(self, seed: int, number: int, repeat: int = 0) -> Instance:
        """Return an inner instance.

        Args:
            seed: Its seed.
            number: Its place in the draw; families take turns.
            repeat: Chooses the noise stream.
        """
        inner = self.inner
        return Instance(
            suite=inner.suite,
            version=inner.version,
            family=inner.families[number % len(inner.families)],
            tier=inner.tier,
            seed=seed,
            repeat=repeat,
            drift_step=inner.drift_step,
        )

    def write_expert_log(self, instances: list[Instance]) -> None:
        """Write what an expert was shown and did in these instances."""
        log = []
        for instance in instances:
            timeline = self._source(instance)
            shown = Episode(self._suite, timeline, sink=NullSink(), terms=EpisodeTerms())
            text, steps = shown.begin(), []
            for action in solve(self._suite, timeline).actions:
                steps.append((text, action))
                text = shown.step(action).text
            log.append(steps)
            shown.close()
        (self._folder / EXPERT_LOG).write_text(json.dumps(log))

    def play(self, subject: Subject, instance: Instance) -> InnerResult:
        """Play a subject on an instance.

        Args:
            subject: The version.
            instance: The instance.
        Returns: What came of it.
        """
        sink = LineSink()
        episode = Episode(
            self._suite,
            self._source(instance),
            sink=sink,
            terms=EpisodeTerms(interventions=0),
            parser=self._parser,
        )
        if self._parser is None:
            self._parser = CallParser(tools_of(episode.session.tools))
        (self._folder / OWN_LOG).unlink(missing_ok=True)
        failure = ""
        try:
            text = episode.begin()
            sitting = -1
            agent: Agent | None = None
            while episode.ending is None:
                if agent is None or episode.seating.sitting != sitting:
                    if agent is not None:
                        agent.close()
                    sitting = episode.seating.sitting
                    agent = self._seat(subject, episode, instance, sitting)
                text = episode.step(agent.act({"text": text}, {})).text
            if agent is not None:
                agent.close()
        except ProgramFailure as error:
            failure = str(error)[:_REASON]
            episode.conclude("agent_raised", failure)
        finally:
            episode.close()
        ending = episode.ending
        assert ending is not None  # noqa: S101  it ended, or was concluded
        end = EpisodeEnd(
            outcome=ending.outcome,
            q_state=ending.q_state,
            quality=ending.quality,
            success=ending.success,
            stated=ending.stated,
            failed_attempts=episode.failed_attempts,
            reason=ending.reason,
            steps=episode.steps,
            simulated_s=episode.simulated_ms / 1000.0,
            wall_s=0.0,
        )
        sink.emit(end)
        return InnerResult(
            quality=ending.q_state,
            logged=self._logged(ending.q_state * sink.items, sink.items),
            steps=episode.steps,
            lines=b"".join(line + b"\n" for line in sink.lines),
            failure=failure,
        )

    def _seat(self, subject: Subject, episode: Episode, instance: Instance, sitting: int) -> Agent:
        agent = self._make_agent(subject)
        task, rules = episode.task, episode.rules
        brief = Brief(
            text=task.text,
            goal=task.goal,
            propositions=task.propositions,
            budgets={"steps": float(episode.step_limit)}
            | ({"memory_bytes": rules.memory_bytes} if rules.memory_bytes else {}),
            interventions_left=0,
            session=sitting,
            seed=seeding.agent_seed(instance.seed, instance.repeat),
        )
        agent.reset(brief, tools_of(episode.session.tools), self._folder)
        return agent

    def _make_agent(self, subject: Subject) -> Agent:
        if subject.agent == PROGRAM:
            return self._programs.player(subject)
        card: AgentCard = get("agents", subject.agent)
        assert card.make is not None  # noqa: S101  a subject is no control policy
        return card.make(AgentConfig(options=dict(subject.options)))

    def close(self) -> None:
        """End the sandboxes of programs."""
        self._programs.close()

    def _logged(self, score: float, items: int) -> float:
        """Return the score an item of the subject's own log; of all without a log."""
        path = self._folder / OWN_LOG
        entries: Mapping[str, int] = {}
        if path.exists():
            entries = json.loads(path.read_text())
        count = int(entries.get("items", items))
        return fixed(min(1.0, score / count)) if count > 0 else 0.0
