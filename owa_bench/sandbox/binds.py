"""The fewest files a program needs: its own, the loader and the system's libraries."""

import shutil
import sys
import sysconfig
from pathlib import Path

from owa_bench.errors import MissingPartError
from owa_bench.sandbox.job import Bind

_LIBRARY_FOLDERS = ("/lib64", "/usr/lib64")


def libraries() -> tuple[Bind, ...]:
    """Return binds of the dynamic loader and the system's shared libraries."""
    arch = sysconfig.get_config_var("MULTIARCH") or ""
    folders = [f"{top}/{arch}" for top in ("/lib", "/usr/lib") if arch]
    return tuple(
        Bind(source=Path(folder).resolve(), target=folder)
        for folder in (*folders, *_LIBRARY_FOLDERS)
        if Path(folder).is_dir()
    )


def programs(*names: str) -> tuple[Bind, ...]:
    """Return binds of `names` at their places in PATH, with the libraries."""
    found = []
    for name in names:
        place = shutil.which(name)
        if place is None:
            raise MissingPartError(f"the program `{name}`", f"apt-get install {name}")
        found.append(Bind(source=Path(place).resolve(), target=place))
    return (*libraries(), *found)


def interpreter() -> Path:
    """Return the Python program that `python()` binds, outside any environment."""
    return Path(sys.executable).resolve()


def python() -> tuple[Bind, ...]:
    """Return binds of the interpreter and its standard library, no site-packages."""
    program = interpreter()
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    shared = sysconfig.get_config_var("INSTSONAME") or ""
    folder = Path(sysconfig.get_config_var("LIBDIR") or "/nowhere")
    binds = [Bind(source=program), Bind(source=standard)]
    if ".so" in shared and (folder / shared).exists():
        binds.append(
            Bind(source=(folder / shared).resolve(), target=str(folder / shared))
        )
    return (*libraries(), *binds)


def python_hidden() -> tuple[str, ...]:
    """Return the directories inside `python()` that a job must see empty."""
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    names = ("site-packages", "dist-packages")
    return tuple(str(standard / name) for name in names if (standard / name).is_dir())
