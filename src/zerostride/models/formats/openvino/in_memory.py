"""Models of OpenVINO in memory, written to a temporary IR without their weights or with them.

Without them, a large constant is a hole in the .bin, a sparse file of the right length. Its numbers
are read from the object when they are needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ....errors import ModelError
from ...ir.graph import Array
from ..onnx.in_memory import Numbers, Written
from ..onnx.light import MAX_BYTES, MAX_WHOLE_BYTES

#: Element types whose constants may be holes, by the most bytes of one that is written.
_MOST = {
    **dict.fromkeys(("f16", "f32", "f64", "i8", "u8", "i16", "u16"), MAX_BYTES),
    **dict.fromkeys(("i32", "i64", "u32", "u64"), MAX_WHOLE_BYTES),
}


def write_model(model: Any, written: Written) -> Path:
    """Writes an `openvino.Model`, which does not change.

    Args:
        model: the model.
        written: where it goes.

    Returns:
        The file.

    Raises:
        ModelError: OpenVINO does not write it.
    """
    import openvino

    path = written.path.with_suffix(".xml")
    weights = path.with_suffix(".bin")

    def write(goal: str) -> None:
        try:
            openvino.serialize(model, str(path), goal)
        except RuntimeError as error:
            line = (str(error).strip().splitlines() or ["?"])[-1]
            raise ModelError(f"{written.label}: OpenVINO does not write it: {line}") from error

    if written.whole:
        write(str(weights))
        return path
    write(os.devnull)
    tree = ElementTree.parse(path)
    constants = _constants(tree.getroot(), model)
    if constants is None:
        write(str(weights))
        return path
    offset = 0
    with weights.open("wb") as file:
        for entry, constant in constants:
            # Its offsets without a file are not those of a file: constants overlap.
            entry["offset"] = str(offset)
            size = int(entry["size"])
            if size > _MOST.get(entry["element_type"], size):
                name = constant.get_friendly_name()
                written.numbers[name] = Numbers(_reader(constant))
            else:
                file.seek(offset)
                file.write(constant.data.tobytes())
            offset += size
        file.truncate(offset)
    tree.write(path)
    return path


def _constants(root: ElementTree.Element, model: Any) -> list[tuple[dict[str, str], Any]] | None:
    """The entry of each constant in the file, and the constant; None if they cannot be paired.

    Constants of bodies cannot be: the model does not list them.
    """
    constants = [op for op in model.get_ordered_ops() if op.get_type_name() == "Constant"]
    by_name = {constant.get_friendly_name(): constant for constant in constants}
    pairs = []
    for layer in root.iter("layer"):
        if layer.get("type") != "Const":
            continue
        data, constant = layer.find("data"), by_name.get(layer.get("name", ""))
        if data is None or constant is None or not {"offset", "size"} <= data.attrib.keys():
            return None
        if constant.data.nbytes != int(data.attrib["size"]):  # packed numbers, or text
            return None
        pairs.append((data.attrib, constant))
    return pairs if len(pairs) == len(constants) == len(by_name) else None


def _reader(constant: Any) -> Callable[[], Array]:
    def read() -> Array:
        array: Array = constant.data
        return array

    return read


def read_model(path: Path) -> Any:
    """An `openvino.Model` that does not need its file."""
    import openvino

    core = openvino.Core()
    core.set_property({"ENABLE_MMAP": False})
    return core.read_model(path)


__all__ = ["read_model", "write_model"]
