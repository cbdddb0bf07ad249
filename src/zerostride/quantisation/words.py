"""A quantisation as text."""

from __future__ import annotations

from ..derive.explain.facts import cells, listing
from ..errors import columns
from ..sizes import elements
from .model import Placement, QuantizationPlan

#: The operands' names in drawings and messages.
NAMES = ("x", "scale", "zero point")


def what(plan: QuantizationPlan) -> str:
    """How the scale lies on the tensor, in a phrase.

    >>> import zerostride as zs
    >>> what(zs.plan_quantization((4, 64), (4, 2), block=32))
    'a scale for each block of 32 along axis 1'
    """
    blocked = [(axis, block) for axis, block in enumerate(plan.blocks) if axis in plan.axes]
    if plan.placement is Placement.BLOCK:
        runs = [f"{block} along axis {axis}" for axis, block in blocked if block > 1]
        return f"a scale for each block of {listing(runs)}"
    if not plan.axes:
        return "one scale for the tensor"
    word = "axis" if len(plan.axes) == 1 else "axes"
    return f"a scale for each index of {word} {listing([*map(str, plan.axes)])}"


def explain(plan: QuantizationPlan) -> str:
    """The text of :meth:`QuantizationPlan.explain`."""
    inner = plan.plan
    lines = [f"{plan.rule.label}: {what(plan)}"]
    count = len(inner.operands)
    lines += ["  " + line for line in columns(NAMES[:count], cells(inner))]
    lines += [
        f"axis {axis}: {size} elements in blocks of {block}; the last block has {block - lacking}"
        for axis, (size, block, lacking) in enumerate(
            zip(plan.shape, plan.blocks, plan.padding, strict=True)
        )
        if lacking
    ]
    scales, total = elements(inner.operands[1]), elements(plan.shape)
    lines.append(
        f"{scales:,} scale{'' if scales == 1 else 's'} for {total:,} "
        f"element{'' if total == 1 else 's'}"
    )
    return "\n".join(lines)
