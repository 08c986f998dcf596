"""Recipes: trainings as YAML files, by name in this folder or by path.

A file holds fields of `learners.Training`, and `about`, one sentence on what it is for.
"""

from pathlib import Path

import msgspec

from owa_bench.errors import MissingPartError, UnknownNameError, UsageError, extra
from owa_bench.runs.train.algorithms import Training

_FOLDER = Path(__file__).parent


class TrainingRecipe(Training, frozen=True, kw_only=True):
    """A training, and a sentence on what it is for."""

    about: str = ""

    def training(self) -> Training:
        """Return the training alone."""
        names = Training.__struct_fields__
        return Training(**{name: getattr(self, name) for name in names})


def shipped() -> tuple[str, ...]:
    """Return the names of the recipes in this folder."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def read_recipe(name: str) -> TrainingRecipe:
    """Return a recipe.

    Args:
        name: of one in this folder, or a file that ends in .yaml or .yml.
    Raises:
        UnknownNameError: no recipe has this name.
        UsageError: the file is missing, or holds something else.
        MissingPartError: PyYAML is not installed.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        if name not in shipped():
            raise UnknownNameError("recipe", name, shipped())
        path = _FOLDER / f"{name}.yaml"
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=TrainingRecipe)
    except ImportError as error:
        raise MissingPartError("PyYAML (for recipes)", extra("rl")) from error
    except OSError as error:
        raise UsageError(f"The recipe {name} cannot be read: {error.strerror}.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is no recipe: {error}.") from error
