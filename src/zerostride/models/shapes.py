"""Every tensor's shape in a model, the model's conditions on sizes, and the shapes written back.

Sizes flow from the inputs through every node (:mod:`.`). Writing back adds the sizes that the file
lacks. If a node contradicts the file, nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Misfit, ModelError
from ..sizes.condition import Condition
from ..sizes.dim import Dim, Number, lone_symbol
from ..sizes.parse import read
from ..system.whole_files import write_whole
from .arguments import checked
from .findings import need_dict
from .flow import Failure, Flow, Need, flow
from .flow.input_sizes import InputShapes, Sizes
from .format_table import lowered
from .formats import format_of
from .formats.model_file import model_file
from .formats.onnx.reader import infer
from .formats.torch_export import Example
from .ir.graph import Graph, Value
from .options import ModelOptions

if TYPE_CHECKING:
    import onnx

#: Longest expression that is written into a file as the name of a size.
MAX_NAME = 200

Shape = tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the model with its known sizes.

    Attributes:
        name: its name in the file.
        shape: numbers and expressions; None if the rank is unknown.
        role: "input", "output", "constant" or "".
    """

    name: str
    shape: Shape | None
    role: str

    @property
    def text(self) -> str:
        """The shape as people write it."""
        if self.shape is None:
            return "?"
        return f"({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''})"

    def as_dict(self) -> dict[str, Any]:
        """For JSON: sizes as numbers or text."""
        shape = self.shape and [size if isinstance(size, int) else str(size) for size in self.shape]
        return {"name": self.name, "shape": shape, "role": self.role}


@dataclass(frozen=True, slots=True)
class Shapes:
    """The sizes of a model.

    Attributes:
        model: the file.
        tensors: every tensor once, the inputs first.
        needs: what the model needs of its sizes, node by node.
        failures: nodes that fail for all sizes, or that contradict the file.
        notes: what could not be followed.
        condition: all certain needs as one condition.
    """

    model: str
    tensors: tuple[Tensor, ...]
    needs: tuple[Need, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    condition: Condition

    @property
    def ok(self) -> bool:
        """Whether no node fails for all sizes."""
        return not self.failures

    @property
    def shapes(self) -> Mapping[str, Shape | None]:
        """Shapes by name; the first tensor if several bodies have a tensor of that name."""
        shapes: dict[str, Shape | None] = {}
        for tensor in self.tensors:
            shapes.setdefault(tensor.name, tensor.shape)
        return shapes

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model": self.model,
            "ok": self.ok,
            "tensors": [tensor.as_dict() for tensor in self.tensors],
            "needs": [need_dict(need) for need in self.needs],
            "failures": [
                {"node": f.node_path, "op": f.op, "words": f.words} for f in self.failures
            ],
            "notes": list(self.notes),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The shapes as JSON."""
        return json.dumps(self.as_dict(), indent=indent)


@checked
def shapes(
    model: Any,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    facts: Any = None,
    output: str | Path | None = None,
) -> Shapes:
    """The shape of every tensor of a model in terms of its inputs' sizes, and what it needs.

    Args:
        model: a model file, a model in memory, or a module or program of PyTorch, as for
            :func:`~zerostride.audit`.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        sizes: numbers for sizes: {"N": 4} for one that the file names, {"x[0]": 4} for an input's
            axis.
        input_shapes: shapes by the name of an input, or in the order of the inputs; None for an
            axis that stays open.
        facts: known conditions on its sizes: "N >= 1", or a list of conditions.
        output: where to write the model, an ONNX file, with the shapes that it lacks. External data
            stay where they are, so a model with such data needs an `output` in its own folder.

    Raises:
        ModelError: the file cannot be read, `output` cannot be written, or a node contradicts the
            file (the error names the node).
        BroadcastError: a fact cannot be read.
    """
    options = ModelOptions(facts=facts, sizes=sizes, input_shapes=input_shapes)
    return shapes_of(model, options, output, Example(args, kwargs, dynamic_shapes))


def shapes_of(
    model: Any,
    options: ModelOptions,
    output: str | Path | None = None,
    example: Example = Example(),  # noqa: B008 - frozen
) -> Shapes:
    """The sizes of a model; see :func:`shapes`."""
    condition = options.premises()
    if output is not None and format_of(output).name != "onnx":
        raise ModelError(f"{output}: shapes are written back to ONNX files only")
    with model_file(model, example, weights=output is not None) as file:
        graph = replace(options, numbers=file.numbers).read(file.path)
        walked = flow(lowered(graph), given=condition)
        if output is not None:
            _write(file.path, Path(output), graph, walked)
    return file.named(
        Shapes(
            graph.path,
            _tensors(graph, walked),
            walked.conditions,
            walked.failures,
            (*graph.notes, *walked.notes),
            walked.condition,
        )
    )


def _tensors(graph: Graph, walked: Flow) -> tuple[Tensor, ...]:
    roles = {id(value): "input" for value in graph.inputs}
    roles.update((id(value), "output") for value in graph.outputs)
    return tuple(
        Tensor(value.name, walked.shape_of(value), roles.get(id(value), _role(value)))
        for value in graph.values()
        if value.name
    )


def _role(value: Value) -> str:
    return "constant" if value.constant else ""


# Written back.


def _write(model: Path, output: Path, graph: Graph, walked: Flow) -> None:
    """The model with shapes added, whole or not at all."""
    if graph.format != "onnx":
        raise ModelError(f"{output}: shapes are written back to ONNX files only")
    import onnx

    for failure in walked.failures:
        raise ModelError(f"{graph.path}: not written: {failure}")
    try:
        output = output.resolve()  # the file that a link points to
        if output.exists() and not output.is_file():
            raise ModelError(f"{output}: not a regular file")
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{output}: {error}") from None
    proto = onnx.load_model(str(model), load_external_data=False)
    if _has_external(proto.graph) and output.parent != model.resolve().parent:
        raise ModelError(
            f"{output}: the weights of {model} lie in files beside it; write into the same folder"
        )
    _add_shapes(proto, graph, walked)
    try:
        data = proto.SerializeToString()
        write_whole((output, lambda file: file.write(data)))
    except OSError as error:
        raise ModelError(f"{output}: {error.strerror or error}") from None
    except ValueError as error:  # over 2 GiB
        raise ModelError(f"{output}: {error}") from None


def _has_external(graph: onnx.GraphProto) -> bool:
    """Whether a graph or a body in it has weights in other files."""
    import onnx

    tensors = [*graph.initializer]
    bodies = []
    for node in graph.node:
        for attribute in node.attribute:
            tensors += [attribute.t, *attribute.tensors]
            bodies += [attribute.g, *attribute.graphs]
    return any(t.data_location == onnx.TensorProto.EXTERNAL for t in tensors) or any(
        map(_has_external, bodies)
    )


def _add_shapes(proto: onnx.ModelProto, graph: Graph, walked: Flow) -> None:
    """Adds missing sizes to the file's entries, and entries for other tensors.

    A tensor gets an entry only if the file or onnx's inference gives its element type: an entry
    without one makes the model invalid.
    """
    main = [value for node in graph.nodes if not node.scope for value in node.outputs]
    values = {value.name: value for value in (*graph.inputs, *main) if value.name}
    entries = {
        entry.name: entry
        for group in (proto.graph.input, proto.graph.output, proto.graph.value_info)
        for entry in group
    }
    inferred = infer(_copied(proto), graph.operators, []) if len(values) > len(entries) else proto
    types = {entry.name: entry.type for entry in inferred.graph.value_info}
    for name, value in values.items():
        shape = walked.shape_of(value)
        if shape is None:
            continue
        entry = entries.get(name)
        if entry is None:
            if name not in types or not types[name].tensor_type.elem_type:
                continue
            entry = proto.graph.value_info.add()
            entry.name = name
            entry.type.tensor_type.elem_type = types[name].tensor_type.elem_type
        _fill(entry.type.tensor_type, shape)


def _copied(proto: onnx.ModelProto) -> onnx.ModelProto:
    twin = type(proto)()
    twin.CopyFrom(proto)
    return twin


def _fill(tensor: onnx.TypeProto.Tensor, shape: Shape) -> None:
    """Adds known sizes to an entry; its numbers stay, and its names where no size is known."""
    fresh = not tensor.HasField("shape") or len(tensor.shape.dim) != len(shape)
    if fresh:
        tensor.ClearField("shape")
        tensor.shape.SetInParent()
    for axis, size in enumerate(shape):
        entry = tensor.shape.dim.add() if fresh else tensor.shape.dim[axis]
        if isinstance(size, int):
            entry.dim_value = size
        elif not entry.HasField("dim_value") and _named(size):
            entry.dim_param = str(size)


def _named(size: Dim) -> bool:
    """Whether the size's text means this size in the whole file and is read back as it."""
    text = str(size)
    if len(text) > MAX_NAME or not all(symbol.named for symbol in size.symbols):
        return False
    if lone_symbol(size) is not None:
        return True
    try:
        return read(text) == size
    except Misfit:
        return False


__all__ = ["Shapes", "Tensor", "shapes"]
