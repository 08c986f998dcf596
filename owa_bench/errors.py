"""Every deliberate exception of the project, one tree.

    OwaError
    ├── UsageError                 wrong use; the CLI exits 2
    │   ├── UnknownNameError       a name no registry holds, with the nearest one
    │   ├── AdmissibilityError     a battery that can give no level, and why
    │   │   ├── ImproperQuality    (a) a quality rule rewards a false forecast
    │   │   ├── SmallFamily        (b) a family has too few instances
    │   │   ├── DriftSupport       (c) a magnitude that T reads is not drawn
    │   │   ├── CostSchema         (d) the cost schema is not frozen
    │   │   ├── SeedCommitment     (e) seeds are not committed, or nothing is escrowed
    │   │   ├── HelpBudgets        (f) a task lacks a budget of help that axes read
    │   │   └── AnchorError        oracle below 1, or a floor policy above its ceiling
    │   ├── FieldError             a field of a file or record: field, value, rule
    │   │   ├── InstanceError
    │   │   ├── PlanError
    │   │   ├── ProtocolError
    │   │   └── BatteryError
    │   └── AgentSpecError         an `--agent` that names nothing playable
    ├── DriftError                 an operator cannot act on a target
    ├── AgentFailure               the agent's fault: the episode is scored
    │   ├── AgentRaised            its code raised, or it answered nonsense
    │   └── AgentTimeout           it missed its deadline
    ├── InfrastructureFailure      the harness' fault: never scored, tried again
    │   ├── ProviderFailure        the model's provider failed: never the agent's zero
    │   ├── FailureLimitError      too many such failures: the run stops; exits 4
    │   └── EntriesMissingError    a provider failed entries of a run; exits 5
    ├── RunDirectoryError          not a run directory, or an incomplete one
    │   └── TraceError             a shard, leaf or blob that does not read back
    ├── ScoringError               a measure got arrays it cannot read
    ├── CheckFailure               a check failed; the CLI exits 1
    │   ├── PreflightError         an agent's address or model does not answer
    │   ├── NoRoomError            a verifier's log takes no more for now
    │   └── NeverActedError        an agent failed every episode before it acted
    └── MissingPartError           the machine lacks something; the CLI exits 3

A message states the rule, then the value got, then the way out: "`tier` must be one of 1, 2, 3, 4,
got 7."
"""

import difflib
import itertools
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_MOST_LISTED = 60  # names that a message lists; of more it lists the nearest
_NEAREST = 5
_MOST_CHARACTERS = 300  # of an exception's text that one line of a log holds
RECORD_BYTES = 16_384  # of what a failed agent leaves: a traceback, its last prints [D]
_NOTE_BYTES = 64
_PACKAGE, _LIBRARY = (os.path.dirname(file) + os.sep for file in (__file__, os.__file__))


class OwaError(Exception):
    """Root of every exception that owa_bench raises on purpose.

    Pickles whatever its constructor takes, so that a worker process can hand it on.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[OwaError], args: tuple[object, ...], state: dict[str, object]) -> OwaError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class UsageError(OwaError):
    """Wrong use; the message states the rule, the value and the way out."""


class UnknownNameError(UsageError):
    """A name that no registry holds; the message offers the nearest one.

    `fix` is a last sentence: how to make the name, or which command lists all.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], fix: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=_NEAREST, cutoff=0.4)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        listing = f"Known: {', '.join(names) if names else 'none'}"
        if len(names) > _MOST_LISTED:
            listing = f"Nearest of {len(names)}: {', '.join(near) if near else 'none'}"
        said = f"No {kind} is called `{name}`.{hint} {listing}. {fix}"
        super().__init__(said.rstrip())
        self.kind = kind
        self.name = name


def error_line(error: BaseException) -> str:
    """Return an exception in one line: class, message, notes, file and line.

    An error of ours that other code caused, such as a card with a field outside its rule, has the
    last line of that code before the line that raised.
    """
    said = " ".join(str(error).split())[:_MOST_CHARACTERS]
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith("<frozen")]
    where = f" ({_place(own[-1])})" if own else ""
    if isinstance(error, OwaError) and own and own[-1].filename.startswith(_PACKAGE):
        callers = [frame for frame in own if _is_plugin(frame.filename)]
        if callers:
            where = f" ({_place(callers[-1])}, raised in {_place(own[-1])})"
    return f"{type(error).__name__}: {said}{notes}{where}"


def error_record(error: BaseException) -> str:
    """Return the traceback of an exception, its causes and its whole text, within the bound."""
    return bounded_record("".join(traceback.format_exception(error)))


def bounded_record(text: str) -> str:
    """Return a text within `RECORD_BYTES`: whole lines of its head and of its tail.

    A line is kept or left out as a whole: what hides secrets would not know a part of one.
    """
    lines = text.encode("utf-8", "backslashreplace").splitlines(keepends=True)
    head = _within(lines, RECORD_BYTES // 4)
    if len(head) == len(lines) or sum(map(len, lines)) <= RECORD_BYTES:
        return b"".join(lines).decode()
    tail = _within(lines[len(head) :][::-1], RECORD_BYTES - RECORD_BYTES // 4 - _NOTE_BYTES)[::-1]
    left = lines[len(head) : len(lines) - len(tail)]
    note = f"[{len(left)} lines left out, {sum(map(len, left))} bytes]\n"
    return b"".join((*head, note.encode(), *tail)).decode()


def _within(lines: list[bytes], most: int) -> list[bytes]:
    """Return the first lines that have at most so many bytes together."""
    sizes = itertools.accumulate(map(len, lines))
    return lines[: sum(1 for _ in itertools.takewhile(lambda size: size <= most, sizes))]


def _place(frame: traceback.FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _is_plugin(file: str) -> bool:
    """Return whether a file is neither ours nor the standard library's."""
    library = file.startswith(_LIBRARY) and "site-packages" not in file
    return not (library or file.startswith((_PACKAGE, "<")))


def one_of(value: object, known: Iterable[object]) -> str:
    """Return the rule "must be one of ..", with the nearest name.

    Args:
        value: the value that breaks the rule.
        known: the allowed values.
    Returns: The rule, as FieldError takes it.
    """
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.4)
    hint = f" (did you mean `{near[0]}`?)" if near else ""
    return f"must be one of {', '.join(names)}{hint}"


class FieldError(UsageError):
    """A field of a record or file breaks its rule; names field, value and rule."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        super().__init__(f"`{field}` {rule}, got {value!r}.")
        self.field = field
        self.value = value
        self.rule = rule


class InstanceError(FieldError):
    """An instance names a family, tier or seed its suite does not have."""


class PlanError(FieldError):
    """A plan entry contradicts the run it belongs to."""


class ProtocolError(FieldError):
    """A protocol file holds a number or name outside its rule."""


class BatteryError(FieldError):
    """A battery draws what its suites do not have."""


class AdmissibilityError(UsageError):
    """A battery is not admissible: no level can rest on it."""


class ImproperQuality(AdmissibilityError):
    """(a) Expected quality does not peak where the stated p is the true one."""


class SmallFamily(AdmissibilityError):
    """(b) A family has fewer instances than the protocol asks."""


class DriftSupport(AdmissibilityError):
    """(c) A family is not played at every magnitude that axis T integrates."""


class HelpBudgets(AdmissibilityError):
    """(f) Not every task is played without help and under the protocol's budget."""


class CostSchema(AdmissibilityError):
    """(d) Plan, protocol and price card do not name one frozen cost schema."""


class SeedCommitment(AdmissibilityError):
    """(e) Seeds are not committed in the plan, or no transcript is escrowed."""


class AnchorError(AdmissibilityError):
    """The control policies do not reach the qualities that the anchors require."""


class AgentSpecError(UsageError):
    """An `--agent` value names no agent, file, class, command or address."""


class DriftError(OwaError):
    """A drift operator cannot act on the target it was given."""


class AgentFailure(OwaError):
    """The agent's own failure; its episode ends and is scored.

    `record` is what its process left: the traceback of its exception, or what it printed last. It
    is shown to readers and never judged.
    """

    def __init__(self, words: str, record: str = "") -> None:
        super().__init__(words)
        self.record = record


class AgentRaised(AgentFailure):
    """The agent's code raised, or it answered what is not a move."""


class AgentTimeout(AgentFailure):
    """The agent missed its deadline for one act."""


class InfrastructureFailure(OwaError):
    """The harness failed; the attempt is not scored and may be tried again."""


class ProviderFailure(InfrastructureFailure):
    """The provider of the agent's model failed; the entry stays to be played."""


class FailureLimitError(InfrastructureFailure):
    """Too many attempts failed through the harness; a resume goes on."""


class EntriesMissingError(InfrastructureFailure):
    """Entries of a run are missing through a provider; a resume plays them."""


class RunDirectoryError(OwaError):
    """A directory is not a run, or an incomplete one."""


class TraceError(RunDirectoryError):
    """A shard, leaf or blob does not read back as what it claims to be."""


class ScoringError(OwaError):
    """A measure got arrays of the wrong shape, range or length."""


class CheckFailure(OwaError):
    """A check that was asked for failed."""


class NoRoomError(CheckFailure):
    """A verifier's log takes no more; after `wait_s` it may, 0: not by waiting."""

    def __init__(self, words: str, wait_s: float = 0.0) -> None:
        super().__init__(words)
        self.wait_s = wait_s


class PreflightError(CheckFailure):
    """What an agent needs did not answer as it must before the plan was signed."""


class NeverActedError(CheckFailure):
    """An agent failed each of its episodes before the env accepted any act of it."""


class MissingPartError(OwaError):
    """The machine lacks a part; the message holds the line that installs it."""

    def __init__(self, part: str, install: str) -> None:
        super().__init__(f"{part} is not installed. Install it with: {install}")
        self.part = part
        self.install = install


def extra(name: str) -> str:
    """Return the line that installs an extra of this package.

    Args:
        name: The extra, as pyproject.toml names it.
    """
    return f"pip install 'owa_bench[{name}]'"


@contextmanager
def needs(part: str, install: str) -> Iterator[None]:
    """Turn a failed import in a with block into the line that installs the part.

    Args:
        part: What is imported.
        install: The line that installs it.
    Yields: Nothing.
    Raises: MissingPartError: An import in the block failed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingPartError(part, install) from error
