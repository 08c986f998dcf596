"""What the agent keeps of itself between episodes: habits, signs, the open trial."""

from pathlib import Path

import msgspec

from owa_bench.skills.api_solver.skill_config import SkillConfig

FILE = "notebook.json"
# The revision space begins with every skill off: there is something to learn. When
# the supervisor is asked is no part of it.
BEGINNER = SkillConfig(
    waits=False,
    pages=False,
    repages=False,
    retries=False,
    searches=False,
    remembers=False,
    guesses=False,
    weighs=False,
    adds_up=False,
)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed change under test: one habit on, on goals met after the proposal.

    `wealth` is the e-value so far; `wins` and `losses` are pairs on which the new way
    was found sounder or less sound, `ties` those without a difference; `idle` counts
    the goals in a row that told nothing.
    """

    habit: str
    plan: str
    diff: str
    needed: float
    wealth: float = 1.0
    wins: int = 0
    losses: int = 0
    ties: int = 0
    idle: int = 0


class Notebook(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that outlives an episode, but for facts about vendors.

    `signs` counts the episodes since the last decision that showed a sign, `tried` how
    often each habit was proposed, `resting` those rejected since the last adoption.
    `table` is the calibration table: own odds in tenths -> (answers that the supervisor
    bore out, answers it was asked about).
    """

    habits: SkillConfig = BEGINNER
    signs: dict[str, int] = {}
    trial: Trial | None = None
    tried: dict[str, int] = {}
    resting: tuple[str, ...] = ()
    table: dict[str, tuple[int, int]] = {}


def read(folder: Path) -> Notebook:
    """Return the notebook in `folder`; a new one when there is none to be read."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Notebook)
    except (OSError, msgspec.MsgspecError):
        return Notebook()


def write(folder: Path, notebook: Notebook) -> None:
    """Write the notebook whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{FILE}.tmp"
    draft.write_bytes(msgspec.json.encode(notebook, order="sorted") + b"\n")
    draft.replace(folder / FILE)
