"""The renderer of a project's world: libraries as wheels, tests, reference code.

Pure functions from a world to text and bytes; equal worlds give equal bytes.

Source: docs/projforge.md#worlds; wheels after PEP 427, indexes after 503, 691, 658.
"""

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.envs.projforge.world import (
    Export,
    Feature,
    FeatureStep,
    Library,
    LibraryRule,
    ProjectWorld,
)
from owa_bench.envs.projforge.world_rules import RuleShift, answer

EndpointCase = tuple[str, Mapping[str, Any]]  # an endpoint and a request
SERVICE = "app/service.py"
PIPELINE = "ci.toml"
_DATE = (2026, 1, 1, 0, 0, 0)
_FORMULA = {
    "rate": "_divide(amount * row[0], 1000, rounding)",
    "step": "_divide(amount, row[0], rounding) * row[0]",
    "surcharge": "amount + row[0] + _divide(amount * row[1], 1000, rounding)",
    "tiers": (
        "_divide(min(amount, row[0]) * row[1] + max(amount - row[0], 0) * row[2], 1000, rounding)"
    ),
}
_HEAD = '''"""{name} {version}."""

import warnings

__version__ = "{version}"


def _divide(number, by, rounding):
    if rounding == "down":
        return number // by
    if rounding == "up":
        return -(-number // by)
    if rounding != "half_up":
        raise ValueError(f"rounding must be down, up or half_up, got {{rounding!r}}")
    return (2 * number + by) // (2 * by)
'''


# --- libraries ------------------------------------------------------------------------


def library_source(
    library: Library, day: int, shift: RuleShift | None = None, kept: str = ""
) -> str:
    """Return the module of a library's version.

    Args:
        library: The library.
        day: Decides which exports are gone.
        shift: Integer that each rule adds to its value; None: nothing.
        kept: Number of the earlier version that the index keeps; "": the last one.
    Returns: Python source.
    """
    parts = [_HEAD.format(name=library.name, version=kept or library.version(day))]
    for rule in library.rules:
        extra = shift(library.name, rule.name) if shift else 0
        added = f" + {extra}" if extra else ""
        table = f"_{rule.name.upper()} = {rule.table!r}"
        parts.append(
            f"{table}\n\n\ndef _{rule.name}(amount, level, rounding):\n"
            f"    row = _{rule.name.upper()}[level]\n"
            f"    return {_FORMULA[rule.kind]}{added}\n"
        )
    parts += [_function(export) for export in library.offered(day)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _function(export: Export) -> str:
    value = f"_{export.rule}(amount, level, rounding)"
    if export.scale != 1:
        value = f"{value} * {export.scale}"
    if export.offset:
        value = f"{value} + {export.offset}"
    lines = [f"def {export.name}({', '.join(export.order)}, /, rounding={export.rounding!r}):"]
    if export.until:
        text = f"{export.name} will be removed on day {export.until}"
        lines.append(f"    warnings.warn({text!r}, DeprecationWarning, stacklevel=2)")
    return "\n".join([*lines, f"    return {value}"])


class Wheel(NamedTuple):
    """A built distribution: name of the file, its bytes, its metadata file."""

    file: str
    data: bytes
    metadata: bytes


def wheel(library: Library, day: int, kept: str = "") -> Wheel:
    """Return the wheel of a library's version, with fixed times.

    Args:
        library: The library.
        day: Decides which exports are gone.
        kept: Number of the earlier version that the index keeps; "": the last one.
    """
    version = kept or library.version(day)
    info = f"{library.name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {library.name}\nVersion: {version}\n"
    if library.requires and not kept:
        metadata += f"Requires-Dist: {library.requires}\n"
    files = {
        f"{library.name}/__init__.py": library_source(library, day, kept=kept),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: owa_bench\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [_recorded(name, text.encode()) for name, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), text)
    file = f"{library.name}-{version}-py3-none-any.whl"
    return Wheel(file, buffer.getvalue(), metadata.encode())


def _recorded(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"{name},sha256={digest.decode().rstrip('=')},{len(data)}"


def index_files(world: ProjectWorld, day: int) -> dict[str, bytes]:
    """Return the package index that serves on a day, in the simple layout.

    Args:
        world: The world.
        day: The day.
    Returns: Files by path: wheels, their metadata, and the pages of `simple/`, each as `index.html`
        and as `index.json`.
    """
    files: dict[str, bytes] = {}
    for library in world.libraries:
        kept = [wheel(library, day, library.kept)] if library.kept else []
        made = [*kept, wheel(library, day)]
        for each in made:
            files[f"wheels/{each.file}"] = each.data
            files[f"wheels/{each.file}.metadata"] = each.metadata
        page = f"simple/{library.name}"
        files[f"{page}/index.html"] = _page(library.name, map(_link, made))
        files[f"{page}/index.json"] = _project_json(library, day, made)
        files[f"changelogs/{library.name}.md"] = changelog(library).encode()
    names = [library.name for library in world.libraries]
    links = (f'<a href="{name}/">{name}</a>' for name in names)
    files["simple/index.html"] = _page("index", links)
    projects = [{"name": name} for name in names]
    files["simple/index.json"] = _json({"meta": _META, "projects": projects})
    return files


_META = {"api-version": "1.1"}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _project_json(library: Library, day: int, made: Sequence[Wheel]) -> bytes:
    files = [
        {
            "filename": each.file,
            "url": f"../../wheels/{each.file}",
            "hashes": {"sha256": hashlib.sha256(each.data).hexdigest()},
            "core-metadata": {"sha256": hashlib.sha256(each.metadata).hexdigest()},
            "size": len(each.data),
        }
        for each in made
    ]
    versions = [v for v in (library.kept, library.version(day)) if v]
    return _json({"meta": _META, "name": library.name, "versions": versions, "files": files})


def _link(made: Wheel) -> str:
    digest = hashlib.sha256(made.data).hexdigest()
    about = hashlib.sha256(made.metadata).hexdigest()
    return (
        f'<a href="../../wheels/{made.file}#sha256={digest}" '
        f'data-core-metadata="sha256={about}">{made.file}</a>'
    )


def _page(title: str, links: Iterable[str]) -> bytes:
    body = "<br>\n".join(links)
    head = '<meta name="pypi:repository-version" content="1.0">'
    return (
        f"<!DOCTYPE html>\n<html><head>{head}<title>{title}</title></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    ).encode()


def changelog(library: Library) -> str:
    """Return the manual of a library's first version and its changelog."""
    lines = [f"# {library.name}", "", "## 1.0.0", ""]
    for rule in library.rules:
        first = f"{rule.name}(amount, level, /, rounding='half_up')"
        lines.append(f"- `{first}`: {_manual(rule)}")
    for entry in library.changelog:
        lines += ["", entry]
    return "\n".join([*lines, ""])


def _manual(rule: LibraryRule) -> str:
    rows = "; ".join(
        f"level {level}: {', '.join(map(str, row))}" for level, row in enumerate(rule.table)
    )
    meaning = {
        "rate": "so many thousandths of the amount",
        "step": "the amount as a multiple of so much",
        "surcharge": "the amount, plus a fee, plus so many thousandths of it",
        "tiers": "thousandths up to an edge (edge, first share), and a share beyond",
    }[rule.kind]
    return f"{meaning} ({rows})"


# --- code -----------------------------------------------------------------------------


def wrapped(world: ProjectWorld, value: int) -> Any:
    """Return an answer as the pipeline's protocol has it.

    Args:
        world: Its protocol.
        value: The answer.
    Returns: The value, or an object that holds it.
    """
    return value if world.protocol == 1 else {"answer": value}


def harness_test(world: ProjectWorld, cases: Sequence[EndpointCase]) -> str:
    """Return the test module of one feature's examples.

    Args:
        world: Gives the answers.
        cases: Examples of one feature.
    Returns: Python source.
    """
    lines = ["import json", "", "from app.service import handle", ""]
    for number, (name, request) in enumerate(cases):
        right = wrapped(world, answer(world, world.feature(name), request))
        text = json.dumps(request, sort_keys=True)
        lines += [
            *("", f"def test_{name}_{number}():"),
            f"    request = json.loads({text!r})",
            f"    assert handle({name!r}, request) == {right!r}",
        ]
    return "\n".join([*lines, ""])


def pipeline_file(world: ProjectWorld) -> str:
    """Return the pipeline's configuration that fits the world."""
    names = ("image", "lock", "index", "secret")
    return "".join(f'{name} = "{world.terms[name]}"\n' for name in names)


def lock_file(world: ProjectWorld, day: int) -> str:
    """Return requirements that pin what the index has.

    Args:
        world: The world.
        day: Decides version numbers.
    Returns: Text of the lock file.
    """
    pins = [f"{library.name}=={library.version(day)}" for library in world.libraries]
    return "\n".join([*pins, ""])


def reference_service(
    world: ProjectWorld, features: Sequence[Feature], *, adapted: bool = True
) -> str:
    """Return a product that answers the features rightly on the world's libraries.

    Args:
        world: The world.
        features: Which to build.
        adapted: To the present exports; else to those of each library's first version, and rounding
            is only said where it is not the first version's.
    Returns: Python source of `app/service.py`.
    """
    parts = ['"""The product: a function a feature."""', ""]
    parts += [f"import {library.name}" for library in world.libraries]
    for library in world.libraries:
        for rule in library.rules:
            export = library.export(rule.name) if adapted else _first_export(rule)
            parts.append(_adapter(library, export, stated=adapted))
    for feature in features:
        parts.append(_feature_code(world, feature))
    entries = "".join(f"    {f.name!r}: _{f.name},\n" for f in features)
    result = '{"answer": value}' if adapted and world.protocol == 2 else "value"
    parts.append(
        f"FEATURES = {{\n{entries}}}\n\n\ndef handle(endpoint, request):\n"
        f"    value = FEATURES[endpoint](request)\n    return {result}"
    )
    return "\n\n".join(parts) + "\n"


def _first_export(rule: LibraryRule) -> Export:
    return Export(rule=rule.name, name=rule.name)


def _adapter(library: Library, export: Export, *, stated: bool) -> str:
    given = ", ".join(export.order)
    call = f"{library.name}.{export.name}({given}, rounding=rounding)"
    if export.offset:
        call = f"({call} - {export.offset})"
    if export.scale != 1:
        call = f"{call} // {export.scale}"
    name = f"_{library.name}_{export.rule}"
    short = f"{library.name}.{export.name}({given})"
    plain = f'    if rounding == "half_up":\n        return {short}\n'
    body = "" if stated else plain
    return f"def {name}(amount, level, rounding):\n{body}    return {call}"


_OPERATORS = {"is": "==", "is_not": "!=", "at_least": ">=", "below": "<"}


def _feature_code(world: ProjectWorld, feature: Feature) -> str:
    words = world.vocabulary
    lines = [
        f"def _{feature.name}(request):",
        '    rows = [dict(row) for row in request["rows"]]',
        "    value = 0",
    ]
    for step in feature.steps:
        lines += _step_code(step, words.amount, words.count)
    return "\n".join([*lines, "    return value"])


def _step_code(step: FeatureStep, amount: str, count: str) -> list[str]:
    rule = f"_{step.library}_{step.rule}"
    extra = f"{step.level}, {step.rounding!r}"
    match step.kind:
        case "word" | "number":
            limit = step.word or step.value
            test = f"row[{step.field!r}] {_OPERATORS[step.test]} {limit!r}"
            return [f"    rows = [row for row in rows if {test}]"]
        case "apply":
            row = f"row[{amount!r}]"
            return ["    for row in rows:", f"        {row} = {rule}({row}, {extra})"]
        case "adjust":
            return [f"    value = {rule}(value, {extra})"]
        case "join":
            other = f"_{step.word}(request)"
            how = {
                "plus": f"value + {other}",
                "less": f"{other} - value",
                "greater": f"max(value, {other})",
            }[step.how]
            return [f"    value = {how}"]
    reduced = {
        "sum": f"sum(row[{amount!r}] for row in rows)",
        "sum_product": f"sum(row[{amount!r}] * row[{count!r}] for row in rows)",
        "largest": f"max((row[{amount!r}] for row in rows), default=0)",
        "count": f"sum(row[{count!r}] for row in rows)",
    }[step.how]
    return [f"    value = {reduced}"]
