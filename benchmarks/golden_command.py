"""The command line of golden digests: write, `--check`, and either `--masked`."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Digests = Mapping[str, Any]


def masked_environment() -> dict[str, str]:
    """Return the environment of a machine without this one's vector instructions.

    numpy names its features differently from version to version, so it is asked.
    """
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return {
        **os.environ,
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2",
        "NPY_DISABLE_CPU_FEATURES": " ".join(found),
    }


def run(about: str, write: Callable[[], str], check: Callable[[], tuple[list[str], str]]) -> int:
    """Run a script of golden digests; return its exit code.

    `write` keeps the digests, `check` names those that differ; both say in a line
    what they did.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--masked", action="store_true", help="mask CPU features")
    given = parser.parse_args()
    if given.masked:
        again = [sys.executable, sys.argv[0], *(["--check"] if given.check else [])]
        return subprocess.run(again, env=masked_environment(), check=False).returncode
    if not given.check:
        print(write())
        return 0
    changed, said = check()
    for name in changed:
        print(f"changed: {name}")
    print(said)
    return 1 if changed else 0


def differences(made: Digests, kept: Digests) -> list[str]:
    """Return the names whose digests differ or are on one side alone."""
    return sorted(k for k in made.keys() | kept.keys() if made.get(k) != kept.get(k))
