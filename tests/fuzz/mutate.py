"""Seeded mutations of ONNX files: of their bytes, and of their protocol buffers.

The structural ones know no ONNX, only messages and fields: they reach every field that a reader
can see, and the files that they make parse. Beside them, single nodes of every operator, well
formed but for values that no operator wants: they reach every operator's shape inference.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

INTS = (0, 1, -1, 2, 3, 5, 7, 16, 127, 255, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), -2)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e38, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    "x",
    "y",
    "a" * 300,
    "\x1b[31mred",
    "two\nlines",
    "\x00",
    "../../etc/passwd",
    "ai.onnx",
    "example.custom",
    "ünïcödé ",
    "axis",
    "value",
    "broadcast",
    "axes",
    "then_branch",
    "location",
)
#: Messages deeper than this are left alone; protobuf itself reads no deeper than 100.
DEEPEST = 40


SHAPES = ((1, 4, 8, 8), (0, 4, 0, 8), (2**62, 4, 2**62, 8), (4,), (), (2, 3, 4, 5, 6), (2**40,))
KINDS = (1, 1, 1, 7, 6, 2, 9, 10)  # element types, floats most often


def op_names() -> tuple[str, ...]:
    """Every op type of every domain that the onnx package knows."""
    return tuple(sorted({schema.name for schema in onnx.defs.get_all_schemas()}))


class Mutator:
    """Makes hostile files out of good ones, the same ones for the same seed."""

    def __init__(self, corpus: Sequence[bytes]) -> None:
        self.corpus = corpus
        self.ops = op_names()
        self.schemas = sorted(
            onnx.defs.get_all_schemas_with_history(),
            key=lambda schema: (schema.domain, schema.name, schema.since_version),
        )

    def case(self, seed: int, number: int) -> bytes:
        """The file of a case."""
        rng = random.Random(f"{seed}/{number}")
        data = rng.choice(self.corpus)
        kind = rng.random()
        if kind < 0.2:
            return self._bytes(rng, data)
        if kind < 0.5:
            return self._node(rng)
        data = self._structure(rng, data)
        return self._bytes(rng, data) if kind > 0.95 else data

    def _bytes(self, rng: random.Random, data: bytes) -> bytes:
        """Flipped, cut, doubled and foreign bytes."""
        made = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
            if not made:
                break
            at = rng.randrange(len(made))
            length = rng.choice((1, 1, 2, 4, 8, 64))
            match rng.randrange(6):
                case 0:
                    made[at] ^= 1 << rng.randrange(8)
                case 1:
                    made[at] = rng.randrange(256)
                case 2:
                    del made[at : at + length]
                case 3:
                    made[at:at] = rng.randbytes(length)
                case 4:
                    made[at:at] = made[at : at + length]
                case _:
                    del made[at:]
        return bytes(made)

    def _node(self, rng: random.Random) -> bytes:
        """One operator, of any version, with operands and attributes of any values."""
        schema = rng.choice(self.schemas)
        model = onnx.ModelProto(ir_version=8)
        model.opset_import.add(domain=schema.domain, version=schema.since_version)
        graph = model.graph
        node = graph.node.add(op_type=schema.name, domain=schema.domain)
        for k in range(max(schema.min_input, min(schema.max_input, rng.randrange(6)))):
            node.input.append(f"i{k}")
            if rng.random() < 0.3:
                values = [rng.choice(INTS) for _ in range(rng.choice((0, 1, 1, 2, 4)))]
                dims = [len(values)] if len(values) != 1 or rng.random() < 0.5 else []
                graph.initializer.add(name=f"i{k}", data_type=7, dims=dims, int64_data=values)
            else:
                kind = graph.input.add(name=f"i{k}").type.tensor_type
                kind.elem_type = rng.choice(KINDS)
                for size in rng.choice(SHAPES):
                    kind.shape.dim.add(dim_value=size)
        node.output.extend(f"o{k}" for k in range(max(1, min(schema.min_output, 4))))
        graph.output.add(name="o0")
        for name, row in sorted(schema.attributes.items()):
            if row.required or rng.random() < 0.6:
                self._attribute(rng, node.attribute.add(name=name), int(row.type.value))
        return model.SerializeToString()

    def _attribute(self, rng: random.Random, attribute: onnx.AttributeProto, kind: int) -> None:
        types = onnx.AttributeProto
        attribute.type = kind  # type: ignore[assignment]
        if kind == types.INT:
            attribute.i = rng.choice(INTS)
        elif kind == types.INTS:
            attribute.ints.extend(rng.choice(INTS) for _ in range(rng.choice((0, 1, 2, 2, 4))))
        elif kind == types.FLOAT:
            attribute.f = rng.choice(FLOATS)
        elif kind == types.FLOATS:
            attribute.floats.extend(rng.choice(FLOATS) for _ in range(rng.choice((1, 4))))
        elif kind == types.STRING:
            text = rng.choice(("", "SAME_UPPER", "VALID", "NOTSET", "ij,jk->ik", "...->", *TEXTS))
            attribute.s = text.encode()

    def _structure(self, rng: random.Random, data: bytes) -> bytes:
        """Fields set to what a file may hold and should not."""
        model = onnx.ModelProto()
        model.ParseFromString(data)
        other = onnx.ModelProto()
        other.ParseFromString(rng.choice(self.corpus))
        for _ in range(rng.choice((1, 1, 2, 3, 8, 30))):
            messages = list(walk(model))
            message = rng.choice(messages)
            if isinstance(message, onnx.NodeProto) and rng.random() < 0.3:
                message.op_type = rng.choice(self.ops)
                continue
            field = rng.choice(message.DESCRIPTOR.fields)
            try:
                self._mutate(rng, message, field, list(walk(other)))
            except (ValueError, TypeError, DecodeError):
                continue  # a value that this field cannot hold, or a message grown too deep
        return model.SerializeToString()

    def _mutate(self, rng: random.Random, message: Any, field: Any, donors: list[Message]) -> None:
        if rng.random() < 0.15:
            message.ClearField(field.name)
        elif field.is_repeated:
            self._repeated(rng, message, field, getattr(message, field.name), donors)
        elif field.message_type is not None:
            donor = self._donor(rng, field, donors)
            if donor is not None:
                getattr(message, field.name).CopyFrom(donor)
        else:
            setattr(message, field.name, self._scalar(rng, field))

    def _repeated(
        self, rng: random.Random, message: Any, field: Any, items: Any, donors: list[Message]
    ) -> None:
        action = rng.randrange(4)
        if action == 0 and len(items):
            del items[rng.randrange(len(items))]
        elif field.message_type is not None:
            source = rng.choice(items) if action == 1 and len(items) else None
            source = source or self._donor(rng, field, donors)
            if source is not None:
                items.add().CopyFrom(source)
            if action == 2 and len(items) > 1:
                order = [type(item).FromString(item.SerializeToString()) for item in items]
                rng.shuffle(order)
                message.ClearField(field.name)
                items.extend(order)
        elif action == 1 and len(items):
            items[rng.randrange(len(items))] = self._scalar(rng, field)
        elif action == 2 and len(items) > 1:
            order = list(items)
            rng.shuffle(order)
            items[:] = order
        else:
            items.append(self._scalar(rng, field))

    def _donor(self, rng: random.Random, field: Any, donors: list[Message]) -> Message | None:
        fitting = [one for one in donors if one.DESCRIPTOR is field.message_type]
        return rng.choice(fitting) if fitting else None

    def _scalar(self, rng: random.Random, field: Any) -> Any:
        if field.enum_type is not None:
            return rng.choice([value.number for value in field.enum_type.values])
        if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
            return rng.choice(FLOATS)
        if field.type == field.TYPE_BYTES:
            return rng.choice((b"", b"\xff\xfe", rng.randbytes(rng.choice((1, 4, 8, 64)))))
        if field.cpp_type == field.CPPTYPE_STRING:
            return rng.choice(self.ops) if field.name == "op_type" else rng.choice(TEXTS)
        value = rng.choice(INTS)
        return value % 2**31 if field.cpp_type == field.CPPTYPE_INT32 else value


def walk(message: Any, depth: int = 0) -> Any:
    """A message and every message in it."""
    yield message
    if depth > DEEPEST:
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if field.is_repeated else (value,):
            yield from walk(one, depth + 1)
