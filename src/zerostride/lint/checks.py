"""The functions that rewritten code calls: they check operands and return them.

`a - b` becomes `a - against(a, b)`, or `operator.sub(*pair(f(a), b))` if the left operand is more
than a name. The operation itself still runs in the user's own frame, so results are the same, and
warnings and tracebacks name the user's line.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from operator import (
    add,
    and_,
    eq,
    floordiv,
    ge,
    gt,
    le,
    lshift,
    lt,
    mod,
    mul,
    ne,
    or_,
    pow,
    rshift,
    sub,
    truediv,
    xor,
)
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from ..core.alignment import placements, plan_or_none, text
from ..core.plan import Plan
from ..core.rules import RULES
from ..errors import columns

#: Types without axes; most operands of most programs.
_PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None), dict, set, frozenset})
#: Libraries whose arrays broadcast like NumPy's.
_LIBRARIES = frozenset({"numpy", "torch", "jax", "jaxlib", "cupy"})
#: Functions of NumPy that broadcast and are not ufuncs, with the number of operands that do.
_FUNCTIONS: dict[Any, int] = {np.where: 3, np.isclose: 2, np.allclose: 2}
#: Functions of PyTorch, by name.
_OF_TORCH = {
    **dict.fromkeys(
        (
            *("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow"),
            *("maximum", "minimum", "fmax", "fmin", "fmod", "remainder", "floor_divide", "atan2"),
            *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
            *("hypot", "isclose", "allclose"),
        ),
        2,
    ),
    "where": 3,
}

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Accident:
    """A broadcast that nobody intended.

    Attributes:
        path: the user's file.
        line: the line where the expression begins.
        source: the expression.
        names: its operands, as written.
        shapes: their shapes.
    """

    path: str
    line: int
    source: str
    names: tuple[str, ...]
    shapes: tuple[Shape, ...]

    def __str__(self) -> str:
        plan = _plan(self.shapes)
        assert plan is not None
        shapes = " and ".join(map(str, self.shapes))
        rows = [[None] * (plan.rank - len(shape)) + list(shape) for shape in self.shapes]
        drawn = columns((*self.names, "result"), [*rows, plan.shape])
        return "\n".join(
            [
                # The place comes first: pytest's summary shows the beginning of a message.
                f"{self.path}:{self.line}: accidental broadcast of {shapes} to {plan.shape}",
                f"  {self.source}",
                *("    " + line for line in drawn),
                f"  fix: {self._fix()}",
            ]
        )

    def _fix(self) -> str:
        advice = (
            "where it is meant, write all operands at one rank (x[:, None] - y[None, :]), or end "
            "the line in `# broadcast: ok`"
        )
        for name, placed in _fixes(self.names, self.shapes):
            return f"reshape {name} to {text(placed)}; {advice}"
        return advice


def _plan(shapes: Sequence[Shape]) -> Plan | None:
    return plan_or_none(RULES["numpy"], shapes, {})


def _fixes(names: Sequence[str], shapes: Sequence[Shape]) -> Iterator[tuple[str, Shape]]:
    """Reshapes of one operand that remove the accident, planned; the lowest rank first."""
    rank = max(map(len, shapes))
    for k in sorted(range(len(shapes)), key=lambda k: (len(shapes[k]), -k)):
        extents = tuple(size for size in shapes[k] if size != 1)
        for placed in (extents, *placements(extents, rank)):
            plan = _plan([*shapes[:k], placed, *shapes[k + 1 :]])
            if placed != shapes[k] and plan is not None and not plan.two_sided:
                yield names[k], placed


def is_accident(shapes: Sequence[Shape]) -> bool:
    """Whether operands of unequal rank stretch against each other, so that none has the result's
    shape. Equal ranks are deliberate: the author has inserted the axes.

    >>> is_accident([(3, 1), (3,)]), is_accident([(3, 1), (1, 3)]), is_accident([(3, 4), (4,)])
    (True, False, False)
    """
    ranks = {len(shape) for shape in shapes} - {0}
    if len(ranks) < 2:
        return False
    rank = max(ranks)
    result = [1] * rank
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    for row in aligned:
        for axis, size in enumerate(row):
            if size != 1:
                if result[axis] not in (1, size):
                    return False  # the operation itself refuses it
                result[axis] = size
    return tuple(result) not in aligned


# Called by rewritten code.


def against(left: Any, right: Any) -> Any:
    """Checks two operands and returns the right one."""
    __tracebackhide__ = True
    if type(left) is np.ndarray and type(right) is np.ndarray:
        if left.ndim != right.ndim and not _lies_on(left.shape, right.shape):
            _judge((left.shape, right.shape))
        return right
    try:
        plain = type(left) in _PLAIN or type(right) in _PLAIN
    except Exception:  # noqa: BLE001 - a metaclass may define its own hash
        return right
    if not plain:
        _look((left, right))
    return right


def pair(left: Any, right: Any) -> tuple[Any, Any]:
    """Checks two operands and returns both."""
    __tracebackhide__ = True
    against(left, right)
    return left, right


def _lies_on(left: Shape, right: Shape) -> bool:
    """Whether one shape is the end of the other: the fast path for the most frequent case."""
    if len(left) > len(right):
        return left[len(left) - len(right) :] == right
    return right[len(right) - len(left) :] == left


def args(function: Any, /, *arguments: Any) -> tuple[Any, ...]:
    """The operands of a function's call; checked if the function broadcasts."""
    __tracebackhide__ = True
    if not _are_one(arguments):
        count = _broadcasting(function)
        if count > 1:
            _look(arguments[:count])
    return arguments


def args_of(root: Any, path: str, /, *arguments: Any) -> tuple[Any, ...]:
    """The operands of a call of `root.path`; checked if that is a module's function that
    broadcasts. Attributes of other objects are not read, because they may compute.
    """
    __tracebackhide__ = True
    if not _are_one(arguments):
        for name in path.split("."):
            if type(root) is not ModuleType:
                return arguments
            root = vars(root).get(name)
        count = _broadcasting(root)
        if count > 1:
            _look(arguments[:count])
    return arguments


def _are_one(arguments: Sequence[Any]) -> bool:
    """Whether there are two arrays, and one lies on the other or both have one rank."""
    if len(arguments) != 2 or not type(arguments[0]) is type(arguments[1]) is np.ndarray:
        return False
    left, right = arguments
    return left.ndim == right.ndim or _lies_on(left.shape, right.shape)


def _broadcasting(function: Any) -> int:
    """The number of a function's operands that broadcast against each other."""
    if type(function) is np.ufunc:
        return int(function.nin) if function.signature is None else 0
    try:
        count = _FUNCTIONS.get(function, 0)
        name = getattr(function, "__name__", None)
        torch = sys.modules.get("torch")
        if not count and torch is not None and type(name) is str and name in _OF_TORCH:
            count = _OF_TORCH[name] if function is getattr(torch, name, None) else 0
    except Exception:  # noqa: BLE001 - it has no hash, or its name raises: not a known function
        return 0
    return count


def _look(operands: Sequence[Any]) -> None:
    __tracebackhide__ = True
    shapes = [_shape(operand) for operand in operands]
    if all(shape is None for shape in shapes):
        return
    listed = [_listed(o) if s is None else s for o, s in zip(operands, shapes, strict=True)]
    complete = tuple(shape for shape in listed if shape is not None)
    if len(complete) == len(listed):
        _judge(complete)


def _shape(operand: Any) -> Shape | None:
    """An array's shape; None if it is no array, or does not broadcast as NumPy's arrays do."""
    kind: Any = type(operand)
    try:
        # Reading the type or shape of an operand may raise: a metaclass may have no hash, a nested
        # tensor no shape. The user's operation must run nevertheless.
        shape = operand.shape if _is_array(kind) else None
        return tuple(shape) if isinstance(shape, tuple) else None
    except Exception:  # noqa: BLE001 - see above
        return None


@functools.lru_cache(1024)
def _is_array(kind: Any) -> bool:
    """Whether a type is an array type; dtypes and structures of shapes have a shape too."""
    bases = kind.__mro__[:-1]
    roots = {str(base.__module__).partition(".")[0] for base in bases}
    if roots.isdisjoint(_LIBRARIES) or issubclass(kind, np.matrix):
        return False
    tensor = getattr(sys.modules.get("torch"), "Tensor", np.ndarray)
    return issubclass(kind, (np.ndarray, np.generic, tensor)) or any(
        "__array_namespace__" in vars(base) for base in bases
    )


def _listed(operand: Any) -> Shape | None:
    """The shape that NumPy makes of numbers and lists beside an array."""
    kind = type(operand)
    if kind is int or kind is float or kind is bool or kind is complex:
        return ()
    if kind is not list and kind is not tuple:
        return None
    try:
        return tuple(np.shape(operand))
    except Exception:  # noqa: BLE001 - ragged, or an item refuses: the operation raises
        return None


# Reporting.

_ALLOWED: ContextVar[bool] = ContextVar("zerostride.lint.allowed", default=False)


@contextmanager
def allowed() -> Iterator[None]:
    """No broadcast inside it is an accident: `with zerostride.pytest_plugin.allowed(): ...`."""
    token = _ALLOWED.set(True)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


@dataclass(slots=True)
class Watch:
    """How accidents are reported; the plugin sets it.

    Attributes:
        enabled: whether accidents are reported.
        report: called with each accident; it raises.
    """

    enabled: bool = False
    report: Callable[[Accident], None] | None = None


WATCH = Watch()


def _judge(shapes: tuple[Shape, ...]) -> None:
    __tracebackhide__ = True
    if WATCH.enabled and WATCH.report and is_accident(shapes) and not _ALLOWED.get():
        WATCH.report(_accident(_caller(), shapes))


def _caller() -> FrameType:
    """The frame of the code under test."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    assert frame is not None
    return frame


def _accident(frame: FrameType, shapes: tuple[Shape, ...]) -> Accident:
    path, line = frame.f_code.co_filename, frame.f_lineno
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    source = _segment(path, *positions) or linecache.getline(path, line).strip()
    return Accident(path, positions[0] or line, _short(source, 100), _names(source, shapes), shapes)


def _segment(
    path: str, line: int | None, end: int | None, column: int | None, last: int | None
) -> str:
    """The text of an expression, its lines joined; "" if unknown."""
    if line is None or end is None or column is None or last is None:
        return ""
    lines = [linecache.getline(path, k).encode() for k in range(line, end + 1)]
    if not all(lines):
        return ""
    lines[-1] = lines[-1][:last]
    lines[0] = lines[0][column:]
    return " ".join(part.decode(errors="replace").strip() for part in lines)


def _names(source: str, shapes: Sequence[Shape]) -> tuple[str, ...]:
    """The operands as written; x, y, z if the source does not tell."""
    try:
        node: Any = ast.parse(f"({source})", mode="eval").body
    except SyntaxError:
        node = _augmented(source)
    nodes: list[Any] = []
    if isinstance(node, ast.BinOp):
        nodes = [node.left, node.right]
    elif isinstance(node, ast.Compare):
        nodes = [node.left, *node.comparators]
    elif isinstance(node, ast.AugAssign):
        nodes = [node.target, node.value]
    elif isinstance(node, ast.Call):
        nodes = list(node.args[: len(shapes)])
    if len(nodes) != len(shapes):
        nodes = [ast.Name(name) for name in "xyz"[: len(shapes)]]
    return tuple(_short(ast.unparse(operand), 24) for operand in nodes)


def _augmented(source: str) -> ast.stmt | None:
    try:
        return ast.parse(source).body[0]
    except (SyntaxError, IndexError):
        return None


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 3] + "..."


__all__ = [
    "WATCH",
    "Accident",
    "add",
    "against",
    "allowed",
    "and_",
    "args",
    "args_of",
    "eq",
    "floordiv",
    "ge",
    "gt",
    "is_accident",
    "le",
    "lshift",
    "lt",
    "mod",
    "mul",
    "ne",
    "or_",
    "pair",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
]
