"""Derivatives of functions of arrays: pullbacks and gradients, as `zerostride.vjp` and `grad`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ..sizes import whole_numbers
from .function import Fused


def vjp(
    function: Callable[..., Any], /, *operands: Any, **more: Any
) -> tuple[Any, Callable[..., Any]]:
    """A function's result, and the function that takes its cotangents back to the operands.

    Args:
        function: of arrays, fused by :func:`zerostride.fuse` or not. A function that is not fused
            is traced in each call: to call it often, fuse it and use its `vjp`.
        operands: arrays, of any library, lists and numbers.
        more: keyword arguments of the function.

    Returns:
        The function's result, and its pullback. Called with cotangents that are packed as the
        results, the pullback returns a tuple of gradients, one for each operand, of its shape and
        dtype, and None for integers and truth values. A broadcast's adjoint is a sum to the
        operand's shape.
        Where a function has no derivative, the gradient is PyTorch's (0 of abs at 0, half to each
        of equals in maximum, equal shares to the largest elements of max).

    Raises:
        TraceError: the function does what cannot be fused.
        BroadcastError: shapes that do not combine.
        TypeError: complex numbers.

    >>> import zerostride as zs
    >>> total, pullback = zs.vjp(lambda x, y: zs.sum(x * y), [[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])
    >>> total, *pullback(1.0)
    (np.float64(56.0), array([[5., 6.],
           [5., 6.]]), array([4., 6.]))
    """
    fused = function if isinstance(function, Fused) else Fused(_passed(function))
    return fused.vjp(*operands, **more)


def _passed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without a signature of its own: it may have a parameter `out`."""
    if not callable(function):
        raise TypeError(f"a gradient is of a function, not of {type(function).__name__}")
    return lambda *values, **settings: function(*values, **settings)


def _places(argnums: Any) -> tuple[int, ...]:
    """The operands' places."""
    several = isinstance(argnums, Iterable) and getattr(argnums, "ndim", True)
    places = tuple(argnums) if several else (argnums,)
    numbers = [whole_numbers((place,)) for place in places]
    if None in numbers:
        raise TypeError(f"argnums are the places of operands, as integers, not {argnums!r}")
    return tuple(number[0] for number in numbers if number)


def value_and_grad(
    function: Callable[..., Any], argnums: int | Iterable[int] = 0
) -> Callable[..., tuple[Any, Any]]:
    """A function that returns another one's result, a number, and its gradient.

    Args:
        function: of arrays, fused by :func:`zerostride.fuse` or not, with one number as result.
        argnums: the positional operand, or operands, for which the gradient is taken; from the end
            if negative.

    Returns:
        A function of the same arguments. Its gradient is an array of the operand's shape and dtype,
        or a tuple of them for several `argnums`; derivatives are those of :func:`vjp`.

    Raises:
        TypeError: no function, or `argnums` are no integers. From the returned function, if the
            result is no single number of floats, or an operand has no gradient: integers and truth
            values.
        ValueError: from the returned function, if there is no such operand.

    >>> import zerostride as zs
    >>> loss = zs.value_and_grad(lambda w, x: zs.sum(zs.square(w * x)))
    >>> loss([1.0, 2.0], [3.0, 1.0])
    (np.float64(13.0), array([18.,  4.]))
    """
    fused = function if isinstance(function, Fused) else Fused(_passed(function))
    places = _places(argnums)

    @functools.wraps(function)
    def called(*operands: Any, **more: Any) -> tuple[Any, Any]:
        for place in places:
            if not -len(operands) <= place < len(operands):
                raise ValueError(f"argnums {place}: the call has {len(operands)} operands by place")
        result, pull = fused.vjp(*operands, **more)
        shape = getattr(result, "shape", None)
        if shape != ():
            shown = f"an array of shape {shape}" if shape else f"a {type(result).__name__}"
            raise TypeError(
                f"a gradient is of one number, and the result is {shown}; reduce it, or use vjp"
            )
        if "float" not in str(result.dtype):
            raise TypeError(
                f"a gradient is of a number of floats, and the result is of {result.dtype}; pass "
                "floats (2.0 for 2)"
            )
        gradients = pull(1.0)
        for place in places:
            if gradients[place] is None:
                raise TypeError(
                    f"operand {place % len(operands)} has no gradient: it is not of floats"
                )
        chosen = tuple(gradients[place] for place in places)
        return result, chosen if isinstance(argnums, Iterable) else chosen[0]

    return called


def grad(function: Callable[..., Any], argnums: int | Iterable[int] = 0) -> Callable[..., Any]:
    """A function that returns the gradient of another one, whose result is a number.

    Args, returned function and errors are those of :func:`value_and_grad`.

    >>> import zerostride as zs
    >>> zs.grad(lambda x: zs.sum(zs.square(x)))([1.0, 2.0])
    array([2., 4.])
    """
    both = value_and_grad(function, argnums)

    @functools.wraps(function)
    def called(*operands: Any, **more: Any) -> Any:
        return both(*operands, **more)[1]

    return called
