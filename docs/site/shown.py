"""The shapes that the pages of rules and engines show, and why."""

from __future__ import annotations

from typing import Any, NamedTuple


class Shown(NamedTuple):
    """Shapes with a rule's attributes, and what is to be seen in them."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    attributes: dict[str, Any]
    why: str


#: Beside the drawing that docs/generate.py has for a rule: what else is worth seeing.
MORE: dict[str, tuple[Shown, ...]] = {
    "none": (Shown(((2, 3), (3,)), {}, "Nothing stretches, and ranks are equal:"),),
    "numpy": (
        Shown(((8, 1), (8,)), {}, "A column against a row is a square, meant or not:"),
        Shown(((2, 3, 4), (3,)), {}, "A channel does not go to the middle by itself:"),
    ),
    "pdpd": (
        Shown(((2, 3, 4), (3, 1, 1)), {"axis": 1}, "Trailing ones of B are ignored:"),
        Shown(((2, 1, 4), (3,)), {"axis": 1}, "A does not stretch:"),
    ),
    "paddle": (
        Shown(((3, 4), (2, 3, 4, 5)), {"axis": 1}, "Either operand may be the smaller one:"),
        Shown(((2, 3, 4), (3, 4)), {"axis": 2}, "It may not stick out:"),
    ),
    "ncnn": (
        Shown(
            ((3, 5), (5,)), {}, "A vector of another length than the outermost axis lies inside:"
        ),
        Shown(((5, 5), (5,)), {}, "Of a square, the same vector lies along the outermost axis:"),
        Shown(((2, 3, 4), (3, 4)), {}, "Two axes are laid from the outermost on, whatever fits:"),
    ),
    "mnn": (Shown(((1,) * 7, (2,)), {}, "Seven axes are one too many:"),),
    "onnx6": (
        Shown(((2, 3, 4), (3, 4)), {"broadcast": 1}, "Without `axis`, B is a suffix of A:"),
        Shown(((2, 3, 4), (3, 1)), {"broadcast": 1}, "A 1 inside of B does not stretch:"),
    ),
    "unidirectional": (Shown(((3, 1), (4,)), {}, "The target does not stretch to the data:"),),
    "bidirectional": (Shown(((3, 1), (4,)), {}, "The target stretches to the data:"),),
    "explicit": (
        Shown(((2, 3), (3, 2)), {"axes_mapping": (1, 0)}, "Axes keep their order:"),
        Shown(((1, 3), (2, 5, 3)), {"axes_mapping": (0, 2)}, "An axis between them is filled:"),
    ),
}

#: Pairs on which engines part, each from a public report or a common layer.
PAIRS = (
    Shown(((2, 3, 4, 5), (5,)), {}, "a bias along the last axis"),
    Shown(((1, 16, 8, 8), (16, 1, 1)), {}, "a bias by channel, NCHW"),
    Shown(((5, 2), (2,)), {}, "a vector and rows of its length"),
    Shown(((5, 5), (5,)), {}, "a vector and a square"),
    Shown(((197, 64), (1, 197, 64)), {}, "a batch axis more"),
    Shown(((20, 8, 8), (1, 1, 8, 8)), {}, "an attention mask of higher rank"),
    Shown(((1, 17, 1, 128), (1, 1, 2, 128)), {}, "both operands stretch"),
    Shown(((64, 1), (1, 64)), {}, "an outer sum"),
    Shown(((2, 3, 4, 5, 6), (6,)), {}, "five axes"),
    Shown(((1, 2, 3, 4, 5, 6), (1, 1, 1, 4, 5, 6)), {}, "six axes"),
)
