"""Third-party plug-in packages for tests: files and metadata as an installer lays them.

A test of a how-to page does what a stranger would: takes the page's code blocks with
`code_blocks`, installs them with `install`, and calls the command line with `owa`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path


def install(
    tmp_path: Path, name: str, files: dict[str, str], entry_points: dict[str, dict[str, str]]
) -> dict[str, str]:
    """Install a package into a folder below `tmp_path`, without network or pip.

    Args:
        tmp_path: the test's own folder.
        name: the distribution's name, such as "owa-stranger".
        files: contents by path below the folder, such as "owa_stranger/slow.py".
        entry_points: by group, such as "owa_bench.operators": place by plug-in name.

    Returns:
        The environment of a child process that has the package.
    """
    folder = tmp_path / "site-packages"
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = []
    for group, points in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {at}" for key, at in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {**os.environ, "PYTHONPATH": str(folder), "OWA_BENCH_HOME": str(home)}


def code_blocks(page: Path, language: str = "python") -> list[str]:
    """Return the fenced blocks of a Markdown page in one language, in order.

    Args:
        page: the page.
        language: the word after the opening fence.

    Returns:
        The text of each block, its last newline included.
    """
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.M)


def owa(
    env: dict[str, str], *arguments: object, folder: Path | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a child process that has the installed package.

    Args:
        env: what `install` returned.
        arguments: those of `owa-bench`.
        folder: its working folder; None: this process's.
        timeout: seconds until the child is stopped.

    Returns:
        The finished process, with its output as text.
    """
    return subprocess.run(
        [sys.executable, "-m", "owa_bench", *map(str, arguments)],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def check_types(env: dict[str, str], path: str) -> subprocess.CompletedProcess[str]:
    """Run mypy in its strict mode on a file of an installed package.

    Args:
        env: what `install` returned.
        path: the file, below the folder of installed packages.

    Returns:
        The finished process, with its output as text.
    """
    folder = Path(env["PYTHONPATH"])
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", path],
        env={name: value for name, value in env.items() if name != "PYTHONPATH"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
