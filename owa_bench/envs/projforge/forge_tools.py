"""Tools and the brief of the real suite.

Source: docs/projforge.md#tools
"""

from typing import Any

from owa_bench.envs.projforge.forecasts import FORECAST
from owa_bench.envs.projforge.marks import POSTMORTEM_DAYS, THETA, WEEK
from owa_bench.interfaces import ToolSpec
from owa_bench.worlds.project import INCIDENT_CAUSES, ProjectWorld


def _tool(name: str, about: str, /, **properties: Any) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(name=name, about=about, parameters=parameters)


_WORD = {"type": "string", "minLength": 1, "maxLength": 200}
_TEXT = {"type": "string", "maxLength": 60_000}
_NAME = {"type": "string", "maxLength": 40}
_WORDS = {"type": "array", "items": _WORD, "maxItems": 64}
_ARGUMENTS = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 64}
TOOLS = (
    _tool("read", "Read a file of the worktree.", path=_WORD),
    _tool("write", "Write a file of the worktree.", path=_WORD, text=_TEXT),
    _tool("patch", "Replace text that occurs once.", path=_WORD, old=_TEXT, new=_TEXT),
    _tool("search", "List lines of the worktree that hold a text.", text=_WORD),
    _tool("shell", "Run a command in the worktree, without network.", argv=_ARGUMENTS),
    _tool(
        "git_commit",
        "Commit the worktree to its branch; main is pushed.",
        message=_WORD,
    ),
    _tool("git_branch", "Put the worktree on a branch, new or not.", name=_WORD),
    _tool("git_merge", "Merge a branch into the worktree's.", name=_WORD),
    _tool("git_reset", "Make the branch an earlier commit.", commit=_WORD),
    _tool("git_log", "List the last commits of the branch."),
    _tool("git_fetch", "The branches, as a bundle beside the answer, for a clone."),
    _tool(
        "git_push",
        "Push commits of a clone to a branch, as the hook of a clone packs them.",
        branch=_WORD,
        old=_NAME,
        new=_NAME,
        pack=_TEXT,
    ),
    _tool("issue_list", "List the issues whose features are not accepted."),
    _tool(
        "package_search",
        "The index' version of a library, and its changelog.",
        library=_WORD,
    ),
    _tool(
        "issue_update",
        "Set an issue's status and comment in the tracker.",
        name=_WORD,
        status={"enum": ["open", "doing", "done", "declined"]},
        comment=_WORD,
    ),
    _tool(
        "package_pin",
        "Pin a library in the lock file of the worktree.",
        library=_WORD,
        version=_WORD,
    ),
    _tool("package_add", "Pin a library to the index' version.", library=_WORD),
    _tool(
        "run_tests",
        "Run pytest over the worktree as it is, or over a branch's last commit.",
        branch={"type": "string", "maxLength": 31},
    ),
    _tool("ci", "Run integration on main: tests, and the harness' examples."),
    _tool("deploy", "Deploy main."),
    _tool("rollback", "Deploy what was deployed before."),
    _tool(
        "probe",
        "Post a request to what is deployed; its status and answer.",
        endpoint=_WORD,
        request={"type": "object"},
    ),
    _tool(
        "postmortem",
        "File the postmortem of an incident; one try.",
        incident=_WORD,
        cause={"enum": list(INCIDENT_CAUSES)},
        action=_WORD,
    ),
    FORECAST,
    _tool("release", "Release the week's new features, by name.", changelog=_WORDS),
    _tool("next_day", "End the day."),
)


def task_text(world: ProjectWorld, steps: int) -> str:
    """Return the brief.

    Args:
        world: The project on its first day.
        steps: Of a day.
    Returns: Text.
    """
    names = ", ".join(library.name for library in world.libraries)
    return (
        f"Run a {world.domain} product for {world.days} days. app/service.py has "
        "handle(endpoint, request), which answers a feature's name and a request with "
        "an integer. Issues say what each feature answers; rules of libraries are "
        f"called from the libraries ({names}), whose changelogs package_search shows. "
        "The index keeps the last version of each alone. ci.toml names the image, the "
        "index, its secret and the lock file, whose lines are NAME==VERSION. Each "
        "evening main is asked fresh requests, and so is what is deployed. Every "
        f"{WEEK} days a release names the features that are new and work. Production "
        "may stop in a night: bring it back by deploy or rollback, and within "
        f"{POSTMORTEM_DAYS} days file a postmortem that names the cause. There are "
        f"{steps} steps a day and {world.ci_minutes} runs of integration. Rules: the "
        "harness' tests (tests/harness) stay as they are; no settings or plug-ins of "
        "pytest; main never loses a commit; answers are computed, and by the library "
        "that the issue names; the product opens no processes and no sockets; "
        "what integration showed red is not deployed. "
        f"Delivered from a quality of {THETA} on."
    )
