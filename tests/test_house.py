"""House rules that a linter does not know: names, headers, docstrings, sources, size.

A reader who knows Gymnasium, Inspect or a statistics text should know a name before
opening its file: so a name says what a thing is, and each name is one thing.
"""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "owa_bench").rglob("*.py"))
LONG, LONGEST = 400, 600  # lines of a module: said, and refused
QUESTIONS = ("What ", "Who ", "How ", "Where ", "When ", "Why ", "Whether ")
# Words that say that something happened to a thing, and not what the thing is.
_PARTICIPLES = """
asked begun chosen closed counted done drawn failed fitted found given heard held kept
known laid left listed lost made measured met noted opened placed planned played
resolved said seen sent served settled shown signed spent stated struck taken told tried
wanted whole written
"""
PARTICIPLES = set(_PARTICIPLES.split())
ARRAY = re.compile(r"NDArray|ndarray|ArrayLike|\bTable\b|\bFloats\b")
PAPERS = re.findall(r"^\| (.* paper) \|", (ROOT / "docs/papers.md").read_text(), re.M)
_PLACES = "sections? equations? eqs? tables? figures? appendix theorem definition"
PLACE = re.compile(rf"\b({'|'.join(_PLACES.split())}|propert)", re.I)
ELSEWHERE = re.compile(r"\bRFC \d+|\b(19|20)\d\d\b|doi:|https?://|PEP \d+")


@functools.cache
def trees():
    """Return the syntax tree of every module by path."""
    return {path: ast.parse(path.read_text()) for path in MODULES}


def where(path, node=None):
    line = f":{node.lineno}" if node is not None else ""
    return f"{path.relative_to(ROOT)}{line}"


def public_functions():
    """Yield (path, qualified name, node) of functions and methods a reader may call.

    Drift operators all take what `interfaces.Operator.apply` describes, a method that
    overrides has its contract's description, and commands say what their options are in the
    options' own help.
    """
    for path, tree in trees().items():
        if path.parent.name == "cli":
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                if not any("operator(" in ast.unparse(d) for d in node.decorator_list):
                    yield path, node.name, node
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for method in node.body:
                    if not isinstance(method, ast.FunctionDef):
                        continue
                    marks = {ast.unparse(d) for d in method.decorator_list}
                    if not method.name.startswith("_") and "override" not in marks:
                        yield path, f"{node.name}.{method.name}", method


def test_a_public_class_or_type_is_defined_once():
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(where(path, node))
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name[0].isupper() and not name.isupper():
                    places[name].append(where(path, node))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not {n: found for n, found in twice.items() if not n.startswith("_")}


def test_a_module_header_is_no_question():
    headers = {path: ast.get_docstring(tree) or "" for path, tree in trees().items()}
    assert not [where(p) for p, text in headers.items() if text.startswith(QUESTIONS)]
    assert not [where(p) for p, text in headers.items() if not text]


def test_no_participle_stands_for_a_thing():
    """Private names and methods too: who reads a file reads them first."""
    faults = []
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            last = ""
            if isinstance(node, ast.ClassDef):
                last = re.findall(r"[A-Z][a-z]*", node.name)[-1].lower()
            elif isinstance(node, functions):
                last = node.name.strip("_")
            if last in PARTICIPLES:
                faults.append(f"{where(path, node)} {node.name}")
    assert not faults


def test_functions_of_several_arguments_or_arrays_describe_them():
    faults = []
    for path, name, node in public_functions():
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments = [a for a in arguments if a.arg not in {"self", "cls"}]
        array = any(a.annotation and ARRAY.search(ast.unparse(a.annotation)) for a in arguments)
        if len(arguments) < 2 and not array:
            continue
        text = ast.get_docstring(node) or ""
        if "Args:" not in text and "Shapes:" not in text:
            faults.append(f"{where(path, node)} {name}: no Args")
        returns = ast.unparse(node.returns) if node.returns else "None"
        said = re.search(r"Returns:|Yields:|Formula:", text)
        said = said or (re.match(r"(Return|Yield)\b", text) and not ARRAY.search(returns))
        if returns not in {"None", "Never", "NoReturn"} and not said:
            faults.append(f"{where(path, node)} {name}: no Returns")
    assert not faults


def test_docstrings_have_one_layout_and_say_once_what_they_say():
    """Sections follow each other; what fits on a line stands there; no echo of line one."""
    faults = []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            text = ast.get_docstring(node) or ""
            for found in re.finditer(r"^(Returns|Yields):$", text, re.M):
                faults.append(f"{where(path, node)} {node.name}: {found[1]} begin on a new line")
            if re.search(r"^(    .*)\n\n(Returns|Yields|Raises):", text, re.M):
                faults.append(f"{where(path, node)} {node.name}: a blank line between sections")
            said = re.search(r"^Returns: (.*)$", text, re.M)
            array = node.returns and ARRAY.search(ast.unparse(node.returns))  # says its shape
            if said and not array and _echoes(text.partition("\n")[0], said[1]):
                faults.append(f"{where(path, node)} {node.name}: Returns repeats the first line")
    assert not faults


def _echoes(first, returns):
    """Return whether every word of `Returns`, articles left out, is in the first line."""
    words = [
        set(re.findall(r"[a-z0-9_]+", text.lower())) - {"the", "a", "an", "its", "of", "it"}
        for text in (first, returns)
    ]
    return first.startswith("Return") and words[1] <= words[0]


def sources():
    """Yield (place, text) of every `Source:` in the package."""
    for path in MODULES:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            found = re.search(r"\bSources?: (.*)|\bSources?:$", line)
            if not found or "Literal" in line:
                continue
            text = [found[1] or ""]
            for more in lines[number : number + 6]:
                if not more.strip() or '"""' in more or re.match(r"\s*[A-Z]\w+:", more):
                    break
                text.append(more.strip())
            yield f"{where(path)}:{number}", " ".join(text).replace('"""', "")


def headings(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_source_resolves():
    faults = []
    for place, text in sources():
        pages = re.findall(r"([\w./-]+\.md)(?:#([\w-]+))?", text)
        for name, anchor in pages:
            page = ROOT / name
            if not page.exists():
                faults.append(f"{place}: no page {name}")
            elif anchor and anchor not in headings(page):
                faults.append(f"{place}: {name} has no heading #{anchor}")
        paper = any(name in text for name in PAPERS) and PLACE.search(text)
        if not pages and not paper and not ELSEWHERE.search(text):
            faults.append(f"{place}: {text}")
    assert not faults


def test_no_module_is_longer_than_a_reader_opens_at_once():
    """A long module is named, and a very long one refused: nobody trims to a figure."""
    lengths = {where(path): len(path.read_text().splitlines()) for path in MODULES}
    print("long:", {name: n for name, n in lengths.items() if n > LONG})  # noqa: T201
    assert not {name: n for name, n in lengths.items() if n > LONGEST}
