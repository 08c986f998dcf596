"""Run tables: the episodes, steps and costs of a run as rows of plain values.

    import owa_bench

    run = owa_bench.open_run("runs/first")
    run.episodes().to_pandas().groupby("arm").success.mean()

Rows are of the attempts that count, as scoring reads them.

Source: docs/read-a-run.md#tables.
"""

import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from owa_bench.errors import extra, needs
from owa_bench.records import events
from owa_bench.records.csv_tables import write_csv
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.observables import BUDGET_NAMES, NO_DAY, Observables
from owa_bench.records.packs import Transcripts
from owa_bench.records.price_card import amounts_used, usd_of
from owa_bench.records.trace import Trace
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.scoring.observe.observables import observe

# --- rows of one kind, as pandas, Arrow, CSV and Parquet ------------------------------


RowT = TypeVar("RowT", bound=msgspec.Struct)


class RowTable(Sequence[RowT], Generic[RowT]):
    """Rows of one kind: a sequence of structs that knows its columns."""

    def __init__(self, kind: type[RowT], rows: Sequence[RowT]) -> None:
        self.kind: type[RowT] = kind
        self._rows: tuple[RowT, ...] = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in msgspec.structs.fields(self.kind))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dictionary a row."""
        return [msgspec.structs.asdict(row) for row in self._rows]

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`; its types do not depend on the rows.

        Raises: MissingPartError: pyarrow is not installed.
        """
        with needs("pyarrow", extra("export")):
            import pyarrow
        names = {
            bool: pyarrow.bool_(),
            int: pyarrow.int64(),
            float: pyarrow.float64(),
            str: pyarrow.string(),
        }
        hints = typing.get_type_hints(self.kind)
        fields = [(name, names[_plain_type(hints[name])]) for name in self.columns]
        return pyarrow.Table.from_pylist(self.to_dicts(), schema=pyarrow.schema(fields))

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`.

        Raises: MissingPartError: pandas is not installed.
        """
        with needs("pandas", extra("export")):
            import pandas
        return pandas.DataFrame(self.to_dicts(), columns=list(self.columns))

    def write_parquet(self, path: Path) -> None:
        """Write a Parquet file; MissingPartError without pyarrow."""
        table = self.to_arrow()
        from pyarrow import parquet

        parquet.write_table(table, path, compression="zstd")

    def write_csv(self, path: Path) -> None:
        """Write a CSV file in UTF-8 with a line of names; None is an empty field."""
        write_csv(path, self.columns, map(msgspec.structs.astuple, self._rows))


def _plain_type(hint: Any) -> Any:
    """Return the type of a column, without None."""
    return next((t for t in typing.get_args(hint) if t is not type(None)), hint)


# --- tables of a run ------------------------------------------------------------------


class EpisodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One counted episode; a disqualified one has 0 as its success and qualities.

    `delta` is the nominal drift magnitude, None in a campaign; `classes` are the classes in effect
    of the drift that was applied ("D0+D2"). `interventions` is the supervisor budget in words.
    Costs are USD by the run's price card, None where unknown; `usd_human` is the simulated
    supervisor's.
    """

    attempt: str
    index: int
    arm: str
    agent: str
    suite: str
    family: str
    tier: int
    pair: str
    repeat: int
    seed: int
    delta: float | None
    realised: float
    classes: str
    calendar: str
    day: int | None
    phase: str
    condition: str
    interventions: str
    helped: int
    outcome: str
    reason: str
    success: bool
    q_state: float
    quality: float
    stated: float | None
    disqualified: bool
    violations: str
    steps: int
    failed_attempts: int
    verified_run: int
    solved_depth: int
    horizon: int
    simulated_s: float
    wall_s: float
    usd_agent: float | None
    usd_human: float | None
    usd_evaluation: float | None


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a counted episode; `observation` names a text for `OpenRun.text`.

    `calls` counts the HTTP and tool calls of the step, `subgoals` are the nodes that were solved in
    it, `drift` the operators applied before it, since the step before.
    """

    attempt: str
    arm: str
    step: int
    role: str
    at_ms: int
    action: str
    error: str | None
    verified: bool
    novel: bool
    waiting: bool
    reward: float
    terminated: bool
    truncated: bool
    observation: str
    calls: int
    model_calls: int
    tokens_in: int
    tokens_out: int
    subgoals: str
    drift: str


class CostRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a counted episode used of one meter; without a price `usd` is None.

    Only what env and harness measured; what an agent declares has no price.
    """

    attempt: str
    arm: str
    stream: str
    meter: str
    amount: float
    usd: float | None


class WrittenTable(NamedTuple):
    """A table that was written: its name, its file, its rows."""

    name: str
    path: Path
    rows: int


class _Terms(NamedTuple):
    """What a row needs beside the columns that scoring reads."""

    agent: str
    seed: int
    reason: str


@dataclass(frozen=True)
class OpenRun:
    """A run directory, open for reading."""

    bundle: Bundle

    @cached_property
    def _transcripts(self) -> Transcripts:
        return Transcripts(self.bundle.layout)

    def episodes(self) -> RowTable[EpisodeRow]:
        """Return a row per counted episode, in order of the plan."""
        starts: dict[str, _Terms] = {}
        table = observe(self._noted_traces(starts), self.bundle.prices)
        return RowTable(EpisodeRow, list(_episode_rows(table, starts)))

    def steps(self) -> RowTable[StepRow]:
        """Return a row per step of the counted episodes."""
        rows = [row for trace in self.bundle.traces() for row in step_rows(trace)]
        return RowTable(StepRow, rows)

    def costs(self) -> RowTable[CostRow]:
        """Return a row per counted episode, stream and meter."""
        rows = [row for trace in self.bundle.traces() for row in self._costs(trace)]
        return RowTable(CostRow, rows)

    def write_tables(
        self, folder: Path, kind: Literal["parquet", "csv"]
    ) -> tuple[WrittenTable, ...]:
        """Write the three tables as files of a folder.

        Args:
            folder: Made if it is not there; files of these names are replaced.
            kind: What files to write.
        Returns: What was written.
        Raises: MissingPartError: Parquet without pyarrow.
        """
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name in ("episodes", "steps", "costs"):
            table: RowTable[Any] = getattr(self, name)()
            path = folder / f"{name}.{kind}"
            (table.write_parquet if kind == "parquet" else table.write_csv)(path)
            written.append(WrittenTable(name, path, len(table)))
        return tuple(written)

    def text(self, digest: str) -> str:
        """Return a text of the run: an observation, a request, a model's reply.

        Args:
            digest: SHA-256 of the blob, as the events and `StepRow` name it.
        Returns: The text; bytes that are no UTF-8 are replaced.
        Raises: TraceError: The run does not hold it (any more).
        """
        return self._transcripts.read(digest).decode("utf-8", "replace")

    def _noted_traces(self, starts: dict[str, _Terms]) -> Iterator[Trace]:
        """Yield the counted traces; keep of each what scoring does not read."""
        for trace in self.bundle.traces():
            start = trace.start
            terms = _Terms(start.agent, start.instance.seed, trace.end.reason)
            starts[trace.leaf.attempt_id] = terms
            yield trace

    def _costs(self, trace: Trace) -> Iterator[CostRow]:
        for (stream, meter), amount in amounts_used(trace.events).items():
            cost = self.bundle.prices.cost(meter, amount)
            yield CostRow(
                attempt=trace.leaf.attempt_id,
                arm=trace.start.arm,
                stream=stream,
                meter=meter,
                amount=amount,
                usd=usd_of(cost),
            )


def open_run(path: str | Path) -> OpenRun:
    """Return a run directory, open for reading. Nothing is checked: `verify` does that.

    Raises: RunDirectoryError: it is no run directory.
    """
    return OpenRun(read(Path(path)))


_AS_SCORED = (
    *("index", "arm", "suite", "tier", "pair", "repeat", "realised", "calendar"),
    *("phase", "condition", "helped", "outcome", "q_state", "disqualified"),
    *("steps", "failed_attempts", "horizon", "simulated_s", "wall_s"),
)


def _episode_rows(table: Observables, starts: dict[str, _Terms]) -> Iterator[EpisodeRow]:
    """Yield the rows of a table of observables."""
    columns = {name: getattr(table, name).tolist() for name in _AS_SCORED}
    for i, attempt in enumerate(table.attempt.tolist()):
        terms = starts[attempt]
        day, budget = int(table.day[i]), int(table.interventions[i])
        yield EpisodeRow(
            attempt=attempt,
            agent=terms.agent,
            seed=terms.seed,
            reason=terms.reason,
            family=str(table.family[i]).partition("/")[2],
            delta=_number(table.delta[i]),
            classes="+".join(np.array(ANNOUNCEMENTS)[table.classes[i]].tolist()),
            day=None if day == NO_DAY else day,
            interventions=BUDGET_NAMES.get(budget, str(budget)),
            success=bool(table.u[i]),
            quality=float(table.q[i]),
            stated=_number(table.stated[i]),
            violations=str(table.breach[i]),
            verified_run=int(table.n[i]),
            solved_depth=int(table.d[i]),
            usd_agent=_usd(table.cost_agent[i]),
            usd_human=_usd(table.cost_human[i]),
            usd_evaluation=_usd(table.cost_evaluation[i]),
            **{name: values[i] for name, values in columns.items()},
        )


def step_rows(trace: Trace) -> Iterator[StepRow]:
    """Yield the steps of an episode, each with what happened in it."""
    met: dict[int, list[events.AnyEvent]] = {}
    shown: dict[int, str] = {}
    drift: list[str] = []
    applied: dict[int, str] = {}
    for event in trace.events:
        step = getattr(event, "step", None)
        if isinstance(event, events.Drift):
            drift.append(event.operator)
        elif isinstance(event, events.Action):
            applied[event.step], drift = ";".join(drift), []
        elif isinstance(event, events.Observation):
            shown[event.step] = event.blob
        if step is not None:
            met.setdefault(step, []).append(event)
    for action in trace.of(events.Action):
        own = met.get(action.step, [])
        models = [e for e in own if isinstance(e, events.ModelCall)]
        nodes = [e.node for e in own if isinstance(e, events.Subgoal)]
        yield StepRow(
            attempt=trace.leaf.attempt_id,
            arm=trace.start.arm,
            step=action.step,
            role=action.role,
            at_ms=action.at_ms,
            action=action.action,
            error=action.error,
            verified=action.verified,
            novel=action.novel,
            waiting=action.waiting,
            reward=action.reward,
            terminated=action.terminated,
            truncated=action.truncated,
            observation=shown.get(action.step, action.observation),
            calls=sum(isinstance(e, events.Call) for e in own),
            model_calls=len(models),
            tokens_in=sum(e.tokens_in for e in models),
            tokens_out=sum(e.tokens_out for e in models),
            subgoals=";".join(nodes),
            drift=applied[action.step],
        )


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _usd(micro: Any) -> float | None:
    """Return a cost of a table, NaN where unknown, as USD."""
    return usd_of(None if np.isnan(micro) else round(float(micro)))
