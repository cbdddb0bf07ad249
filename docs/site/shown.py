"""The example shapes of the pages of rules and engines."""

from __future__ import annotations

from typing import Any, NamedTuple


class Shown(NamedTuple):
    """Example shapes with a rule's attributes, and the sentence above them."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    attributes: dict[str, Any]
    why: str


#: Further examples of a rule, after the one in docs/generate.py.
MORE: dict[str, tuple[Shown, ...]] = {
    "none": (Shown(((2, 3), (3,)), {}, "Nothing stretches, and ranks are equal:"),),
    "numpy": (
        Shown(((8, 1), (8,)), {}, "A column and a vector give a square, intended or not:"),
        Shown(((2, 3, 4), (3,)), {}, "A vector of channels does not align with a middle axis:"),
    ),
    "pdpd": (
        Shown(((2, 3, 4), (3, 1, 1)), {"axis": 1}, "Trailing ones of B are ignored:"),
        Shown(((2, 1, 4), (3,)), {"axis": 1}, "A does not stretch:"),
    ),
    "paddle": (
        Shown(((3, 4), (2, 3, 4, 5)), {"axis": 1}, "Either operand may be the smaller one:"),
        Shown(((2, 3, 4), (3, 4)), {"axis": 2}, "An operand may not extend beyond the last axis:"),
    ),
    "ncnn": (
        Shown(
            ((3, 5), (5,)), {}, "A vector that differs from the outermost axis is aligned right:"
        ),
        Shown(((5, 5), (5,)), {}, "With a square, the same vector is aligned left:"),
        Shown(((2, 3, 4), (3, 4)), {}, "Two axes are always aligned left:"),
    ),
    "mnn": (Shown(((1,) * 7, (2,)), {}, "Seven axes are one too many:"),),
    "onnx6": (
        Shown(((2, 3, 4), (3, 4)), {"broadcast": 1}, "Without `axis`, B is a suffix of A:"),
        Shown(((2, 3, 4), (3, 1)), {"broadcast": 1}, "A 1 inside B does not stretch:"),
    ),
    "unidirectional": (Shown(((3, 1), (4,)), {}, "The target does not stretch to the data:"),),
    "bidirectional": (Shown(((3, 1), (4,)), {}, "The target stretches to the data:"),),
    "explicit": (
        Shown(((2, 3), (3, 2)), {"axes_mapping": (1, 0)}, "Axes keep their order:"),
        Shown(
            ((1, 3), (2, 5, 3)),
            {"axes_mapping": (0, 2)},
            "An axis between the data's axes stretches:",
        ),
    ),
}
