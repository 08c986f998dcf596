"""The vector view's numbers, on a page made by hand."""

import msgspec
import numpy as np

from owa_bench.envs.changesurf import spaces
from owa_bench.envs.changesurf.browser.observation import (
    IN_VIEW,
    ObservedControl,
    PageObservation,
    Viewport,
)


def control(ref, name, *, role="link", group="", value="", options=()):
    row = [ref, role, name, value, IN_VIEW, 10, 20, 100, 20, ""]
    row += ["a", "", f"id{ref}", "", "/", group, options, ""]
    return msgspec.convert(row, ObservedControl)


def page(*controls):
    window = Viewport(0, 0, 1280, 720, 720)
    return PageObservation("https://a.test/", "A", ("Text",), controls, window, True)


def rows(*controls, arguments):
    seen = spaces.features(page(*controls), arguments)
    assert seen.shape == (spaces.FEATURES,)
    assert seen.min() >= 0.0
    assert seen.max() <= 1.0
    return seen[: spaces.ELEMENTS * spaces.WIDTH].reshape(spaces.ELEMENTS, -1)


def test_a_control_that_the_goal_names_stands_out():
    plain = control(1, "Red room"), control(2, "Blue room"), control(3, "Book")
    told = rows(*plain, arguments=("Blue room", ""))
    untold = rows(*plain, arguments=("", ""))
    changed = [i for i in range(3) if not np.array_equal(told[i], untold[i])]
    assert changed == [1]
    grouped = control(3, "Book", group="Blue room")
    assert not np.array_equal(
        rows(grouped, arguments=("Blue room",))[0], rows(grouped, arguments=("",))[0]
    )


def test_what_signs_in_names_no_control():
    texts = ("",) * spaces.GOALS + ("Book",)
    one = rows(control(1, "Book"), arguments=texts)
    other = rows(control(1, "Book"), arguments=("",) * len(texts))
    assert np.array_equal(one, other)


def test_macros_fill_only_what_a_control_takes():
    labels = [["a", "Blue", 1], ["b", "Red", 1]]
    box = control(1, "Colour", role="combobox", options=labels)
    calls = spaces.macros(page(box), ("Red", "Mauve"))
    assert len(calls) == len(spaces.MACROS)
    first = spaces.ELEMENTS
    assert calls[first]["arguments"] == {"ref": 1, "option": "Red"}
    assert calls[first + 1] is None
