"""The rules: one align function and one row each.

A rule follows its document; `engines` has the behaviour of releases. An align function chooses the
result axis of each operand axis and the axes that may stretch. It may ask about sizes only whether
two are equal and whether one is 1. Sizes are outermost first everywhere; :func:`whdc` converts
ncnn's order.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..errors import BroadcastError, Misfit, Reason
from ..sizes import Asker, Shape, Undecided, as_tuple
from ..system.spelling import near
from .alignment import Alignment, Attribute, Attributes, Rule
from .plugins import Table

_OPENVINO = "OpenVINO documentation, 'Broadcast Rules For Elementwise Operations', "
_BROADCAST_3 = "OpenVINO operation specification, 'Broadcast-3', "


def right_aligned(shapes: Iterable[Shape]) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Result rank and mapping with the last axes aligned."""
    ranks = [len(shape) for shape in shapes]
    most = max(ranks)
    return most, tuple(tuple(range(most - rank, most)) for rank in ranks)


def align_none(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Identical shapes only."""
    rank = len(shapes[0])
    for k, shape in enumerate(shapes):
        if len(shape) != rank:
            raise Misfit(
                Reason.NOT_IDENTICAL, f"rank {len(shape)} of operand {k} against rank {rank}"
            )
    identity = tuple(range(rank))
    return Alignment(rank, (identity,) * len(shapes), ((),) * len(shapes))


def align_numpy(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Right-aligned; any operand may stretch."""
    rank, mapping = right_aligned(shapes)
    return Alignment(rank, mapping, (range(rank),) * len(shapes))


def align_pdpd(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """B's axes from `axis` on, its trailing ones dropped; only B stretches."""
    a, b = shapes
    axis = one_way_axis(a, b, attributes["axis"])
    count = len(b)
    while count and asker.is_one(b[count - 1]):
        count -= 1
    check_fits(axis, count, len(a))
    mapping = (*range(axis, axis + count), *[None] * (len(b) - count))
    return Alignment(len(a), (tuple(range(len(a))), mapping), ((), range(len(a))))


def one_way_axis(a: Shape, b: Shape, axis: int) -> int:
    """The axis of A where B starts: −1 means the difference of ranks; other negative ones are
    refused.
    """
    if len(b) > len(a):
        raise Misfit(
            Reason.RANK, f"the second operand has rank {len(b)}, more than the first's {len(a)}"
        )
    if axis < -1:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} is negative; only -1 may be")
    return len(a) - len(b) if axis == -1 else axis


def check_fits(axis: int, length: int, rank: int) -> None:
    """Refuses an operand of `length` axes at `axis` that sticks out of a result of `rank`."""
    if axis + length > rank:
        what = "1 axis" if length == 1 else f"{length} axes"
        raise Misfit(Reason.OVERRUN, f"{what} from axis {axis} on, in a result of rank {rank}")


def align_unidirectional(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Data right-aligned to the target; only the data stretches."""
    data, target = shapes
    check_data_rank(data, target)
    rank, mapping = right_aligned(shapes)
    return Alignment(rank, mapping, (range(rank), ()))


def check_data_rank(data: Shape, target: Shape) -> None:
    """Refuses data of a higher rank than the target's."""
    if len(data) > len(target):
        raise Misfit(
            Reason.RANK, f"the data has rank {len(data)}, more than the target's {len(target)}"
        )


def align_explicit(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Data axis i to target axis axes_mapping[i], in rising order; only the data stretches."""
    data, target = shapes
    axes = attributes["axes_mapping"]
    if len(axes) != len(data):
        raise Misfit(
            Reason.ATTRIBUTE, f"axes_mapping has {len(axes)} entries for {len(data)} data axes"
        )
    check_axes(axes, len(target))
    return Alignment(len(target), (axes, tuple(range(len(target)))), (range(len(target)), ()))


def check_axes(axes: tuple[int, ...], rank: int) -> None:
    """Refuses axes out of range, repeated, or not rising."""
    for axis in axes:
        if not 0 <= axis < rank:
            raise Misfit(
                Reason.AXIS_RANGE, f"axes_mapping has {axis}; target axes are 0..{rank - 1}"
            )
    if len(set(axes)) < len(axes):
        raise Misfit(Reason.DUPLICATE_AXES, f"axes_mapping {list(axes)} repeats an axis")
    if list(axes) != sorted(axes):
        raise Misfit(
            Reason.TRANSPOSES, f"axes_mapping {list(axes)} is not sorted; that would transpose"
        )


#: Axes of an ncnn Mat, without the batch.
NCNN_RANK = 4


def align_ncnn(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Left-aligned; a vector whose length differs from the other's outermost extent is
    right-aligned.

    A scalar stretches along every axis. The result of two scalars is a vector of length 1.
    """
    a, b = shapes
    rank = max(len(a), len(b), 1)
    mapping = (_ncnn_places(asker, a, b, rank), _ncnn_places(asker, b, a, rank))
    return Alignment(rank, mapping, (range(rank), range(rank)))


def _ncnn_places(asker: Asker, shape: Shape, other: Shape, rank: int) -> tuple[int, ...]:
    vector = len(shape) == 1 and len(other) > 1
    start = rank - 1 if vector and not asker.equal(shape[0], other[0]) else 0
    return tuple(range(start, start + len(shape)))


def align_paddle(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """The smaller operand, either one, from `axis` on; both may stretch."""
    x, y = shapes
    rank, small = max(len(x), len(y)), min(len(x), len(y))
    start = _paddle_start(asker, x, y, attributes["axis"])
    check_fits(start, small, rank)
    mapping = tuple(
        tuple(range(start, start + small)) if len(shape) < rank else tuple(range(rank))
        for shape in shapes
    )
    return Alignment(rank, mapping, (range(rank), range(rank)))


def _paddle_start(asker: Asker, x: Shape, y: Shape, axis: int) -> int:
    rank, difference = max(len(x), len(y)), abs(len(x) - len(y))
    if difference == 0:
        # One differing axis is enough: stop asking at the first.
        if axis not in (-1, 0) and not all(map(asker.equal, x, y)):
            raise Misfit(Reason.AXIS_RANGE, f"axis {axis} with equal ranks; it must be -1 or 0")
        return 0
    if not -rank <= axis < rank:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} is not in {-rank}..{rank - 1}")
    start = axis if axis >= 0 else difference + axis + 1
    if start < 0:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} would start at {start}")
    return start


def align_onnx6(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """With broadcast=1, B is one element, or equals a run of A's axes from `axis` (default: the
    last axes).
    """
    a, b = shapes
    identity = tuple(range(len(a)))
    if not attributes["broadcast"]:
        if attributes["axis"] is not None:
            raise Misfit(Reason.ATTRIBUTE, "axis has no meaning without broadcast=1")
        return align_none(asker, shapes, attributes)
    if attributes["broadcast"] != 1:
        raise Misfit(Reason.ATTRIBUTE, f"broadcast is 0 or 1, not {attributes['broadcast']}")
    axis = one_way_axis(a, b, -1)
    if all(map(asker.is_one, b)):
        return Alignment(len(a), (identity, identity[axis:]), ((), identity))
    if attributes["axis"] is not None:
        axis = attributes["axis"]
        if axis < 0:
            raise Misfit(Reason.AXIS_RANGE, f"axis {axis} is negative")
    check_fits(axis, len(b), len(a))
    # The run must be equal: a 1 in B does not stretch, only absent axes do.
    return Alignment(len(a), (identity, identity[axis : axis + len(b)]), ((), ()))


_ANY_NUMBER = (1, 2**31)
_AXIS = MappingProxyType({"axis": Attribute(-1)})

_OWN = (
    Rule(
        "none",
        align_none,
        "Shapes must be identical.",
        _OPENVINO + "none broadcast",
        operands=_ANY_NUMBER,
    ),
    Rule(
        "numpy",
        align_numpy,
        "Right-aligned; along each axis sizes are equal or one of them is 1.",
        _OPENVINO + "NumPy broadcast; NumPy user guide, 'Broadcasting'",
        operands=_ANY_NUMBER,
    ),
    Rule(
        "pdpd",
        align_pdpd,
        "B is laid over A from `axis` on; its trailing ones are ignored; only B stretches.",
        _OPENVINO + "PDPD broadcast",
        attributes=_AXIS,
        one_way="only the second operand may stretch, to the first",
    ),
    Rule(
        "unidirectional",
        align_unidirectional,
        "Data right-aligned to the target shape; only the data stretches.",
        _BROADCAST_3 + "mode numpy",
        to_target=True,
        one_way="only the data may stretch, to the target",
    ),
    Rule(
        "bidirectional",
        align_numpy,
        "As multiplying by ones of the target shape: both may stretch.",
        _BROADCAST_3 + "mode bidirectional; 'Bidirectional Broadcast Rules'",
        to_target=True,
    ),
    Rule(
        "explicit",
        align_explicit,
        "Data axis i lands on target axis axes_mapping[i], in rising order.",
        _BROADCAST_3 + "mode explicit",
        attributes=MappingProxyType({"axes_mapping": Attribute(required=True)}),
        to_target=True,
        one_way="only the data may stretch, to the target",
    ),
    Rule(
        "paddle",
        align_paddle,
        "The operand of lower rank lies at `axis`; both may stretch.",
        "Paddle 3.3.1, elementwise_* with axis, measured",
        attributes=_AXIS,
    ),
    Rule(
        "ncnn",
        align_ncnn,
        "Left-aligned; a vector that differs from the outermost extent: right-aligned.",
        "ncnn documentation, 'binaryop-broadcasting'",
        max_rank=NCNN_RANK,
    ),
    Rule(
        "mnn",
        align_numpy,
        "NumPy's rule, up to 6 axes.",
        "MNN documentation on broadcasting: MAX_DIM 6",
        operands=_ANY_NUMBER,
        max_rank=6,
    ),
    Rule(
        "onnx6",
        align_onnx6,
        "With broadcast=1, B is one element or equals a run of A's axes at `axis`.",
        "ONNX operator documents, Add-1 and Add-6",
        attributes=MappingProxyType({"axis": Attribute(), "broadcast": Attribute(0)}),
        one_way="B must equal a run of A's axes, or have one element",
    ),
)


def _accept(rule: Rule, package: str) -> Rule:
    """Checks another package's rule: it may not have a mode's name."""
    if rule.name in MODES:
        raise ValueError(f"{rule.name!r} is a mode of Broadcast ops")
    return guarded(rule, package)


def guarded(rule: Rule, package: str) -> Rule:
    """Another package's rule, with its exceptions turned into refusals that name the package. So a
    faulty rule does not stop a listing of all rules.
    """
    if rule.align.__module__.startswith("zerostride."):
        checked = rule.check
        if checked is None or getattr(checked, "__module__", "").startswith("zerostride."):
            return rule
    align = functools.partial(_guard, rule.align, package)
    check = None if rule.check is None else functools.partial(_guard, rule.check, package)
    return replace(rule, align=align, check=check)


def _guard(function: Callable[..., Any], package: str, *args: Any) -> Any:
    try:
        return function(*args)
    except (Misfit, Undecided):
        raise
    except Exception as error:
        name = getattr(function, "__name__", "its rule")
        words = f"{type(error).__name__}: {error}"
        raise Misfit(Reason.PLUGIN, f"{name} of {package} failed: {words}") from error


#: Every rule by its name; entry points of the group `zerostride.rules` add to it.
RULES: Table[Rule] = Table("zerostride.rules", Rule, _OWN, _accept, operator.attrgetter("name"))

#: A Broadcast op's mode to the rule it uses.
MODES: Mapping[str, str] = MappingProxyType(
    {"numpy": "unidirectional", "bidirectional": "bidirectional", "explicit": "explicit"}
)


def find_rule(name: Any, *, to_target: bool) -> Rule:
    """The row of the rule called `name`; a BroadcastError lists the names otherwise.

    Args:
        name: for element-wise ops a rule's name, for Broadcast ops a mode.
        to_target: whether a Broadcast op asks.
    """
    key = MODES.get(name, name) if to_target and isinstance(name, str) else name
    rule = RULES.get(key) if isinstance(key, str) else None
    if rule is not None and rule.to_target == to_target:
        return rule
    names = list(MODES) if to_target else [r.name for r in RULES.values() if not r.to_target]
    detail = f"there is no {'mode' if to_target else 'element-wise rule'} {name!r}"
    if rule is not None:
        detail = (
            f"{rule.name!r} is a rule of {'Broadcast' if rule.to_target else 'element-wise'} ops"
        )
    close = near(name, names) if rule is None and isinstance(name, str) else []
    listed = f"did you mean {close[0]}?" if close else f"one of {', '.join(names)}"
    raise BroadcastError(
        detail,
        reason=Reason.UNKNOWN_RULE,
        rule=str(name),
        hint=("plan_to takes it as mode; " if rule is not None and rule.to_target else "") + listed,
    )


def whdc(shape: Iterable[Any]) -> tuple[Any, ...]:
    """A shape in ncnn's order [w], [w,h], [w,h,c], [w,h,d,c] as zerostride's, and back.

    Raises:
        BroadcastError: not a sequence of sizes.

    >>> whdc([2, 3, 4])
    (4, 3, 2)
    """
    try:
        return as_tuple(shape)[::-1]
    except Misfit as misfit:
        raise BroadcastError(
            misfit.detail, reason=misfit.reason, hint="pass a shape: whdc((8, 8, 16))"
        ) from None


__all__ = ["MODES", "RULES", "find_rule", "guarded", "whdc"]
