"""Advice to give sizes: the options of the command line, ready to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import printable
from ...sizes.dim import Symbol
from ..ir.graph import Graph
from .input_sizes import MOST_LISTED, named_inputs, symbols_of


def advice(graph: Graph, sizes: Iterable[Any] | None = None) -> str:
    """The options that give numbers to open sizes, ready to paste; "" if no option does.

    Args:
        graph: the model.
        sizes: the sizes to give; None: every size of the inputs.
    """
    options = SizeOptions(graph)
    return options.all() if sizes is None else options.of(sizes)


class SizeOptions:
    """The options that give numbers to the open sizes of a graph's inputs.

    Attributes:
        symbols: the open sizes, in the order of the inputs.
    """

    def __init__(self, graph: Graph) -> None:
        shapes = named_inputs(graph)
        self.symbols = tuple(
            dict.fromkeys(s for shape in shapes for size in shape or () for s in symbols_of(size))
        )
        self._places = {symbol: place for place, symbol in enumerate(self.symbols)}
        self._unranked = [
            f"--input-shape {shlex.quote(f'{printable(value.name)}=SIZES')}"
            for value, shape in zip(graph.inputs, shapes, strict=True)
            if shape is None
        ]

    def all(self) -> str:
        """The options for every open size and every unknown rank."""
        return _listed_options(self.symbols, self._unranked)

    def of(self, sizes: Iterable[Any]) -> str:
        """The options for the symbols in these sizes."""
        places = {self._places[s] for size in sizes for s in symbols_of(size) if s in self._places}
        return _listed_options(self.symbols[place] for place in sorted(places))


def _listed_options(symbols: Iterable[Symbol], more: Sequence[str] = ()) -> str:
    names = dict.fromkeys(symbol.name for symbol in symbols)
    words = [*(f"--set {shlex.quote(f'{name}=NUMBER')}" for name in names), *more]
    rest = len(words) - MOST_LISTED
    return " ".join(words[:MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")


__all__ = ["SizeOptions", "advice"]
