"""ONNX models in memory, written to a temporary file without their weights or with them.

Without them, a large constant is external data in a sparse file of the right length, so readers
see a valid model and no disk space is used. Its numbers are read from the object when they are
needed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import ModelError
from ...ir.graph import Array
from .light import MAX_BYTES, MAX_WHOLE_BYTES
from .messages import tensors_of
from .tensors import dtype_name, load, location_of

if TYPE_CHECKING:
    import onnx
    import onnx_ir

#: The name of a temporary model, without its end, which messages replace by the model's.
STEM = "model-in-memory"
#: The external data of a temporary model.
WEIGHTS = "model.weights"
#: Tensors of more bytes in all are written as external data: a protocol buffer ends at 2 GiB, and
#: the nodes need room, too.
MAX_INLINE = (1 << 31) - (1 << 27)
#: Tensors that say they have more bytes are malformed: they are copied as they are. The external
#: data ends there, too: file systems have files of some TiB.
_MOST_BYTES = 1 << 41
#: Element types of less than a byte, by the end of their names.
_NARROW = re.compile(r"(?:U?INT|FLOAT)([24])(?![0-9])")
_WHOLE = ("int32", "int64")
#: How a caller gives a model whose numbers have no folder.
_NAME_FILE = (
    "a model in memory does not say in which folder: give the file's path, or load the model with "
    "its data (onnx.load does)"
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a constant that the temporary file lacks.

    Attributes:
        source: reads them from the object.
        missing: the external file, if it is not known where that lies; else None.
    """

    source: Callable[[], Array]
    missing: str | None = None


@dataclass(slots=True)
class Written:
    """A temporary model while it is written.

    Attributes:
        folder: the folder of the model and its external data.
        label: the name of the model for errors.
        whole: whether weights are written.
        numbers: of the constants that are not, by name.
        links: the file of the caller by the name of each link to it in the folder.
        length: of the external data, so far.
    """

    folder: Path
    label: str
    whole: bool
    numbers: dict[str, Numbers] = field(default_factory=dict)
    links: dict[str, Path] = field(default_factory=dict)
    length: int = 0

    @property
    def path(self) -> Path:
        """The file of the model."""
        return self.folder / f"{STEM}.onnx"

    def place(self, count: int, data: Callable[[], bytes]) -> int:
        """The offset of a tensor of so many bytes; `data` is called if weights are written."""
        start = self.length
        if self.whole:
            raw = data()
            count = len(raw)
            with (self.folder / WEIGHTS).open("ab") as file:
                file.write(raw)
        self.length += count
        return start

    def finish(self, data: bytes) -> None:
        """Writes the model, and the length of external data without bytes."""
        self.path.write_bytes(data)
        if self.length and not self.whole:
            with (self.folder / WEIGHTS).open("wb") as file:
                file.truncate(self.length)


# onnx.ModelProto


def write_message(model: onnx.ModelProto, written: Written) -> None:
    """Writes a ModelProto.

    Args:
        model: the model; it does not change.
        written: where it goes.

    Raises:
        ModelError: weights are wanted and lie in a file whose folder is not known, or the model is
            larger than an ONNX file may be.
    """
    if written.whole:
        _check_inside(model, written.label)
    if not written.whole or _bytes_of(model) > MAX_INLINE:
        model = _thin(model, written)
    written.finish(_serialised(model, written.label))


def _serialised(model: onnx.ModelProto, label: str) -> bytes:
    from google.protobuf.message import EncodeError

    try:
        data: bytes = model.SerializeToString()
    except (EncodeError, ValueError, RuntimeError) as error:
        raise ModelError(f"{label}: an ONNX file ends at 2 GiB ({error})") from None
    return data


def notes_on(written: Written) -> tuple[str, ...]:
    """A note on constants whose numbers are not known; none if all are."""
    lost = [numbers.missing for numbers in written.numbers.values() if numbers.missing]
    if not lost:
        return ()
    count = "a constant lie" if len(lost) == 1 else f"{len(lost)} constants lie"
    return (f"the numbers of {count} in {lost[0]!r}, and {_NAME_FILE}",)


def _check_inside(model: onnx.ModelProto, label: str) -> None:
    for tensor in tensors_of(model):
        if _is_external(tensor):
            location = location_of(tensor)[0]
            words = f"{label}: the numbers of {tensor.name!r} lie in {location!r}, and {_NAME_FILE}"
            raise ModelError(words)


def _is_external(tensor: onnx.TensorProto) -> bool:
    import onnx

    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def _bytes_of(model: onnx.ModelProto) -> int:
    """The bytes of all tensors by their sizes; a message measures itself by writing itself."""
    return sum(_size(tensor) for tensor in tensors_of(model))


def _size(tensor: onnx.TensorProto) -> int:
    """The bytes of a tensor by its element type and sizes; 0 for text and malformed tensors."""
    import numpy as np
    import onnx

    dtype = dtype_name(tensor.data_type)
    if dtype is None or any(size < 0 for size in tensor.dims):
        return 0
    count = 1
    for size in tensor.dims:
        count *= size
    narrow = _NARROW.match(onnx.TensorProto.DataType.Name(tensor.data_type))
    if narrow:
        return (count * int(narrow[1]) + 7) // 8
    item = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return count * int(np.dtype(item).itemsize)


def _thin(model: onnx.ModelProto, written: Written) -> onnx.ModelProto:
    """A copy of the model whose large constants are external data.

    Constants of the main graph alone: names in bodies need not be unique.
    """
    import onnx

    copy = onnx.ModelProto()
    before = dict(written.numbers), written.length
    try:
        _copy_fields(model, copy, ("graph",))
        graph = copy.graph
        graph.SetInParent()
        _copy_fields(model.graph, graph, ("node", "initializer"))
        for tensor in model.graph.initializer:
            _place(tensor, graph.initializer.add(), tensor.name, written)
        for node in model.graph.node:
            _copy_node(node, graph.node.add(), written)
    except (TypeError, ValueError):  # text that is not UTF-8, which protobuf copies only whole
        written.numbers, written.length = before
        return model
    return copy


def _copy_fields(message: Any, copy: Any, but: tuple[str, ...]) -> None:
    """Copies the fields of a message, one by one."""
    for descriptor, value in message.ListFields():
        name = descriptor.name
        if name in but:
            continue
        if hasattr(value, "MergeFrom"):  # messages, and several values
            getattr(copy, name).MergeFrom(value)
        else:
            setattr(copy, name, value)


def _copy_node(node: onnx.NodeProto, copy: onnx.NodeProto, written: Written) -> None:
    constant = node.op_type == "Constant" and len(node.output) == 1
    large = constant and any(a.HasField("t") and _is_large(a.t) for a in node.attribute)
    if not large:
        copy.CopyFrom(node)
        return
    _copy_fields(node, copy, ("attribute",))
    for attribute in node.attribute:
        copied = copy.attribute.add()
        if attribute.HasField("t"):
            _copy_fields(attribute, copied, ("t",))
            _place(attribute.t, copied.t, node.output[0], written)
        else:
            copied.CopyFrom(attribute)


def _is_large(tensor: onnx.TensorProto) -> bool:
    whole = dtype_name(tensor.data_type) in _WHOLE
    return _size(tensor) > (MAX_WHOLE_BYTES if whole else MAX_BYTES)


def _place(tensor: onnx.TensorProto, copy: onnx.TensorProto, name: str, written: Written) -> None:
    """Copies a tensor; a large one without its numbers, which become external data."""
    import onnx

    own = _is_external(tensor) and location_of(tensor)[0] == WEIGHTS and name in written.numbers
    if own or not _is_large(tensor) or written.length + _size(tensor) > _MOST_BYTES:
        copy.CopyFrom(tensor)
        return
    # By name: a list of the fields would copy the numbers.
    copy.name, copy.data_type, copy.doc_string = tensor.name, tensor.data_type, tensor.doc_string
    copy.dims.extend(tensor.dims)
    copy.metadata_props.extend(tensor.metadata_props)
    size = _size(tensor)
    offset = written.place(size, lambda: _raw(tensor))
    copy.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", WEIGHTS), ("offset", offset), ("length", size)):
        copy.external_data.add(key=key, value=str(value))
    if not written.whole:
        missing = location_of(tensor)[0] if _is_external(tensor) else None
        written.numbers[name] = Numbers(lambda: load(tensor, Path(written.label)), missing)


def _raw(tensor: onnx.TensorProto) -> bytes:
    import onnx

    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    array = onnx.numpy_helper.to_array(tensor)
    return bytes(onnx.numpy_helper.from_array(array).raw_data)


# onnx_ir.Model


def write_ir(model: onnx_ir.Model, written: Written) -> None:
    """Writes a model of onnx_ir.

    Its external data is linked into the folder where weights are wanted and links are possible,
    else copied.

    Args:
        model: the model; it does not change.
        written: where it goes.

    Raises:
        ModelError: the model is not valid, or external data is missing.
    """
    import onnx_ir

    try:
        copy = model.clone()  # shares the tensors
        if written.whole:
            _with_weights(copy, written)
        else:
            _without_weights(copy, written)
        proto = onnx_ir.serde.serialize_model(copy)
    except (OSError, ModelError):
        raise
    except Exception as error:
        raise ModelError(f"{written.label}: onnx_ir does not write it: {error}") from error
    if written.whole:
        written.finish(_serialised(proto, written.label))
    else:
        write_message(proto, written)  # the constants of nodes


def _without_weights(model: onnx_ir.Model, written: Written) -> None:
    """Puts external data without bytes in the place of large constants of the main graph."""
    import onnx_ir

    main = model.graph.initializers
    for value in _initializers(model):
        tensor, name = value.const_value, value.name
        whole = tensor.dtype.name.lower() in _WHOLE
        large = tensor.nbytes > (MAX_WHOLE_BYTES if whole else MAX_BYTES)
        if large and main.get(name) is value:
            offset = written.place(tensor.nbytes, bytes)
            written.numbers[name] = Numbers(_reader(tensor, name))
            value.const_value = _external(tensor, WEIGHTS, offset, tensor.nbytes, written.folder)
        elif isinstance(tensor, onnx_ir.ExternalTensor):
            with suppress(OSError, ValueError):  # missing, as the reader will say
                value.const_value = onnx_ir.Tensor(
                    tensor.numpy().copy(), dtype=tensor.dtype, shape=tensor.shape, name=name
                )


def _reader(tensor: Any, name: str) -> Callable[[], Array]:
    def read() -> Array:
        try:
            array: Array = tensor.numpy()
        except Exception as error:
            raise ModelError(f"the numbers of {name!r}: {error}") from error
        return array

    return read


def _external(
    tensor: Any, location: str, offset: int, length: int, folder: Path
) -> onnx_ir.ExternalTensor:
    import onnx_ir

    return onnx_ir.ExternalTensor(
        location,
        offset,
        length,
        tensor.dtype,
        shape=tensor.shape,
        name=tensor.name,
        base_dir=folder,
    )


def _with_weights(model: onnx_ir.Model, written: Written) -> None:
    """Brings external data into the folder; weights that do not fit into a message, too."""
    import onnx_ir

    values = [*_initializers(model)]
    inside = [v for v in values if not isinstance(v.const_value, onnx_ir.ExternalTensor)]
    names: dict[Path, str] = {}
    for value in values:
        tensor = value.const_value
        if not isinstance(tensor, onnx_ir.ExternalTensor):
            continue
        file = Path(tensor.path)
        if file not in names:
            taken = file.name in written.links or file.name in (WEIGHTS, written.path.name)
            names[file] = f"{len(names)}-{file.name}" if taken else file.name
            written.links[names[file]] = file
            _link(file, written.folder / names[file])
        length = tensor.nbytes if tensor.length is None else tensor.length
        value.const_value = _external(
            tensor, names[file], tensor.offset or 0, length, written.folder
        )
    if sum(value.const_value.nbytes for value in inside) <= MAX_INLINE:
        return
    for value in inside:
        tensor = value.const_value
        if tensor.nbytes > MAX_BYTES:
            offset = written.place(tensor.nbytes, tensor.tobytes)
            value.const_value = _external(tensor, WEIGHTS, offset, tensor.nbytes, written.folder)


def _initializers(model: onnx_ir.Model) -> Iterator[Any]:
    """The initializers of all graphs that have numbers."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if tensor is not None and value.name and tensor.dtype.name != "STRING":
                yield value


def _link(file: Path, goal: Path) -> None:
    """A second name for a file, or a copy where the file systems differ."""
    if not file.is_file():
        raise ModelError(f"{file}: the model's external data is missing")
    try:
        os.link(file, goal)
    except OSError:
        shutil.copyfile(file, goal)


def read_ir(path: Path, links: Mapping[str, Path]) -> onnx_ir.Model:
    """A model of onnx_ir that does not need its file.

    Args:
        path: the file.
        links: the caller's own files, by the names of links to them: tensors point there again.
    """
    import onnx_ir

    model = onnx_ir.load(path)
    for value in _initializers(model):
        tensor = value.const_value
        if not isinstance(tensor, onnx_ir.ExternalTensor):
            continue
        file = links.get(str(tensor.location))
        if file is None:
            (value.const_value,) = onnx_ir.external_data.convert_tensors_from_external([tensor])
        else:
            offset, length = tensor.offset or 0, tensor.length or tensor.nbytes
            value.const_value = _external(tensor, file.name, offset, length, file.parent)
    return model


__all__ = [
    "STEM",
    "WEIGHTS",
    "Numbers",
    "Written",
    "notes_on",
    "read_ir",
    "write_ir",
    "write_message",
]
