"""`plan` and `plan_to`: names become rows, and rows become Plans.

Results are cached by the shapes and all arguments, because callers ask about the same few shapes
repeatedly.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.alignment import Rule, apply
from ..core.hooks import plan_of_labelled
from ..core.plan import Plan, RuleUse
from ..core.plugins import CACHES
from ..core.rules import RULES, find_rule
from ..core.strict_mode import IN_FORCE, Strict, strict
from ..core.strict_rule import limited
from ..errors import BroadcastError, Misfit, Reason
from ..ops import FEW, OPS, Op, column_of, find_op
from ..sizes import Shape, as_shape, brief, is_open, is_plain, whole_numbers
from .model import Engine, Rules
from .table import ENGINES, find_engine
from .versions import warn_if_unmeasured

if TYPE_CHECKING:
    from ..sizes.condition import Condition

#: Cached plans. A plan is about 1 KiB; a large model has some thousand distinct pairs of shapes.
CACHE_SIZE = 8192


def plan(
    *shapes: Any,
    rule: str | None = None,
    axis: int | None = None,
    broadcast: int | None = None,
    engine: str | None = None,
    op: str | None = None,
    facts: Any = None,
) -> Plan:
    """How element-wise operands of these shapes are combined.

    Args:
        shapes: the operands' shapes, outermost size first. A size is a number, or open: a name
            ("N"), "?", bounds ("1..8"), an expression ("2*N + 1"), or a :class:`Dim`. An array of
            sizes is a shape, too; of any other array pass its `shape`. xarray's DataArrays are
            planned by their dimensions' names.
        rule: name of an element-wise rule; "numpy" if neither rule nor engine is given. Or limits
            with or without one: :func:`zerostride.strict`.
        axis: where the smaller operand starts, for the rules that have it (pdpd, paddle, onnx6).
            None is the rule's default, or the engine's when one is given.
        broadcast: onnx6's attribute; 1 allows broadcasting.
        engine: ask what executing it on that engine's measured release gives.
        op: the op meant, where an engine's ops differ ("prelu").
        facts: known conditions on open sizes: "N >= 1", or a list of such.

    Raises:
        BroadcastError: if the shapes do not combine; `silent` if the engine would go wrong.

    >>> import zerostride as zs
    >>> zs.plan((3, 5), (5,), engine="ncnn").aligned
    ((3, 5), (1, 5))
    >>> zs.plan((5, 5), (5,), engine="ncnn").aligned
    ((5, 5), (5, 1))
    >>> print(zs.plan(("N", 3), ("M", 3), facts="N >= 2").conditions)
    M == N or M == 1
    """
    frame = IN_FORCE.get()
    limits = None if frame is None else frame.limits
    del frame  # in the traceback of a refusal it would keep the context open
    if rule.__class__ is Strict:
        rule, limits = _apart(rule)
    if facts is not None:
        return _plan(shapes, rule, axis, broadcast, engine, op, limits, as_facts(facts))
    try:
        if not all(map(is_plain, shapes)):
            if any(hasattr(shape, "dims") for shape in shapes):
                return _of_names(shapes, rule or engine)
            shapes = tuple(tuple(shape) if is_open(shape) else as_shape(shape) for shape in shapes)
        return _cached(shapes, rule, axis, broadcast, engine, op, limits)
    except (Misfit, TypeError):
        # The input is malformed or not hashable; the driver raises the error that says so.
        _refuse_names(shapes)
        return _plan(shapes, rule, axis, broadcast, engine, op, limits)


def engine_plan(*shapes: Shape, engine: str, op: str | None = None) -> Plan:
    """The Plan of an engine, without regard to strict mode: only a question, not a computation."""
    options = (None, None, None, engine, op, None)
    return _cached(shapes, *options) if all(map(is_plain, shapes)) else _plan(shapes, *options)


def _apart(rule: Any) -> tuple[str | None, Strict | None]:
    """Splits limits from the name of their rule."""
    return (rule.rule, rule) if isinstance(rule, Strict) else (rule, None)


def _of_names(arrays: tuple[Any, ...], rule: str | None) -> Plan:
    """The plan of xarray's arrays, which are combined by dimension names."""
    if rule is not None:
        raise BroadcastError(
            f"DataArrays broadcast by dimension name, and not by {rule!r}",
            reason=Reason.ATTRIBUTE,
            hint="give their shapes to plan by places",
        )
    return plan_of_labelled(arrays)


def _plan(
    shapes: tuple[Shape, ...],
    rule: str | None,
    axis: int | None,
    broadcast: int | None,
    engine: str | None,
    op: str | None,
    limits: Strict | None,
    facts: Condition | None = None,
) -> Plan:
    row, op = _elementwise_row(rule, engine, op)
    attributes = {"axis": axis, "broadcast": broadcast}

    def applied(row: Rule) -> Plan:
        return apply(row, shapes, attributes, engine=engine, op=op, facts=facts)

    return applied(row) if limits is None else limited(applied, row, limits)


#: Typed, so that axis=True and axis=1.0 do not match the plan of axis=1; shapes are plain here.
_cached = functools.lru_cache(CACHE_SIZE, typed=True)(_plan)


def _elementwise_row(
    rule: str | None, engine: str | Engine | None, op: str | None
) -> tuple[Rule, str | None]:
    """The rule's row, and the canonical name of the op."""
    _refuse_function(rule)
    if engine is None:
        return find_rule("numpy" if rule is None else rule, to_target=False), canonical_op(op, None)
    row = _engine_row(engine)
    name = canonical_op(op, row)
    if name is not None and row.name not in NAMELESS and not has_op(row, op):
        raise BroadcastError(
            without_op(row, name),
            reason=Reason.NO_OP,
            rule=RuleUse(next(iter(row.elementwise)), engine=row.name, op=name),
        )
    return _pick(row, row.ops.get(name or "", row.elementwise), rule), name


def _engine_row(engine: str | Engine) -> Engine:
    """The row of an engine. For a name, the installed release is checked as well."""
    if isinstance(engine, Engine):
        return engine
    row = find_engine(engine)  # refuses an unknown name
    warn_if_unmeasured(engine)
    return row


def _refuse_names(shapes: tuple[Any, ...]) -> None:
    """Explains the error if the name of an engine or a rule is passed in the place of a shape."""
    for name in shapes:
        if not isinstance(name, str):
            continue
        argument = "engine" if name in ENGINES else "rule" if name in RULES else None
        if argument is not None:
            raise BroadcastError(
                f"{name!r} stands in the place of a shape",
                reason=Reason.BAD_EXTENT,
                shapes=tuple(shape for shape in shapes if shape is not name),
                hint=f"write {argument}={name!r}",
            )


def _refuse_function(rule: Any) -> None:
    """Explains the error if `zs.strict` itself, or an array, is passed as a rule."""
    if hasattr(rule, "shape") and hasattr(rule, "dtype"):
        raise BroadcastError(
            "an array stands in the place of a rule's name",
            reason=Reason.UNKNOWN_RULE,
            hint="name the array that receives the result: out=z",
        )
    if rule is strict:
        raise BroadcastError(
            "zs.strict is the function that makes limits; a rule is named by what it returns",
            reason=Reason.UNKNOWN_RULE,
            hint="write zs.strict(), with parentheses",
        )


def canonical_op(op: Any, engine: Engine | None) -> str | None:
    """The canonical name of an op; that of a row of the engine's own stays."""
    if op is None or (engine is not None and isinstance(op, str) and op in engine.ops):
        return op
    return op_row(op, engine).name


def op_row(op: Any, engine: Engine | None) -> Op:
    """The op by the engine's own name for it ("Mod" differs), or else by any engine's."""
    name = op if type(op) in (str, int) else str(op)
    return _find_op(name, None if engine is None else engine.name)


@functools.lru_cache(1024)
def _find_op(name: str | int, engine: str | None) -> Op:
    if engine is not None:
        try:
            return find_op(name, engine)
        except BroadcastError:
            pass  # the array API's name, say
    return find_op(name)


def _pick(engine: Engine, rules: Rules, name: Any) -> Rule:
    """The engine's version of a rule or mode; its first if none is named."""
    if not rules:
        raise BroadcastError(
            without_broadcast(engine),
            reason=Reason.NO_OP,
            rule=RuleUse(name or "unidirectional", engine=engine.name),
        )
    if name is None:
        return next(iter(rules.values()))
    listed = rules.items() if isinstance(name, str) else ()
    matches = (row for mode, row in listed if name in (mode, row.name))
    rule = next(matches, None)
    if rule is None:
        raise BroadcastError(
            f"{engine.name} has no rule {name!r} here",
            reason=Reason.NO_RULE,
            rule=RuleUse(str(name), engine=engine.name),
            hint=f"{engine.name} has {', '.join(rules)}",
        )
    return rule


def plan_to(
    data: Any,
    target: Any,
    mode: str | None = None,
    axes_mapping: Sequence[int] | None = None,
    engine: str | None = None,
    op: str | None = None,
    facts: Any = None,
) -> Plan:
    """How a Broadcast (Expand, broadcast_to) op lays data of one shape over a target shape.

    Args:
        data: the data's shape.
        target: the target shape. Under engine="torch" or "paddle" −1 keeps the data's extent.
        mode: "numpy" (one way; the default), "bidirectional" or "explicit"; with an engine its own
            default. Or limits with or without one: :func:`zerostride.strict`.
        axes_mapping: for mode "explicit", the target axis of each data axis, rising.
        engine: ask what that engine's measured release does.
        op: the op meant, where the engine has several.
        facts: known conditions on open sizes; see :func:`plan`.

    Returns:
        A Plan with one operand, the data.

    >>> import zerostride as zs
    >>> p = zs.plan_to((16,), (1, 16, 50, 50), mode="explicit", axes_mapping=[1])
    >>> p.shape, p.axes_mapping
    ((1, 16, 50, 50), ((1,),))
    """
    frame = IN_FORCE.get()
    limits = None if frame is None else frame.limits
    del frame  # in the traceback of a refusal it would keep the context open
    if mode.__class__ is Strict:
        mode, limits = _apart(mode)
    plain = is_plain(data) and is_plain(target) and (axes_mapping is None or is_plain(axes_mapping))
    if facts is None and plain:
        try:
            return _cached_to(data, target, mode, axes_mapping, engine, op, limits)
        except TypeError:
            pass  # not hashable: the error is raised below
    return _plan_to(data, target, mode, axes_mapping, engine, op, limits, facts)


def _plan_to(
    data: Any,
    target: Any,
    mode: str | None,
    axes_mapping: Sequence[int] | None,
    engine: str | None,
    op: str | None,
    limits: Strict | None,
    facts: Any = None,
) -> Plan:
    row, name = _target_row(mode, engine, op)
    attributes = {"axes_mapping": axes_mapping}
    if engine is not None and find_engine(engine).keeps:
        target = _keep(row, data, target, engine)
    condition = None if facts is None else as_facts(facts)

    def applied(row: Rule) -> Plan:
        return apply(row, (data, target), attributes, engine=engine, op=name, facts=condition)

    return applied(row) if limits is None else limited(applied, row, limits, target)


_cached_to = functools.lru_cache(CACHE_SIZE, typed=True)(_plan_to)


def engine_plan_to(data: Any, target: Any, engine: str) -> Plan:
    """The Plan of an engine's Broadcast op, without regard to strict mode."""
    return _plan_to(data, target, None, None, engine, None, None)


CACHES.extend((_cached.cache_clear, _cached_to.cache_clear))


def as_facts(facts: Any) -> Condition:
    """The caller's facts as one condition; raises a BroadcastError if they cannot be read."""
    from ..sizes.condition import Condition, all_of

    if isinstance(facts, str | Condition):
        facts = (facts,)
    try:
        parts = list(facts)
    except TypeError:
        parts = [facts]
    for part in parts:
        if not isinstance(part, str | Condition):
            raise BroadcastError(
                f"a fact is a condition such as 'N >= 1', not {brief(part)}",
                reason=Reason.ATTRIBUTE,
            )
    return all_of(Condition.parse(part) if isinstance(part, str) else part for part in parts)


def _target_row(mode: Any, engine: str | Engine | None, op: Any) -> tuple[Rule, str | None]:
    _refuse_function(mode)
    if not isinstance(op, str | None):
        find_op(str(op))  # raises the error for an unknown op
    if engine is None:
        return find_rule("numpy" if mode is None else mode, to_target=True), op
    row = _engine_row(engine)
    rules = row.to_target if op is None else row.ops.get(op.lower(), row.to_target)
    return _pick(row, rules, mode), op


def _keep(row: Rule, data: Any, target: Any, engine: str) -> Any:
    """The target with −1 replaced by the extent of the data's axis there."""
    if not isinstance(target, tuple | list) or not isinstance(data, tuple | list):
        return target  # malformed: the driver raises the error
    extents = list(target)
    for k, size in enumerate(extents):
        if whole_numbers((size,)) == (-1,):
            axis = k - (len(extents) - len(data))
            if axis < 0:
                raise BroadcastError(
                    "-1 keeps the extent of an axis that the data does not have",
                    reason=Reason.BAD_EXTENT,
                    rule=RuleUse(row.name, engine=engine),
                    shapes=(tuple(data), tuple(target)),
                    axis=k,
                    names=("data", "target"),
                )
            extents[k] = data[axis]
    return tuple(extents)


def rule_row(
    rule: str | None,
    *,
    engine: str | Engine | None = None,
    op: str | None = None,
    to_target: bool = False,
) -> Rule:
    """The row that `plan` (or `plan_to`) would use for these names, or for an engine's row.

    Args:
        rule: the rule's name, or None for the default.
        engine: an engine's name, or a row that a converter changed.
        op: the op's name.
        to_target: ask for the Broadcast op.
    """
    if to_target:
        return _target_row(rule, engine, op)[0]
    return _elementwise_row(rule, engine, op)[0]


def without_op(engine: Engine, op: str) -> str:
    """Error text: the engine lacks the op, or we have only read about the engine."""
    if lacks_op(engine, op):
        return f"{engine.name} has no op for {op}"
    return f"nothing was read about {op} on {engine.name}"


def without_broadcast(engine: Engine) -> str:
    """Error text: the engine has no Broadcast op, or nothing was read about one."""
    op = "op that broadcasts to a target shape"
    unread = engine.broadcasts is None
    return (
        f"nothing was read about an {op} on {engine.name}"
        if unread
        else f"{engine.name} has no {op}"
    )


def lacks_op(engine: Engine, op: str) -> bool:
    """Whether an op without a row is known to be absent: not if nothing was read about it."""
    few = engine.name in FEW and OPS[op].tensors == 1
    return bool(engine.has) or (engine.run and not few)


#: Engines without a model file format: the generated code composes ops that they lack.
NAMELESS = frozenset({"numpy", "torch", "tensorflow", "jax"})


def has_op(engine: Engine, op: Any) -> bool:
    """Whether an engine has an op, by any engine's name for it."""
    if isinstance(op, str) and op in engine.ops:
        return True
    row = op_row(op, engine)
    if engine.name == "numpy":
        return bool(row.numpy)
    if engine.has:
        return row.name in engine.has
    column = engine.reads or column_of(engine.name)
    return column in row.names or column in row.reversed_names
