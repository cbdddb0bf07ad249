"""The sizes of a model's inputs: names of open sizes, and numbers that a caller gives.

Every command that takes sizes (audit, port, verify, run, shapes) gets its graph from here. Every
message that advises to give a size takes its text from :mod:`.advice`, so :func:`sized` accepts it.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from ...errors import Misfit, ZerostrideError, printable
from ...sizes import MAX_ELEMENTS, MAX_RANK, whole_numbers
from ...sizes.dim import Dim, Number, Symbol, lone_symbol, of_atom, plain
from ...sizes.parse import MAX_TEXT, read, unnamed
from ...system.spelling import meant
from ..format_table import module_of
from ..ir.graph import FileShape, FileSize, Graph, Value

#: Numbers for sizes: by a name that the file gives, or by an input and an axis ("x[0]").
Sizes: TypeAlias = Mapping[str, int]
#: Shapes by the input's name or position. An axis that is None stays as in the file; a name becomes
#: the name of an axis that the file leaves open.
InputShapes: TypeAlias = Mapping[Any, Sequence[Any]] | Sequence[Sequence[Any]]

#: Characters of a size's name that are kept.
LONGEST_NAME = 200
#: Names that tools invent for unknown sizes: one name may stand for several sizes.
_INVENTED = re.compile(r"unk__\d+|\?|-1|None|")
#: A hyphen between words is part of a name; exporters write differences with spaces.
_HYPHENATED = re.compile(r"[^\W\d]\w*-[^\W\d]")
_AXIS = re.compile(r"(.*)\[(-?\d{1,9})\]", re.DOTALL)
#: Names that an error lists.
MOST_LISTED = 12


class UnknownSize(ZerostrideError):  # noqa: N818 - says what is wrong
    """No size or input has this name.

    Attributes:
        name: the unknown name.
    """

    def __init__(self, name: str, words: str) -> None:
        super().__init__(words)
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return UnknownSize, (self.name, str(self))


# Names of sizes.


def shown_name(name: str) -> str:
    """A name that is safe on terminals; a long one is cut and gets a hash, so it stays unique."""
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return printable(name)


def size_of_text(text: str) -> Dim | None:
    """The size that a file writes as text; None if the text names no size.

    Text that is neither a name nor an expression is a name with odd characters, and so is text of
    more than MAX_TEXT characters.
    """
    short = len(text) <= MAX_TEXT  # searching a longer one takes minutes
    if short and _INVENTED.fullmatch(text.strip()):
        return None
    if short and not _HYPHENATED.search(text):
        try:
            size = read(text)
        except (Misfit, ArithmeticError, RecursionError):
            pass  # a name that exporters are free to choose
        else:
            if isinstance(size, Dim):
                return size
    return of_atom(Symbol(shown_name(text)))


def size_in_file(size: FileSize) -> Number | None:
    """A size of a file as a number, an expression or a symbol; None if it is unknown."""
    if size is None or isinstance(size, Dim):
        return size
    if isinstance(size, int):
        return size if 0 <= size <= MAX_ELEMENTS else None
    return size_of_text(str(size))


def _written(value: Value) -> FileShape:
    return value.shape if value.declared is None else value.declared


def named_inputs(graph: Graph) -> tuple[tuple[Number, ...] | None, ...]:
    """The shape of each input with symbols for open sizes: "x[0]" if the file names none.

    None for an input whose rank is not known.
    """
    files = [_written(value) for value in graph.inputs]
    sizes = [None if shape is None else tuple(map(size_in_file, shape)) for shape in files]
    taken = {symbol.name for shape in sizes for size in shape or () for symbol in symbols_of(size)}
    return tuple(
        None if shape is None else _symbolic(printable(value.name), shape, taken)
        for value, shape in zip(graph.inputs, sizes, strict=True)
    )


def _symbolic(name: str, sizes: Iterable[Number | None], taken: set[str]) -> tuple[Number, ...]:
    """The sizes of an input with a new symbol for each unknown one: "x[0]"."""
    return tuple(
        unnamed(0, None, _unique(f"{name}[{axis}]", taken)) if size is None else size
        for axis, size in enumerate(sizes)
    )


def symbols_of(size: Number | None) -> tuple[Symbol, ...]:
    """The symbols of a size that may be a number or unknown."""
    return size.symbols if isinstance(size, Dim) else ()


def _unique(name: str, taken: set[str]) -> str:
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}'{count}"
    taken.add(unique)
    return unique


# Sizes from a caller.


def sized(
    graph: Graph, sizes: Sizes | None = None, input_shapes: InputShapes | None = None
) -> Graph:
    """The graph with numbers in place of sizes.

    Args:
        graph: the model.
        sizes: numbers by name: of a size that the file names, or of an input's axis ("x[0]").
        input_shapes: shapes by the name or the position of an input, or for the inputs in order.

    Raises:
        UnknownSize: no size or input has that name.
        ZerostrideError: a number is not a size, or contradicts the file or another number.
    """
    if not sizes and not input_shapes:
        return graph
    caller = _CallerSizes(graph)
    for key, shape in _by_input(input_shapes):
        caller.shape(key, shape)
    for name, number in (sizes or {}).items():
        caller.size(name, number)
    shapes = caller.shapes()
    again = getattr(module_of(graph), "read_sized", None)
    if again is not None:
        names = [value.name for value in graph.inputs]
        resized: Graph = again(Path(graph.path), dict(zip(names, shapes, strict=True)))
        return replace(caller.named_inside(resized), sized=True)
    inputs = {id(value): k for k, value in enumerate(graph.inputs)}

    def change(value: Value, _: int) -> Value:
        k = inputs.get(id(value))
        if k is None or shapes[k] is None:
            return value
        return replace(value, shape=shapes[k], declared=shapes[k])

    return replace(caller.named_inside(graph.with_values(change)), sized=True)


def _by_input(shapes: InputShapes | None) -> Iterator[tuple[Any, Sequence[Any]]]:
    if shapes is None:
        return iter(())
    return iter(shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes))


@dataclass
class _CallerSizes:
    """The sizes that a caller gives for a graph, combined.

    Attributes:
        graph: the model.
        files: the inputs' shapes from the file, with symbols for open sizes.
        names: the inputs' names.
        values: the numbers of symbols, each with the argument that gave it.
        equal: expressions of the file, the number of each, and the argument that gave it.
    """

    graph: Graph
    files: list[tuple[Number, ...] | None] = field(init=False)
    names: list[str] = field(init=False)
    values: dict[Symbol, tuple[int, str]] = field(default_factory=dict)
    equal: list[tuple[Dim, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = list(named_inputs(self.graph))
        self.names = [printable(value.name) for value in self.graph.inputs]

    def shape(self, key: Any, shape: Any) -> None:
        """Adds the shape of an input."""
        k = self._input(key)
        where = f"input {self.names[k]!r}"
        if isinstance(shape, str | bytes) or not isinstance(shape, Iterable):
            self._refuse(f"{where}: {brief_of(shape)} is no shape; give its sizes in order")
        sizes = [self._axis(where, axis, size) for axis, size in enumerate(shape)]
        if len(sizes) > MAX_RANK:
            self._refuse(f"{where}: {len(sizes)} axes; at most {MAX_RANK}")
        file = self.files[k]
        if file is None:
            inside = (size for shape in self.files for size in shape or ())
            taken = {symbol.name for size in inside for symbol in symbols_of(size)}
            self.files[k] = _symbolic(self.names[k], sizes, taken)
            self.__dict__.pop("_known", None)
            return
        if len(file) != len(sizes):
            self._refuse(
                f"{where} is {_shape(file)} in the file, of rank {len(file)}; "
                f"{_shape(sizes)} has rank {len(sizes)}"
            )
        for axis, size in enumerate(sizes):
            if size is not None:
                self._equate(k, axis, size, f"{where}, axis {axis}")

    def _axis(self, where: str, axis: int, size: Any) -> Number | None:
        """A size that a caller gives: a number, a name, or None for the file's size."""
        if size is None or isinstance(size, Dim):
            return size
        if isinstance(size, str):
            return size_of_text(size)
        return self._number(f"{where}, axis {axis}", size)

    def _number(self, where: str, number: Any) -> int:
        sizes = whole_numbers((number,))
        if sizes is None or not 0 <= sizes[0] <= MAX_ELEMENTS:
            self._refuse(f"{where}: {brief_of(number)} is not a size from 0 to 2^63-1")
        return sizes[0]

    def size(self, name: str, number: Any) -> None:
        """Adds the number of a size by its name."""
        extent = self._number(f"size {shown_name(str(name))!r}", number)
        key = shown_name(str(name))
        source = f"{key}={extent}"
        symbols = self._known
        if key in symbols:
            self._bind(symbols[key], extent, source)
            return
        places = self._invented.get(key, [])
        at = _AXIS.fullmatch(str(name))
        if not places and at is not None and printable(at[1]) in self.names:
            k, axis = self.names.index(printable(at[1])), int(at[2])
            file = self.files[k]
            if file is None:
                self._refuse(
                    f"the rank of input {self.names[k]!r} is not known; give its whole shape: "
                    f"--input-shape {shlex.quote(f'{self.names[k]}=SIZES')}"
                )
            if not -len(file) <= axis < len(file):
                self._refuse(f"{source}: input {self.names[k]!r} is {_shape(file)}, of rank "
                             f"{len(file)}")  # fmt: skip
            places = [(k, axis % len(file))]
        if not places:
            names = [*symbols, *(f"{name}[axis]" for name in self.names)]
            raise UnknownSize(
                key,
                f"{self.graph.path}: no size is called {key!r}{meant(key, symbols, 3)}"
                f" (sizes: {_listed(names)})",
            )
        for k, axis in places:
            self._equate(k, axis, extent, source)

    @functools.cached_property
    def _known(self) -> dict[str, Symbol]:
        """The named sizes in the inputs and inside the model."""
        symbols: dict[str, Symbol] = {}
        for shape in self.files:
            for size in shape or ():
                symbols.update((symbol.name, symbol) for symbol in symbols_of(size))
        for value in self.graph.values():
            inside = (*(_written(value) or ()), *(value.shape or ()))
            for text in {size for size in inside if isinstance(size, str)}:
                for symbol in symbols_of(size_of_text(text)):
                    symbols.setdefault(symbol.name, symbol)
        return symbols

    @functools.cached_property
    def _invented(self) -> dict[str, list[tuple[int, int]]]:
        """The inputs' axes by a name that a tool invented, which may stand for several sizes."""
        places: dict[str, list[tuple[int, int]]] = {}
        for k, value in enumerate(self.graph.inputs):
            for axis, size in enumerate(_written(value) or ()):
                if isinstance(size, str) and size_of_text(size) is None:
                    places.setdefault(size.strip(), []).append((k, axis))
        return places

    def _input(self, key: Any) -> int:
        if isinstance(key, int) and not isinstance(key, bool):
            if 0 <= key < len(self.names):
                return key
            self._refuse(f"{key + 1} shapes are given; the model has {len(self.names)} inputs")
        name = printable(str(key))
        if name not in self.names:
            raise UnknownSize(
                name,
                f"{self.graph.path}: no input is called {name!r}{meant(name, self.names, 3)}"
                f" (inputs: {_listed(self.names)})",
            )
        return self.names.index(name)

    def _equate(self, k: int, axis: int, extent: Number, source: str) -> None:
        """Records that an axis of the file has the extent."""
        file = (self.files[k] or ())[axis]
        symbol = lone_symbol(file)
        if file == extent:
            return
        if symbol is not None and isinstance(extent, int):
            self._bind(symbol, extent, source)
        elif symbol is not None and not symbol.named:
            whole = list(self.files[k] or ())
            whole[axis] = extent
            self.files[k] = tuple(whole)
        elif isinstance(file, Dim) and isinstance(extent, int):
            self.equal.append((file, extent, source))
        else:
            self._refuse(
                f"input {self.names[k]!r} is {_shape(self.files[k] or ())} in the file: its axis "
                f"{axis} is {file}, not {extent}"
            )

    def _bind(self, symbol: Symbol, number: int, source: str) -> None:
        before, by = self.values.setdefault(symbol, (number, source))
        if before != number:
            self._refuse(f"{symbol.name} is {before} by {by}, and {number} by {source}")
        low, high = symbol.low, symbol.high
        if not (low or 0) <= number <= (high or number):
            bounds = f"{low or 0}..{'' if high is None else high}"
            self._refuse(f"{source}: the file bounds {symbol.name} by {bounds}")

    def _solve(self) -> None:
        """Solves expressions of one symbol for it, and checks the numbers of the others."""
        left = self.equal
        while left:
            rest = []
            for size, number, source in left:
                substituted = self._put(size)
                if isinstance(substituted, int):
                    if substituted != number:
                        self._refuse(f"{source}: the file has {size} there, which is {substituted}")
                    continue
                symbol, factor = _linear(substituted)
                if symbol is None:
                    rest.append((size, number, source))
                    continue
                value, over = divmod(number - substituted.const, factor)
                if over or value < 0:
                    self._refuse(f"{source}: the file has {size} there, which is never {number}")
                self._bind(symbol, value, source)
            if len(rest) == len(left):
                return  # expressions of several symbols: only their own numbers are known
            left = rest

    def _put(self, size: Number) -> Number:
        if not isinstance(size, Dim):
            return size
        try:
            own = {
                symbol: self.values[symbol][0] for symbol in size.symbols if symbol in self.values
            }
            return plain(size.substitute(own))
        except ArithmeticError:
            self._refuse(f"the size {size} does not exist for these numbers")

    def shapes(self) -> list[tuple[Number, ...] | None]:
        """The inputs' shapes with all numbers substituted."""
        self._solve()
        numbers = {size: number for size, number, _ in self.equal}
        shapes: list[tuple[Number, ...] | None] = []
        for k, file in enumerate(self.files):
            if file is None:
                shapes.append(None)
                continue
            shape = tuple(
                numbers[size] if isinstance(size, Dim) and size in numbers else self._put(size)
                for size in file
            )
            for size, was in zip(shape, file, strict=True):
                if isinstance(size, int) and not 0 <= size <= MAX_ELEMENTS:
                    self._refuse(f"input {self.names[k]!r}: its size {was} becomes {size}")
            shapes.append(shape)
        return shapes

    def named_inside(self, graph: Graph) -> Graph:
        """The graph with numbers for named sizes inside the model."""
        if not any(symbol.named for symbol in self.values):
            return graph

        def put(shape: FileShape) -> FileShape:
            if shape is None or not any(isinstance(size, str) for size in shape):
                return shape
            return tuple(self._inside(size) for size in shape)

        def change(value: Value, _: int) -> Value:
            shape, declared = put(value.shape), put(value.declared)
            if shape == value.shape and declared == value.declared:
                return value
            return replace(value, shape=shape, declared=declared)

        return graph.with_values(change)

    def _inside(self, size: FileSize) -> FileSize:
        if not isinstance(size, str):
            return size
        expression = size_of_text(size)
        if expression is None or self.values.keys().isdisjoint(expression.symbols):
            return size
        return self._put(expression)

    def _refuse(self, words: str) -> NoReturn:
        raise ZerostrideError(f"{self.graph.path}: {words}")


def _linear(size: Number) -> tuple[Symbol | None, int]:
    """The symbol N and the factor a of a*N + b; no symbol for other expressions."""
    if isinstance(size, Dim) and len(size.terms) == 1:
        ((monomial, factor),) = size.terms
        if len(monomial) == 1 and isinstance(monomial[0], Symbol):
            return monomial[0], factor
    return None, 1


def brief_of(value: object) -> str:
    """A caller's value in at most 80 characters."""
    return printable(repr(value))[:80]


def _shape(sizes: Sequence[Any]) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in sizes)})"


def _listed(names: Collection[str]) -> str:
    shown = [shown_name(name) for name in dict.fromkeys(names)]
    more = len(shown) - MOST_LISTED
    return (", ".join(shown[:MOST_LISTED]) or "none") + (f" and {more} more" if more > 0 else "")


__all__ = [
    "InputShapes",
    "Sizes",
    "UnknownSize",
    "named_inputs",
    "size_in_file",
    "sized",
    "symbols_of",
]
