"""The source of a running expression: its text, its operands, and whether a comment allows it."""

from __future__ import annotations

import ast
import functools
import io
import linecache
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from .accident import COMMENT

#: Functions whose results count: 0, 1, 2 ... An axis that is inserted into one makes a grid.
_COUNTING = frozenset({"arange", "linspace", "logspace", "range"})


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that a frame evaluates.

    Attributes:
        path: the file.
        line: its first line.
        end: its last line.
        text: its source on one line.
        node: its syntax tree, None if there is no source.
    """

    path: str
    line: int
    end: int
    text: str
    node: Any

    def operands(self, count: int) -> list[Any]:
        """The nodes of the operands; an empty list if the source does not show so many."""
        node, nodes = self.node, []
        if isinstance(node, ast.BinOp):
            nodes = [node.left, node.right]
        elif isinstance(node, ast.Compare):
            nodes = [node.left, *node.comparators]
        elif isinstance(node, ast.AugAssign):
            nodes = [node.target, node.value]
        elif isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            if len(arguments) < count and isinstance(node.func, ast.Attribute):
                arguments.insert(0, node.func.value)  # a method: x.sub(y)
            nodes = arguments[:count]
        starred = any(isinstance(operand, ast.Starred) for operand in nodes)
        return [] if starred or len(nodes) != count else nodes

    def names(self, count: int, default: Sequence[str] = "xyz") -> tuple[str, ...]:
        """The operands as written, or the default names."""
        nodes = self.operands(count)
        words = [ast.unparse(node) for node in nodes] if nodes else default[:count]
        return tuple(short(word, 24) for word in words)


def expression(frame: FrameType) -> Expression:
    """The expression that a frame evaluates now."""
    return _expression(frame.f_code, frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)


@functools.lru_cache(4096)
def _expression(code: CodeType, path: str, line: int, instruction: int) -> Expression:
    first, end, *columns = list(code.co_positions())[instruction // 2]
    text = _segment(path, first, end, *columns) or linecache.getline(path, line).strip()
    return Expression(path, first or line, end or first or line, short(text, 100), _tree(text))


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


def _tree(text: str) -> Any:
    try:
        return ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        pass
    try:
        return ast.parse(text).body[0]  # x -= y
    except (SyntaxError, IndexError):
        return None


def short(words: str, most: int) -> str:
    """A text, cut off at a length."""
    return words if len(words) <= most else words[: most - 3] + "..."


# Comments.


def allowed_lines(source: bytes) -> frozenset[int]:
    """The lines of a module with the comment that allows them."""
    if COMMENT.encode() not in source:
        return frozenset()
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    return frozenset(
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and COMMENT in token.string
    )


@functools.lru_cache(256)
def _allowed(path: str) -> tuple[range, ...]:
    """The allowed lines of a file: of expressions, and of the bodies of functions and classes."""
    source = "".join(linecache.getlines(path))
    try:
        lines = allowed_lines(source.encode())
        tree = ast.parse(source) if lines else None
    except (SyntaxError, tokenize.TokenError):
        return ()
    bodies = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = [] if tree is None else [n for n in ast.walk(tree) if isinstance(n, bodies)]
    within = [range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in nodes if n.lineno in lines]
    return (*(range(line, line + 1) for line in lines), *within)


def is_allowed(place: Expression) -> bool:
    """Whether a comment allows an expression: on one of its lines, or on that of a `def` or a
    `class` around it.
    """
    lines = range(place.line, place.end + 1)
    return any(row.start <= lines[-1] and lines[0] < row.stop for row in _allowed(place.path))


# Deliberate axes.


def puts_axis(node: ast.expr) -> bool:
    """Whether it is `x[:, None]`, or `-x[np.newaxis]`."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(
        (isinstance(part, ast.Constant) and part.value is None) or last_name(part) == "newaxis"
        for part in parts
    )


def last_name(node: ast.AST) -> str:
    """The last name of `a.b.c`; "" for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def inserts_axis(node: Any) -> bool:
    """Whether an operand of PyTorch visibly has an inserted axis: `2 * x.unsqueeze(1).float()`."""
    return _under_axis(node) is not None


def _under_axis(node: Any) -> ast.expr | None:
    """The expression into which an operand inserts an axis: x of `2 * x.unsqueeze(1).float()`."""
    if isinstance(node, ast.BinOp):
        return _under_axis(node.left) or _under_axis(node.right)
    if isinstance(node, ast.UnaryOp):
        return _under_axis(node.operand)
    if isinstance(node, ast.Subscript):
        return node.value if puts_axis(node) else _under_axis(node.value)
    if isinstance(node, ast.Attribute):
        return _under_axis(node.value)
    if not isinstance(node, ast.Call):
        return None
    method = node.func.value if isinstance(node.func, ast.Attribute) else None
    if last_name(node.func) == "unsqueeze":
        return node.args[0] if method is None or len(node.args) > 1 else method
    return next(filter(None, map(_under_axis, [method, *node.args[:1]])), None)


def is_deliberate(place: Expression, frame: FrameType, count: int) -> bool:
    """Whether the source shows that operands of unequal rank are meant to stretch apart.

    An operand has an inserted axis in the expression itself; or in its assignment in the same
    function, where it counts (`rows = torch.arange(n)[:, None]`), or is the other operand with one
    more axis (`a = x[:, None]`, then `a - x`). `target = target[:, None]` shows nothing.
    """
    nodes = place.operands(count)
    if any(map(inserts_axis, nodes)):
        return True
    for node in nodes:
        under = _under_axis(_assigned(place, frame, node))
        others = {ast.unparse(other) for other in nodes if other is not node}
        if under is not None and (_counts(under) or ast.unparse(under) in others):
            return True
    return False


def _counts(node: ast.AST) -> bool:
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(last_name(call.func) in _COUNTING for call in calls)


def _assigned(place: Expression, frame: FrameType, node: Any) -> Any:
    """The expression that a name was last assigned before a line of the same function."""
    if not isinstance(node, ast.Name):
        return None
    value = None
    for name, line, expression in _assignments(place.path, frame.f_code.co_firstlineno):
        if name == node.id and line < place.line:
            value = expression
    return value


@functools.lru_cache(256)
def _assignments(path: str, first: int) -> tuple[tuple[str, int, Any], ...]:
    """The names that a function, or a module, assigns, each with its line and expression."""
    try:
        tree: Any = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return ()
    if first > 1:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        around = (n for n in ast.walk(tree) if isinstance(n, functions) and _begins(n, first))
        tree = next(around, None)
    if tree is None:
        return ()
    entries = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            entries += [(name, node.lineno, node.value) for name in names]
    return tuple(sorted(entries, key=lambda entry: entry[1]))


def _begins(node: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    return line in (node.lineno, *(decorator.lineno for decorator in node.decorator_list))


__all__ = [
    "Expression",
    "allowed_lines",
    "expression",
    "inserts_axis",
    "is_allowed",
    "is_deliberate",
    "last_name",
    "puts_axis",
    "short",
]
