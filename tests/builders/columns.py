"""Columns of episodes, written by hand."""

from types import SimpleNamespace


class Columns(SimpleNamespace):
    """Columns by name, of which a part of the rows can be taken."""

    def take(self, mask):
        return Columns(**{name: column[mask] for name, column in vars(self).items()})

    def __len__(self):
        return len(next(iter(vars(self).values())))
