"""ONNX files, open for changes: rewrites become nodes of the op set that the file uses.

Messages are changed in place, so untouched parts stay as they are. A reshape of a constant changes
the constant's own sizes if all its readers use the new shape; otherwise it adds a second constant
of the same data. Data in external files do not change, since a reshape moves no number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import BroadcastError, ModelError
from ....ops import find_op
from ...ir.graph import Place
from ...ir.moves import inserted, removed, repeats
from ...ir.names import take
from ...ir.rewrite import Earlier, Input, Rewrite, RewriteStep
from ...onnx_ops.validation import text
from .external_files import save
from .messages import (
    become,
    change_attributes,
    inlined,
    number_tensor,
    set_shape,
    size_of,
    trimmed,
    value_of,
    written,
)
from .reader import parse
from .rewrites import after, constant_steps, last_shapes, mark
from .scope import Scope, spliced

if TYPE_CHECKING:
    import onnx

#: Ops of the op table that are an ONNX op with an attribute; steps do not give attributes.
_NEEDS_ATTRIBUTE = frozenset({"fmod", "remainder", "bitwise_left_shift", "bitwise_right_shift"})
#: The first op sets in which axes, and a Reshape's shape, are an input.
_AXES_INPUT, _RESHAPE_INPUT = 13, 5
#: The first op sets with Expand, and with a Reshape to sizes of 0.
_EXPAND, _ALLOW_ZERO = 8, 14
#: The first op set with a Tile that takes repeats per axis, which can replace Expand.
_TILE = 6
#: From this IR version on an initializer need not be a graph input too.
_FREE_INITIALIZERS = 4
#: A constant in another shape: its graph, its name, the shape.
_Reshaped = tuple[int, str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Task:
    """A rewrite with its location, and the shapes in which constant operands are read."""

    rewrite: Rewrite
    scope: Scope
    position: int
    shapes: Mapping[int, tuple[int, ...]]
    #: For steps that expand in an op set without Expand: repeats per axis, if known.
    repeats: Mapping[int, tuple[int, ...] | None]

    def order(self) -> tuple[str, ...]:
        """A sort key: nodes of one graph in their order."""
        return (*map(str, self.scope.place), f"{self.position:012d}")


class OnnxEditor:
    """An ONNX file, open for changes; see :class:`~.rewrite.Editor`."""

    def __init__(self, path: Path) -> None:
        """Reads the file like `read_onnx`, with functions inlined where possible.

        Raises:
            ModelError: it cannot be read.
        """
        self.path = path
        self.model = inlined(parse(path))
        self._touched = False
        self.versions = {entry.domain: entry.version for entry in self.model.opset_import}
        self.version = self.versions.get("", self.versions.get("ai.onnx", 1))
        self._scopes: dict[Place, Scope] = {}
        self._names: set[str] = set()
        for scope in self._walk(self.model.graph, None, ()):
            self._scopes[scope.place] = scope
        for scope in self._scopes.values():
            self._count(scope)
        self._shapes: dict[int, dict[str, onnx.ValueInfoProto]] = {}

    def _walk(self, graph: onnx.GraphProto, outer: Scope | None, place: Place) -> Iterator[Scope]:
        """The scopes of a graph and its bodies, each with its place."""
        scope = Scope(graph, outer, place)
        self._names |= scope.initializers.keys() | scope.makers.keys() | scope.inputs
        self._names.update(text(entry.name) for entry in graph.value_info)
        yield scope
        for position, node in enumerate(graph.node):
            self._names.add(text(node.name))
            self._names.update(map(text, node.input))
            for attribute in node.attribute:
                key = text(attribute.name)
                if attribute.HasField("g"):
                    yield from self._walk(attribute.g, scope, (*place, position, key))
                for k, body in enumerate(attribute.graphs):
                    yield from self._walk(body, scope, (*place, position, f"{key}_{k}"))

    def _count(self, scope: Scope) -> None:
        """Counts the readers of tensors, including outputs of graphs."""
        read = [text(name) for node in scope.graph.node for name in node.input if name]
        for name in (*read, *(text(entry.name) for entry in scope.graph.output)):
            owner = scope.owner(name)
            if owner is not None:
                owner.reads[name] += 1

    # The rewrites.

    def refuses(self, rewrite: Rewrite) -> str | None:
        """Why this file's op set cannot express a rewrite, or None."""
        return self._refused(self._task(rewrite))

    def _refused(self, task: _Task) -> str | None:
        if task.repeats and (None in task.repeats.values() or self.version < _TILE):
            return f"opset {self.version} has no Expand; convert the model to opset 13"
        for step in task.rewrite.steps:
            reason = self._refuses(step)
            if reason is not None:
                return reason
        return None

    def _refuses(self, step: RewriteStep) -> str | None:
        if step.op in ("self", "unsqueeze", "squeeze", "number", "expand"):
            return None
        if step.op == "tile":
            return f"opset {self.version} has no such Tile" if self.version < _TILE else None
        if step.op == "reshape":
            if self.version < _ALLOW_ZERO and 0 in (step.shape or ()):
                return f"Reshape of opset {self.version} does not make a size of 0"
            return None
        return self._refuses_op(step.op)

    def _refuses_op(self, op: str) -> str | None:
        import onnx.defs

        try:
            names = find_op(op).names.get("onnx", ())
        except BroadcastError as error:
            return error.detail
        if not names or op in _NEEDS_ATTRIBUTE:
            return f"ONNX has no {op}"
        try:
            onnx.defs.get_schema(str(names[0]), self.version)
        except onnx.defs.SchemaError:
            return f"opset {self.version} has no {names[0]}"
        if self.version < 7:
            return f"{names[0]} of opset {self.version} does not follow NumPy's rule"
        return None

    def apply(self, rewrites: Sequence[Rewrite]) -> None:
        """Translates the rewrites to ONNX nodes; see :meth:`~.rewrite.Editor.apply`."""
        tasks = sorted(map(self._task, rewrites), key=_Task.order)
        self._touched = self._touched or bool(tasks)
        constants = self._constants(tasks)
        for task in tasks:
            reason = self._refused(task)
            if reason is not None:
                raise ModelError(f"{self._called(task)}: {reason}")
            self._say(task, constants)
        for scope in self._scopes.values():
            spliced(scope)

    def _task(self, rewrite: Rewrite) -> _Task:
        *outer, position = rewrite.place
        scope = self._scopes.get(tuple(outer))
        if scope is None or not isinstance(position, int) or position >= len(scope.graph.node):
            raise ModelError(f"{self.path}: there is no node at {rewrite.place}")
        node = scope.graph.node[position]
        shapes = last_shapes(rewrite, lambda at: self._sizes(scope, node, at))
        repeats = {} if self.version >= _EXPAND else self._repeats(rewrite, scope, node)
        return _Task(rewrite, scope, position, shapes, repeats)

    def _repeats(
        self, rewrite: Rewrite, scope: Scope, node: onnx.NodeProto
    ) -> dict[int, tuple[int, ...] | None]:
        """The repeats per axis of each step that expands; None for unknown sizes."""
        shapes: list[tuple[int, ...] | None] = []
        counts: dict[int, tuple[int, ...] | None] = {}
        for k, step in enumerate(rewrite.steps):
            ref = step.operands[0] if step.operands else None
            old = None
            if isinstance(ref, Earlier):
                old = shapes[ref.step]
            elif ref is not None:
                old = self._sizes(scope, node, ref.position) or self._declared(
                    scope, text(node.input[ref.position])
                )
            if step.op == "expand":
                counts[k] = None if old is None else repeats(old, step.shape or ())
                shapes.append(step.shape)
            else:
                moves = step.op in ("reshape", "squeeze", "unsqueeze")
                shapes.append(after(step, old) if moves and old is not None else None)
        return counts

    def _declared(self, scope: Scope, name: str) -> tuple[int, ...] | None:
        """The sizes of a tensor that the file gives in numbers."""
        entry = self._entry(scope, name)
        if entry is None or not entry.type.tensor_type.HasField("shape"):
            return None
        sizes = tuple(size_of(dim) for dim in entry.type.tensor_type.shape.dim)
        numbers = tuple(size for size in sizes if isinstance(size, int))
        return numbers if len(numbers) == len(sizes) else None

    def _called(self, task: _Task) -> str:
        node = task.scope.graph.node[task.position]
        name = text(node.name) or f"{text(node.op_type)}_{task.position}"
        return f"{self.path}: node {name!r}"

    # Constants.

    def _constants(self, tasks: Sequence[_Task]) -> Mapping[_Reshaped, str]:
        """Makes constants of other shapes; maps owner, name and shape to the new name.

        A constant that all its readers use in the same new shape changes in place.
        """
        wanted: dict[tuple[int, str], Counter[tuple[int, ...]]] = {}
        owners: dict[int, Scope] = {}
        for task in tasks:
            node = task.scope.graph.node[task.position]
            for at, shape in task.shapes.items():
                name = text(node.input[at])
                owner = task.scope.owner(name)
                assert owner is not None
                owners[id(owner)] = owner
                wanted.setdefault((id(owner), name), Counter())[shape] += 1
        names: dict[_Reshaped, str] = {}
        for (key, name), shapes in wanted.items():
            owner = owners[key]
            if len(shapes) == 1 and next(iter(shapes.values())) == owner.reads[name]:
                (shape,) = shapes
                self._resize(owner, name, shape)
                names[key, name, shape] = name
                continue
            for shape in shapes:
                names[key, name, shape] = self._copy(owner, name, shape)
        return names

    def _sizes(self, scope: Scope, node: onnx.NodeProto, position: int) -> tuple[int, ...] | None:
        """The sizes of an operand that is a changeable constant of the file, or None."""
        name = text(node.input[position]) if position < len(node.input) else ""
        owner = scope.owner(name) if name else None
        if owner is None:
            return None
        tensor = owner.initializers.get(name)
        if tensor is not None:
            return None if name in owner.inputs and self._free else tuple(tensor.dims)
        maker = owner.makers.get(name)
        if maker is None:
            return None
        tensor = value_of(owner.graph.node[maker])
        return None if tensor is None else tuple(tensor.dims)

    def _resize(self, owner: Scope, name: str, shape: tuple[int, ...]) -> None:
        tensor = owner.initializers.get(name)
        if tensor is None:
            tensor = written(owner.graph.node[owner.makers[name]])
        tensor.dims[:] = shape
        for entry in (*owner.graph.value_info, *owner.graph.input):
            if text(entry.name) == name and entry.type.HasField("tensor_type"):
                set_shape(entry, shape)

    def _copy(self, owner: Scope, name: str, shape: tuple[int, ...]) -> str:
        """Adds a copy of a constant in another shape."""
        import onnx.helper

        fresh = self._fresh(f"{name}_{'x'.join(map(str, shape)) or 'scalar'}")
        tensor = owner.initializers.get(name)
        if tensor is not None and (self._free or owner.outer is None):
            copy = owner.graph.initializer.add()
            copy.CopyFrom(tensor)
            copy.name = fresh
            copy.dims[:] = shape
            self._list_input(owner, copy)
            return fresh
        node = onnx.NodeProto()
        if tensor is not None:
            node.CopyFrom(onnx.helper.make_node("Constant", [], [fresh], name=fresh))
            attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
            attribute.t.CopyFrom(tensor)
            owner.before.setdefault(-1, []).append(node)
        else:
            maker = owner.makers[name]
            node.CopyFrom(owner.graph.node[maker])
            node.name = fresh
            node.output[0] = fresh
            owner.behind.setdefault(maker, []).append(node)
        written(node).dims[:] = shape
        return fresh

    # Nodes.

    def _say(self, task: _Task, constants: Mapping[_Reshaped, str]) -> None:
        """Writes the steps as nodes before the node, which becomes the last step."""
        import onnx

        rewrite, scope, position = task.rewrite, task.scope, task.position
        node = scope.graph.node[position]
        original = onnx.NodeProto()
        original.CopyFrom(node)
        output = text(original.output[0])
        skipped = constant_steps(rewrite, task.shapes)
        names: list[str] = []
        new = scope.before.setdefault(position, [])
        for k, step in enumerate(rewrite.steps):
            last = k == len(rewrite.steps) - 1
            if k in skipped:
                at = skipped[k]
                name = text(original.input[at])
                owner = scope.owner(name)
                names.append(constants[id(owner), name, task.shapes[at]])
                continue
            operands = [self._name(ref, original, names) for ref in step.operands]
            if task.repeats.get(k) is not None:
                step = RewriteStep("tile", step.operands, shape=task.repeats[k])
            if step.op == "self" or last:
                result = output if last else self._fresh(f"{output}_{k}")
                words = self._node(step, operands, result, original, scope)
                names.append(result)
                if not last:
                    new.append(words)
                    continue
                become(node, words)
                continue
            names.append(self._add(step, operands, scope, new, original))
        mark(rewrite, original, node, new)

    def _name(self, ref: Input | Earlier, node: onnx.NodeProto, names: Sequence[str]) -> str:
        if isinstance(ref, Earlier):
            return names[ref.step]
        return text(node.input[ref.position]) if ref.position < len(node.input) else ""

    def _add(
        self,
        step: RewriteStep,
        operands: Sequence[str],
        scope: Scope,
        new: list[onnx.NodeProto],
        original: onnx.NodeProto,
    ) -> str:
        """Adds a step as a new node, unless the graph has the same node already."""
        moves = step.op in ("reshape", "expand", "unsqueeze", "squeeze", "tile")
        key = (step.op, operands[0] if moves else "", tuple(step.shape or step.axes))
        if moves and key in scope.moved:
            return scope.moved[key]
        stem = operands[0] if operands else text(original.output[0])
        result = self._fresh(f"{stem}_{step.op}")
        new.append(self._node(step, operands, result, original, scope))
        if moves:
            scope.moved[key] = result
            self._describe(scope, operands[0], result, step)
        return result

    def _node(
        self,
        step: RewriteStep,
        operands: Sequence[str],
        result: str,
        original: onnx.NodeProto,
        scope: Scope,
    ) -> onnx.NodeProto:
        """A step as a node."""
        import onnx
        import onnx.helper as helper

        if step.op == "self":
            node = onnx.NodeProto()
            node.CopyFrom(original)
            node.input[:] = trimmed(operands)
            node.output[0] = result
            change_attributes(node, step.attributes)
            if result != text(original.output[0]):
                node.name = self._fresh(text(original.name)) if original.name else ""
            return node
        name = self._fresh(result)
        if step.op == "number":
            tensor = number_tensor(step.attributes)
            return helper.make_node("Constant", [], [result], name, value=tensor)
        if step.op in ("unsqueeze", "squeeze"):
            op = step.op.capitalize()
            if self.version < _AXES_INPUT:
                return helper.make_node(op, operands, [result], name, axes=step.axes)
            return helper.make_node(op, [*operands, self._list(scope, step.axes)], [result], name)
        if step.op in ("reshape", "expand", "tile"):
            shape = tuple(step.shape or ())
            if step.op == "reshape" and self.version < _RESHAPE_INPUT:
                return helper.make_node("Reshape", operands, [result], name, shape=shape)
            more: Any = {"allowzero": 1} if step.op == "reshape" and 0 in shape else {}
            pair = [*operands, self._list(scope, shape)]
            return helper.make_node(step.op.capitalize(), pair, [result], name, **more)
        words = str(find_op(step.op).names["onnx"][0])
        return helper.make_node(words, operands, [result], name)

    def _list(self, scope: Scope, numbers: Sequence[int]) -> str:
        """The name of a constant of the graph that holds these numbers."""
        import onnx
        import onnx.helper

        key = tuple(numbers)
        while not self._free and scope.outer is not None:
            scope = scope.outer  # a body of such a file has no inputs for the initializer
        if key not in scope.lists:
            name = self._fresh("_".join(["ints", *map(str, key)]).replace("-", "m"))
            tensor = onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(key)], key)
            scope.graph.initializer.append(tensor)
            self._list_input(scope, tensor)
            scope.lists[key] = name
        return scope.lists[key]

    @property
    def _free(self) -> bool:
        """Whether an initializer need not be an input."""
        return bool(self.model.ir_version >= _FREE_INITIALIZERS)

    def _list_input(self, scope: Scope, tensor: onnx.TensorProto) -> None:
        """Lists a new initializer among the inputs, if the file's version requires it."""
        import onnx.helper

        if not self._free:
            scope.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )

    def _describe(self, scope: Scope, name: str, result: str, step: RewriteStep) -> None:
        """Declares the new tensor's type if the file declares the old one's."""
        entry = self._entry(scope, name)
        if entry is None or not entry.type.tensor_type.HasField("shape"):
            return
        shape = tuple(size_of(dim) for dim in entry.type.tensor_type.shape.dim)
        if step.op == "tile":
            return
        if step.op in ("reshape", "expand"):
            if -1 in (step.shape or ()):
                return
            shape = tuple(step.shape or ())
        elif step.op == "unsqueeze":
            shape = inserted(shape, step.axes)
        else:
            shape = removed(shape, step.axes)
        new = scope.graph.value_info.add(name=result)
        new.type.tensor_type.elem_type = entry.type.tensor_type.elem_type
        set_shape(new, shape)
        self._shapes[id(scope)][result] = new

    def _entry(self, scope: Scope, name: str) -> onnx.ValueInfoProto | None:
        owner = scope if name in self._shapes.get(id(scope), {}) else scope.owner(name)
        for place in (scope, owner):
            if place is not None and id(place) not in self._shapes:
                graph = place.graph
                every = (*graph.input, *graph.value_info, *graph.output)
                self._shapes[id(place)] = {text(entry.name): entry for entry in every}
        entry = None if owner is None else self._shapes[id(owner)].get(name)
        return entry if entry is not None and entry.type.HasField("tensor_type") else None

    def _fresh(self, stem: str) -> str:
        """A name that is new to the file."""
        return take(stem, self._names)

    def save(self, path: Path) -> tuple[Path, ...]:
        """Writes the model, and copies the external files that are missing beside it.

        Rewrites do not change external files.

        Raises:
            ModelError: a file cannot be written, or an external file would replace another one.
        """
        return save(self.model, path, self.path, touched=self._touched)


def edit(path: Path) -> OnnxEditor:
    """The file, open for changes.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        return OnnxEditor(path)
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: a name in it is not UTF-8 ({error.reason})") from None
