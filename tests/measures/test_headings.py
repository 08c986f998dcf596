"""Every companion measure says formula, shapes, units, missing, errors and source."""

import importlib
import inspect
import pkgutil

import pytest

from owa_bench import measures as companions

HEADINGS = ("Formula:", "Shapes:", "Units:", "Missing:", "Errors:", "Source:")
PLAIN = {  # no measures: they check, load or warn
    "owa_bench.scoring.statistics.arrays",
    "owa_bench.measures.figures",
    "owa_bench.measures.entropy_decay.texts",
}


def measures():
    for found in pkgutil.walk_packages(companions.__path__, f"{companions.__name__}."):
        if found.name in PLAIN:
            continue
        module = importlib.import_module(found.name)
        for name, item in vars(module).items():
            own = inspect.isfunction(item) and item.__module__ == found.name
            if own and not name.startswith("_") and name != "warn_if_small":
                yield pytest.param(item, id=f"{found.name}.{name}")


@pytest.mark.parametrize("measure", list(measures()))
def test_headings(measure):
    text = inspect.getdoc(measure) or ""
    lacking = [heading for heading in HEADINGS if heading not in text]
    assert not lacking
    assert ">>>" in text


def test_there_are_measures():
    assert len(list(measures())) >= 25


@pytest.mark.parametrize(
    "folder",
    [x for x in pkgutil.iter_modules(companions.__path__) if x.ispkg],
    ids=lambda found: found.name,
)
def test_every_companion_offers_measure(folder):
    module = importlib.import_module(f"{companions.__name__}.{folder.name}.measure")
    assert inspect.isfunction(module.measure)
