"""Inserts checks of the operands into a module's syntax tree; see `checks`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from .checks import _FUNCTIONS, _OF_TORCH
from .source import allowed_lines, last_name, puts_axis

_N = TypeVar("_N", bound=ast.AST)
#: The name by which rewritten code refers to `checks`; it cannot occur in source.
MODULE = "@zerostride"
_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
#: Last names of functions that may broadcast; each call by one of these names is checked.
_CALLS = frozenset(
    {
        *(k for k, f in vars(np).items() if isinstance(f, np.ufunc) and f.nin > 1),
        *(function.__name__ for function in _FUNCTIONS),
        *_OF_TORCH,
    }
)
#: Names and modules of compilers. They compile a function's own code, which cannot contain calls of
#: `checks`.
_COMPILERS = frozenset(
    {
        *("jit", "njit", "vectorize", "guvectorize", "stencil", "cfunc", "kernel", "jitclass"),
        *("generated_jit", "overload", "overload_method", "overload_attribute", "register_jitable"),
    }
)
_COMPILER_ROOTS = frozenset({"numba", "nb", "cuda", "triton", "taichi", "ti"})
#: Modules that have functions of those names, but call the code that they are given.
_CALLING_ROOTS = frozenset({"jax", "jnp", "numpy", "np"})
_PLAIN = (ast.Constant, ast.JoinedStr, ast.Dict, ast.Set, ast.Lambda)


def rewritten(tree: ast.Module, source: bytes) -> ast.Module:
    """The tree of a module, changed in place: its broadcasts check their operands.

    >>> for source in ("d = pred - target", "d = f(x) - target"):
    ...     tree = rewritten(ast.parse(source), source.encode())
    ...     print(ast.unparse(tree).replace("@zerostride", "zs"))
    d = pred - zs.against(pred, target)
    d = zs.sub(*zs.pair(f(x), target))
    """
    _Rewriter(allowed_lines(source), _Compiled(tree)).visit(tree)
    # Missing locations are not filled in. New nodes already have their place. pytest's nodes have a
    # first line and no last one; the module's last line could come before it, which Python refuses.
    return tree


class _Compiled:
    """The functions of a module that Numba and the like compile: decorated, or passed by name.

    Attributes:
        names: names of functions and classes that are passed to a compiler: `njit(f)`.
        lambdas: lambdas that are passed to a compiler, by identity.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.names: set[str] = set()
        self.lambdas: set[int] = set()
        self._compilers = set(_COMPILERS)
        self._roots = set(_COMPILER_ROOTS)
        self._calling = set(_CALLING_ROOTS)
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        for node in nodes:
            if isinstance(node, ast.Assign) and self.is_compiler(node.value):
                self._compilers.update(t.id for t in node.targets if isinstance(t, ast.Name))
        for node in nodes:
            if isinstance(node, ast.Call) and self.is_compiler(node.func):
                arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
                self.names.update(a.id for a in arguments if isinstance(a, ast.Name))
                self.lambdas.update(id(a) for a in arguments if isinstance(a, ast.Lambda))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            module = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
            root = module.partition(".")[0]
            if root in ("jax", "numpy"):
                self._calling.add(bound)
            elif isinstance(node, ast.Import) and root in _COMPILER_ROOTS:
                self._roots.add(bound)
            elif root in _COMPILER_ROOTS and alias.name in _COMPILERS:
                self._compilers.add(bound)

    def is_compiler(self, node: ast.expr) -> bool:
        """Whether a call of it compiles its argument: `njit`, `njit(cache=True)`, `partial(njit,
        cache=True)`.
        """
        if isinstance(node, ast.Call):
            first = node.args[0] if node.args else None
            if last_name(node.func) == "partial":
                return first is not None and self.is_compiler(first)
            # A name as an argument may be a signature; a lambda is the function to compile.
            return not isinstance(first, ast.Lambda) and self.is_compiler(node.func)
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if last_name(root) in self._calling:
            return False
        return last_name(node) in self._compilers or last_name(root) in self._roots

    def has(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """Whether a function, or a class, is compiled."""
        return node.name in self.names or any(map(self.is_compiler, node.decorator_list))


class _Rewriter(ast.NodeTransformer):
    """Changes the expressions that may broadcast arrays; allowed ones and all others stay."""

    def __init__(self, allowed: frozenset[int], compiled: _Compiled) -> None:
        self.allowed = allowed
        self.compiled = compiled

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.pattern | ast.alias) or type(node).__name__ == "TypeAlias":
            return node  # patterns, imports and type aliases are not evaluated like expressions
        return super().visit(node)

    def _ok(self, node: ast.expr | ast.stmt) -> bool:
        last = node.end_lineno or node.lineno
        return any(line in self.allowed for line in range(node.lineno, last + 1))

    # Expressions.

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        name = _OPERATORS.get(type(node.op))
        skipped = name is None or self._ok(node) or not _may_broadcast(node.left, node.right)
        self.generic_visit(node)
        if skipped:
            return node
        if isinstance(node.left, ast.Name):
            node.right = _against(node, node.left, node.right)
            return node
        return _looked(node, str(name), node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        name = _OPERATORS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        right = node.comparators[0]
        skipped = name is None or self._ok(node) or not _may_broadcast(node.left, right)
        self.generic_visit(node)
        if skipped:
            return node
        if isinstance(node.left, ast.Name):
            node.comparators = [_against(node, node.left, node.comparators[0])]
            return node
        return _looked(node, str(name), node.left, node.comparators[0])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arrays = [argument for argument in node.args if not isinstance(argument, _PLAIN)]
        many = len(arrays) > 1 or any(isinstance(argument, ast.Starred) for argument in arrays)
        broadcasts = last_name(node.func) in _CALLS and many
        skipped = not broadcasts or self._ok(node) or not _may_broadcast(*arrays)
        callee = None if skipped else _dotted(node.func)
        self.generic_visit(node)
        if callee is not None:
            root, path = callee
            named = [ast.Name(root, ast.Load()), *([ast.Constant(path)] if path else ())]
            looker = "args_of" if path else "args"
            looked = _at(node, ast.Call(_ours(looker, node), [*named, *node.args], []))
            node.args = [_at(node, ast.Starred(looked, ast.Load()))]
        return node

    # Statements.

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target = node.target
        skipped = not isinstance(target, ast.Name) or self._ok(node)
        skipped = skipped or not _may_broadcast(node.value)
        self.generic_visit(node)
        if not skipped and isinstance(target, ast.Name):
            node.value = _against(node, target, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._function(node)

    def _function(self, node: Any) -> Any:
        if node.lineno in self.allowed or self.compiled.has(node):
            return node
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        if node.lineno not in self.allowed and not self.compiled.has(node):
            self.generic_visit(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        if id(node) not in self.compiled.lambdas:
            self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if not (isinstance(node.value, ast.Lambda) and names & self.compiled.names):
            self.generic_visit(node)
        return node


def _may_broadcast(*operands: ast.expr) -> bool:
    """Whether arrays may broadcast by accident: no operand is a literal, and none visibly inserts
    an axis.
    """
    return not any(isinstance(operand, _PLAIN) or puts_axis(operand) for operand in operands)


def _dotted(node: ast.expr) -> tuple[str, str] | None:
    """The name at the start of a chain of attributes, and the rest: ("np", "add"); None for other
    expressions. Only the name is evaluated twice: attributes may be properties.
    """
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    return (node.id, ".".join(reversed(path))) if isinstance(node, ast.Name) else None


def _looked(node: ast.expr, name: str, left: ast.expr, right: ast.expr) -> ast.expr:
    """`name(*pair(left, right))` in the place of the expression."""
    both = _at(node, ast.Call(_ours("pair", node), [left, right], []))
    starred = _at(node, ast.Starred(both, ast.Load()))
    return _at(node, ast.Call(_ours(name, node), [starred], []))


def _against(node: ast.expr | ast.stmt, left: ast.Name, right: ast.expr) -> ast.expr:
    """`against(left, right)` in the place of the right operand: a name may be read twice. Both
    reads come before the right side is evaluated, which may assign to the name: `(x := ...)`.
    """
    again = ast.Name(left.id, ast.Load())
    return _at(node, ast.Call(_ours("against", node), [again, right], []))


def _ours(name: str, place: ast.expr | ast.stmt) -> ast.expr:
    """A function of `checks`. Its position has no width in the source: Python puts the beginning of
    a call at the end of a method's name.
    """
    line, column = place.lineno, place.col_offset
    at = {"lineno": line, "col_offset": column, "end_lineno": line, "end_col_offset": column}
    return ast.Attribute(ast.Name(MODULE, ast.Load(), **at), name, ast.Load(), **at)


def _at(place: ast.AST, node: _N) -> _N:
    """A node and its new children at the position of another node."""
    for child in ast.walk(node):
        if "lineno" in child._attributes and not hasattr(child, "lineno"):
            ast.copy_location(child, place)
    return node
