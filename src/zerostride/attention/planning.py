"""`plan_attention`: shapes and attributes become an :class:`AttentionPlan`, by a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import BroadcastError, Misfit, Reason
from ..sizes import Answer, Shape, as_shape, brief, equal, is_array, is_open
from .placing import Sizes, mask_place, places
from .plan import Asked, AttentionPlan, Space
from .rows import ROWS, find_rule
from .rules import AttentionRule, Causal, EmptyRow
from .stored import resident

if TYPE_CHECKING:
    from ..sizes.dim import Number

#: The mask's types by the names of dtypes; whole numbers say, as truth values do, what is kept.
_MASK_TYPES = {"float": "float", "bool": "bool", "int": "bool", "uint": "bool", "bfloat": "float"}


def plan_attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    causal: bool | str = False,
    heads: int | tuple[int, int] | None = None,
    *,
    past: Any = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int | None = None,
    mask_type: str = "float",
    engine: str | None = None,
    op: str | None = None,
    facts: Any = None,
) -> AttentionPlan:
    """How a query, keys, values and a mask of these shapes become one attention.

    Args:
        q: the query's shape: (batch, head, query, feature), or (batch, query, heads * feature) with
            `heads`. A size is a number, or open, as in :func:`zerostride.plan`.
        k: the keys' shape; fewer heads than the query's each serve a group of them.
        v: the values' shape.
        mask: the mask's shape, if there is one.
        causal: a query sees no later key. True: as the op means it; or "top_left" (query 0 sees key
            0, behind the past ones) or "bottom_right" (the last query sees the last key).
        heads: the number of heads where they lie side by side in the last axis: the query's, or
            (query's, key's).
        past: how many past keys stand before those of `k`.
        scale: the factor of the scores; None: 1/sqrt(feature).
        softcap: bounds scores to ±softcap by a tanh; 0: no bound.
        window: the most keys that a query sees, its own included.
        mask_type: "float" is added to the scores, "bool" says which keys are kept; or a dtype.
        engine: ask what this engine's op gives; None: ONNX's Attention as its document says.
        op: the op of the engine, or of ONNX, where there are several ("MultiHeadAttention").
        facts: known conditions on open sizes: "N >= 1", or a list of such.

    Raises:
        BroadcastError: the shapes do not fit, or the op does not take them; `silent` if the engine
            would not say so.

    The rule is that of ONNX's Attention (opset 24) if no engine is named.

    >>> import zerostride as zs
    >>> p = zs.plan_attention((2, 8, 5, 64), (2, 2, 7, 64), (2, 2, 7, 64), mask=(5, 7))
    >>> p.shape, p.mask.strides
    ((2, 8, 5, 64), (0, 0, 0, 7, 1, 0))
    >>> p = zs.plan_attention(("B", 5, 64), ("B", "T", 16), ("B", "T", 16), heads=8)
    >>> p.space.kv_head, p.space.group, p.space.key, p.space.feature
    (2, 4, Dim('T'), 8)
    """
    shapes = tuple((q, k, v) if mask is None else (q, k, v, mask))
    rule = find_rule(engine, op)
    try:
        asked = Asked(
            tuple(map(_shape, shapes, _NAMES)),
            _causal(causal),
            _heads(heads),
            _size(past, "past"),
            None if scale is None else _number(scale, "scale"),
            abs(_number(softcap, "softcap")),
            None if window is None else _whole(window, "window"),
            _mask_type(mask_type),
            facts,
        )
    except Misfit as misfit:
        raise _refusal(misfit, rule, shapes) from None
    return plan_asked(rule, asked)


_NAMES = ("query", "key", "value", "mask")


def _refusal(
    misfit: Misfit, rule: AttentionRule, shapes: tuple[Any, ...], asked: Asked | None = None
) -> BroadcastError:
    """The error of a fact about these shapes."""
    silent = rule.unchecked and misfit.reason is Reason.EXTENT_MISMATCH
    return BroadcastError(
        misfit.detail,
        reason=Reason.WRONG_RESULT if silent else misfit.reason,
        rule=rule.name,
        shapes=shapes,
        silent=silent,
        names=_NAMES[: len(shapes)],
        headline=f"{rule.name} cannot attend with these shapes",
        hint=None if asked is None else lambda: _advice(rule, asked),
    )


def _advice(rule: AttentionRule, asked: Asked) -> str | None:
    """A change after which the engine takes the call; planned before it is proposed."""
    from ..core.alignment import placements, text

    if len(asked.shapes) > 3 and not any(map(is_open, asked.shapes)):
        for placed in placements(asked.shapes[3], 4):
            if _takes(rule, replace(asked, shapes=(*asked.shapes[:3], placed))):
                return f"reshape the mask to {text(placed)}"
    for other in ROWS[rule.engine]:
        if other is not rule and _takes(other, asked):
            return f"use op={other.op!r}"
    return None


def _takes(rule: AttentionRule, asked: Asked) -> bool:
    try:
        planned(rule, asked)
    except (Misfit, BroadcastError):
        return False
    return True


def _shape(shape: Any, name: str) -> Shape:
    if is_array(shape):
        raise Misfit(Reason.BAD_EXTENT, f"the {name} is an array: pass its shape")
    if is_open(shape):
        from ..core.symbolic import open_shape

        return open_shape(shape, name)
    return as_shape(shape)


def _size(size: Any, name: str) -> Number:
    sizes: tuple[Any, ...] = _shape((size,), name)
    return cast("Number", sizes[0])


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit(Reason.ATTRIBUTE, f"{name} is a number, not {brief(value)}")
    return float(value)


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Misfit(Reason.ATTRIBUTE, f"{name} is a whole number from 1, not {brief(value)}")
    return value


def _causal(causal: Any) -> bool | Causal:
    words = {"top_left": Causal.PAST, "bottom_right": Causal.END}
    if isinstance(causal, str) and causal in words:
        return words[causal]
    if causal in (0, 1) and not isinstance(causal, float):
        return bool(causal)
    known = "True, False, 'top_left' or 'bottom_right'"
    raise Misfit(Reason.ATTRIBUTE, f"causal is {known}, not {brief(causal)}")


def _heads(heads: Any) -> tuple[int, int | None] | None:
    if heads is None:
        return None
    pair = heads if isinstance(heads, tuple | list) else (heads, None)
    if len(pair) == 2 and all(n is None or (type(n) is int and n > 0) for n in pair) and pair[0]:
        return (pair[0], pair[1])
    raise Misfit(
        Reason.ATTRIBUTE,
        f"heads is the number of query heads, or (query's, key's), not {brief(heads)}",
    )


def _mask_type(name: Any) -> str:
    word = str(name).rstrip("0123456789_") if isinstance(name, str) else str(name)
    if word not in _MASK_TYPES:
        raise Misfit(Reason.ATTRIBUTE, f"mask_type is 'float' or 'bool', not {brief(name)}")
    return _MASK_TYPES[word]


def planned(rule: AttentionRule, asked: Asked) -> AttentionPlan:
    """The plan by a row; raises a Misfit where the row does not take what is asked."""
    _check_parts(rule, asked)
    sizes = Sizes(asked.facts)
    space, operands, shape, layout = places(rule, asked, sizes)
    mask_type, mask_keys = None, None
    offset, window = _offset(rule, asked, space), _window(rule, asked, space)
    if len(asked.shapes) > 3 and not (rule.causal_alone and offset is not None):
        mask, mask_keys = mask_place(rule, asked, space, layout, sizes)
        operands = (*operands, mask)
        mask_type = asked.mask_type
    if asked.softcap and rule.softcap is None:
        raise Misfit(Reason.ATTRIBUTE, f"{rule.name} has no softcap")
    masks = mask_type is not None or offset is not None
    plan = AttentionPlan(
        shape,
        space,
        operands,
        mask_type,
        mask_keys,
        asked.past,
        offset,
        None if window is None else _own(rule, asked, space),
        window,
        asked.scale,
        asked.softcap,
        rule.softcap if asked.softcap and masks else None,
        tuple(_empty(rule, asked, mask_type, (offset, window), space)),
        rule,
        asked,
        sizes.conditions(),
    )
    _check_faults(plan)
    return plan


def _check_parts(rule: AttentionRule, asked: Asked) -> None:
    """Raises a Misfit for a part that a row does not have."""
    for wanted, has, name in (
        (asked.sink, rule.sink, "sink"),
        (asked.window is not None, rule.window, "window"),
        (asked.ahead is not None, rule.ahead, "window of later keys"),
        (asked.ragged, rule.ragged, "number of keys for each sample"),
        (asked.stored is not None, rule.stores, "quantised keys"),
    ):
        if wanted and not has:
            raise Misfit(Reason.ATTRIBUTE, f"{rule.name} has no {name}")
    if asked.ragged and asked.past != 0:
        raise Misfit(Reason.ATTRIBUTE, "a number of keys for each sample counts past keys, too")


def _begins(rule: AttentionRule, asked: Asked) -> Causal | None:
    """Where the queries' own places begin."""
    if asked.ragged:
        return Causal.END  # of the keys that a sample has
    return rule.causal if asked.past == 0 else rule.causal_past or rule.causal


def _own(rule: AttentionRule, asked: Asked, space: Space) -> Number:
    """The key of query 0's own place."""
    return space.key - space.query if _begins(rule, asked) is Causal.END else asked.past


def _known(space: Space, place: Number) -> bool:
    """Whether a place and all sizes are numbers."""
    return all(isinstance(size, int) for size in (*space, place))


def _window(rule: AttentionRule, asked: Asked, space: Space) -> int | None:
    """The most keys that a query sees, its own the last; None where none is hidden."""
    if asked.window is None or rule.windows_unread:
        return None
    last = _own(rule, asked, space) + space.query - 1  # the own place of the last query
    return None if _known(space, last) and last < asked.window else asked.window


def _offset(rule: AttentionRule, asked: Asked, space: Space) -> Number | None:
    """The key that query 0 sees last; None if no key is masked by its place."""
    causal = True if rule.always_causal else asked.causal
    if rule.causal_unmasked:
        alone = len(asked.shapes) == 3 and not asked.sink
        if causal is not False and not alone:
            words = "is not causal beside a mask or a sink; add -inf to later keys by the mask"
            raise Misfit(Reason.ATTRIBUTE, f"{rule.name} {words}")
        causal = causal or alone
    if causal is False:
        if asked.ahead is None or rule.windows_unread:
            return None
        last = _own(rule, asked, space) + asked.ahead
        return None if _known(space, last) and last >= space.key - 1 else last
    begins = _begins(rule, asked)
    if rule.causal is None or begins is None:
        raise Misfit(Reason.ATTRIBUTE, f"{rule.name} has no causal mask; pass it as the mask")
    offsets = {Causal.PAST: asked.past, Causal.END: space.key - space.query}
    own = offsets[begins]
    if causal is True or not rule.engine or equal(own, offsets[causal]) is Answer.YES:
        return own if causal is True else offsets[causal]
    raise Misfit(
        Reason.ATTRIBUTE,
        f"{rule.name}'s causal mask begins {begins.value}, not {causal.value}; pass a mask",
    )


def _empty(
    rule: AttentionRule,
    asked: Asked,
    mask_type: str | None,
    seen: tuple[Number | None, int | None],
    space: Space,
) -> Iterator[tuple[str, EmptyRow]]:
    """The result of a query without a key, for each way to mask its keys."""
    offset, window = seen
    plain = rule.empty_plain is not None and (asked.softcap or _keys(asked, space) == 1)
    empty = rule.empty_plain if plain and rule.empty_plain else rule.empty
    if rule.empty_room is not None and asked.room is not None:
        empty = rule.empty_room
    if asked.sink:  # it has all the weight
        empty = dict.fromkeys(empty, EmptyRow.ZERO)
    beyond = window is not None and space.key != asked.past + space.query
    if mask_type == "bool" or asked.ragged or beyond or (isinstance(offset, int) and offset < 0):
        yield "bool", empty["bool"]
    if mask_type == "float":
        yield from ((kind, empty[kind]) for kind in ("-inf", "lowest"))


def _keys(asked: Asked, space: Space) -> Number:
    """The keys among which there are a query's: for one query, those that a window's past has."""
    room, window, key = asked.room, asked.window, space.key
    if room is None or window is None or space.query != 1 or not isinstance(key, int):
        return key
    return resident(key, room, window) if room >= window else key


def _check_faults(plan: AttentionPlan) -> None:
    """Raises BroadcastError if the release computes something else for this plan."""
    if any(not isinstance(size, int) for size in (*plan.space, plan.past)):
        return
    for fault in plan.rule.faults:
        if fault.strikes(plan):
            raise BroadcastError(
                fault.text,
                reason=fault.reason,
                rule=plan.rule.name,
                shapes=[operand.shape for operand in plan.operands],
                silent=fault.reason in (Reason.WRONG_RESULT, Reason.CRASH),
                names=_NAMES[: len(plan.operands)],
                headline=f"{plan.rule.name} does not attend so",
            )


def bound(plan: AttentionPlan, values: Mapping[str, int]) -> AttentionPlan:
    """The plan for values of its open sizes; see :meth:`AttentionPlan.bind`."""
    from ..sizes.dim import Dim

    def number(size: Any) -> Any:
        if not isinstance(size, Dim):
            return size
        known = {symbol: values[symbol.name] for symbol in size.symbols if symbol.name in values}
        rest = size.substitute(known)
        return rest.constant if rest.constant is not None else rest

    names = {
        s.name for size in (*plan.space, plan.past) if isinstance(size, Dim) for s in size.symbols
    }
    if unknown := sorted(set(values) - names):
        raise BroadcastError(
            f"there is no size {unknown[0]!r} in {', '.join(sorted(names)) or 'this plan'}",
            reason=Reason.UNKNOWN_SIZE,
            rule=plan.rule.name,
        )
    asked = replace(
        plan.asked,
        shapes=tuple(tuple(map(number, shape)) for shape in plan.asked.shapes),
        past=number(plan.asked.past),
    )
    return plan_asked(plan.rule, asked)


def plan_asked(rule: AttentionRule, asked: Asked) -> AttentionPlan:
    """The plan by a row of what was asked before; raises BroadcastError."""
    try:
        return planned(rule, asked)
    except Misfit as misfit:
        raise _refusal(misfit, rule, asked.shapes, asked) from None
