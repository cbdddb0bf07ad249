"""Attaches functions of higher rooms to lower ones: a Plan's methods, and the hooks of `core`.

The functions here import a room when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .core import hooks
from .core.plan import Plan
from .system.fork_gate import first_call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .derive.express import Expression
    from .derive.shape_guard import Guard


class PlanMethods:
    """The methods of a Plan that rooms above `core` compute."""

    __slots__ = ()

    def bind(self: Any, /, *shapes: Any, **sizes: Any) -> Plan:
        """The plan for sizes that are put in: by name, by the operands' real shapes, or as a
        mapping.

        Raises:
            BroadcastError: there is no plan for these sizes; a name or a shape does not fit.

        >>> import zerostride as zs
        >>> p = zs.plan(("N", 1, "H"), ("C", "H"))
        >>> p.bind(N=2, C=3, H=4) == zs.plan((2, 1, 4), (3, 4)) == p.bind((2, 1, 4), (3, 4))
        True
        """
        from .derive.shape_guard import bind

        return bind(self, shapes, sizes)

    def guard(self: Any) -> Guard:
        """The conditions as a check of real shapes or arrays, which returns the plan for them.

        >>> import zerostride as zs
        >>> check = zs.plan(("N", 3), ("M", 3)).guard()
        >>> check((4, 3), (1, 3)).shape
        (4, 3)
        """
        from .derive.shape_guard import Guard

        return Guard(self)

    def views(self: Any, *arrays: Any) -> tuple[NDArray[Any], ...]:
        """Read-only views of the result's shape, stride 0 where an operand stretches; no copy.

        Arrays of another library give views of that library. Raises BroadcastError if an array's
        shape is not the operand's.

        >>> import numpy as np, zerostride as zs
        >>> _, b = zs.plan((2, 3), (3,)).views(np.zeros((2, 3)), np.arange(3))
        >>> b.shape, b.strides
        ((2, 3), (0, 8))
        """
        from .compute.views import views

        return views(self, arrays)

    def view(self: Any, k: int, array: Any) -> NDArray[Any]:
        """Operand `k` as a read-only view of the result's shape; see :meth:`views`."""
        from .compute.views import view

        return view(self, k, array)

    def unbroadcast(self: Any, grad: Any, k: int) -> NDArray[Any]:
        """The adjoint of broadcasting: `grad`, of the result's shape, summed to operand k's shape.

        >>> import numpy as np, zerostride as zs
        >>> zs.plan((2, 3), (3,)).unbroadcast(np.ones((2, 3)), 1)
        array([2., 2., 2.])
        """
        from .fusion.grad.adjoint import unbroadcast

        return unbroadcast(self, grad, k)

    def explain(self: Any, names: Sequence[str] = (), *, color: bool = False) -> str:
        """The aligned drawing, which axes stretch, how much the result grows, and warnings.

        Args:
            names: what to call the operands; x, y, z ... otherwise.
            color: mark stretched axes with terminal colours.
        """
        from .derive.explain import explain

        return explain(self, names, color=color)

    def svg(self: Any, names: Sequence[str] = ()) -> str:
        """The aligned drawing as an SVG document."""
        from .derive.explain import svg

        return svg(self, names)

    def _repr_html_(self: Any) -> str:
        from .derive.explain import html

        return html(self)

    def express(
        self: Any, rule: str, *, engine: str | None = None, op: str | None = None
    ) -> Expression:
        """How to express this plan under another rule, or on an engine.

        Args:
            rule: name of a rule, or of an engine (its rules are tried in order).
            engine: the engine whose version of `rule` is meant.
            op: the op, where the engine's ops differ.

        Raises:
            NotExpressible: no reshape of the operands gives the plan under the rule.

        >>> import zerostride as zs
        >>> zs.plan((5, 5), (5,)).express("ncnn").shapes
        ((5, 5), (1, 5))
        """
        from .derive.express import express

        return express(self, rule, engine=engine, op=op)

    def code(self: Any, target: str, names: Sequence[str] = ()) -> str:
        """Source that computes the broadcast operands in another framework, ready to paste.

        >>> import zerostride as zs
        >>> print(zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1).code("numpy"))
        import numpy as np
        <BLANKLINE>
        # x: (2, 3, 4), y: (3,) -> (2, 3, 4)
        x = np.broadcast_to(x, (2, 3, 4))
        y = np.broadcast_to(y.reshape(1, 3, 1), (2, 3, 4))
        """
        from .derive.code import code

        return code(self, target, names)


def _plan_of_labelled(arrays: tuple[Any, ...]) -> Plan:
    from .arrays.xarray.adapter import plan_of

    return plan_of(arrays)


def _dtype_name(dtype: Any) -> str:
    import numpy as np

    return str(np.dtype(dtype))


def _find_library(kind: type) -> Any:
    with first_call:
        from .arrays.table import find_row

    hooks.find_library.attach(find_row)  # later calls skip this import, which costs a microsecond
    return find_row(kind)


def _find_dispatch() -> Any:
    with first_call:
        from .arrays import dispatch

    return dispatch


def _render_report(report: Any, form: str) -> str:
    from . import report as forms

    render: Callable[[Any], str] = getattr(forms, form)
    return render(report)


def attach() -> None:
    """Gives classes their methods and hooks their functions."""
    for name, method in vars(PlanMethods).items():
        if callable(method) and not name.startswith("__"):
            method.__qualname__ = f"{Plan.__qualname__}.{name}"
            setattr(Plan, name, method)
    hooks.plan_of_labelled.attach(_plan_of_labelled)
    hooks.dtype_name.attach(_dtype_name)
    hooks.find_library.attach(_find_library)
    hooks.find_dispatch.attach(_find_dispatch)
    hooks.render_report.attach(_render_report)
