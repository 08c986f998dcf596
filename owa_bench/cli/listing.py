"""`owa-bench list` and `doctor`: the plug-ins at hand and the parts of the machine."""

import importlib.metadata
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from owa_bench import __version__, discovery
from owa_bench.cli.console import OUT, as_json, check_line, table
from owa_bench.cli.options import AsJson, Panel
from owa_bench.cli.server_probe import ask_server
from owa_bench.errors import FieldError, MissingPartError, UnknownNameError, extra

if TYPE_CHECKING:
    from owa_bench.runs.plan.draws import Battery

_SERVER = Panel("A chat server")
_COLUMNS = {
    "suites": ("suite", "version", "families", "tiers", "about", "from"),
    "batteries": ("battery", "episodes an agent", "may give a level", "about"),
    "agents": ("agent", "about", "from"),
    "operators": ("operator", "class", "weight", "about", "from"),
    "axes": ("axis", "symbol", "about", "from"),
    "gates": ("gate", "about"),
}
_PROGRAMS = {
    "git": ("ProjForge", "sudo apt-get install git"),
    "bwrap": ("sandboxes for untrusted agents", "sudo apt-get install bubblewrap"),
    "openssl": ("checking a signature without us", "sudo apt-get install openssl"),
}
# What each extra is for; which packages it has is read from the installed package.
EXTRA_USES = {
    "all": "all of them but browsergym, docs, openenv, project, ray, skyrl and verifiers",
    "browser": "the suite ChangeSurf",
    "browsergym": "ChangeSurf as a BrowserGym task; in an environment of its own",
    "crew": "MultiCrew as a PettingZoo env",
    "docs": "`make docs`",
    "export": "tables of runs as Parquet and data frames",
    "llm": "examples/train_a_language_model.py",
    "mcp": "`owa-bench serve`",
    "measures": "classifiers for `owa-bench measure`",
    "minari": "`owa-bench export --to minari`",
    "openenv": "episodes for trainers as an OpenEnv server; in an environment of its own",
    "robot": "the arm of RoboSim2Real",
    "physics": "the suite CartPole3D",
    "project": "the suite ProjForge",
    "providers": "`--model-api` anthropic, gemini and responses",
    "ray": "`owa-bench run --executor ray`",
    "rl": "`owa-bench train`",
    "skyrl": "episodes for trainers in SkyRL-gym; in an environment of its own",
    "verifiers": "episodes for trainers as a verifiers taskset; in an environment of its own",
}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*extra == ['\"]([^'\"]+)['\"]")


def list_plugins(
    kind: str = typer.Argument("", help="suites, batteries, agents, operators, axes or gates"),
    json: bool = AsJson,
) -> None:
    """List suites, batteries, agents, drift operators, axes and gates.

    Those of other packages are marked with the package they come from.

      owa-bench list

      owa-bench list agents --json
    """
    if kind and kind not in _COLUMNS:
        raise UnknownNameError("kind of plug-in", kind, _COLUMNS)
    found = {each: _rows(each) for each in ([kind] if kind else _COLUMNS)}
    if json:
        as_json(
            {
                each: [dict(zip(_keys(each), row, strict=True)) for row in rows]
                for each, rows in found.items()
            }
        )
        return
    for each, rows in found.items():
        shown = [[_cell_text(cell) for cell in row] for row in rows]
        table(each, _COLUMNS[each], shown)


def _keys(kind: str) -> list[str]:
    return [column.replace(" ", "_") for column in _COLUMNS[kind]]


def _rows(kind: str) -> list[tuple[Any, ...]]:
    if kind == "suites":
        return [_of_suite(entry) for entry in discovery.cards().values()]
    if kind == "batteries":
        return _battery_rows()
    return [_row(kind, found) for found in discovery.find(kind).values()]


def _of_suite(entry: discovery.CardEntry) -> tuple[Any, ...]:
    card, package = entry.card, entry.package or "owa_bench"
    return card.name, card.version, card.families, card.tiers, card.about, package


def _battery_rows() -> list[tuple[Any, ...]]:
    from owa_bench.runs.plan import draws

    return [_of_battery(draws.load_battery(name)) for name in draws.battery_names()]


def _of_battery(battery: "Battery") -> tuple[Any, ...]:
    from owa_bench.runs.plan import draws

    cells = {
        (draw.once, cell)
        for draw in battery.suite
        for cell in draws.entries(draw, discovery.cards()[draw.name].card)
    }
    once = sum(alone for alone, _ in cells)
    days = battery.campaign.days if battery.campaign else 1
    episodes = once + days * (len(cells) - once)
    return battery.name, episodes, _may_give_level(battery), battery.about


def _may_give_level(battery: "Battery") -> bool:
    return battery.gives_level and not battery.underpowered


def _row(kind: str, found: discovery.PluginEntry) -> tuple[Any, ...]:
    plugin, package = found.plugin, found.package or "owa_bench"
    if kind == "agents":
        return plugin.name, plugin.about, package
    if kind == "operators":
        about = _first_line(plugin)
        return found.name, plugin.announcement, plugin.weight, about, package
    if kind == "axes":
        return plugin.name, plugin.symbol, _first_line(plugin.formula), package
    return plugin.name, _first_line(plugin)


def _cell_text(cell: Any) -> str:
    """Return a cell as people read it."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple):
        return ", ".join(map(str, cell))
    return str(cell)


def _first_line(plugin: Any) -> str:
    text = plugin.__doc__ or ""
    return str(text).strip().splitlines()[0] if text else ""


# --- the machine ---------------------------------------------------------------------


class Part(NamedTuple):
    """One thing the machine has or lacks."""

    name: str
    present: bool
    needed: bool
    detail: str


def doctor(
    model_url: str = _SERVER("", "Address of a chat server, such as http://127.0.0.1:8000/v1."),
    model: str = _SERVER("", "Name of the model at that server."),
    model_key_env: str = _SERVER(
        "", "Variable that holds the API key; OPENAI_API_KEY if left out and set."
    ),
    model_header: list[str] = _SERVER(
        [], "NAME=ENV_VARIABLE: a header whose value is in a variable; repeat."
    ),
    seconds: float = _SERVER(10.0, "Time for all questions together.", min=0.1),
    json: bool = AsJson,
) -> None:
    """Say what this machine has, what it lacks, and the line that installs it.

    With --model-url: what a chat server can do, and the command that plays it. Exits 3 if something
    is lacking that every run needs, 1 if the model makes no tool calls. Changes nothing.

      owa-bench doctor

      owa-bench doctor --model-url http://127.0.0.1:8000/v1 --model qwen3-32b
    """
    if model_url or model:
        return ask_server(model_url, model, model_key_env, model_header, seconds, json=json)
    parts = (*_core(), *_programs(), *_extras())
    if json:
        as_json([part._asdict() for part in parts])
    else:
        for part in parts:
            check_line(
                part.name,
                ok=part.present or not part.needed,
                detail=part.detail,
                skipped=not part.present,
            )
        OUT.print("Lines marked -- are needed by some commands only.")
    if any(part.needed and not part.present for part in parts):
        raise typer.Exit(3)
    return None


def _core() -> tuple[Part, ...]:
    """Return what every run needs."""
    from owa_bench.runs.store import keys

    version = ".".join(map(str, sys.version_info[:3]))
    folder = keys.data_folder()
    place = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    cores = len(os.sched_getaffinity(0))
    return (
        Part("owa_bench", True, True, f"{__version__}, Python {version}, {cores} cores"),
        Part(
            "data folder",
            writable,
            True,
            f"{folder} {'' if writable else 'cannot be written '}(OWA_BENCH_HOME names another)",
        ),
    )


def _programs() -> tuple[Part, ...]:
    """Return the programs that some commands use."""
    found = []
    for name, (use, install) in _PROGRAMS.items():
        path = shutil.which(name)
        detail = path or f"for {use}; install with: {install}"
        found.append(Part(name, path is not None, False, detail))
    return (*found, *_sandboxes(), _browser())


def _sandboxes() -> tuple[Part, ...]:
    """Return what can hold agents; without any, runs are unsandboxed: V2 at most."""
    from owa_bench.sandbox import views

    uses = {
        "namespaces": ("agents in Python", views.namespaces_fault()),
        "bubblewrap": ("agents that are programs", views.bubblewrap_fault()),
        "docker": ("`--sandbox docker`", views.docker_fault()),
    }
    found = tuple(
        Part(
            f"sandbox: {name}",
            not fault,
            False,
            f"for {use}" + (f"; without it V2 at most: {fault}{fix}" if fault else ""),
        )
        for name, (use, fault) in uses.items()
        for fix in ["" if "install" in fault else f". {views.FIX}"]
    )
    return (*found, _private_roots())


def _private_roots() -> Part:
    """Return whether sittings, seats and lanes can be kept apart, and at what cost."""
    from owa_bench.sandbox import root_image

    fault = root_image.private_root_fault()
    use = "for suites with sittings or seats, and for campaigns"
    size = f"{root_image.system_content().size >> 20} MiB of memory while a run lasts"
    lack = f"without them no evidence on M, R, S and controls: {fault}"
    return Part("private roots", not fault, False, f"{use}; {lack if fault else size}")


def _browser() -> Part:
    """Return the browser that ChangeSurf would drive."""
    from owa_bench.envs.changesurf.browser.host import find_browser, require

    try:
        require()
        path = find_browser()
    except (FieldError, MissingPartError) as error:
        return Part("a browser", False, False, f"for ChangeSurf; {error}")
    return Part("a browser", True, False, path or "Playwright's own Chromium")


def _extras() -> tuple[Part, ...]:
    """Return the extras, each with its use, and the line that installs a missing one."""
    found = []
    for name, packages in sorted(_extra_packages().items()):
        versions = {each: _version(each) for each in packages}
        missing = [each for each, version in versions.items() if not version]
        use = EXTRA_USES.get(name, "")
        detail = (
            f"for {use}; lacks {', '.join(missing)}; {extra(name)}"
            if missing
            else ", ".join(f"{each} {version}" for each, version in versions.items())
        )
        found.append(Part(f"[{name}]", not missing, False, detail))
    return tuple(found)


def _extra_packages() -> dict[str, list[str]]:
    """Return the packages of each extra, as the installed owa_bench declares them."""
    try:
        declared = importlib.metadata.requires("owa_bench") or []
    except importlib.metadata.PackageNotFoundError:  # read from a folder, never installed
        return {}
    extras: dict[str, list[str]] = {}
    for line in declared:
        match = _REQUIREMENT.match(line)
        if match and match[1].replace("-", "_") != "owa_bench":  # `all` names other extras
            extras.setdefault(match[2], []).append(match[1])
    return extras


def _version(package: str) -> str:
    """Return the installed version of a package, or an empty text."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
