"""An attention in words: where operands land, what repeats, what is masked, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..core.alignment import text
from ..derive.explain.facts import listing
from ..errors import columns
from .plan import AXES, AttentionPlan, Difference, Operand

if TYPE_CHECKING:
    from ..sizes.dim import Number

_HEADS = ("batch", "kv head", "group", "query", "key", "feature")


def explain(plan: AttentionPlan) -> str:
    """The drawing, what repeats, and the masks; see :meth:`AttentionPlan.explain`.

    >>> import zerostride as zs
    >>> print(zs.plan_attention((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), mask=(3, 5)).explain())
    Attention: 4 query heads, 2 key heads, each for 2 neighbouring query heads
             batch kv head group query key feature
      query      1       2     2     3   .       8
      key        1       2     .     .   5       8
      value      1       2     .     .   5       8
      mask       .       .     .     3   5       .
      result (1, 4, 3, 8)
      key and value repeat along group and query, the mask along kv head and group: stride 0
      scores are multiplied by 0.353553, the mask is added to them
      a query whose every key has -inf gives zeros; the lowest float: the mean of the values
    """
    names = [operand.name for operand in plan.operands]
    rows = [_row(plan, operand) for operand in plan.operands]
    lines = [_headline(plan)]
    lines += ["  " + line for line in columns(["", *names], [_HEADS, *rows])]
    lines.append(f"  result {text(plan.shape)}")
    lines += [f"  {line}" for line in _facts(plan)]
    return "\n".join(lines)


def _row(plan: AttentionPlan, operand: Operand) -> tuple[Any, ...]:
    """The sizes of an operand; None where it has no step, a lone 1 where its axis is 1 for all."""
    return tuple(
        size if step != 0 or (size == 1 and full == 1 and axis in _own(operand)) else None
        for axis, (size, step, full) in enumerate(
            zip(operand.sizes, operand.strides, _full(plan, operand), strict=True)
        )
    )


def _own(operand: Operand) -> tuple[int, ...]:
    """The axes that an operand always has."""
    return {"query": (0, 1, 3, 5), "mask": ()}.get(operand.name, (0, 1, 4, 5))


def _full(plan: AttentionPlan, operand: Operand) -> tuple[Number, ...]:
    last = plan.space.value_feature if operand.name == "value" else plan.space.feature
    return (*plan.space[:5], last)


def _headline(plan: AttentionPlan) -> str:
    heads, group = plan.space.kv_head, plan.space.group
    if group == 1:
        words = "one head" if heads == 1 else f"{heads} heads"
        return f"{plan.rule.name}: {words}"
    words = "each n-th query head" if plan.rule.grouping == "tiled" else "neighbouring query heads"
    served = f"each for {group} {words}" if heads != 1 else f"for all {group} query heads"
    one = "one key head," if heads == 1 else f"{heads} key heads,"
    return f"{plan.rule.name}: {heads * group} query heads, {one} {served}"


def repeats(plan: AttentionPlan, operand: Operand) -> tuple[str, ...]:
    """The axes along which an operand repeats and another one does not.

    >>> import zerostride as zs
    >>> p = zs.plan_attention((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8))
    >>> repeats(p, p.key)
    ('group', 'query')
    """
    asked = {"query": (0, 1), "mask": (0, 1, 2, 3, 4)}.get(operand.name, (0, 1, 2, 3))
    if operand is plan.mask and plan.lengths:
        asked = (0,)
    full = _full(plan, operand)
    return tuple(AXES[x] for x in asked if operand.sizes[x] == 1 and full[x] != 1)


def _facts(plan: AttentionPlan) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for operand in plan.operands:
        if axes := repeats(plan, operand):
            groups.setdefault(axes, []).append(operand.name)
    parts: list[str] = []
    for axes, names in groups.items():
        subject = "the mask" if names == ["mask"] else listing(names)
        verb = "" if parts else " repeat" if len(names) > 1 else " repeats"
        parts.append(f"{subject}{verb} along {listing(axes)}")
    if parts:
        yield f"{', '.join(parts)}: stride 0"
    yield _scores(plan)
    if plan.mask_keys is not None and plan.mask_keys != plan.space.key:
        yield f"the mask has {plan.mask_keys} of {plan.space.key} keys: those behind are masked"
    if plan.asked.ragged:
        yield "each sample has its own number of keys: those behind are masked"
    if plan.offset is not None:
        yield f"{_begins(plan)}: {_causal(plan)}"
    if plan.window is not None:
        yield f"window: a query sees its own key and {plan.window - 1} before it"
    if plan.asked.room is not None:
        yield f"the past holds the last keys alone, in room for {plan.asked.room}"
    if plan.asked.stored is not None:
        yield f"keys and values are stored with {plan.asked.stored}"
    if plan.empty:
        yield _empty(plan)
    if plan.conditions:
        yield f"where {plan.conditions}"


def _scores(plan: AttentionPlan) -> str:
    factor = plan.factor
    words = f"{factor:g}" if factor is not None else f"1/sqrt({plan.space.feature})"
    parts = [f"scores are multiplied by {words}"]
    if plan.asked.rotated:
        parts.insert(0, "query and key are turned by their positions")
    if plan.softcap:
        order = f", {plan.softcap_at.value}" if plan.softcap_at else ""
        parts.append(f"bounded to ±{plan.softcap:g}{order}")
    if plan.mask_type is not None:
        parts.append(_mask(plan))
    if plan.asked.sink:
        parts.append("the softmax has a sink")
    return ", ".join(parts)


def _mask(plan: AttentionPlan) -> str:
    if plan.mask_type == "float":
        return "the mask is added to them"
    if plan.lengths:
        return "the mask counts the keys that are kept"
    return "the mask is true where a key is kept"


def _begins(plan: AttentionPlan) -> str:
    """Where the keys end that a query sees."""
    ahead = plan.asked.ahead
    if plan.asked.causal is False and ahead and not plan.rule.always_causal:
        return f"window: a query sees {ahead} keys behind its own"
    if plan.asked.ragged:
        return "causal from the last key of each sample"
    return f"causal from the {plan.causal}"


def _causal(plan: AttentionPlan) -> str:
    words = f"query i sees keys to i + {plan.offset}"
    return f"{words} in a sample of all {plan.space.key}" if plan.asked.ragged else words


def _empty(plan: AttentionPlan) -> str:
    ways = dict(plan.empty)
    if "bool" in ways:
        return f"a query without a key gives {ways['bool'].value}"
    if ways["lowest"] == ways["-inf"]:
        return f"a query whose every key has -inf or the lowest float gives {ways['-inf'].value}"
    first = f"a query whose every key has -inf gives {ways['-inf'].value}"
    return f"{first}; the lowest float: {ways['lowest'].value}"


def differences(a: AttentionPlan, b: AttentionPlan) -> Iterator[Difference]:
    """What two plans mean otherwise; see :meth:`AttentionPlan.differences`."""
    sizes = [text((*x.space[:5], x.space.value_feature)) for x in (a, b)]
    sampled = not all("b" in x.layout for x in (a, b))  # batches are not written
    batches = _batches(a, b) if sampled else a.space[0] != b.space[0]
    if batches or a.space[3:] != b.space[3:]:
        yield Difference("shape", *sizes)
    grouped = [(x.space[1:3], x.rule.grouping == "tiled" and x.space.group != 1) for x in (a, b)]
    if grouped[0] != grouped[1]:
        yield Difference("heads", _headline(a), _headline(b))
    masks = [_mask_words(x) for x in (a, b)]
    if _mask_meaning(a, sampled) != _mask_meaning(b, sampled):
        yield Difference("mask", *masks)
    if a.offset != b.offset:
        yield Difference(
            "causal", *(_causal(x) if x.offset is not None else "none" for x in (a, b))
        )
    if (a.window, a.own) != (b.window, b.own):
        yield Difference("window", _window(a), _window(b))
    if (a.softcap, a.softcap_at) != (b.softcap, b.softcap_at):
        yield Difference(
            "softcap", *(x.softcap_at.value if x.softcap_at else "none" for x in (a, b))
        )
    if a.factor != b.factor:
        yield Difference("scale", str(a.factor), str(b.factor))
    rest = [(x.empty, x.causal_fill) for x in (a, b)]
    if a.mask_type == b.mask_type and a.offset == b.offset and rest[0] != rest[1]:
        yield Difference("empty_row", *(_empty(x) if x.empty else "none" for x in (a, b)))


def _window(plan: AttentionPlan) -> str:
    if plan.window is None:
        return "none"
    return f"query i sees {plan.window} keys to its own, i + {plan.own}"


def _batches(*plans: AttentionPlan) -> bool:
    """Whether operands repeat along the batch, which an engine of single samples does not see."""
    return any(x.sizes[0] != plan.space.batch for plan in plans for x in plan.operands[:3])


def _mask_meaning(plan: AttentionPlan, sampled: bool) -> tuple[Any, ...]:
    mask = plan.mask
    if mask is None:
        return ()
    axes = tuple(
        size != 1 and step != 0 for size, step in zip(mask.sizes, mask.strides, strict=True)
    )
    return (axes[sampled:], plan.mask_type, plan.mask_keys, plan.lengths)


def _mask_words(plan: AttentionPlan) -> str:
    if plan.mask is None:
        return "none is read" if len(plan.asked.shapes) > 3 else "none"
    sizes = zip(AXES, plan.mask.sizes, plan.mask.strides, strict=True)
    axes = tuple(axis for axis, size, step in sizes if size != 1 and step != 0)
    words = f"it has {listing(axes)}" if axes else "one number"
    if plan.mask_keys != plan.space.key:
        words += f", and keys from {plan.mask_keys} are masked"
    return words


def as_dict(plan: AttentionPlan) -> Mapping[str, Any]:
    """The plan for JSON; open sizes as text."""

    def plain(size: Any) -> Any:
        return size if size is None or isinstance(size, int | float) else str(size)

    return {
        "op": plan.rule.op,
        "engine": plan.rule.engine or None,
        "shape": [plain(size) for size in plan.shape],
        "space": {name: plain(size) for name, size in plan.space._asdict().items()},
        "operands": {
            operand.name: {
                "shape": [plain(size) for size in operand.shape],
                "strides": [plain(size) for size in operand.strides],
                "repeats": list(repeats(plan, operand)),
            }
            for operand in plan.operands
        },
        "mask_type": plan.mask_type,
        "causal": plan.causal,
        "offset": plain(plan.offset),
        "window": plan.window,
        "scale": plan.factor,
        "softcap": plan.softcap,
        "softcap_at": plan.softcap_at.value if plan.softcap_at else None,
        "empty_row": {way: row.value for way, row in plan.empty},
        "conditions": str(plan.conditions) if plan.conditions else None,
    }
