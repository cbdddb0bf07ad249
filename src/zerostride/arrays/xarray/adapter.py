"""xarray's arrays: dimensions have names, and align by name.

xarray itself aligns operands: it joins indexes by `arithmetic_join`, orders dimensions as they
appear, and merges coordinates and attributes as in its own arithmetic. The arrays inside (NumPy,
Dask, CuPy …) are computed as without names.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ...compute.foreign import OPERAND, NotPlain, dispatch, is_foreign
from ...compute.functions import _run
from ...compute.semantics import WEAK
from ...core.plan import Plan, RuleUse
from ...errors import BroadcastError, Reason
from ...fusion import reductions
from ...fusion.calls import sort
from ...ops import Op
from ..model import FusedCall, Fusion, Options
from ..packing import leaves, zipped
from ..programs import stand_in
from .names import Names, check

_TAKE_DATA = "compute with the arrays' .data, whose axes have places"


class Named:
    """The adapter of DataArrays and Variables."""

    def dtype_of(self, array: Any) -> np.dtype[Any]:
        """NumPy's dtype of an array."""
        data = _check(array).data
        dtype: np.dtype[Any] = dispatch().dtype_of(data) if is_foreign(data) else data.dtype
        return dtype

    def data_of(self, array: Any) -> Any:
        """Refused: a function of the data would lose the names."""
        raise NotPlain("its dimensions' names would be lost", f"{OPERAND}; or take its .data")

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's dtype."""
        numpy_dtype: np.dtype[Any] = np.dtype(dtype)
        return numpy_dtype

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table."""
        for name in ("rule", "axis", "broadcast", "engine"):
            value = getattr(options, name)
            if value is not None:
                raise BroadcastError(
                    f"{name}={value!r} says where axes land, and the dimensions of DataArrays say "
                    "that by their names",
                    reason=Reason.ATTRIBUTE,
                    hint=_TAKE_DATA,
                )
        _refuse_out(options.out)

        def compute(*data: Any) -> Any:
            return _run(op, data, None, None, None, None, options.dtype, None)

        return _with_attributes(_applied(compute, operands), operands[op.conditions :])

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """Refused: the new axes would have no names."""
        _refuse("broadcast", "its expand_dims or broadcast_like, which name the new dimensions")

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands of a plan of names, broadcast by xarray."""
        names = _names_of(plan)
        if names is None:
            _refuse("views of a plan of places", _TAKE_DATA)
        import xarray as xr

        broadcast_arrays = xr.broadcast(*_joined(arrays))
        for array in broadcast_arrays:
            if array.dims != names or array.shape != plan.shape:
                raise BroadcastError(
                    f"the arrays have {array.shape} along {array.dims}; the plan was made for "
                    f"{plan.shape} along {names}",
                    reason=Reason.EXTENT_MISMATCH,
                    rule=plan.rule,
                    shapes=plan.operands,
                )
        return tuple(broadcast_arrays)

    def unbroadcast(self, plan: Plan, grad: Any, k: int) -> Any:
        """`grad` summed over the dimensions that operand `k` lacks."""
        names = _names_of(plan)
        if names is None:
            _refuse("the gradient of a plan of places", _TAKE_DATA)
        if grad.dims != names:
            raise BroadcastError(
                f"grad is of {grad.dims}; the result, and so its gradient, is of {names}",
                reason=Reason.RANK,
                rule=plan.rule,
                shapes=plan.operands,
            )
        # The numbers of the plan are checked by a gradient without memory.
        plan.unbroadcast(np.broadcast_to(np.float32(0), grad.shape), k)
        over = tuple(names[axis] for axis in plan.stretched[k])
        dtype = self.dtype_of(grad)
        kept = {"dtype": dtype} if dtype.kind not in "biu" else {}
        return self.reduction("sum", grad, {"axis": over, "keepdims": False, **kept})

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction over dimensions by name or by position."""
        arguments = dict(options)
        _refuse_out(arguments.pop("out", None))
        dims = _dimensions(_check(x), arguments.pop("axis", None))
        keepdims = arguments.pop("keepdims", False)
        function = functools.partial(getattr(reductions, name), **arguments)
        if not dims:
            return _with_attributes(x.copy(data=_held(function(x.data, axis=()))), [x])

        def reduced(data: Any, axis: Any = None) -> Any:
            return function(data, axis=axis)

        return x.reduce(reduced, dim=dims, keepdims=keepdims)

    def fused(self, call: FusedCall) -> Any:
        """A call of a fused function; each result has all dimensions."""
        function, operands, settings, out, progress = call
        _refuse_out(out)
        named = [name for name, value in settings.items() if _is_named(value)]
        rest = {name: value for name, value in settings.items() if name not in named}
        if progress is not None:
            rest["progress"] = progress
        values = [*operands, *(settings[name] for name in named)]
        packed: list[Any] = []

        def compute(*data: Any) -> Any:
            more = dict(zip(named, data[len(operands) :], strict=True))
            packed[:] = [function(*data[: len(operands)], **more, **rest)]
            _check_places(function, data[: len(operands)], {**more, **rest}, values, named)
            return next(leaves(packed))

        try:
            first = _with_attributes(_applied(compute, values), values)
        except ValueError as error:
            self._refuse_shapes(packed, error)
        return zipped(packed[0], None, lambda part, _: self._like(first, part))

    def _like(self, first: Any, data: Any) -> Any:
        """A result with the names and coordinates of another."""
        if tuple(np.shape(data)) != first.shape:
            self._refuse_shapes([data], None)
        return first.copy(data=_held(data))

    def _refuse_shapes(self, packed: Sequence[Any], error: ValueError | None) -> NoReturn:
        if error is not None and (not packed or isinstance(error, BroadcastError)):
            raise error
        raise BroadcastError(
            "a result has not the shape of all dimensions together, so that there are no names "
            "for its axes",
            reason=Reason.RANK,
            hint="reduce the result by name, or " + _TAKE_DATA,
        ) from error

    def vjp(self, call: FusedCall) -> tuple[Any, Callable[..., Any]]:
        """Refused: cotangents have positions, not names."""
        _refuse("vjp", _TAKE_DATA)


def plan_of(operands: Sequence[Any]) -> Plan:
    """The plan of DataArrays and Variables: an axis for each name, in the order of appearance.

    The operands' shapes are in that order, as xarray transposes them. Indexes are joined first, so
    sizes are those after the join.

    Raises:
        BroadcastError: dimensions of one name and two sizes.
    """
    joined = _joined(operands)
    sizes: dict[Hashable, int] = {}
    for operand in joined:
        if len({*operand.dims}) < len(operand.dims):
            raise BroadcastError(
                f"the dimensions {operand.dims} have one name twice, which says two places",
                reason=Reason.DUPLICATE_AXES,
                shapes=tuple(tuple(operand.shape) for operand in joined),
            )
        for name, size in zip(operand.dims, operand.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise BroadcastError(
                    f"dimension {name!r} has {sizes[name]} and {size} elements; a dimension of a "
                    "name never stretches",
                    reason=Reason.EXTENT_MISMATCH,
                    shapes=tuple(tuple(operand.shape) for operand in joined),
                )
    order = {name: place for place, name in enumerate(sizes)}
    mapping = tuple(tuple(sorted(order[name] for name in operand.dims)) for operand in joined)
    shape = tuple(sizes.values())
    shapes = tuple(tuple(shape[place] for place in places) for places in mapping)
    return Plan(shape, shapes, mapping, RuleUse("xarray", {"axes": tuple(map(str, sizes))}))


# Helpers


def _check_places(
    function: Fusion,
    data: Sequence[Any],
    settings: Mapping[str, Any],
    originals: Sequence[Any],
    named: Sequence[str],
) -> None:
    """Refuses a fused function in which positions and names of axes disagree.

    Args:
        function: fused.
        data: its operands, as xarray lays them out.
        settings: its keywords; those with named arrays as xarray lays them out.
        originals: the user's operands, and the user's settings with named arrays.
        named: the names of these settings.
    """
    more = {name: item for name, item in settings.items() if name != "progress"}
    call = sort(
        [_shown(item) for item in data], {name: _shown(item) for name, item in more.items()}
    )
    compiled = function.compiled(call)
    dims = tuple(dict.fromkeys(name for item in originals if _is_named(item) for name in item.dims))
    by_name = dict(zip(named, originals[len(data) :], strict=True))
    users = [*originals[: len(data)], *(by_name.get(name) for name in call.named)]
    operands = [
        Names(tuple(item.dims), np.ndim(value)) if _is_named(item) else None
        for item, value in zip(users, call.values, strict=True)
    ]
    operands += [None] * len(compiled.sources)
    key = ("names", tuple(operands), dims)
    if key not in compiled.derived:
        check(compiled.graph, operands, dims)
        compiled.derived[key] = True


def _shown(value: Any) -> Any:
    """An operand's stand-in for the signature."""
    if not is_foreign(value):
        return value
    return stand_in(tuple(value.shape), dispatch().dtype_of(value))


def _applied(compute: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Applies a function to aligned data; the result has names and coordinates."""
    import xarray as xr

    values = [np.asarray(value) if isinstance(value, list | tuple) else value for value in operands]
    named = [_check(value) for value in values if _is_named(value)]
    options = _options()
    if not options.get("arithmetic_broadcast", True) and len({value.dims for value in named}) > 1:
        raise BroadcastError(
            "the operands have other dimensions, and xarray's option arithmetic_broadcast is off",
            reason=Reason.RANK,
            shapes=tuple(value.shape for value in named),
        )
    if options.get("arithmetic_compat", "minimal") != "minimal" and len(named) > 1:
        raise TypeError(
            "xarray's option arithmetic_compat is read by its own operators alone; set it to "
            "'minimal', or merge the coordinates first"
        )
    result = xr.apply_ufunc(
        compute,
        *values,
        join=options["arithmetic_join"],
        dask="allowed",
        # Of the coordinates, as its own arithmetic; the result's own attributes and name follow.
        keep_attrs="override",
    )
    names = {value.name for value in named if isinstance(value, xr.DataArray)}
    if names:
        result.name = names.pop() if len(names) == 1 else None
    return result


def _with_attributes(result: Any, operands: Sequence[Any]) -> Any:
    """A result with the attributes of xarray's arithmetic, by its options."""
    import xarray as xr

    bare: list[Any] = [
        xr.Variable((), 0, operand.attrs) for operand in operands if _is_named(operand)
    ]
    result.attrs = functools.reduce(operator.add, bare[1:], bare[0] + 0).attrs if bare else {}
    return result


def _options() -> Mapping[str, Any]:
    """xarray's options."""
    import xarray as xr

    options: Mapping[str, Any] = xr.get_options()
    return options


def _joined(operands: Sequence[Any]) -> list[Any]:
    """Named operands with joined indexes."""
    import xarray as xr

    for array in operands:
        if not _is_named(array):
            kind = type(array).__name__
            raise BroadcastError(
                f"a plan of names is of DataArrays and Variables alone, not of {kind}",
                reason=Reason.BAD_EXTENT,
            )
        _check(array)
    arrays = [array for array in operands if isinstance(array, xr.DataArray)]
    try:
        aligned = iter(xr.align(*arrays, join=_options()["arithmetic_join"], copy=False))
    except ValueError as error:
        raise BroadcastError(
            str(error),
            reason=Reason.EXTENT_MISMATCH,
            shapes=tuple(tuple(array.shape) for array in operands),
        ) from error
    return [next(aligned) if isinstance(array, xr.DataArray) else array for array in operands]


def _is_named(value: Any) -> bool:
    return hasattr(value, "dims") and type(value) not in WEAK


def _check(array: Any) -> Any:
    """The array; a collection of arrays is refused."""
    if not hasattr(array, "data"):
        raise TypeError(
            f"a {type(array).__name__} is many arrays; map the function over it "
            "(Dataset.map(zerostride.sqrt)), or take its variables"
        )
    return array


def _held(data: Any) -> Any:
    return data if is_foreign(data) else np.asarray(data)


def _dimensions(x: Any, axis: Any) -> list[Hashable]:
    """The names of the dimensions in `axis`: names, positions, or None for all."""
    if axis is None:
        return list(x.dims)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    names: list[Hashable] = []
    for item in axes:
        name = item
        if item not in x.dims and hasattr(item, "__index__"):
            place = operator.index(item)
            if not -x.ndim <= place < x.ndim:
                raise BroadcastError(f"there is no axis {place} of {x.ndim}", reason=Reason.RANK)
            name = x.dims[place]
        if name not in x.dims:
            there = ", ".join(map(str, x.dims)) or "none"
            raise BroadcastError(
                f"there is no dimension {name!r}; there are: {there}",
                reason=Reason.RANK,
            )
        if name in names:
            raise BroadcastError(f"axis {axis!r} names one twice", reason=Reason.DUPLICATE_AXES)
        names.append(name)
    return names


def _names_of(plan: Plan) -> tuple[str, ...] | None:
    """The names of a plan's axes, or None if they have positions only."""
    return plan.rule.attributes.get("axes") if plan.rule == "xarray" else None


def _refuse_out(out: Any) -> None:
    if any(item is not None for item in leaves((out,))):
        raise TypeError("out= is not there for DataArrays: " + _TAKE_DATA)


def _refuse(what: str, instead: str) -> NoReturn:
    raise TypeError(f"{what} is not there for DataArrays: {instead}")


ADAPTER = Named()
