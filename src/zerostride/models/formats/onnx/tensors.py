"""The constants of an ONNX file as values. Their numbers are read on demand.

External data is looked for when the file is read, and opened when the numbers are needed: never
outside the model's folder, and no more bytes than the tensor's shape has.
"""

from __future__ import annotations

import math
import os
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ....errors import ModelError
from ...ir.files import section
from ...ir.graph import Array, FewNumbers, FileShape, Value, few_numbers
from ...onnx_ops.validation import text

if TYPE_CHECKING:
    import onnx

#: Integer constants up to this many elements are kept: shapes, axes, repeats.
MAX_CONTENT = 64
#: Float constants up to this many elements are kept: they may be one number per axis (the scales of
#: a Resize). Larger ones are weights.
MAX_REALS = 16


@cache
def dtype_name(kind: int) -> str | None:
    """NumPy's name of one of ONNX's element types; None for types without numbers.

    >>> dtype_name(1), dtype_name(7), dtype_name(8)
    ('float32', 'int64', None)
    """
    import onnx

    if kind in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return None
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(kind))
    except (KeyError, ValueError, TypeError):
        return None


class Tensors:
    """The constants of one file."""

    def __init__(self, file: Path, notes: list[str]) -> None:
        self.file = file
        self.notes = notes

    def constant(
        self, tensor: onnx.TensorProto, name: str | None = None, declared: FileShape = None
    ) -> Value:
        """A tensor of the file, with another name if one is given."""
        import onnx

        own = text(tensor.name)
        missing, content, reals = None, None, None
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            missing = self._missing(own, tensor)
        else:
            content, reals = self._few_numbers(own, tensor)
        # Made once, because copies of frozen values are slow: a model may have 100,000.
        return Value(
            own if name is None else name,
            tuple(tensor.dims),
            True,
            content,
            missing,
            declared,
            reals,
            dtype_name(tensor.data_type),
            partial(load, tensor, self.file),
        )

    def _few_numbers(self, name: str, tensor: onnx.TensorProto) -> FewNumbers:
        """The numbers of a constant that has few."""
        import onnx

        count = math.prod(tensor.dims)
        kinds = {tensor.data_type} if 0 <= count <= MAX_CONTENT else set()
        try:
            if kinds & {onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL}:
                return few_numbers(onnx.numpy_helper.to_array(tensor))
            scales = len(tensor.dims) < 2 and count <= MAX_REALS
            if scales and kinds & {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE}:
                return few_numbers(onnx.numpy_helper.to_array(tensor))
        except (ValueError, TypeError):
            shape = tuple(tensor.dims)
            self.notes.append(f"constant {name!r} has not as many numbers as {shape}")
        return None, None

    def of_node(self, name: str, node: onnx.NodeProto, declared: FileShape) -> Value | None:
        """The result of a Constant node, with its name and its sizes in the file."""
        for attribute in node.attribute:
            key = attribute.name
            if key == "value":
                return self.constant(attribute.t, name, declared)
            if key == "value_int":
                return Value(name, (), True, (attribute.i,), None, declared, dtype="int64")
            if key == "value_ints":
                ints = tuple(attribute.ints)
                return Value(name, (len(ints),), True, ints, None, declared, dtype="int64")
            if key in ("value_float", "value_floats"):
                reals = (attribute.f,) if key == "value_float" else tuple(attribute.floats)
                shape = () if key == "value_float" else (len(reals),)
                kept = reals if len(reals) <= MAX_CONTENT else None
                source = partial(_listed, reals, shape)
                return Value(name, shape, True, None, None, declared, kept, "float32", source)
            if key == "value_string":
                return Value(name, (), True, declared=declared)
        return None

    def _missing(self, name: str, tensor: onnx.TensorProto) -> str | None:
        """The external file's name if the file is missing or outside the folder."""
        location, relative = location_of(tensor)
        if relative is None:
            self.notes.append(
                f"the constant {name!r} points outside the model's folder: {location!r}"
            )
            return location or "(no name)"
        # os.path: a name that is invalid on the file system counts as missing.
        if not os.path.isfile(self.file.parent / relative):
            self.notes.append(f"the data of {name!r} is missing: {location!r}")
            return location
        return None


def _listed(numbers: tuple[float, ...], shape: tuple[int, ...]) -> Array:
    import numpy as np

    return np.array(numbers, np.float32).reshape(shape)


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {text(entry.key): text(entry.value) for entry in tensor.external_data}


def location_of(tensor: onnx.TensorProto) -> tuple[str, PurePosixPath | None]:
    """The location of the data: the file's text, and a path; None if it leaves the folder."""
    location = _entries(tensor).get("location", "")
    relative = PurePosixPath(location)
    if not location or relative.is_absolute() or ".." in relative.parts:
        return location, None
    return location, relative


def load(tensor: onnx.TensorProto, file: Path) -> Array:
    """The numbers of a tensor of a file, external ones read.

    Raises:
        ModelError: they are missing, outside the model's folder, or their count does not match
            the shape.
    """
    import onnx

    name = text(tensor.name)
    try:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return _external(tensor, file, name)
        return onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        if isinstance(error, ModelError):
            raise
        shape = tuple(tensor.dims)
        raise ModelError(f"{file}: constant {name!r} of shape {shape}: {error}") from None


def _external(tensor: onnx.TensorProto, file: Path, name: str) -> Array:
    import onnx

    location, relative = location_of(tensor)
    if relative is None:
        raise ModelError(f"{file}: {name!r} points outside the model's folder: {location!r}")
    where = file.parent / relative
    if not where.resolve().is_relative_to(file.parent.resolve()):
        raise ModelError(f"{file}: {name!r} points outside the model's folder: {location!r}")
    entries = _entries(tensor)
    try:
        start, length = int(entries.get("offset") or 0), int(entries.get("length") or -1)
        if not where.is_file():
            raise ModelError(f"{file}: the data of {name!r} is missing: {location!r}")
        rest = where.stat().st_size - start
        if start < 0 or rest < 0:
            raise ModelError(f"{where}: too short for {name!r}")
        raw = section(where, start, rest if length < 0 else length, repr(name))
    except OSError as error:
        raise ModelError(f"{where}: {error.strerror or error}") from None
    inner = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
    return onnx.numpy_helper.to_array(inner)
