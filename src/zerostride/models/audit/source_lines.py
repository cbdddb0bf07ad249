"""The fix of a finding as PyTorch code: the line that the node was exported from, changed.

A line is changed only where the operation in it is certain: the line parses alone, and it has as
many such operations as the model has nodes from it. The file that the line is from is not opened.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.plan import Plan
from ...derive.express import Expression
from ..findings import Finding
from ..ir.graph import Graph
from ..ir.origin import Origin

#: Longest line that is parsed.
MAX_LINE = 1000


@dataclass(frozen=True, slots=True)
class Written:
    """The spellings of an operation of PyTorch.

    Attributes:
        node: the ONNX op that it becomes.
        sign: its operator in Python, if it has one.
        functions: its functions and methods.
    """

    node: str
    sign: type[ast.AST] | None
    functions: tuple[str, ...]


#: By the name of the operation in PyTorch's core.
WRITTEN = {
    "add": Written("Add", ast.Add, ("add", "add_")),
    "sub": Written("Sub", ast.Sub, ("sub", "sub_", "subtract")),
    "mul": Written("Mul", ast.Mult, ("mul", "mul_", "multiply")),
    "div": Written("Div", ast.Div, ("div", "div_", "divide", "true_divide")),
    "pow": Written("Pow", ast.Pow, ("pow", "pow_")),
    "remainder": Written("Mod", ast.Mod, ("remainder",)),
    "maximum": Written("Max", None, ("maximum",)),
    "minimum": Written("Min", None, ("minimum",)),
    "where": Written("Where", None, ("where",)),
    "gt": Written("Greater", ast.Gt, ("gt", "greater")),
    "ge": Written("GreaterOrEqual", ast.GtE, ("ge", "greater_equal")),
    "lt": Written("Less", ast.Lt, ("lt", "less")),
    "le": Written("LessOrEqual", ast.LtE, ("le", "less_equal")),
    "eq": Written("Equal", ast.Eq, ("eq",)),
    "logical_and": Written("And", None, ("logical_and",)),
    "logical_or": Written("Or", None, ("logical_or",)),
    "linear": Written("Add", None, ("linear",)),
}
#: Modules whose functions take every operand as an argument.
_NAMESPACES = frozenset({"torch", "F", "nn.functional", "torch.nn.functional"})

#: The operations of each line, in the order of the model: names by what :func:`_line_of` gives.
Operations = Mapping[tuple[str, ...], Sequence[str]]


def _operations_by_line(graph: Graph) -> Operations:
    """The names of the operations that were exported from each line."""
    lines: dict[tuple[str, ...], dict[str, None]] = {}
    for node in graph.nodes:
        if node.origin is not None and node.origin.file:
            lines.setdefault(_line_of(node.origin), {})[node.origin.name] = None
    return {line: tuple(names) for line, names in lines.items()}


def _line_of(origin: Origin) -> tuple[str, ...]:
    return origin.file, str(origin.line), origin.module, origin.operator


def at_source(graph: Graph, findings: Mapping[int, Finding]) -> dict[int, Finding]:
    """The findings with the line of source behind their nodes, and the fix in that line.

    Args:
        graph: the model.
        findings: by the identity of their nodes.
    """
    operations = _operations_by_line(graph)
    changed = dict(findings)
    for node in graph.nodes:
        finding, origin = findings.get(id(node)), node.origin
        if finding is None or origin is None:
            continue
        fix = None
        if finding.fix is not None and origin.code:
            fix = _fixed(finding, origin, operations)
        changed[id(node)] = replace(finding, origin=origin, source_fix=fix)
    return changed


def _fixed(finding: Finding, origin: Origin, operations: Operations) -> str | None:
    """The line after the fix; None where the operation in it is not certain."""
    written = WRITTEN.get(_bare(origin.operator))
    tree = _parsed(origin.code)
    fix, plan = finding.fix, finding.source
    if written is None or written.node != finding.op or tree is None:
        return None
    if fix is None or fix.attributes or fix.explicit or fix.swapped or not isinstance(plan, Plan):
        return None
    source, statement = tree
    places = _calls_of_module(statement, origin)
    if origin.caller == origin.module:
        places = [place for place in _in_order(statement) if _operands(place, written) is not None]
    names = operations[_line_of(origin)]
    if not places or (len(places) > 1 and len(names) % len(places)):
        return None
    place = places[names.index(origin.name) % len(places)]
    if _bare(origin.operator) == "linear":
        change = _linear(source, place, fix)
    else:
        change = _operation(source, place, written, fix, plan)
    if change is None:
        return None
    return _replaced(source, place, change, statement)


def operand_texts(finding: Finding) -> list[str] | None:
    """The operands of a finding as its line of source has them; None where that is not certain."""
    origin = finding.origin
    written = WRITTEN.get(_bare(origin.operator)) if origin is not None else None
    tree = _parsed(origin.code) if origin is not None and origin.code else None
    if written is None or written.node != finding.op or tree is None:
        return None
    source, statement = tree
    places = [_operands(place, written) for place in _in_order(statement)]
    listed = [operands for operands in places if operands is not None]
    if len(listed) != 1 or len(listed[0]) != len(finding.operands):
        return None
    texts = [_text(source, operand) for operand in listed[0]]
    simple = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
    return [
        text if isinstance(operand, simple) else f"({text})"
        for text, operand in zip(texts, listed[0], strict=True)
    ]


def _bare(operator: str) -> str:
    """The name alone: "add" of "aten.add.Tensor"."""
    parts = operator.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "aten" else ""


def _parsed(code: str) -> tuple[str, ast.stmt] | None:
    """The line as a statement; the head of a block gets an empty body."""
    if len(code) > MAX_LINE or not code.isascii():  # positions are in bytes
        return None
    for text in (code, f"{code} pass"):
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        return (code, body[0]) if len(body) == 1 else None
    return None


def _in_order(tree: ast.AST) -> list[ast.AST]:
    """The parts of a statement in the order in which Python computes them."""
    parts: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        parts += _in_order(child)
    return [*parts, tree]


def _operands(place: ast.AST, written: Written) -> list[ast.expr] | None:
    """The operands of an operation in the order of the node's; None if it is something else."""
    if isinstance(place, ast.BinOp) and written.sign is type(place.op):
        pair: list[ast.expr] = [place.left, place.right]
        # A number on the left is the operand of the tensor's own method.
        return pair[::-1] if isinstance(place.left, ast.Constant) else pair
    if isinstance(place, ast.Compare) and [type(op) for op in place.ops] == [written.sign]:
        return [place.left, *place.comparators]
    if isinstance(place, ast.AugAssign) and written.sign is type(place.op):
        return [place.target, place.value]
    if isinstance(place, ast.Call):
        function = place.func
        if isinstance(function, ast.Attribute) and function.attr in written.functions:
            own = ast.unparse(function.value) in _NAMESPACES
            return [*place.args] if own else [function.value, *place.args]
    return None


def _calls_of_module(statement: ast.stmt, origin: Origin) -> list[ast.AST]:
    """The calls of the module that has the node, such as `self.up(x)`."""
    name = origin.module[len(origin.caller) + 1 if origin.caller else 0 :]
    return [
        place
        for place in _in_order(statement)
        if isinstance(place, ast.Call) and len(place.args) == 1 and _path(place.func) == name
    ]


def _path(function: ast.expr) -> str:
    """The path of a module in its parent: "layers.0" of `self.layers[0]`."""
    text = ast.unparse(function).replace("['", ".").replace("']", "")
    text = text.replace("[", ".").replace("]", "")
    return text.removeprefix("self.") if text.startswith("self.") else ""


# The changed code.


def _operation(
    source: str, place: ast.AST, written: Written, fix: Expression, plan: Plan
) -> str | None:
    """An operation with its operands reshaped, and its result reshaped back."""
    operands = _operands(place, written)
    assert operands is not None
    if len(operands) < len(fix.shapes):
        return None
    text = _text(source, place)
    start = _column(place)
    changes = []
    for operand, shape, changed in zip(operands, fix.shapes, fix.changed, strict=False):
        if not changed or (isinstance(operand, ast.Constant) and not fix.merged_axes):
            continue
        if isinstance(place, ast.AugAssign) and operand is place.target:
            return None
        reshaped = _reshaped(source, operand, shape)
        if reshaped is None:
            return None
        if not isinstance(operand, ast.Constant):
            changes.append((_column(operand) - start, _end(operand) - start, reshaped))
    for begin, end, reshaped in sorted(changes, reverse=True):
        text = text[:begin] + reshaped + text[end:]
    if not fix.merged_axes:
        return text if changes else None
    back = _sizes(plan.shape)
    return None if back is None or isinstance(place, ast.stmt) else f"({text}).reshape({back})"


def _linear(source: str, place: ast.AST, fix: Expression) -> str | None:
    """A linear layer whose bias is added by itself, reshaped."""
    if not isinstance(place, ast.Call) or fix.merged_axes or fix.changed != (False, True):
        return None
    bias = _sizes(fix.shapes[1])
    function = "torch.nn.functional.linear"
    arguments = [_text(source, argument) for argument in place.args]
    if len(arguments) == 3:
        function = _text(source, place.func)
    elif len(arguments) == 1:
        layer = _text(source, place.func)
        arguments += [f"{layer}.weight", f"{layer}.bias"]
    if bias is None or len(arguments) != 3:
        return None
    x, weight, constant = arguments
    return f"{function}({x}, {weight}) + {constant}.reshape({bias})"


def _reshaped(source: str, operand: ast.expr, shape: Sequence[object]) -> str | None:
    sizes = _sizes(shape)
    text = _text(source, operand)
    if not isinstance(operand, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        text = f"({text})"
    return None if sizes is None else f"{text}.reshape({sizes})"


def _sizes(shape: Sequence[object]) -> str | None:
    """A shape as arguments of `reshape`; one open size is −1."""
    sizes = [str(size) if isinstance(size, int) else "-1" for size in shape]
    if not sizes:
        return "()"
    return ", ".join(sizes) if sizes.count("-1") <= 1 else None


def _replaced(source: str, place: ast.AST, change: str, statement: ast.stmt) -> str:
    """The line with one part changed, in parentheses where it needs them."""
    whole = place is statement or getattr(statement, "value", None) is place
    begin, end = _column(place), _end(place)
    enclosed = source[:begin].endswith("(") and source[end:].startswith(")")
    if isinstance(place, ast.Call) and not whole and not enclosed and " + " in change:
        change = f"({change})"
    return source[:begin] + change + source[end:]


def _text(source: str, place: ast.AST) -> str:
    return source[_column(place) : _end(place)]


def _column(place: ast.AST) -> int:
    return int(place.col_offset)  # type: ignore[attr-defined]


def _end(place: ast.AST) -> int:
    return int(place.end_col_offset)  # type: ignore[attr-defined]
