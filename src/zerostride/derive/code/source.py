"""A plan as source: fills in the templates of the table."""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...core.plan import Plan
from ...core.rules import whdc
from ...engines import ENGINES
from ...errors import BroadcastError, Reason
from ...sizes import Asker, Shape
from ...sizes.condition import ne
from ...sizes.dim import Number
from ...sizes.solve import excludes
from ..explain.facts import names_of
from ..explain.open import plan_facts
from ..express import express
from .targets import TARGETS, Each, Target


def code(plan: Plan, target: str, names: Sequence[str] = ()) -> str:
    """Source that computes a plan's broadcast in another framework.

    It reads open sizes from the operands' shapes and asserts the plan's conditions.

    Args:
        plan: any plan.
        target: a key of :data:`TARGETS`. For onnx and openvino the source makes a `model` with one
            output an operand; openvino-ir is the text of its .xml file, and stablehlo that of a
            module; for ncnn it is the text of a .param file that adds the two operands.
        names: what to call the operands: identifiers, distinct.

    Raises:
        BroadcastError: an unknown target, a name that cannot be used, or a plan that the target's
            measured release does not carry; open sizes, if the target needs numbers
            (``unknown_size``).
        NotExpressible: ncnn cannot express the plan.

    >>> import zerostride as zs
    >>> print(code(zs.plan((5, 5), (5,)), "ncnn"))
    7767517
    4 4
    Input x 0 1 x 0=5 1=5
    Input y 0 1 y 0=5
    Reshape y.reshape 1 1 y y.reshaped 0=5 1=1
    BinaryOp broadcast.add 2 1 x y.reshaped broadcast.sum 0=0
    """
    row = TARGETS.get(str(target))
    if row is None:
        named = target[:80] if isinstance(target, str) else ""  # type: ignore[redundant-expr]
        close = difflib.get_close_matches(named, TARGETS, 1)
        raise BroadcastError(
            f"there is no code for {target!r}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(TARGETS)}",
        )
    called = checked_names(plan, row, target, names)
    if plan.open is None and row.write is not None:
        check_limits(plan, row, target)
        return row.write(plan, called)
    if plan.open is not None:
        from .symbols import open_code

        return open_code(plan, row, target, called)
    check_limits(plan, row, target)
    operands = _ncnn_operands(plan, called) if target == "ncnn" else operands_of(plan, called)
    return written(row.parts, operands, common_fields(plan, operands))


def checked_names(plan: Plan, row: Target, target: str, names: Sequence[str]) -> tuple[str, ...]:
    """The operands' names, which must be identifiers that the source can use."""
    called = names_of(plan, names)[:-1]
    wrong = None
    if len(names) > len(called):
        wrong = f"{len(names)} names for {len(called)} operands"
    for n, name in enumerate(called):
        if not name.isidentifier() or keyword.iskeyword(name):
            wrong = f"{name!r} is not an identifier"
        elif row.ascii and not name.isascii():
            wrong = f"{name!r} is not written in ASCII"
        elif name in row.reserved:
            wrong = f"{name!r} is the module's name in the source"
        elif name in called[:n]:
            wrong = f"{name!r} names two operands"
    if wrong is None:
        return called
    raise BroadcastError(
        f"{wrong}; the source for {target} needs distinct identifiers",
        reason=Reason.ATTRIBUTE,
        rule=plan.rule,
        headline=f"no {target} source for this plan",
        hint="pass other names, or none",
    )


def check_limits(plan: Plan, row: Target, target: str) -> None:
    """Refuses plans that the target's measured release does not carry."""
    engine = ENGINES.get(row.engine or "")
    limits = [row.max_rank]
    if engine is not None:
        limits += [rule.max_rank for rule in engine.to_target.values()]
    most = min((limit for limit in limits if limit is not None), default=None)
    reason, detail = Reason.CRASH, ""
    if row.empty and (0 in plan.shape or any(0 in shape for shape in plan.operands)):
        detail = row.empty
    elif most is not None and plan.rank > most:
        reason, detail = Reason.RANK_LIMIT, f"{plan.rank} axes; {target} broadcasts at most {most}"
    elif engine is not None and plan.open is None:  # otherwise `symbols` finds the sizes
        for divergence in engine.divergences_of(plan.rule.op):
            if divergence.strikes is not None and divergence.strikes(plan, Asker()):
                reason, detail = divergence.effect, divergence.text
    if detail:
        raise BroadcastError(
            detail,
            reason=reason,
            rule=plan.rule,
            shapes=plan.operands,
            names=names_of(plan),
            headline=f"no {target} source for this plan",
        )


#: An einops name of an axis: "1", or a letter.
Pattern: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Operand:
    """The fields of an operand that templates use."""

    name: str
    shape: Shape
    aligned: Shape
    reshapes: bool
    stretches: bool
    pattern: Pattern | None = None

    def worded(self, shape: Shape, aligned: Shape) -> Operand:
        """The same, with sizes in the words of the source."""
        return replace(self, shape=shape, aligned=aligned)


def operands_of(plan: Plan, names: Sequence[str]) -> list[Operand]:
    """The operands in the form that templates use."""
    patterns = pattern_of(plan)
    rows = zip(names, plan.operands, plan.aligned, plan.stretched, patterns, strict=True)
    return [
        Operand(
            name,
            shape,
            aligned,
            (1,) * (plan.rank - len(shape)) + shape != aligned,
            bool(stretched) or len(shape) != plan.rank,
            pattern,
        )
        for name, shape, aligned, stretched, pattern in rows
    ]


def letter(axis: int) -> str:
    """The name of a result axis.

    >>> letter(0), letter(25), letter(26)
    ('a', 'z', 'a1')
    """
    times, position = divmod(axis, 26)
    return f"{chr(ord('a') + position)}{times or ''}"


def pattern_of(plan: Plan) -> list[Pattern | None]:
    """The operands' patterns; None if stretching or placement depends on open sizes."""
    mappings = {plan.axes_mapping}
    if plan.open is not None:
        mappings = {leaf.mapping for leaf in plan.open.accepted}
    if len(mappings) != 1:
        return [None] * len(plan.operands)
    right = tuple("1" if size == 1 else letter(k) for k, size in enumerate(plan.shape))
    patterns: list[Pattern | None] = []
    for mapping, aligned, stretched in zip(*mappings, plan.aligned, plan.stretched, strict=True):
        left = (
            "1" if a is None or 1 in (aligned[a], plan.shape[a]) else letter(a) for a in mapping
        )
        certain = all(
            aligned[axis] == 1 or _same(plan, aligned[axis], plan.shape[axis]) for axis in stretched
        )
        patterns.append((tuple(left), right) if certain else None)
    return patterns


def _same(plan: Plan, size: Number, full: Number) -> bool:
    """Whether two sizes of a plan are equal by its known facts."""
    return plan.open is not None and excludes(plan_facts(plan), ne(size, full))


def _ncnn_operands(plan: Plan, names: Sequence[str]) -> list[Operand]:
    """The operands in the order and with the shapes in which BinaryOp computes the plan."""
    expression = express(plan, None, engine="ncnn")
    pairs = list(zip(names, plan.operands, strict=True))[:: -1 if expression.swapped else 1]
    if expression.merged_axes and plan.rank:
        raise BroadcastError(
            f"a .param file has at most 4 axes; the plan has {plan.rank}",
            reason=Reason.RANK_LIMIT,
            rule=plan.rule,
            shapes=plan.operands,
            names=names,
            headline="no ncnn source for this plan",
            hint=f"merge axes before: {expression.describe(names)}",
        )
    return [
        # ncnn has no rank 0: a scalar is a vector of length 1.
        Operand(name, shape or (1,), extents or (1,), (extents or (1,)) != (shape or (1,)), True)
        for (name, shape), extents in zip(pairs, expression.shapes, strict=True)
    ]


def common_fields(plan: Plan, operands: Sequence[Operand]) -> dict[str, Any]:
    """The fields that are the same for all operands."""
    shapes = ", ".join(f"{operand.name}: {operand.shape}" for operand in operands)
    reshapes = sum(operand.reshapes for operand in operands)
    count = len(operands) + reshapes + 1
    return {
        "comment": f"# {shapes} -> {plan.shape}",
        "shape": plan.shape,
        "list": list(plan.shape),
        "rank": plan.rank,
        "layers": count,
        "blobs": count,
        "bottoms": " ".join(o.name + ".reshaped" * o.reshapes for o in operands),
    }


def written(
    parts: Sequence[str | Each], operands: Sequence[Operand], common: Mapping[str, Any]
) -> str:
    """Fills in the templates."""
    lines = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part.format(**common))
            continue
        for k, operand in enumerate(operands):
            template = part.reshaped if operand.reshapes else part.plain
            if not operand.reshapes and not operand.stretches and part.unchanged is not None:
                template = part.unchanged
            lines.append(template.format(**common, **_fields(operand, k, common["shape"])))
    return "\n".join(line for line in lines if line)


def _fields(operand: Operand, k: int, result: Sequence[Any]) -> dict[str, Any]:
    left, right = operand.pattern or ((), ())
    # A variable for the whole shape; the source indexes it.
    sizes = (f"{result}[{k}]" if isinstance(result, str) else result[k] for k in range(len(right)))
    return {
        "k": k,
        "pattern": " ".join((*left, "->", *right)),
        "sizes": "".join(f", {a}={n}" for a, n in zip(right, sizes, strict=True) if a != "1"),
        "name": operand.name,
        "operand_list": list(operand.shape),
        "operand_params": _params(operand.shape),
        "aligned": operand.aligned,
        "aligned_list": list(operand.aligned),
        "aligned_arguments": ", ".join(map(str, operand.aligned)) or "()",
        "aligned_params": _params(operand.aligned),
    }


#: Parameters of ncnn's Input and Reshape for [w], [w,h], [w,h,c] and [w,h,d,c]
#: (ncnn, operators.md, 'Reshape': 0 = w, 1 = h, 11 = d, 2 = c).
_PARAMS = ((), (0,), (0, 1), (0, 1, 2), (0, 1, 11, 2))


def _params(shape: Shape) -> str:
    if len(shape) >= len(_PARAMS):
        return ""
    return " ".join(
        f"{key}={size}" for key, size in zip(_PARAMS[len(shape)], whdc(shape), strict=True)
    )
