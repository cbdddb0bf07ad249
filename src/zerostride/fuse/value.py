"""What stands for an array while a function is traced: it knows shape and dtype, and no numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import TraceError
from .source import current_place

if TYPE_CHECKING:
    from ..ops import Op
    from .trace import Tracer

_WEAK_KINDS = {"i": "int", "u": "int", "f": "float", "c": "complex"}
_TYPES: dict[str, type[complex]] = {"int": int, "float": float, "complex": complex}


def refuse(detail: str, hint: str) -> NoReturn:
    """Raises the TraceError of the user's current line."""
    raise TraceError(detail, str(current_place()), hint)


def _binary(name: str) -> Callable[[Value, Any], Any]:
    def method(self: Value, other: Any) -> Any:
        return (
            self.tracer.apply(name, (self, other), weak=True) if _meets(other) else NotImplemented
        )

    return method


def _reflected(name: str) -> Callable[[Value, Any], Any]:
    def method(self: Value, other: Any) -> Any:
        return (
            self.tracer.apply(name, (other, self), weak=True) if _meets(other) else NotImplemented
        )

    return method


def _in_place(name: str) -> Callable[[Value, Any], Value]:
    def method(self: Value, other: Any) -> Value:
        return self.put(name, other)

    return method


def _unary(name: str) -> Callable[[Value], Value]:
    def method(self: Value) -> Value:
        return self.tracer.apply(name, (self,), weak=True)

    return method


def _refused(what: str, hint: str) -> Callable[..., NoReturn]:
    def method(self: Value, *_: Any, **__: Any) -> NoReturn:
        refuse(f"{what} while the function is traced: it has no numbers yet", hint)

    return method


def _meets(other: Any) -> bool:
    """Whether Python's operators combine a value with it; others may know what to do themselves."""
    known = isinstance(other, Value | np.ndarray | np.generic | list | tuple)
    return known or type(other) in (bool, int, float, complex)


_BRANCH = (
    "zs.where(condition, a, b) chooses by values; Python's if, by shapes and keyword arguments"
)
_NUMBER = "keep it an array, or take what is wanted by number as a keyword argument"
_OUTSIDE = "do that outside of the fused function, on its operands or its results"


class Value:
    """An array of a function that is being traced.

    Python's operators, NumPy's ufuncs and zerostride's functions on it write nodes of a graph.
    Shape, dtype, rank, size and length are those of the array; its elements are not known.

    Attributes:
        shape: as an array's.
        dtype: as an array's.
    """

    __slots__ = ("_shared", "_view", "dtype", "node", "shape", "tracer", "weak")
    __hash__ = None  # type: ignore[assignment]  # as an array's

    def __init__(
        self,
        tracer: Tracer,
        node: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        weak: bool = False,
        view: bool = False,
    ) -> None:
        self.tracer = tracer
        self.node = node
        self.shape = shape
        self.dtype = dtype
        self.weak = weak
        self._view = view
        self._shared = False

    def again(self) -> Value:
        """The same elements as another array."""
        return Value(self.tracer, self.node, self.shape, self.dtype, self.weak)

    @property
    def kind(self) -> str:
        """The dtype's name, or "int", "float" or "complex" of a Python number."""
        return _WEAK_KINDS[self.dtype.kind] if self.weak else self.dtype.name

    @property
    def scalar_type(self) -> type[complex]:
        """The type of Python number that it is."""
        return _TYPES[self.kind]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Value of shape {self.shape}, {self.kind}>"

    # Operators

    __add__, __radd__, __iadd__ = _binary("add"), _reflected("add"), _in_place("add")
    __sub__, __rsub__, __isub__ = _binary("subtract"), _reflected("subtract"), _in_place("subtract")
    __mul__, __rmul__, __imul__ = _binary("multiply"), _reflected("multiply"), _in_place("multiply")
    __truediv__, __rtruediv__ = _binary("divide"), _reflected("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _reflected("remainder")
    __and__, __rand__ = _binary("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _binary("bitwise_left_shift"), _reflected("bitwise_left_shift")
    __rshift__, __rrshift__ = _binary("bitwise_right_shift"), _reflected("bitwise_right_shift")
    __itruediv__, __ifloordiv__ = _in_place("divide"), _in_place("floor_divide")
    __imod__, __ipow__ = _in_place("remainder"), _in_place("pow")
    __iand__, __ior__, __ixor__ = map(_in_place, ("bitwise_and", "bitwise_or", "bitwise_xor"))
    __ilshift__, __irshift__ = map(_in_place, ("bitwise_left_shift", "bitwise_right_shift"))
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __eq__ = _binary("equal")
    __ne__ = _binary("not_equal")
    __neg__, __pos__, __abs__ = _unary("negative"), _unary("positive"), _unary("abs")
    __invert__ = _unary("bitwise_invert")
    __rpow__ = _reflected("pow")

    def __pow__(self, power: Any) -> Any:
        if not _meets(power):
            return NotImplemented
        return self.raised(power)

    def raised(self, power: Any) -> Value:
        """x ** power: by products for whole numbers up to 4, by a root for 1/2, as NumPy's."""
        apply, kind = self.tracer.apply, self.dtype.kind
        whole = kind in "iu"
        if type(power) not in (int, float) or self.weak or (whole and type(power) is float):
            return apply("pow", (self, power), weak=True)
        if power == 2:
            return apply("square", (self,))
        if kind == "b":
            return apply("pow", (self, power))
        if power == 3:
            return apply("multiply", (apply("square", (self,)), self))
        if power == 4:
            return apply("square", (apply("square", (self,)),))
        if power == 1:
            return apply("positive", (self,))
        if power == 0.5 and not whole:
            return apply("sqrt", (self,))
        if power == -1 and not whole:
            return apply("divide", (1, self))
        return apply("pow", (self, power))

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> NoReturn:
        refuse("a matrix product is no element-wise operation, and cannot be fused", _OUTSIDE)

    __rmatmul__ = __imatmul__ = __matmul__

    def put(self, name: str, other: Any) -> Value:
        """An operator in place. What is an operand of the call, or a view, is not written to."""
        from .graph import Input

        if isinstance(self.tracer.nodes[self.node], Input) or self._view:
            refuse(
                "an operand, or a view, is changed in place; fused functions have no such effects",
                "write x = x + y in place of x += y, and give the call out=x",
            )
        if self._shared:
            refuse(
                "a value is changed in place of which there is a view",
                "write x = x + y in place of x += y",
            )
        result = self.tracer.apply(name, (self, other), weak=True)
        if result.shape != self.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {self.shape} doesn't match the "
                f"broadcast shape {result.shape}\n  {current_place()}"
            )
        if not self.weak and not np.can_cast(result.dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"{name} in place: {result.dtype} does not become {self.dtype} within its kind\n"
                f"  {current_place()}"
            )
        if not self.weak and result.dtype != self.dtype:
            result = self.tracer.cast(result, self.dtype)
        self.node, self.dtype, self.weak = result.node, result.dtype, result.weak
        return self

    # What has no answer without numbers

    __bool__ = _refused("a value has no truth value", _BRANCH)
    __float__ = _refused("float() of a value", _NUMBER)
    __int__ = _refused("int() of a value", _NUMBER)
    __complex__ = _refused("complex() of a value", _NUMBER)
    __index__ = _refused("a value is used as an index or a count", _NUMBER)
    __round__ = _refused("round() of a value", "use zs.round(x)")
    __iter__ = _refused("iteration over a value", _OUTSIDE)
    __contains__ = _refused("`in` a value", "use zs.any(x == y)")
    __array__ = _refused(
        "a value is made a NumPy array", "use Python's operators, NumPy's ufuncs or zs functions"
    )
    __setitem__ = _refused(
        "an assignment into a value", "use zs.where(condition, new, old), and return the result"
    )
    __delitem__ = __setitem__
    item = tolist = tobytes = _refused("the numbers of a value are asked for", _NUMBER)

    def __getattr__(self, name: str) -> Any:
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            refuse(
                f".{name} of a value cannot be fused",
                "fused are operators, ufuncs, zs functions, reductions and .astype, .clip, .T",
            )
        raise AttributeError(f"an array has no attribute {name!r}")

    # Shapes

    def __getitem__(self, key: Any) -> Value:
        from .views import indexed

        return self._viewed(indexed(self.shape, key))

    def _viewed(self, axes: tuple[int | None, ...]) -> Value:
        self._shared = True
        return self.tracer.view(self, axes)

    @property
    def T(self) -> Value:  # noqa: N802 - an array's name for it
        """The axes the other way round."""
        return self.transpose()

    @property
    def mT(self) -> Value:  # noqa: N802 - an array's name for it
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    def transpose(self, *axes: Any) -> Value:
        """The axes in another order; without an argument the other way round."""
        from .views import ordered

        order = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes
        return self._viewed(ordered(self.ndim, order or None))

    def swapaxes(self, axis1: int, axis2: int) -> Value:
        """Two axes exchanged."""
        from .views import one_axis

        order: list[int | None] = [*range(self.ndim)]
        first, second = one_axis(axis1, self.ndim), one_axis(axis2, self.ndim)
        order[first], order[second] = second, first
        return self._viewed(tuple(order))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Value:
        """Another shape that has axes of extent 1 more or fewer."""
        from .views import reshaped

        given = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        return self._viewed(reshaped(self.shape, given))

    def squeeze(self, axis: Any = None) -> Value:
        """Without axes of extent 1: all, or those named."""
        from .views import squeezed

        return self._viewed(squeezed(self.shape, axis))

    # Methods of arrays

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Value:
        """In another dtype, as by `zerostride.cast`."""
        target = np.dtype(dtype)
        if not np.can_cast(self.dtype, target, casting):  # type: ignore[arg-type]
            raise TypeError(f"cannot cast {self.dtype} to {target} (casting is {casting!r})")
        return self.tracer.cast(self, target)

    def copy(self, order: str = "C") -> Value:
        """The same elements."""
        return self.again()

    def square(self) -> Value:
        """Each element times itself."""
        return self.tracer.apply("square", (self,))

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Value:
        """Within limits, of which one or both may be None."""
        from ..compute.unary import clip

        result: Value = clip(self, min, max, out=out)
        return result

    def round(self, decimals: int = 0, out: Any = None) -> Value:
        """The nearest whole number; a half goes to the even one."""
        if decimals:
            refuse("rounding to decimals cannot be fused", "write zs.round(x * 10) / 10")
        no_out(out)
        if self.dtype.kind in "iub":
            return self.again()
        return self.tracer.apply("round", (self,))

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Value:
        """The sum over axes; see `zerostride.sum`."""
        return self.reduced("sum", out, axis=axis, keepdims=keepdims, dtype=dtype)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Value:
        """The product over axes; see `zerostride.prod`."""
        return self.reduced("prod", out, axis=axis, keepdims=keepdims, dtype=dtype)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Value:
        """The mean over axes; see `zerostride.mean`."""
        return self.reduced("mean", out, axis=axis, keepdims=keepdims, dtype=dtype)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Value:
        """The variance over axes, taken from the mean in a second pass."""
        return self.reduced("var", out, axis=axis, keepdims=keepdims, dtype=dtype, ddof=ddof)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Value:
        """The root of the variance."""
        return self.reduced("std", out, axis=axis, keepdims=keepdims, dtype=dtype, ddof=ddof)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Value:
        """The greatest over axes; see `zerostride.max`."""
        return self.reduced("max", out, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Value:
        """The least over axes; see `zerostride.min`."""
        return self.reduced("min", out, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Value:
        """Whether any is true; see `zerostride.any`."""
        return self.reduced("any", out, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Value:
        """Whether all are true; see `zerostride.all`."""
        return self.reduced("all", out, axis=axis, keepdims=keepdims)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Value:
        """Where the first of the greatest is; see `zerostride.argmax`."""
        return self.reduced("argmax", out, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Value:
        """Where the first of the least is; see `zerostride.argmin`."""
        return self.reduced("argmin", out, axis=axis, keepdims=keepdims)

    def reduced(self, name: str, out: Any, **options: Any) -> Value:
        """A reduction of `reducing.TRACED`."""
        from .reducing import TRACED

        no_out(out)
        return TRACED[name](self, **options)

    # Functions of NumPy and of zerostride

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from .functions import call_ufunc

        return call_ufunc(_tracer_of(inputs), ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        from .functions import call_function

        return call_function(function, args, options)

    @staticmethod
    def __zerostride_trace__(op: Op, operands: Sequence[Any], **options: Any) -> Value:
        from .functions import call_op

        return call_op(_tracer_of(operands), op, operands, options)

    @staticmethod
    def __zerostride_broadcast__(data: Value, shape: tuple[int, ...], axes: Any, out: Any) -> Value:
        no_out(out)
        return data.tracer.laid(data, shape, axes)


def _tracer_of(inputs: Sequence[Any]) -> Tracer:
    return next(one.tracer for one in inputs if isinstance(one, Value))


def no_out(out: Any) -> None:
    """Refuses an `out` within a traced function."""
    if out is not None:
        refuse(
            "out= in a fused function would write before all is computed",
            "leave it out, and give out= to the fused call",
        )
