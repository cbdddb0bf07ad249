"""Fused functions: one pass over memory for a function of arrays.

`trace` calls the function once and records a graph, `schedule` turns it into a program, `jit`
compiles hot programs, `grad` builds graphs of gradients. `run` runs a program, `reference`
evaluates a graph node by node. (Not named `fuse`: the import would hide the function `zs.fuse`.)
In: a Python function. Out: a callable that computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from .function import Fused


@overload
def fuse(function: Callable[..., Any], /, *, dtype: Any = None) -> Fused: ...
@overload
def fuse(
    function: None = None, /, *, dtype: Any = None
) -> Callable[[Callable[..., Any]], Fused]: ...
def fuse(
    function: Callable[..., Any] | None = None, /, *, dtype: Any = None
) -> Fused | Callable[[Callable[..., Any]], Fused]:
    """Makes a function of arrays one pass over memory; a decorator, with or without arguments.

    The function is called once for each signature (shapes and dtypes of its operands, values of its
    keyword arguments) with values that know shape and dtype. Python's operators, NumPy's ufuncs and
    zerostride's functions under any rule, reductions included, are recorded, and computed together
    without temporaries of full size. Python's control flow by shapes and keyword arguments runs
    during this call. Arrays of an enclosing scope are operands too: their contents are read in each
    call, but the array objects are fixed with the signature. If a name is bound to another array
    later, the function still uses the first one; pass arrays that change.

    Args:
        function: of arrays, to arrays or a tuple, list or dict of them.
        dtype: what to compute in: operands other than truth values are converted to it, within
            their kind, as by NumPy's ufuncs; truth values are converted where they are counted.

    Returns:
        The fused function. A call takes arrays, lists and numbers by position, settings by keyword,
        and `out=`; `.explain`, `.vjp` and `.graph` take the same operands.

    Raises:
        TypeError: `function` is not callable, or has a parameter `out` or `progress`; `dtype` is
            not of numbers.
        TraceError: at a call: the function does what cannot be fused. The message shows the line.

    >>> import numpy as np, zerostride as zs
    >>> @zs.fuse
    ... def normalise(x, bias):
    ...     centred = x - x.mean(axis=-1, keepdims=True)
    ...     return zs.add(centred, bias, rule="pdpd", axis=0)
    >>> normalise(np.array([[1.0, 3.0], [2.0, 6.0]]), np.array([10.0, 20.0]))
    array([[ 9., 11.],
           [18., 22.]])
    """
    from .function import Fused

    if function is not None:
        return Fused(function, dtype)
    return lambda decorated: Fused(decorated, dtype)
