"""Models as objects of other libraries: a row for each kind of object.

A row says how the object becomes a temporary file, and how a changed file becomes an object of the
same kind. A kind is recognised by the names of its classes, so no library is imported for a
question: an object's library is imported already.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import printable
from ..ir.files import write_scratch
from .onnx.in_memory import Numbers, Written, notes_on, read_ir, write_ir, write_message

#: Most characters of a graph's name in the name of a model.
_MOST = 60
#: LiteRT's identifier of a file, and where it stands.
_TFLITE, _AT = b"TFL3", 4
#: The fields of onnx.ModelProto, and how protocol buffers write numbers and messages.
_FIELDS, _WIRES = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26}), (0, 2)


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of object.

    Attributes:
        name: what reports call it.
        classes: its classes, each as the package and the name.
        form: the format of its file.
        graph_name: the name of its graph; "" if it has none.
        write: writes it, and returns the file.
        read: an object of this kind from a file; the second argument is the object that was given.
    """

    name: str
    classes: tuple[tuple[str, str], ...]
    form: str
    graph_name: Callable[[Any], str]
    write: Callable[[Any, Written], Path]
    read: Callable[[Path, Any, Written], Any]


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """The temporary file of an object.

    Attributes:
        path: the file.
        notes: on numbers that are not known.
        numbers: of constants that the file lacks, by name.
        read: an object of the same kind from a changed file.
    """

    path: Path
    notes: tuple[str, ...]
    numbers: dict[str, Numbers]
    read: Callable[[Path], Any]


def kind_of(model: object) -> ObjectKind | None:
    """The row of an object; None if it is of no such kind.

    Raises:
        TypeError: it is bytes that begin like no model.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return _kind_of_bytes(bytes(model[: _AT + len(_TFLITE)]))
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(model).__mro__}
    return next((row for row in KINDS if names.intersection(row.classes)), None)


def _kind_of_bytes(start: bytes) -> ObjectKind:
    if start[_AT:] == _TFLITE:
        return _TFLITE_BYTES
    if start and start[0] >> 3 in _FIELDS and start[0] & 7 in _WIRES:
        return _ONNX_BYTES
    raise TypeError(f"bytes that begin with {start!r} are no ONNX or .tflite model; a path is text")


def label_of(model: object, kind: ObjectKind) -> str:
    """The name of an object in reports: its kind, and its graph's name.

    >>> label_of(b"TFL3", _TFLITE_BYTES)
    'bytes of a .tflite file'
    """
    name = kind.graph_name(model)
    return f"{kind.name} {printable(name[:_MOST])!r}" if name else kind.name


def stem_of(model: object, kind: ObjectKind) -> str:
    """The name of files that are written for an object."""
    return re.sub(r"[^0-9A-Za-z_-]+", "_", kind.graph_name(model))[:_MOST].strip("_") or "model"


def write_object(
    model: Any, kind: ObjectKind, folder: Path, label: str, *, weights: bool
) -> ObjectFile:
    """The temporary file of an object, which does not change.

    Args:
        model: the object.
        kind: its row.
        folder: a temporary folder.
        label: the name of the model for errors.
        weights: whether large constants are written; otherwise only their sizes are.

    Raises:
        ModelError: the model is not valid, or numbers are wanted that are not in memory.
    """
    written = Written(folder, label, weights)
    files: list[Path] = []
    write_scratch(folder / "model", lambda _: files.append(kind.write(model, written)))
    return ObjectFile(
        files[0], notes_on(written), written.numbers, lambda path: kind.read(path, model, written)
    )


# onnx


def _write_proto(model: Any, written: Written) -> Path:
    write_message(model, written)
    return written.path


def _read_proto(path: Path, model: Any, written: Written) -> Any:
    import onnx

    return onnx.load_model(str(path))


def _write_onnx_bytes(model: Any, written: Written) -> Path:
    if written.whole:
        written.path.write_bytes(model)
    else:
        from .onnx.reader import parse_bytes

        write_message(parse_bytes(lambda: bytes(model), written.label), written)
    return written.path


def _read_bytes(path: Path, model: Any, written: Written) -> bytes:
    return path.read_bytes()


def _write_tflite_bytes(model: Any, written: Written) -> Path:
    path = written.path.with_suffix(".tflite")
    path.write_bytes(model)
    return path


# onnx_ir and PyTorch


def _write_ir(model: Any, written: Written) -> Path:
    write_ir(model, written)
    return written.path


def _write_program(model: Any, written: Written) -> Path:
    return _write_ir(model.model, written)


def _read_program(path: Path, model: Any, written: Written) -> Any:
    return type(model)(read_ir(path, written.links), model.exported_program)


# openvino


def _write_openvino(model: Any, written: Written) -> Path:
    from .openvino.in_memory import write_model

    return write_model(model, written)


def _read_openvino(path: Path, model: Any, written: Written) -> Any:
    from .openvino.in_memory import read_model

    return read_model(path)


_ONNX_BYTES = ObjectKind(
    "bytes of an ONNX file", (), "onnx", lambda _: "", _write_onnx_bytes, _read_bytes
)
_TFLITE_BYTES = ObjectKind(
    "bytes of a .tflite file", (), "litert", lambda _: "", _write_tflite_bytes, _read_bytes
)
#: The kinds of objects, besides bytes.
KINDS = (
    ObjectKind(
        "ModelProto",
        (("onnx", "ModelProto"),),
        "onnx",
        lambda model: str(model.graph.name),
        _write_proto,
        _read_proto,
    ),
    ObjectKind(
        "onnx_ir.Model",
        (("onnx_ir", "Model"),),
        "onnx",
        lambda model: model.graph.name or "",
        _write_ir,
        lambda path, model, written: read_ir(path, written.links),
    ),
    ObjectKind(
        "ONNXProgram",
        (("torch", "ONNXProgram"),),
        "onnx",
        lambda program: program.model.graph.name or "",
        _write_program,
        _read_program,
    ),
    ObjectKind(
        "openvino.Model",
        (("openvino", "Model"),),
        "openvino",
        lambda model: model.get_friendly_name(),
        _write_openvino,
        _read_openvino,
    ),
)

__all__ = ["KINDS", "ObjectFile", "ObjectKind", "kind_of", "label_of", "write_object"]
