"""The methods of an AttentionPlan that the modules above it compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .compare import AttentionComparison
    from .plan import AttentionPlan, Difference


class AttentionMethods:
    """Attached to :class:`~zerostride.attention.plan.AttentionPlan` when the room is loaded."""

    __slots__ = ()

    def differences(self: Any, other: AttentionPlan) -> tuple[Difference, ...]:
        """What the other plan means otherwise; empty if the two are equal.

        >>> import zerostride as zs
        >>> shapes = (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)
        >>> first = zs.plan_attention(*shapes, causal="top_left")
        >>> print(*first.differences(zs.plan_attention(*shapes, causal="bottom_right")))
        causal: query i sees keys to i + 0, against query i sees keys to i + 2
        """
        from .explain import differences

        return tuple(differences(self, other))

    def explain(self: Any) -> str:
        """Every operand in the six axes, what repeats, and what is masked; as text."""
        from .explain import explain

        return explain(self)

    def svg(self: Any) -> str:
        """Every operand in the six axes, and the keys that each query sees; as an SVG document."""
        from .picture import svg

        return svg(self)

    def _repr_html_(self: Any) -> str:
        from .picture import html

        return html(self)

    def compare(self: Any, engine: str | None = None) -> AttentionComparison:
        """The same shapes and attributes under every op of every engine, against this plan."""
        from .compare import compared

        return compared(self, engine)

    def bind(self: Any, /, **sizes: int) -> AttentionPlan:
        """The plan for values of its open sizes.

        >>> import zerostride as zs
        >>> p = zs.plan_attention(("B", 2, "S", 4), ("B", 2, "T", 4), ("B", 2, "T", 4))
        >>> p.bind(B=1, S=2, T=3).shape
        (1, 2, 2, 4)
        """
        from .planning import bound

        return bound(self, sizes)

    def views(self: Any, *arrays: Any) -> tuple[NDArray[Any], ...]:
        """Read-only views over the six axes, stride 0 where an operand repeats; no copy."""
        from .compute import views

        return views(self, arrays)

    def compute(
        self: Any, *arrays: Any, past_key: Any = None, past_value: Any = None
    ) -> NDArray[Any]:
        """The attention of NumPy arrays: query, key, value, and the mask if there is one.

        >>> import numpy as np, zerostride as zs
        >>> p = zs.plan_attention((1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 2, 2), causal=True)
        >>> q, v = np.zeros((1, 1, 2, 2)), np.arange(4.0).reshape(1, 1, 2, 2)
        >>> p.compute(q, q, v)[0, 0]
        array([[0., 1.],
               [1., 2.]])
        """
        from .compute import attention

        return attention(self, arrays, past_key, past_value)

    def as_dict(self: Any) -> Mapping[str, Any]:
        """For JSON."""
        from .explain import as_dict

        return as_dict(self)
