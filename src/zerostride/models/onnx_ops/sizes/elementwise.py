"""Rows of ops that broadcast tensors, or keep a tensor's sizes.

A broadcast follows the rule of its site (:mod:`...formats.onnx.sites`). An audit uses the same
table, so an op has one rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....core.plan import Plan
from ....core.rules import RULES
from ....errors import BroadcastError, Reason
from ....sizes import Answer, is_one
from ....sizes.condition import ALWAYS, Condition
from ....sizes.dim import Dim, Number, dim_of_terms
from ...ir.graph import Node, Value
from ...ir.site import Kind, Site
from ..sites import find_site
from .facts import (
    UNKNOWN,
    Element,
    Fact,
    NoSizes,
    OpCall,
    Open,
    Results,
    Unclear,
    count_of,
    place,
    product,
    target_sizes,
)
from .numbers import UNARY, apply, arithmetic, array, attempted, cast, choice, exact, filled, listed

#: The reasons for which a rule refuses whatever the sizes are; others are limits of this package.
_CERTAIN = frozenset(
    {
        Reason.EXTENT_MISMATCH,
        Reason.NOT_IDENTICAL,
        Reason.ONE_WAY,
        Reason.RANK,
        Reason.AXIS_RANGE,
    }
)


#: Symbols up to which a condition is simplified. The solver takes milliseconds for these, and
#: seconds for a sum of sixty tensors that all have their own sizes.
MAX_SIMPLIFIED = 6


def site_of(call: OpCall) -> Site | None:
    """The site of a call: its operands and rule."""
    values: list[Value | None] = []
    for position, fact in enumerate(call.facts):
        if fact is None:
            values.append(None)
            continue
        # A target is known if all its numbers are sizes.
        content: Any = fact.content
        if content is not None and not all(isinstance(item, (int, Dim)) for item in content):
            content = None
        values.append(Value(f"operand {position}", fact.shape, content=content))
    result = (Value("result", None),)
    node = Node(call.op, call.op, call.domain, call.version, tuple(values), result, call.attributes)
    return (call.find or find_site)(node)


def planned(site: Site, call: OpCall) -> tuple[Number | Open, ...]:
    """The shape that a site's rule gives; its conditions become needs."""
    shapes = []
    for operand in site.operands:
        if operand.shape is None:
            raise Unclear("the rank of an operand is unknown")
        shapes.append(operand.shape)
    try:
        plan = site.plan(tuple(shapes))
    except BroadcastError as error:
        if error.reason in _CERTAIN:
            raise NoSizes(error.detail) from None
        if error.reason is Reason.UNKNOWN_SIZE and site.rule.align is RULES["numpy"].align:
            return _roughly(shapes)
        raise Unclear(error.detail) from None
    text = " and ".join(f"({', '.join(map(str, shape))})" for shape in shapes)
    call.need(_conditions(plan), f"{call.op} broadcasts {text}")
    return tuple(bare(size) for size in plan.shape)


def _roughly(shapes: Sequence[Sequence[Any]]) -> tuple[Number | Open, ...]:
    """The shape by NumPy's rule, without conditions; several open sizes give a new one."""
    sizes: list[Number | Open] = []
    for axis in range(-max(map(len, shapes)), 0):
        wide = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        numbers = [size for size in wide if isinstance(size, int)]
        if len(wide) > 1:
            sizes.append(numbers[0] if numbers else Open())
        else:
            sizes.append(next(iter(wide), 1))
    return tuple(sizes)


def _conditions(plan: Plan) -> Condition:
    """A plan's conditions, simplified if it has few symbols."""
    exists = ALWAYS if plan.open is None else plan.open.exists
    return plan.conditions if len(exists.symbols) <= MAX_SIMPLIFIED else exists


def bare(size: Any) -> Number:
    """A size without the interval that belongs to one plan."""
    return dim_of_terms(size.const, size.terms) if isinstance(size, Dim) else size


def broadcast(call: OpCall) -> Results:
    """The element-wise ops: all operands by the rule of the op's version."""
    shapes = [fact.shape for fact in call.facts if fact is not None]
    if not shapes or any(shape is None for shape in shapes):
        return UNKNOWN
    if all(shape == shapes[0] for shape in shapes):
        shape = shapes[0]
    else:
        site = site_of(call)
        if site is None:
            return UNKNOWN
        shape = planned(site, call)
    return Fact(shape, arithmetic(call, shape))


#: Kinds whose plan's shape is the result's.
_WHOLE = frozenset({Kind.ELEMENTWISE, Kind.WHERE, Kind.EXPAND, Kind.PRELU})


def by_format(call: OpCall) -> Results:
    """Ops without an ONNX equivalent: the shape that their site's rule gives."""
    site = site_of(call)
    if site is None or site.kind not in _WHOLE or call.outputs != 1:
        return UNKNOWN
    return Fact(planned(site, call))


def where(call: OpCall) -> Results:
    """Where: three operands; its numbers if the condition's numbers are known."""
    result = broadcast(call)
    assert isinstance(result, Fact)
    facts = [fact for fact in call.facts if fact is not None]
    return Fact(
        result.shape, apply(choice, facts, result.shape) if result.shape is not None else None
    )


def expand(call: OpCall) -> Results:
    """Expand: data and target broadcast both ways; an unknown target size makes a new size."""
    data, target = call.shape(0), call.whole(1)
    if target is None:
        raise Unclear("the target is left out")
    for item in target:
        if isinstance(item, int) and item < 0:
            raise NoSizes(f"a target size of {item}")
    site = site_of(call)
    if site is None:
        return UNKNOWN
    # Unknown numbers of the target are 1 here and become new sizes below.
    numbers = tuple(1 if item is None else item for item in target)
    first, second = (replace(site.operands[0], shape=s) for s in (data, numbers))
    shape: tuple[Any, ...] = planned(replace(site, operands=(first, second)), call)
    for position, item in enumerate(reversed(target), start=1):
        if item is None and (position > len(data) or is_one(data[-position]) is not Answer.NO):
            axis = len(shape) - position
            shape = (*shape[:axis], Open(), *shape[axis + 1 :])
    values = array(call.fact(0))
    content = None
    if values is not None and count_of(shape) is not None:
        content = listed(np.broadcast_to(values, shape))
    return Fact(shape, content)


def unary(call: OpCall) -> Results:
    """Ops of one tensor that keep its sizes; for a few the numbers are followed."""
    fact = call.fact(0)
    function = cast(call.integer("to")) if call.op == "Cast" else UNARY.get(call.op)
    content = None
    if function is not None and fact.content is not None:
        content = tuple(attempted(function, item) for item in fact.content)
    first = Fact(fact.shape, content)
    return first if call.outputs < 2 else (first, *[Fact(fact.shape)] * (call.outputs - 1))


def by_site(call: OpCall) -> Results:
    """Ops whose further operands broadcast to the first; the result has the first one's shape."""
    shape = call.shape(0)
    site = site_of(call)
    modelled = site is not None and site.kind not in (Kind.NOT_MODELLED, Kind.CUSTOM)
    if site is not None and modelled and all(part.shape is not None for part in site.operands):
        planned(site, call)
    return Fact(shape)


def normalised(call: OpCall) -> Results:
    """Normalisations: the data's shape, then statistics by the op's document."""
    data = call.shape(0)
    by_site(call)
    rest: tuple[Fact, ...] = (UNKNOWN,) * (call.outputs - 1)
    if call.op in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
        axis = call.axis(len(data), -1)
        rest = (Fact((*data[:axis], *(1,) * (len(data) - axis))),) * (call.outputs - 1)
    elif call.op == "BatchNormalization":
        rest = (Fact(data[1:2] if len(data) > 1 else None),) * (call.outputs - 1)
    return (Fact(data), *rest)


def quantized(call: OpCall) -> Results:
    """DynamicQuantizeLinear: the data, one scale and one zero point."""
    return Fact(call.shape(0)), Fact(()), Fact(())


# Products.


def _matrix_product(
    call: OpCall, a: tuple[Number, ...], b: tuple[Number, ...], site: Site | None
) -> tuple[Number | Open, ...]:
    """numpy.matmul: a vector is a row or a column; the axes before the last two broadcast."""
    if not a or not b:
        raise NoSizes("a product of a tensor without axes")
    call.same(a[-1], b[-2] if len(b) > 1 else b[0], "rows and columns of the product")
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    batch_a, batch_b = a[:-2], b[:-2]
    batch: tuple[Number | Open, ...]
    if not batch_a or not batch_b or batch_a == batch_b:
        batch = batch_a or batch_b
    elif site is not None and site.kind is Kind.MATMUL:
        batch = planned(site, call)
    else:
        batch = _both_ways(call, batch_a, batch_b)
    return (*batch, *rows, *columns)


def _both_ways(call: OpCall, a: tuple[Number, ...], b: tuple[Number, ...]) -> tuple[Number, ...]:
    probe = OpCall("Add", "", 14, (Fact(a), Fact(b)), {}, 1, call.needs)
    fact = broadcast(probe)
    assert isinstance(fact, Fact)
    if fact.shape is None:
        raise Unclear("the batch is not known")
    return fact.shape


def matmul(call: OpCall) -> Results:
    """MatMul and its quantised kin: data and weights, the batch by the site's rule."""
    second = 3 if call.op == "QLinearMatMul" else 1
    site = site_of(call)
    return Fact(_matrix_product(call, call.shape(0), call.shape(second), site))


def gemm(call: OpCall) -> Results:
    """Gemm: a product of two matrices, to which C broadcasts one way."""
    a, b = call.shape(0), call.shape(1)
    if len(a) != 2 or len(b) != 2:
        raise NoSizes(f"Gemm of ranks {len(a)} and {len(b)}")
    rows = a[::-1] if call.integer("transA") else a
    columns = b[::-1] if call.integer("transB") else b
    call.same(rows[1], columns[0], "rows and columns of the product")
    site = site_of(call) if call.has(2) and call.fact(2).shape is not None else None
    if site is not None:
        planned(site, call)
    return Fact((rows[0], columns[1]))


def einsum(call: OpCall) -> Results:
    """Einsum: every letter is one size; a 1 stretches, as in NumPy and ONNX Runtime."""
    equation = str(call.attributes.get("equation", "")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(call.facts):
        raise NoSizes(f"an equation of {len(terms)} terms for {len(call.facts)} operands")
    letters: dict[str, Number] = {}
    batch: tuple[Number, ...] = ()
    for position, term in enumerate(terms):
        shape = call.shape(position)
        before, dots, after = term.partition("...")
        hidden = len(shape) - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise NoSizes(f"the term {term!r} for an operand of rank {len(shape)}")
        middle = shape[len(before) : len(before) + hidden]
        batch = _both_ways(call, batch, middle) if batch and middle else batch or middle
        outer = shape[: len(before)] + shape[len(before) + hidden :]
        own: dict[str, Number] = {}
        for letter, size in zip(before + after, outer, strict=True):
            if letter in own:  # a diagonal
                call.same(own[letter], size, f"the letter {letter!r} of one operand")
            own[letter] = size
            letters[letter] = _stretched(call, letters, letter, size)
    if not arrow:
        once = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    before, dots, after = right.partition("...")
    leading = [letters[letter] for letter in before]
    return Fact((*leading, *(batch if dots else ()), *(letters[letter] for letter in after)))


def _stretched(call: OpCall, letters: Mapping[str, Number], letter: str, size: Number) -> Number:
    bound = letters.get(letter)
    return size if bound is None or bound == size else _both_ways(call, (bound,), (size,))[0]


# Tensors from numbers.


def shape_of(call: OpCall) -> Results:
    """Shape: the sizes of a tensor as its numbers."""
    shape = call.fact(0).shape
    if shape is None:
        return Fact((Open(),))
    rank = len(shape)
    start, end = call.integer("start"), call.integer("end", rank)
    start, end = (max(0, min(p + rank if p < 0 else p, rank)) for p in (start, end))
    part = shape[start : max(start, end)]
    return Fact((len(part),), tuple(part))


def size_of(call: OpCall) -> Results:
    """Size: how many elements a tensor has."""
    shape = call.fact(0).shape
    return Fact((), None if shape is None else (product(shape),))


def constant_of_shape(call: OpCall) -> Results:
    """ConstantOfShape: sizes from numbers, one value everywhere."""
    shape = target_sizes(call, call.whole(0) or ())
    value: Element = None
    number = call.attributes.get("value", 0.0)
    if isinstance(number, int):
        value = number
    elif isinstance(number, float):
        value = exact(number)
    return Fact(shape, filled(shape, value))


def like(call: OpCall) -> Results:
    """Ops that make a tensor of another tensor's shape."""
    return Fact(call.shape(0))


def by_attribute(call: OpCall) -> Results:
    """Ops that make a tensor of the shape in an attribute."""
    shape = call.integers("shape")
    if shape is None or any(size < 0 for size in shape):
        raise Unclear("the shape is not given")
    return Fact(shape)


def along(call: OpCall) -> Results:
    """Ops along an axis (Softmax, CumSum): the data's shape; the axis must exist."""
    shape = call.shape(0)
    if "axis" in call.attributes and (shape or call.op != "Softmax"):
        place(call.integer("axis"), max(len(shape), 1))
    return Fact(shape)


# Ops of com.microsoft, ONNX Runtime's own.


def fused_product(call: OpCall) -> Results:
    """FusedMatMul: a MatMul, of matrices that may be transposed."""
    if any(call.integer(name) for name in ("transBatchA", "transBatchB")):
        raise Unclear("which axes it transposes is not followed")
    a, b = call.shape(0), call.shape(1)
    if call.integer("transA") and len(a) > 1:
        a = (*a[:-2], a[-1], a[-2])
    if call.integer("transB") and len(b) > 1:
        b = (*b[:-2], b[-1], b[-2])
    return Fact(_matrix_product(call, a, b, site_of(call)))


def pair(call: OpCall) -> Results:
    """QLinearAdd, QLinearMul: two tensors, by their site's rule."""
    site = site_of(call)
    return UNKNOWN if site is None else Fact(planned(site, call))


def as_first(call: OpCall) -> Results:
    """The shape of the first operand, if it is known."""
    return Fact(call.fact(0).shape)
