"""Code lines of the package by room, of the working tree or of a commit.

    python benchmarks/size.py            # the working tree
    python benchmarks/size.py 8cd667e    # a commit

A code line holds a token that is neither a comment nor part of a docstring: texts of
several lines (templates, tables) count whole, blank lines do not. Prints lines and
files of each room, their sum, the median length of a module with all its lines, and
the longest module.
"""

import argparse
import ast
import io
import statistics
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "owa_bench"
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
NO_CODE = frozenset({
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
})  # fmt: skip


def code_lines(source: str) -> int:
    """Return how many lines of a module hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
            text = node.body[0]
            lines -= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return len(lines)


def modules(commit: str) -> Iterator[tuple[str, str]]:
    """Yield path and source of every module, of the working tree if `commit` is ""."""
    if not commit:
        for path in sorted((ROOT / PACKAGE).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()
        return
    listed = _git("ls-tree", "-r", "--name-only", commit, "--", PACKAGE)
    for name in listed.splitlines():
        if name.endswith(".py"):
            yield name, _git("show", f"{commit}:{name}")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ("git", "-C", ROOT, *arguments), check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"`commit` must be one of this repository: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Print the table of one tree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("commit", nargs="?", default="", help="default: working tree")
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    lengths = []
    for name, source in modules(parser.parse_args().commit):
        parts = name.split("/")
        room = parts[1] if len(parts) > 2 else "(top)"
        lines[room] += code_lines(source)
        files[room] += 1
        lengths.append(source.count("\n"))
    for room, count in lines.most_common():
        print(f"{room:16} {count:7,} lines {files[room]:5} files")
    print(
        f"{'all':16} {lines.total():7,} lines {files.total():5} files; "
        f"a module has {statistics.median(lengths):.0f} lines in the median, "
        f"at most {max(lengths)}"
    )


if __name__ == "__main__":
    main()
