"""The stand-in for an array while a function is traced: it has shape and dtype, but no numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...compute.foreign import is_foreign
from ...compute.special import keeps_kind
from ...ops import OPS
from .methods import Methods
from .source import is_in_place, no_out, refuse

if TYPE_CHECKING:
    from ...ops import Op
    from .tracer import Tracer

_WEAK_KINDS = {"i": "int", "u": "int", "f": "float", "c": "complex"}
_TYPES: dict[str, type[complex]] = {"int": int, "float": float, "complex": complex}


@functools.lru_cache(64)
def name_of(dtype: np.dtype[Any]) -> str:
    """A dtype's name, cached because NumPy takes microseconds to build it.

    >>> name_of(np.dtype("f4"))
    'float32'
    """
    return dtype.name


def _binary(name: str, reflected: str) -> Callable[[Value, Any], Any]:
    def method(self: Value, other: Any) -> Any:
        if not _meets(other):
            # Another library's array may handle the operator. Python's own classes do not, though
            # some define comparisons (from 3.12 on None too).
            other_method = getattr(type(other), reflected, None)
            from_library = type(other).__module__ != "builtins"
            if from_library and other_method is not getattr(object, reflected, None):
                return NotImplemented
            _refuse_other(other)
        return self.tracer.apply(name, (self, _plain(other)), weak=True)

    return method


def _reflected(name: str, in_place: str = "") -> Callable[[Value, Any], Any]:
    def method(self: Value, other: Any) -> Any:
        if not _meets(other):
            _refuse_other(other)
        if hasattr(type(other), in_place) and is_in_place():
            refuse(
                f"a {type(other).__name__} is changed in place; fused functions have no such "
                "effects",
                "write y = y + x, with a name of its own",
            )
        return self.tracer.apply(name, (_plain(other), self), weak=True)

    return method


def _refuse_other(other: Any) -> NoReturn:
    what = "None" if other is None else type(other).__name__
    refuse(
        f"an array and {what} cannot be combined or compared",
        "use arrays and numbers; np.asarray makes an array of what is like one",
    )


def _in_place(name: str) -> Callable[[Value, Any], Value]:
    def method(self: Value, other: Any) -> Value:
        return self.changed(name, other)

    return method


def _operators(name: str, op: str) -> tuple[Callable[[Value, Any], Any], ...]:
    """The operators of two operands: value on the left, on the right, and in place."""
    return _binary(op, f"__r{name}__"), _reflected(op, f"__i{name}__"), _in_place(op)


def _unary(name: str) -> Callable[[Value], Value]:
    def method(self: Value) -> Value:
        return self.tracer.apply(name, (self,), weak=True)

    return method


def _refused(what: str, hint: str) -> Callable[..., NoReturn]:
    def method(self: Value, *_: Any, **__: Any) -> NoReturn:
        refuse(f"{what} while the function is traced: it has no numbers yet", hint)

    return method


_NUMBERS = bool | int | float | complex


def _meets(other: Any) -> bool:
    """Whether Python's operators combine a value with an object; others may handle it themselves.

    An array of any library is captured, or refused there by its name.
    """
    if isinstance(other, Value | np.ndarray | np.generic | list | tuple | _NUMBERS):
        return True
    return is_foreign(other) or hasattr(type(other), "__array__")


def _plain(other: Any) -> Any:
    """A number of a subclass (of an enumeration, for example) as a plain Python number."""
    if isinstance(other, np.generic):
        return other
    if isinstance(other, int):
        return other if type(other) is bool else int(other)
    if isinstance(other, float):
        return float(other)
    return complex(other) if isinstance(other, complex) else other


def _equality(name: str) -> Callable[..., Any]:
    def method(self: Value, other: Any) -> Any:
        if not _meets(other):  # Python would compare identities
            _refuse_other(other)
        return self.tracer.apply(name, (self, _plain(other)), weak=True)

    return method


_POWER = _binary("pow", "__rpow__")
_BRANCH = (
    "zs.where(condition, a, b) chooses by values; Python's if, by shapes and keyword arguments"
)
_NUMBER = "keep it an array, or take what is wanted by number as a keyword argument"
_OUTSIDE = "do that outside of the fused function, on its operands or its results"


class Value(Methods):
    """An array of a function that is being traced.

    Python's operators, NumPy's ufuncs and zerostride's functions on it write nodes of a graph.
    Shape, dtype, rank, size and length are those of the array; its elements are not known.

    Attributes:
        tracer: records the graph.
        node: its number there.
        weak: whether it is a Python number, which takes the other operands' dtype.
        is_view: whether the array would be an operand, or a view of another.
        shared: whether it has a view.
    """

    __slots__ = ("_dtype", "_shape", "is_view", "node", "shared", "tracer", "weak")
    #: pandas' objects defer operators to objects with a higher priority.
    __pandas_priority__ = 1 << 20
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
        self._shape = shape
        self._dtype = dtype
        self.weak = weak
        self.is_view = view
        self.shared = False

    def again(self, view: bool = False) -> Value:
        """The same elements as another array, or as a view."""
        return Value(self.tracer, self.node, self.shape, self.dtype, self.weak and not view, view)

    def __copy__(self) -> Value:
        return self.again()

    def __deepcopy__(self, memo: Any) -> Value:
        return self.again()

    @property
    def shape(self) -> tuple[int, ...]:
        """As an array's."""
        return self._shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        refuse("the shape of a value is set in place", "write x = x.reshape(shape)")

    @property
    def dtype(self) -> np.dtype[Any]:
        """As an array's."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        refuse("the dtype of a value is set in place", "write x = x.astype(dtype)")

    @property
    def kind(self) -> str:
        """The dtype's name, or "int", "float" or "complex" of a Python number."""
        return _WEAK_KINDS[self.dtype.kind] if self.weak else name_of(self.dtype)

    @property
    def scalar_type(self) -> type[complex]:
        """The type of the Python number."""
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

    __add__, __radd__, __iadd__ = _operators("add", "add")
    __sub__, __rsub__, __isub__ = _operators("sub", "subtract")
    __mul__, __rmul__, __imul__ = _operators("mul", "multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operators("truediv", "divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators("floordiv", "floor_divide")
    __mod__, __rmod__, __imod__ = _operators("mod", "remainder")
    __and__, __rand__, __iand__ = _operators("and", "bitwise_and")
    __or__, __ror__, __ior__ = _operators("or", "bitwise_or")
    __xor__, __rxor__, __ixor__ = _operators("xor", "bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operators("lshift", "bitwise_left_shift")
    __rshift__, __rrshift__, __irshift__ = _operators("rshift", "bitwise_right_shift")
    __lt__, __le__ = _binary("less", "__gt__"), _binary("less_equal", "__ge__")
    __gt__, __ge__ = _binary("greater", "__lt__"), _binary("greater_equal", "__le__")
    __eq__ = _equality("equal")
    __ne__ = _equality("not_equal")
    __neg__, __pos__, __abs__ = _unary("negative"), _unary("positive"), _unary("abs")
    __invert__ = _unary("bitwise_invert")
    __rpow__, __ipow__ = _reflected("pow", "__ipow__"), _in_place("pow")

    def __pow__(self, power: Any) -> Any:
        return self.raised(power) if _meets(power) else _POWER(self, power)

    def raised(self, power: Any) -> Value:
        """x ** power: by products for whole numbers up to 4, by a root for 1/2, as NumPy's."""
        apply, kind = self.tracer.apply, self.dtype.kind
        whole = kind in "iu"
        # Other packages' floats and Python's may promote to a wider dtype, as in NumPy.
        meets = type(power) is float and kind not in "fc"
        if type(power) not in (int, float) or self.weak or meets:
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

    def changed(self, name: str, other: Any) -> Value:
        """An in-place operator. Operands of the call and views are not written to."""
        if self.weak or not self.shape:  # numbers are immutable: the name is bound to a new one
            return self.tracer.apply(name, (self, other), weak=True)
        if self.is_view:
            refuse(
                "an operand, or a view, is changed in place; fused functions have no such effects",
                "write x = x + y in place of x += y, and give the call out=x",
            )
        if self.shared:
            refuse(
                "a value is changed in place of which there is a view",
                "write x = x + y in place of x += y",
            )
        power = name == "pow" and _meets(other)
        result = self.raised(other) if power else self.tracer.apply(name, (self, other))
        if result.shape != self.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {self.shape} doesn't match the "
                f"broadcast shape {result.shape}"
            )
        if not keeps_kind(result.dtype, self.dtype):
            raise TypeError(
                f"{name} in place: {result.dtype} does not become {self.dtype} within its kind"
            )
        if result.dtype != self.dtype:
            result = self.tracer.cast(result, self.dtype)
        self.node = result.node
        return self

    # Operations that need the numbers, which are refused

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
        own = f"; write zs.{name}(x)" if name in OPS else ""
        raise AttributeError(
            f"values of a fused function have what NumPy's arrays have, and no {name!r}{own}"
        )

    # Functions of NumPy and of zerostride

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from .functions import call_ufunc

        return call_ufunc(self.tracer, ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        from .functions import call_function

        return call_function(function, args, options)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), options: Any = None
    ) -> NoReturn:
        # For an operator PyTorch returns NotImplemented then, and Python tries the value's own.
        from .functions import refuse_torch

        refuse_torch(function)

    @staticmethod
    def __zerostride_trace__(op: Op, operands: Sequence[Any], **options: Any) -> Value:
        from .functions import call_op

        return call_op(_tracer_of(operands), op, operands, options)

    @staticmethod
    def __zerostride_broadcast__(data: Value, shape: tuple[int, ...], axes: Any, out: Any) -> Value:
        no_out(out)
        return data.tracer.laid(data, shape, axes)


def _tracer_of(inputs: Sequence[Any]) -> Tracer:
    return next(value.tracer for value in inputs if isinstance(value, Value))
