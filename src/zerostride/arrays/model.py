"""The protocol of adapters, which compute with one library's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.plan import Plan
from ..engines.planning import plan
from ..ops import Op


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a call of an element-wise function; see `zerostride.add`."""

    rule: str | None = None
    axis: int | None = None
    engine: str | None = None
    out: Any = None
    dtype: Any = None
    broadcast: int | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether all options were left out."""
        return (
            self.rule is None
            and self.axis is None
            and self.engine is None
            and self.out is None
            and self.dtype is None
            and self.broadcast is None
        )

    def plan(self, op: Op, shapes: Sequence[Sequence[int]]) -> Plan:
        """The plan of operands of these shapes.

        >>> from zerostride.ops import OPS
        >>> Options(rule="pdpd", axis=0).plan(OPS["add"], [(2, 3), (2,)]).aligned[1]
        (2, 1)
        """
        return plan(
            *map(tuple, shapes),
            rule=self.rule,
            axis=self.axis,
            broadcast=self.broadcast,
            engine=self.engine,
            op=op.name if self.engine is not None else None,
        )


class Fusion(Protocol):
    """The part of a fused function (`zerostride.fusion.function.Fused`) that adapters use."""

    def __call__(self, /, *operands: Any, **more: Any) -> Any:
        """The call, of NumPy arrays."""
        ...

    def of_library(self, /, *operands: Any, **more: Any) -> Any:
        """The call, of NumPy arrays on the memory of a library with its own bfloat16."""
        ...

    def vjp(self, /, *operands: Any, **more: Any) -> tuple[Any, Callable[..., Any]]:
        """The result for NumPy arrays, and its pullback."""
        ...

    def compiled(self, call: Any) -> Any:
        """The function compiled for a signature: its graph, and how results are packed."""
        ...


class FusedCall(NamedTuple):
    """A call of a fused function.

    Attributes:
        function: the function.
        operands: passed by position.
        settings: passed by keyword; arrays among them are operands too.
        out: what receives the results, packed as these are, or None.
        progress: called with the elements done and the total, or None.
    """

    function: Fusion
    operands: Sequence[Any]
    settings: Mapping[str, Any]
    out: Any = None
    progress: Any = None

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The operands and the settings."""
        return (*self.operands, *self.settings.values())


class Adapter(Protocol):
    """Computes with one library's arrays.

    A true attribute `promotes` says that the library has its own bfloat16, which Python floats then
    take (`compute.semantics.own_kinds`).

    Operands have been checked: each is an array of the library, a Python number, or an array that
    the library's row takes (NumPy arrays beside JAX's). Results are arrays of the library, on the
    operands' device, of NumPy's dtype.
    """

    def dtype_of(self, array: Any) -> np.dtype[Any]:
        """NumPy's dtype of an array; ml_dtypes' for those that NumPy lacks.

        Raises:
            TypeError: neither has it.
        """
        ...

    def data_of(self, array: Any) -> Any:
        """NumPy's array of the memory of an array that a fused function captures; a Python number
        if the library treats it as one.

        Raises:
            NotPlain: that would lose information, or the memory cannot be read.
        """
        ...

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's dtype of a dtype of the library or of NumPy."""
        ...

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table."""
        ...

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """`data` laid over the plan's shape: a view where the library has views."""
        ...

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands laid over the plan's shape."""
        ...

    def unbroadcast(self, plan: Plan, grad: Any, k: int) -> Any:
        """`grad` summed to the shape of operand `k`."""
        ...

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction by name; `options` are axis, keepdims, out and, for some, dtype."""
        ...

    def fused(self, call: FusedCall) -> Any:
        """A call of a fused function."""
        ...

    def vjp(self, call: FusedCall) -> tuple[Any, Callable[..., Any]]:
        """A fused function's result, and the function of cotangents that gives gradients."""
        ...
