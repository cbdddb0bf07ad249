"""LiteRT files, open for changes: rewrites become operators and tensors of a subgraph.

A reshape of a constant makes a tensor of another shape that reads the same buffer; buffers do not
change. Half-precision weights behind a DEQUANTIZE are reshaped before it. Numbers of tensors do not
change, so signatures and bodies stay as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from ....errors import ModelError
from ....system.whole_files import write_whole
from ...flow.resolved import resolved
from ...ir.graph import Node, Place
from ...ir.names import take
from ...ir.rewrite import Rewrite
from ..flatbuffer import File, Malformed, Table
from ..schema_fields import fields
from . import schema
from .parts import NewOp, NewTensor, Subgraph, open_sizes
from .reader import contents, graph_and_places
from .rewriting import Task
from .schema import NUMBERS, UNION, options_of
from .writing import MAX_BYTES, TOO_LARGE, TfliteWriter

#: The least version of an op that LiteRT registers, where that is not 1.
_VERSIONS = {"BROADCAST_TO": 2}
_SQUEEZE = fields("squeeze_dims:0:offset")


def edit(path: Path) -> Editor:
    """A .tflite file, open for changes.

    Raises:
        ModelError: the file cannot be read.
    """
    return Editor(Path(path))


#: Engines that have RESHAPE, and neither EXPAND_DIMS nor SQUEEZE.
#: google-ai-edge/LiteRT of 2026-08, tflite/delegates/gpu/common/model_builder.cc: read.
RESHAPES = frozenset({"litert-gpu"})


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Names the file where a part that only an edit reads is malformed."""
    try:
        yield
    except Malformed as error:
        raise ModelError(f"{file}: it cannot be changed: {error}") from None


class Editor:
    """A .tflite file, open for changes; see :class:`~zerostride.models.ir.rewrite.Editor`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.by_reshape = False
        self.data = contents(file)
        graph, self.places = graph_and_places(file, self.data)
        graph = resolved(graph)[0]
        self.nodes = {node.place: node for node in graph.nodes}
        file_of_tables = File(self.data)
        file_of_tables.left = sys.maxsize  # the reader has read all of it
        self.model = file_of_tables.root()
        self.codes, self.buffers = self.model.tables(1), self.model.tables(4)
        self.subgraphs = [Subgraph(table) for table in self.model.tables(2)]
        self.names = {value.name for value in graph.values()}
        self.copies: dict[tuple[int, int], list[Place]] = {}
        for place, at in self.places.items():
            self.copies.setdefault(at, []).append(place)
        self.changed = False
        self.broken = False

    def serve(self, engine: str) -> None:
        """Says which engine the model is changed for, before the rewrites."""
        self.by_reshape = engine in RESHAPES

    def apply(self, rewrites: Sequence[Rewrite]) -> None:
        """Translates rewrites to operators.

        Raises:
            ModelError: a rewrite has no equivalent; names the node and the reason.
        """
        self.broken = True
        by_place = {rewrite.place: rewrite for rewrite in rewrites}
        tasks = sorted((self._at(rewrite), rewrite.place) for rewrite in rewrites)
        done: set[tuple[int, int]] = set()
        for at, place in tasks:
            rewrite = by_place[place]
            others = [by_place.get(other) for other in self.copies[at]]
            if any(other is None or other.steps != rewrite.steps for other in others):
                self.refuse(self.nodes[place], "its subgraph is run in several places")
            if at not in done:
                done.add(at)
                with _readable(self.file):
                    Task(self, self.nodes[place], *at).rewrite(rewrite)
        self.changed = self.changed or bool(tasks)
        self.broken = False

    def _at(self, rewrite: Rewrite) -> tuple[int, int]:
        if rewrite.place not in self.places or rewrite.place not in self.nodes:
            raise ModelError(f"{self.file}: there is no node at {rewrite.place}")
        return self.places[rewrite.place]

    def refuse(self, node: Node, words: str) -> NoReturn:
        """Raises: the node cannot be changed so."""
        raise ModelError(f"{self.file}: node {node.path!r}: {words}")

    def fresh(self, stem: str) -> str:
        """A name that is new to the file."""
        return take(stem, self.names)

    def save(self, path: Path) -> tuple[Path, ...]:
        """Writes the model.

        Raises:
            ModelError: a rewrite failed before, or the file cannot be written.
        """
        if self.broken:
            raise ModelError(f"{self.file}: a change could not be said; nothing is written")
        with _readable(self.file):
            data = self._written() if self.changed else self.data
        if len(data) > MAX_BYTES:
            raise ModelError(f"{path}: {TOO_LARGE}")
        try:
            write_whole((Path(path), lambda file: file.write(data)))
        except OSError as error:
            raise ModelError(f"{path}: {error.strerror or error}") from None
        return (Path(path),)

    # The file.

    def _written(self) -> bytes:
        writer = TfliteWriter(self.file, self.data)
        contents = [writer.old(table.position) for table in self.buffers]
        codes = _Codes(self.codes, writer)
        subgraphs = [
            self._subgraph(subgraph, writer, contents, codes)
            if subgraph.ops or subgraph.resized
            else writer.old(subgraph.table.position)
            for subgraph in self.subgraphs
        ]
        values = {
            "operator_codes": writer.tables(codes.tables),
            "subgraphs": writer.tables(subgraphs),
            "buffers": writer.tables(contents),
        }
        return writer.finish(writer.table(schema.MODEL, values, self.model), self.buffers)

    def _subgraph(
        self, subgraph: Subgraph, writer: TfliteWriter, contents: list[int], codes: _Codes
    ) -> int:
        tensors = [
            self._tensor(subgraph.resized[number], writer, contents, table)
            if number in subgraph.resized
            else writer.old(table.position)
            for number, table in enumerate(subgraph.tensors)
        ]
        tensors += [self._tensor(new, writer, contents, None) for new in subgraph.added]
        operators = []
        for position, table in enumerate(subgraph.old_ops):
            for op in subgraph.ops.get(position, [NewOp("", (), (), old=position)]):
                if op.old is not None and not op.inputs:
                    operators.append(writer.old(table.position))
                else:
                    operators.append(_operator(op, subgraph, writer, codes))
        values = {"tensors": writer.tables(tensors), "operators": writer.tables(operators)}
        return writer.table(schema.SUBGRAPH, values, subgraph.table)

    def _tensor(
        self, new: NewTensor, writer: TfliteWriter, contents: list[int], old: Table | None
    ) -> int:
        shape = new.tensor.shape or ()
        values = {
            "shape": writer.numbers([size if isinstance(size, int) else 1 for size in shape]),
            "type": new.tensor.type,
            "buffer": new.buffer,
            "has_rank": 1,
        }
        if old is None:
            values["name"] = writer.text(new.name)
        if open_sizes(shape):
            signature = [size if isinstance(size, int) else -1 for size in shape]
            values["shape_signature"] = writer.numbers(signature)
        elif old is not None and old.target(7) is not None:
            values["shape_signature"] = values["shape"]
        if new.content is not None:
            table = writer.table(schema.BUFFER, {"data": writer.data(new.content)})
            values["buffer"] = len(contents)
            contents.append(table)
        quantised = None if new.tensor.like is None else new.tensor.like.table(4)
        if quantised is not None:
            values["quantization"] = writer.old(quantised.position)
            if new.axis is not None:
                axis = {"quantized_dimension": new.axis}
                values["quantization"] = writer.table(schema.QUANTIZATION, axis, quantised)
        return writer.table(schema.TENSOR, values, old)


class _Codes:
    """The operator codes of a file, and new ones."""

    def __init__(self, codes: Sequence[Table], writer: TfliteWriter) -> None:
        self.writer = writer
        self.tables = [writer.old(table.position) for table in codes]
        self.numbers = {
            (schema.code_of(t), t.number(2, "int32", 1)): k
            for k, t in reversed(list(enumerate(codes)))
        }

    def number(self, op: str) -> int:
        """The number of a builtin op's code."""
        key = NUMBERS[op], _VERSIONS.get(op, 1)
        if key not in self.numbers:
            self.numbers[key] = len(self.tables)
            values = {
                "deprecated_builtin_code": min(key[0], 127),
                "version": key[1],
                "builtin_code": key[0],
            }
            self.tables.append(self.writer.table(schema.OPERATOR_CODE, values))
        return self.numbers[key]


def _operator(op: NewOp, subgraph: Subgraph, writer: TfliteWriter, codes: _Codes) -> int:
    values = {"inputs": writer.numbers(op.inputs), "outputs": writer.numbers(op.outputs)}
    if op.old is not None:
        return writer.table(schema.OPERATOR, values, subgraph.old_ops[op.old])
    values["opcode_index"] = codes.number(op.op)
    options = options_of(op.op)
    number = next((k for k, name in UNION.items() if name == options), None)
    if number is not None:
        squeezed = {"squeeze_dims": writer.numbers(op.squeezed)} if op.squeezed else {}
        values["builtin_options_type"] = number
        values["builtin_options"] = writer.table(_SQUEEZE if squeezed else (), squeezed)
    return writer.table(schema.OPERATOR, values)
