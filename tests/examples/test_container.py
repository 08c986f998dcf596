"""The container file: what an installation needs is let into the build, and exists."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_build_gets_what_an_installation_needs():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    project = PROJECT["project"]
    needed = {"pyproject.toml", project["readme"], *project["license-files"]}
    needed |= set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert lines[0] == "*"
    assert needed <= allowed
    assert all((ROOT / name).exists() for name in allowed - {"wheels"})


def test_the_extras_of_the_container_exist():
    text = (ROOT / "Containerfile").read_text()
    extras = re.search(r"^ARG EXTRAS=(\S+)$", text, re.M)[1].split(",")
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
