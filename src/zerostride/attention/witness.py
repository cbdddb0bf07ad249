"""Numbers that show two plans of one attention to differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .plan import AttentionPlan

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A counter-example is computed on at most so many scores.
MOST_SCORES = 1 << 18


def first_difference(
    a: AttentionPlan, b: AttentionPlan, seed: int = 0
) -> tuple[tuple[int, ...], float, float] | None:
    """The first place where two plans of the same operands give different numbers, and both.

    None if a size is open, the plans are large or of other layouts, or no number differs.

    >>> import zerostride as zs
    >>> shapes = (1, 1, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4)
    >>> plans = [zs.plan_attention(*shapes, causal=c) for c in ("top_left", "bottom_right")]
    >>> first_difference(*plans)[0]
    (0, 0, 0, 0)
    """
    import numpy as np

    sizes = (*a.space, *b.space)
    if not all(isinstance(size, int) for size in sizes) or a.asked.shapes != b.asked.shapes:
        return None
    if math.prod(map(int, a.space[:5])) > MOST_SCORES or a.shape != b.shape:
        return None
    arrays, past = operands(a, seed)
    left, right = (plan.compute(*arrays[: len(plan.operands)], **past) for plan in (a, b))
    differing = np.argwhere(~np.isclose(left, right, rtol=1e-4, atol=1e-5, equal_nan=True))
    if not len(differing):
        return None
    index = tuple(map(int, differing[0]))
    return index, float(left[index]), float(right[index])


def operands(plan: AttentionPlan, seed: int) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
    """Random query, key, value and mask of a plan, and its past; a mask keeps the first key."""
    import numpy as np

    rng = np.random.default_rng(seed)
    arrays: list[NDArray[Any]] = [
        rng.standard_normal(shape).astype(np.float32) for shape in plan.asked.shapes
    ]
    if len(arrays) > 3 and plan.asked.mask_type == "bool":
        arrays[3] = arrays[3] > 0
        arrays[3][..., :1] = True
    past = {}
    if plan.past:
        heads = (plan.space.batch, plan.key.sizes[1], plan.past)
        for name, features in (("key", plan.space.feature), ("value", plan.space.value_feature)):
            shape = tuple(map(int, (*heads, features)))
            past[f"past_{name}"] = rng.standard_normal(shape).astype(np.float32)
    return arrays, past
