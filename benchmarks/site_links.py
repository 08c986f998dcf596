"""Hook of the docs site: files outside of docs/ that pages link to are part of it.

A page of the site lies where it lies in `docs/`; what a page links to elsewhere in the
repository, a README or a program, lies under `repository/` and its links follow.
"""

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = "repository"
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add what pages link to, and what that links to.

    Args:
        files: those of docs/.
        config: the site's.

    Returns:
        The files of the site.
    """
    waiting = list((ROOT / "docs").rglob("*.md"))
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in _targets(page):
            if target in seen:
                continue
            seen.add(target)
            uri = _uri(target)
            if not uri.startswith(OUTSIDE):
                continue
            files.append(File.generated(config, uri, abs_src_path=str(target)))
            if target.suffix == ".md":
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page's text with its links as they are in the site.

    Args:
        markdown: the text.
        page: where it lies.

    Returns:
        The text.
    """
    source = Path(page.file.abs_src_path)
    here = posixpath.dirname(page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        target = _target(source, match[2])
        if target is None:
            return match[0]
        return f"{match[1]}{posixpath.relpath(_uri(target), here or '.')}{match[3]}"

    return LINK.sub(moved, markdown)


def _targets(page: Path) -> Iterator[Path]:
    """Yield the files of the repository that a page links to."""
    for match in LINK.finditer(page.read_text()):
        target = _target(page, match[2])
        if target is not None:
            yield target


def _target(page: Path, link: str) -> Path | None:
    """Return the file that a link of a page leads to; None for addresses."""
    path = Path(os.path.normpath(page.parent / link))
    return path if "://" not in link and path.is_file() else None


def _uri(target: Path) -> str:
    """Return where a file of the repository lies in the site."""
    path = target.relative_to(ROOT).as_posix()
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{OUTSIDE}/{path}"
