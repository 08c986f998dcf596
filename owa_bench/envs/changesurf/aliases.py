"""The names an attempt sees: ids, classes, field names, routes, option values.

A codebook is a bijection between canonical references and aliases, drawn from the
instance's seed, drift step and repeat, so that a name learnt in one attempt is worth
nothing in the next. The server inverts it on every request; its database never sees an
alias.
"""

import base64
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from owa_bench.records.instance import Instance

AliasKind = Literal["id", "class", "field", "route", "value"]
_LETTERS = "bcdfghjklmnpqrstvwxz"
_LENGTH, _BYTES = 7, 5


class Aliases:
    """What each canonical reference is called in one attempt; `salt` names it.

    `churned` is what churned in the middle of the attempt: 0 as long as it goes on with
    the names that it began with.
    """

    def __init__(self, seed: int, drift_step: int, repeat: int, churned: int) -> None:
        self.salt = f"{seed}/{drift_step}/{repeat}/{churned}"

    def of(self, kind: AliasKind, ref: str) -> str:
        """Return the alias of `ref`: a letter and seven more signs."""
        return alias_of(self.salt, kind, ref)

    def codebook(self, kind: AliasKind, refs: Iterable[str]) -> dict[str, str]:
        """Return alias -> reference for all `refs`.

        Errors: KeyError if two references share an alias (35 bits: never in practice).
        """
        book: dict[str, str] = {}
        for ref in refs:
            alias = self.of(kind, ref)
            if book.setdefault(alias, ref) != ref:
                raise KeyError(alias)
        return book


def aliases_of(instance: Instance, churned: int = 0) -> Aliases:
    """Return the aliases of an attempt, after what churned in the middle of it."""
    return Aliases(instance.seed, instance.drift_step, instance.repeat, churned)


def former_aliases(instance: Instance) -> Aliases:
    """Return what an attempt at the drift step before began with."""
    return Aliases(instance.seed, max(0, instance.drift_step - 1), instance.repeat, 0)


@lru_cache(maxsize=8192)
def alias_of(salt: str, kind: str, ref: str) -> str:
    """Return the alias of a reference in the attempt that `salt` names."""
    digest = hashlib.sha256(f"{salt}|{kind}|{ref}".encode()).digest()
    first = _LETTERS[digest[-1] % len(_LETTERS)]  # names must begin with a letter
    return first + base64.b32encode(digest[:_BYTES]).decode().lower()[:_LENGTH]
