"""Writes small models of Paddle, in both formats, without Paddle."""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerostride.models.formats.paddle.schema import DTYPES, PIR_TYPES

_NUMBERS = {name: number for number, name in DTYPES.items()}
_WORDS = {name: word for word, name in PIR_TYPES.items()}


# The wire format of Protocol Buffers.


def varint(number: int) -> bytes:
    """A whole number."""
    number &= (1 << 64) - 1
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*parts, number))


def field(number: int, value: Any) -> bytes:
    """A field: a whole number, a float, a text or a message."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(shape: Sequence[int], dtype: str) -> bytes:
    """A TensorDesc."""
    return field(1, _NUMBERS[dtype]) + b"".join(field(2, size) for size in shape)


def weights(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """A .pdiparams file."""
    data = b""
    for name in sorted(arrays):
        desc = tensor(arrays[name].shape, str(arrays[name].dtype))
        data += struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + arrays[name].tobytes()
    return data


class Model(ABC):
    """A model of Paddle, written op by op; `save` writes it in one of the formats."""

    def __init__(self) -> None:
        self.inputs: dict[str, tuple[Sequence[int], str]] = {}
        self.weights: dict[str, np.ndarray[Any, Any]] = {}
        self.outputs: list[str] = []
        self.variables: dict[str, tuple[Sequence[int], str]] = {}

    def input(self, name: str, *shape: int, dtype: str = "float32") -> str:
        """Adds an input; returns its name."""
        self.inputs[name] = self.variables[name] = shape, dtype
        return name

    def weight(self, name: str, array: np.ndarray[Any, Any]) -> str:
        """Adds a constant with its numbers; returns its name."""
        self.weights[name] = array
        self.variables[name] = array.shape, str(array.dtype)
        return name

    @abstractmethod
    def program(self) -> bytes:
        """The bytes of the program."""

    suffix = ""

    def save(self, folder: Path, name: str = "model") -> Path:
        """Writes the program and its weights; returns the path of the program."""
        file = folder / f"{name}{self.suffix}"
        file.write_bytes(self.program())
        if self.weights:
            file.with_suffix(".pdiparams").write_bytes(weights(self.weights))
        return file


_ATTRIBUTES: tuple[tuple[type, int, int], ...] = (
    (bool, 6, 10),
    (int, 0, 3),
    (float, 1, 4),
    (str, 2, 5),
)
_LISTS: tuple[tuple[type, int, int], ...] = ((bool, 7, 11), (int, 3, 6), (float, 4, 7), (str, 5, 8))


def attribute(name: str, value: Any) -> bytes:
    """An OpDesc.Attr."""
    many = isinstance(value, (list, tuple))
    sample = (value[0] if value else 0) if many else value
    rows = _LISTS if many else _ATTRIBUTES
    kind, number = next((k, n) for type_, k, n in rows if isinstance(sample, type_))
    items = value if many else [value]
    return field(1, name) + field(2, kind) + b"".join(field(number, item) for item in items)


class Program(Model):
    """A program before release 3.0 (.pdmodel)."""

    suffix = ".pdmodel"

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[bytes] = []

    def op(
        self,
        kind: str,
        inputs: Mapping[str, str | Sequence[str]],
        outputs: Mapping[str, str | Sequence[str]],
        shape: Sequence[int] = (),
        dtype: str = "float32",
        /,
        **attributes: Any,
    ) -> None:
        """An op; its results are declared with this shape and type."""
        data = b""
        for number, slots in ((1, inputs), (2, outputs)):
            for slot, names in slots.items():
                words = [names] if isinstance(names, str) else names
                data += field(number, field(1, slot) + b"".join(field(2, one) for one in words))
                if number == 2:
                    self.variables.update(dict.fromkeys(words, (shape, dtype)))
        data += field(3, kind)
        data += b"".join(field(4, attribute(*pair)) for pair in attributes.items())
        self.ops.append(data)

    def program(self) -> bytes:
        """The bytes of the program."""
        ops, outer = [*self.ops], self.ops
        self.ops = []
        for name in self.inputs:
            self.op("feed", {"X": "feed"}, {"Out": name}, *self.variables[name], col=0)
        feeds, self.ops = self.ops, []
        for name in self.outputs:
            self.op("fetch", {"X": name}, {"Out": "fetch"}, col=0)
        block = field(1, 0) + field(2, -1)
        for name, (shape, dtype) in self.variables.items():
            if name == "fetch":
                continue
            kind = field(1, 7) + field(3, field(1, tensor(shape, dtype)))
            block += field(3, field(1, name) + field(2, kind) + field(3, int(name in self.weights)))
        block += b"".join(field(4, op) for op in (*feeds, *ops, *self.ops))
        self.ops = outer
        return field(1, block) + field(4, field(1, 2_006_001))


class Pir(Model):
    """A PIR program (.json). Values have numbers; `op` returns those of its results."""

    suffix = ".json"

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, int] = {}
        self.ops: list[dict[str, Any]] = []
        self.count = 0

    def number(self) -> int:
        """A new number of a value."""
        self.count += 1
        return self.count

    def input(self, name: str, *shape: int, dtype: str = "float32") -> str:
        """Adds an input; returns its name."""
        super().input(name, *shape, dtype=dtype)
        (self.numbers[name],) = self.op("data", [], [(shape, dtype)], name=name)
        return name

    def weight(self, name: str, array: np.ndarray[Any, Any]) -> str:
        """Adds a constant with its numbers; returns its name."""
        super().weight(name, array)
        self.numbers[name] = number = self.number()
        kind = tensor_type(array.shape, str(array.dtype))
        declared = {"#": "p", "A": [0, 1, 1, name], "DA": [], "O": {"%": number, "TT": kind}}
        self.ops.insert(0, {**declared, "OA": [1, 0, 1], "QA": []})
        return name

    def op(
        self,
        kind: str,
        operands: Sequence[str | int],
        results: Sequence[tuple[Sequence[int], str]] = (((), "float32"),),
        dialect: int = 1,
        **attributes: Any,
    ) -> list[int]:
        """An op with results of these shapes and types; their numbers."""
        numbers = [self.number() for _ in results]
        pairs = zip(numbers, results, strict=True)
        self.ops.append(
            {
                "#": f"{dialect}.{kind}",
                "A": [{"AT": attribute_of(v), "N": k} for k, v in attributes.items()],
                "I": [
                    {"%": self.numbers[one] if isinstance(one, str) else one} for one in operands
                ],
                "O": [{"%": n, "TT": tensor_type(*result)} for n, result in pairs],
            }
        )
        return numbers

    def ints(self, *numbers: int) -> int:
        """A list of whole numbers."""
        results = [((len(numbers),), "int64")]
        return self.op("full_int_array", [], results, value=numbers, dtype=Dtype("int64"))[0]

    def full(self, number: float, *shape: int, dtype: str = "float32") -> int:
        """A constant of one number."""
        return self.op(
            "full", [], [(shape, dtype)], shape=Sizes(shape), value=number, dtype=Dtype(dtype)
        )[0]

    def program(self) -> bytes:
        """The bytes of the program."""
        ops, count = [*self.ops], self.count
        for name in self.outputs:
            self.op("fetch", [int(name.lstrip("%"))], name=name)
        block = {"#": "block_0", "args": [], "ops": self.ops}
        program = {"regions": [{"#": "region_0", "blocks": [block]}]}
        self.ops, self.count = ops, count
        code = {"magic": "pir", "trainable": False, "version": 4}
        return json.dumps({"base_code": code, "program": program}).encode()


class Dtype(str):
    """An element type as an attribute."""


class Sizes(tuple[int, ...]):
    """A shape as an attribute."""


def tensor_type(shape: Sequence[int], dtype: str) -> dict[str, Any]:
    """The type of a tensor."""
    return {"#": "0.t_dtensor", "D": [{"#": f"0.{_WORDS[dtype]}"}, [*shape], "NCHW", [], 0]}


def attribute_of(value: Any) -> dict[str, Any]:
    """An attribute."""
    if isinstance(value, Sizes):
        return {"#": "1.a_intarray", "D": [*value]}
    if isinstance(value, tuple):
        return {"#": "0.a_array", "D": [attribute_of(item) for item in value]}
    if isinstance(value, Dtype):
        return {"#": "1.a_dtype", "D": str(value)}
    kinds: dict[type, str] = {bool: "a_bool", int: "a_i64", float: "a_f64", str: "a_str"}
    return {"#": f"0.{kinds[type(value)]}", "D": value}
