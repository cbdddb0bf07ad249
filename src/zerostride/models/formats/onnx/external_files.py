"""Writes an ONNX model with its external files, or with their numbers inside."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import ModelError
from .messages import tensors_of
from .reader import parse
from .tensors import load, location_of

if TYPE_CHECKING:
    import onnx

#: Most bytes of a protocol buffer.
_MOST_BYTES = 2**31 - 1
#: Bytes that are copied at once.
_BLOCK = 1 << 20


def save(
    model: onnx.ModelProto, path: Path, source: Path, *, touched: bool = True
) -> tuple[Path, ...]:
    """Writes a model, and copies the external files that are missing at the target.

    Args:
        model: the model.
        path: the file to write.
        source: the file that it was read from; its folder has the external files.
        touched: whether the model has changed; otherwise the bytes of `source` are copied.

    Returns:
        The written files, `path` first.

    Raises:
        ModelError: a file cannot be written, or an external file would replace another one.
    """
    written = [path]
    try:
        if touched:
            path.write_bytes(_bytes(model, path))
        else:
            _copy(source, path)
        for file, goal in _external(model, source.parent, path.parent):
            written.append(goal)
            goal.parent.mkdir(parents=True, exist_ok=True)
            _copy(file, goal)
    except OSError as error:
        _remove(written)
        raise ModelError(f"{error.filename or path}: {error.strerror or error}") from None
    except ModelError:
        _remove(written)
        raise
    return tuple(written)


def save_inside(source: Path, path: Path, why: str) -> bool:
    """Writes a copy of a model that has its external numbers inside.

    Args:
        source: the file of the model.
        path: the file to write.
        why: the need for it, in a few words, for the message where the copy is too large.

    Returns:
        Whether the model has external numbers; if not, nothing is written.

    Raises:
        ModelError: the file cannot be read, numbers are missing, or the copy is larger than an
            ONNX file may be.
    """
    import onnx

    model = parse(source)
    external = onnx.TensorProto.EXTERNAL
    tensors = [tensor for tensor in tensors_of(model) if tensor.data_location == external]
    size = model.ByteSize()
    for tensor in tensors:
        data = onnx.numpy_helper.from_array(load(tensor, source)).raw_data
        size += len(data)
        if size > _MOST_BYTES:
            raise ModelError(
                f"{source}: {why}, and with it the file is larger than 2 GiB, where an ONNX file "
                "ends"
            )
        tensor.raw_data = data
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    if tensors:
        path.write_bytes(_bytes(model, path))
    return bool(tensors)


def _bytes(model: onnx.ModelProto, path: Path) -> bytes:
    try:
        data: bytes = model.SerializeToString()
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"{path}: {error}") from None
    if len(data) > _MOST_BYTES:
        raise ModelError(f"{path}: {len(data)} bytes; an ONNX file ends at 2 GiB")
    return data


def _external(model: onnx.ModelProto, old: Path, new: Path) -> Iterator[tuple[Path, Path]]:
    """The external files that a folder lacks, each with its target."""
    locations = (location_of(tensor)[1] for tensor in tensors_of(model) if tensor.external_data)
    for relative in sorted({Path(location) for location in locations if location is not None}):
        file, goal = old / relative, new / relative
        if not os.path.isfile(file) or not file.resolve().is_relative_to(old.resolve()):
            continue  # the reader reports missing files
        if not goal.exists():
            yield file, goal
        elif not goal.is_file() or not (
            goal.samefile(file) or filecmp.cmp(file, goal, shallow=False)
        ):
            raise ModelError(
                f"{goal}: the model needs its data under this name, and something else is there; "
                "write the model to an empty folder"
            )


def _copy(source: Path, goal: Path) -> None:
    """Copies a file; an error of writing names the goal, which `shutil.copyfile` does not do."""
    with source.open("rb") as data, goal.open("wb") as copy:
        try:
            shutil.copyfileobj(data, copy, _BLOCK)
            copy.flush()
        except OSError as error:
            error.filename = error.filename or goal
            raise


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink(missing_ok=True)
