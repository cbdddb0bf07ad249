"""ONNX files, open for changes: rewrites said in ONNX's words, of the op set that the file uses.

What no rewrite touches stays as the file has it: messages are changed where they stand, never made
anew. A reshape of a constant changes the constant's own sizes where all of its readers want that,
else a second constant of the same data stands beside it; data in external files are not touched
either way, since a reshape moves no number.
"""

from __future__ import annotations

import filecmp
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BroadcastError, ModelError
from ..ops import find_op
from .graph import Place
from .onnx import package_errors, parse
from .onnx_tensors import location_of
from .rewrite import Input, Made, Rewrite, Step
from .soundness import graphs_of, refuse_functions, text

if TYPE_CHECKING:
    import onnx

#: Ops whose results are what a name of the op table means with an attribute that is not said.
_NEEDS_ATTRIBUTE = frozenset({"fmod", "remainder", "bitwise_left_shift", "bitwise_right_shift"})
#: The first op set in which these take their numbers as an input.
_AXES_INPUT, _RESHAPE_INPUT = 13, 5
#: The first with Expand, and with a Reshape that makes sizes of 0.
_EXPAND, _ALLOW_ZERO = 8, 14
#: The first with a Tile that takes how often for each axis, which does what Expand will.
_TILE = 6
#: From this IR version on an initializer need not be a graph input too.
_FREE_INITIALIZERS = 4
#: Bytes that a protocol buffer ends at.
_MOST_BYTES = 2**31 - 1


@dataclass(eq=False)
class _Scope:
    """A graph of the file with what is defined in it, inside the one around it."""

    graph: onnx.GraphProto
    outer: _Scope | None
    place: Place
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict)
    makers: dict[str, int] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    #: How often a tensor of this graph is read, here and in bodies; as an output of a graph, too.
    reads: Counter[str] = field(default_factory=Counter)
    #: New nodes by the position that they go before; −1: at the front.
    before: dict[int, list[onnx.NodeProto]] = field(default_factory=dict)
    #: New nodes by the position that they go behind.
    behind: dict[int, list[onnx.NodeProto]] = field(default_factory=dict)
    #: Results of moves that were added here: op, operand, numbers to the new tensor's name.
    moved: dict[tuple[str, str, tuple[int, ...]], str] = field(default_factory=dict)
    #: Lists of numbers that were added as constants.
    lists: dict[tuple[int, ...], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.initializers = {text(tensor.name): tensor for tensor in self.graph.initializer}
        self.inputs = {text(entry.name) for entry in self.graph.input}
        for position, node in enumerate(self.graph.node):
            self.makers.update((text(name), position) for name in node.output if name)

    def defines(self, name: str) -> bool:
        """Whether a name is this graph's own."""
        return name in self.initializers or name in self.makers or name in self.inputs

    def owner(self, name: str) -> _Scope | None:
        """The graph, from this one outwards, whose name it is."""
        scope: _Scope | None = self
        while scope is not None and not scope.defines(name):
            scope = scope.outer
        return scope


#: A constant in another shape: the graph that has it, its name, the shape.
_Reshaped = tuple[int, str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Task:
    """A rewrite with where it is, and the shapes in which operands that are constants are read."""

    rewrite: Rewrite
    scope: _Scope
    position: int
    shapes: Mapping[int, tuple[int, ...]]
    #: For steps that expand, where the op set has no Expand: how often along each axis, if known.
    repeats: Mapping[int, tuple[int, ...] | None]

    def order(self) -> tuple[str, ...]:
        """Places sorted so that in one graph the first node comes first."""
        return (*map(str, self.scope.place), f"{self.position:012d}")


class OnnxEditor:
    """An ONNX file, open for changes; see :class:`~.rewrite.Editor`."""

    def __init__(self, path: Path) -> None:
        """Reads the file as `read_onnx` does, functions written out where they can be.

        Raises:
            ModelError: it cannot be read.
        """
        self.path = path
        self.model = _inlined(parse(path))
        self._touched = False
        self.versions = {entry.domain: entry.version for entry in self.model.opset_import}
        self.version = self.versions.get("", self.versions.get("ai.onnx", 1))
        self._scopes: dict[Place, _Scope] = {}
        self._names: set[str] = set()
        for scope in self._walk(self.model.graph, None, ()):
            self._scopes[scope.place] = scope
        for scope in self._scopes.values():
            self._count(scope)
        self._shapes: dict[int, dict[str, onnx.ValueInfoProto]] = {}

    def _walk(self, graph: onnx.GraphProto, outer: _Scope | None, place: Place) -> Iterator[_Scope]:
        """The scopes of a graph and its bodies, each with its place."""
        scope = _Scope(graph, outer, place)
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

    def _count(self, scope: _Scope) -> None:
        """Counts who reads what, outputs of graphs among the readers."""
        read = [text(name) for node in scope.graph.node for name in node.input if name]
        for name in (*read, *(text(entry.name) for entry in scope.graph.output)):
            owner = scope.owner(name)
            if owner is not None:
                owner.reads[name] += 1

    # The rewrites.

    def refuses(self, rewrite: Rewrite) -> str | None:
        """Why a rewrite cannot be said in this file's op set, or None."""
        return self._refused(self._task(rewrite))

    def _refused(self, task: _Task) -> str | None:
        if task.repeats and (None in task.repeats.values() or self.version < _TILE):
            return f"opset {self.version} has no Expand; convert the model to opset 13"
        for step in task.rewrite.steps:
            said = self._refuses(step)
            if said is not None:
                return said
        return None

    def _refuses(self, step: Step) -> str | None:
        if step.op in ("self", "unsqueeze", "squeeze", "number", "expand"):
            return None
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
        """Says the rewrites in ONNX; see :meth:`~.rewrite.Editor.apply`."""
        tasks = sorted(map(self._task, rewrites), key=_Task.order)
        self._touched = self._touched or bool(tasks)
        constants = self._constants(tasks)
        for task in tasks:
            said = self._refused(task)
            if said is not None:
                raise ModelError(f"{self._called(task)}: {said}")
            self._say(task, constants)
        for scope in self._scopes.values():
            _spliced(scope)

    def _task(self, rewrite: Rewrite) -> _Task:
        *outer, position = rewrite.place
        scope = self._scopes.get(tuple(outer))
        if scope is None or not isinstance(position, int) or position >= len(scope.graph.node):
            raise ModelError(f"{self.path}: there is no node at {rewrite.place}")
        node = scope.graph.node[position]
        shapes = _last_shapes(rewrite, lambda at: self._sizes(scope, node, at))
        repeats = {} if self.version >= _EXPAND else self._repeats(rewrite, scope, node)
        return _Task(rewrite, scope, position, shapes, repeats)

    def _repeats(
        self, rewrite: Rewrite, scope: _Scope, node: onnx.NodeProto
    ) -> dict[int, tuple[int, ...] | None]:
        """For each step that expands how often along each axis, None where sizes are not known."""
        shapes: list[tuple[int, ...] | None] = []
        found: dict[int, tuple[int, ...] | None] = {}
        for k, step in enumerate(rewrite.steps):
            ref = step.operands[0] if step.operands else None
            old = None
            if isinstance(ref, Made):
                old = shapes[ref.step]
            elif ref is not None:
                old = self._sizes(scope, node, ref.position) or self._declared(
                    scope, text(node.input[ref.position])
                )
            if step.op == "expand":
                found[k] = _times(old, step.shape or ())
                shapes.append(step.shape)
            else:
                moves = step.op in ("reshape", "squeeze", "unsqueeze")
                shapes.append(_moved(step, old) if moves and old is not None else None)
        return found

    def _declared(self, scope: _Scope, name: str) -> tuple[int, ...] | None:
        """The sizes of a tensor, where the file says them in numbers."""
        entry = self._entry(scope, name)
        if entry is None or not entry.type.tensor_type.HasField("shape"):
            return None
        sizes = tuple(_dim(dim) for dim in entry.type.tensor_type.shape.dim)
        numbers = tuple(size for size in sizes if isinstance(size, int))
        return numbers if len(numbers) == len(sizes) else None

    def _called(self, task: _Task) -> str:
        node = task.scope.graph.node[task.position]
        name = text(node.name) or f"{text(node.op_type)}_{task.position}"
        return f"{self.path}: node {name!r}"

    # Constants.

    def _constants(self, tasks: Sequence[_Task]) -> Mapping[_Reshaped, str]:
        """Constants of other shapes, made: by owner, name and shape the new name.

        One that all its readers want in the same shape changes where it is.
        """
        wanted: dict[tuple[int, str], Counter[tuple[int, ...]]] = {}
        owners: dict[int, _Scope] = {}
        for task in tasks:
            node = task.scope.graph.node[task.position]
            for at, shape in task.shapes.items():
                name = text(node.input[at])
                owner = task.scope.owner(name)
                assert owner is not None
                owners[id(owner)] = owner
                wanted.setdefault((id(owner), name), Counter())[shape] += 1
        made: dict[_Reshaped, str] = {}
        for (key, name), shapes in wanted.items():
            owner = owners[key]
            if len(shapes) == 1 and next(iter(shapes.values())) == owner.reads[name]:
                (shape,) = shapes
                self._resize(owner, name, shape)
                made[key, name, shape] = name
                continue
            for shape in shapes:
                made[key, name, shape] = self._copy(owner, name, shape)
        return made

    def _sizes(self, scope: _Scope, node: onnx.NodeProto, position: int) -> tuple[int, ...] | None:
        """The sizes of an operand that is a constant of the file that may change, or None."""
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
        tensor = _value_of(owner.graph.node[maker])
        return None if tensor is None else tuple(tensor.dims)

    def _resize(self, owner: _Scope, name: str, shape: tuple[int, ...]) -> None:
        tensor = owner.initializers.get(name)
        if tensor is None:
            tensor = _written(owner.graph.node[owner.makers[name]])
        tensor.dims[:] = shape
        for entry in (*owner.graph.value_info, *owner.graph.input):
            if text(entry.name) == name and entry.type.HasField("tensor_type"):
                _set_shape(entry, shape)

    def _copy(self, owner: _Scope, name: str, shape: tuple[int, ...]) -> str:
        """The same constant in another shape, beside it."""
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
        _written(node).dims[:] = shape
        return fresh

    # Nodes.

    def _say(self, task: _Task, constants: Mapping[_Reshaped, str]) -> None:
        """The steps as nodes before the node, which becomes the last of them."""
        import onnx

        rewrite, scope, position = task.rewrite, task.scope, task.position
        node = scope.graph.node[position]
        original = onnx.NodeProto()
        original.CopyFrom(node)
        output = text(original.output[0])
        skipped = _constant_steps(rewrite, task.shapes)
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
                step = Step("tile", step.operands, shape=task.repeats[k])
            if step.op == "self" or last:
                made = output if last else self._fresh(f"{output}_{k}")
                words = self._node(step, operands, made, original, scope)
                names.append(made)
                if not last:
                    new.append(words)
                    continue
                _become(node, words)
                continue
            names.append(self._add(step, operands, scope, new, original))

    def _name(self, ref: Input | Made, node: onnx.NodeProto, names: Sequence[str]) -> str:
        if isinstance(ref, Made):
            return names[ref.step]
        return text(node.input[ref.position]) if ref.position < len(node.input) else ""

    def _add(
        self,
        step: Step,
        operands: Sequence[str],
        scope: _Scope,
        new: list[onnx.NodeProto],
        original: onnx.NodeProto,
    ) -> str:
        """A step as a new node, unless the graph has the same one already."""
        moves = step.op in ("reshape", "expand", "unsqueeze", "squeeze", "tile")
        key = (step.op, operands[0] if moves else "", tuple(step.shape or step.axes))
        if moves and key in scope.moved:
            return scope.moved[key]
        stem = operands[0] if operands else text(original.output[0])
        made = self._fresh(f"{stem}_{step.op}")
        new.append(self._node(step, operands, made, original, scope))
        if moves:
            scope.moved[key] = made
            self._describe(scope, operands[0], made, step)
        return made

    def _node(
        self,
        step: Step,
        operands: Sequence[str],
        made: str,
        original: onnx.NodeProto,
        scope: _Scope,
    ) -> onnx.NodeProto:
        """A step as a node."""
        import onnx
        import onnx.helper as helper

        if step.op == "self":
            node = onnx.NodeProto()
            node.CopyFrom(original)
            node.input[:] = _trimmed(operands)
            node.output[0] = made
            _change(node, step.attributes)
            if made != text(original.output[0]):
                node.name = self._fresh(text(original.name)) if original.name else ""
            return node
        name = self._fresh(made)
        if step.op == "number":
            tensor = _number(step.attributes)
            return helper.make_node("Constant", [], [made], name, value=tensor)
        if step.op in ("unsqueeze", "squeeze"):
            op = step.op.capitalize()
            if self.version < _AXES_INPUT:
                return helper.make_node(op, operands, [made], name, axes=step.axes)
            return helper.make_node(op, [*operands, self._list(scope, step.axes)], [made], name)
        if step.op in ("reshape", "expand", "tile"):
            shape = tuple(step.shape or ())
            if step.op == "reshape" and self.version < _RESHAPE_INPUT:
                return helper.make_node("Reshape", operands, [made], name, shape=shape)
            more: Any = {"allowzero": 1} if step.op == "reshape" and 0 in shape else {}
            given = [*operands, self._list(scope, shape)]
            return helper.make_node(step.op.capitalize(), given, [made], name, **more)
        words = str(find_op(step.op).names["onnx"][0])
        return helper.make_node(words, operands, [made], name)

    def _list(self, scope: _Scope, numbers: Sequence[int]) -> str:
        """The name of a constant of the graph that holds these numbers."""
        import onnx
        import onnx.helper

        key = tuple(numbers)
        while not self._free and scope.outer is not None:
            scope = scope.outer  # a body of such a file has no inputs that could name it
        if key not in scope.lists:
            name = self._fresh("_".join(["ints", *map(str, key)]).replace("-", "m"))
            tensor = onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(key)], key)
            scope.graph.initializer.append(tensor)
            self._list_input(scope, tensor)
            scope.lists[key] = name
        return scope.lists[key]

    @property
    def _free(self) -> bool:
        """Whether an initializer may stand alone."""
        return bool(self.model.ir_version >= _FREE_INITIALIZERS)

    def _list_input(self, scope: _Scope, tensor: onnx.TensorProto) -> None:
        """Names a new initializer among the inputs, where files of its version do."""
        import onnx.helper

        if not self._free:
            scope.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )

    def _describe(self, scope: _Scope, name: str, made: str, step: Step) -> None:
        """Says the new tensor's type where the file says the old one's."""
        entry = self._entry(scope, name)
        if entry is None or not entry.type.tensor_type.HasField("shape"):
            return
        shape = tuple(_dim(dim) for dim in entry.type.tensor_type.shape.dim)
        if step.op == "tile":
            return
        if step.op in ("reshape", "expand"):
            if -1 in (step.shape or ()):
                return
            shape = tuple(step.shape or ())
        elif step.op == "unsqueeze":
            rest = iter(shape)
            rank = len(shape) + len(step.axes)
            shape = tuple(1 if axis in step.axes else next(rest) for axis in range(rank))
        else:
            shape = tuple(size for axis, size in enumerate(shape) if axis not in step.axes)
        new = scope.graph.value_info.add(name=made)
        new.type.tensor_type.elem_type = entry.type.tensor_type.elem_type
        _set_shape(new, shape)
        self._shapes[id(scope)][made] = new

    def _entry(self, scope: _Scope, name: str) -> onnx.ValueInfoProto | None:
        owner = scope if name in self._shapes.get(id(scope), {}) else scope.owner(name)
        for one in (scope, owner):
            if one is not None and id(one) not in self._shapes:
                graph = one.graph
                every = (*graph.input, *graph.value_info, *graph.output)
                self._shapes[id(one)] = {text(entry.name): entry for entry in every}
        entry = None if owner is None else self._shapes[id(owner)].get(name)
        return entry if entry is not None and entry.type.HasField("tensor_type") else None

    def _fresh(self, stem: str) -> str:
        """A name that the file does not have."""
        name, count = stem, 1
        while not name or name in self._names:
            count += 1
            name = f"{stem}_{count}"
        self._names.add(name)
        return name

    # Files.

    def save(self, path: Path) -> tuple[Path, ...]:
        """Writes the model, and beside it the external files that it names, where they are not.

        No rewrite changes those, so they are copied as they are.

        Raises:
            ModelError: a file cannot be written, or an external file would take the place of
                another one.
        """
        made = [path]
        try:
            path.write_bytes(self._bytes())
            for source, goal in self._external(path.parent):
                made.append(goal)
                goal.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, goal)
        except OSError as error:
            _removed(made)
            raise ModelError(f"{error.filename or path}: {error.strerror or error}") from None
        except ModelError:
            _removed(made)
            raise
        return tuple(made)

    def _bytes(self) -> bytes:
        if not self._touched:
            return self.path.read_bytes()
        try:
            data: bytes = self.model.SerializeToString()
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{self.path}: {error}") from None
        if len(data) > _MOST_BYTES:
            raise ModelError(f"{self.path}: {len(data)} bytes; an ONNX file ends at 2 GiB")
        return data

    def _external(self, folder: Path) -> Iterator[tuple[Path, Path]]:
        """The external files that a folder lacks, and where they go."""
        for relative in sorted(self._locations()):
            source, goal = self.path.parent / relative, folder / relative
            inside = source.resolve().is_relative_to(self.path.parent.resolve())
            if not inside or not source.is_file():
                continue  # the reader says that it is missing
            if not goal.exists():
                yield source, goal
            elif not goal.is_file() or not (
                goal.samefile(source) or filecmp.cmp(source, goal, shallow=False)
            ):
                raise ModelError(
                    f"{goal}: the model needs its data under this name, and something else is "
                    "there; write the model to an empty folder"
                )

    def _locations(self) -> set[Path]:
        found = set()
        for tensor in _tensors(self.model):
            if tensor.external_data:
                relative = location_of(tensor)[1]
                if relative is not None:
                    found.add(Path(relative))
        return found


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model whose nodes are where the reader sees them: functions written out, if they can."""
    if model.functions and refuse_functions(model) is None:
        import onnx.inliner

        try:
            return onnx.inliner.inline_local_functions(model)
        except package_errors():
            pass  # the reader leaves the calls, too
    return model


def _removed(files: Sequence[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink(missing_ok=True)


# Rewrites of constants.


def _last_shapes(rewrite: Rewrite, sizes: Any) -> dict[int, tuple[int, ...]]:
    """Operands that are constants and are read reshaped alone: the shape in which they are used.

    Chains of moves are followed; an operand that is also read as it was, or in two shapes, or
    expanded, is left out.
    """
    shapes: dict[int, tuple[int, tuple[int, ...]]] = {}  # step to operand and its shape there
    used: dict[int, set[tuple[int, ...] | None]] = {}
    for k, step in enumerate(rewrite.steps):
        for ref in step.operands:
            moves = step.op in ("reshape", "squeeze", "unsqueeze")
            if isinstance(ref, Input):
                at, shape = ref.position, sizes(ref.position)
            elif ref.step in shapes:
                at, shape = shapes[ref.step]
            else:
                continue
            if shape is None:
                continue
            after = _moved(step, shape) if moves else None
            if after is not None:
                shapes[k] = (at, after)
            else:
                used.setdefault(at, set()).add(None if isinstance(ref, Input) else shape)
    result = {}
    for at, final in used.items():
        if len(final) == 1 and None not in final:
            (shape,) = final
            assert shape is not None
            result[at] = shape
    return result


def _moved(step: Step, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    if step.op == "unsqueeze":
        rest = iter(shape)
        rank = len(shape) + len(step.axes)
        return tuple(1 if axis in step.axes else next(rest) for axis in range(rank))
    if step.op == "squeeze":
        return tuple(size for axis, size in enumerate(shape) if axis not in step.axes)
    wanted = list(step.shape or ())
    if -1 in wanted:
        others = math.prod(size for size in wanted if size != -1)
        if not others or math.prod(shape) % others:
            return None
        wanted[wanted.index(-1)] = math.prod(shape) // others
    return tuple(wanted) if math.prod(wanted) == math.prod(shape) else None


def _times(old: tuple[int, ...] | None, new: Sequence[int]) -> tuple[int, ...] | None:
    """How often a tensor is repeated along each axis to become larger; None where it cannot."""
    if old is None or len(old) != len(new):
        return None
    if any(a != b and a != 1 for a, b in zip(old, new, strict=True)):
        return None
    return tuple(1 if a == b else b for a, b in zip(old, new, strict=True))


def _constant_steps(rewrite: Rewrite, shapes: Mapping[int, Any]) -> dict[int, int]:
    """The steps that a constant of another shape stands for: step to operand."""
    found: dict[int, int] = {}
    for k, step in enumerate(rewrite.steps):
        if step.op not in ("reshape", "squeeze", "unsqueeze"):
            continue
        (ref,) = step.operands
        at = ref.position if isinstance(ref, Input) else found.get(ref.step)
        if at is not None and at in shapes:
            found[k] = at
    return found


# Messages.


def _value_of(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant node, or None where it is no plain one."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    found: onnx.TensorProto | None
    found = next((entry.t for entry in node.attribute if entry.name == "value"), None)
    return _listed(node) if found is None else found


def _listed(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The numbers that a Constant node has in an attribute of another kind, as a tensor."""
    import onnx
    import onnx.helper

    kinds = onnx.TensorProto
    for entry in node.attribute:
        if entry.name == "value_float":
            return onnx.helper.make_tensor("", kinds.FLOAT, [], [entry.f])
        if entry.name == "value_floats":
            return onnx.helper.make_tensor("", kinds.FLOAT, [len(entry.floats)], entry.floats)
        if entry.name == "value_int":
            return onnx.helper.make_tensor("", kinds.INT64, [], [entry.i])
        if entry.name == "value_ints":
            return onnx.helper.make_tensor("", kinds.INT64, [len(entry.ints)], entry.ints)
    return None


def _written(node: onnx.NodeProto) -> onnx.TensorProto:
    """The tensor of a Constant node to be changed; numbers of another attribute become one."""
    import onnx

    tensor: onnx.TensorProto | None
    for entry in node.attribute:
        if entry.name == "value":
            tensor = entry.t
            return tensor
    tensor = _listed(node)
    assert tensor is not None
    del node.attribute[:]
    entry = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    entry.t.CopyFrom(tensor)
    written: onnx.TensorProto = entry.t
    return written


def _number(attributes: Mapping[str, Any]) -> onnx.TensorProto:
    import numpy as np
    import onnx.helper

    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(attributes["dtype"]))
    return onnx.helper.make_tensor("", kind, [], [attributes["value"]])


def _trimmed(operands: Sequence[str]) -> list[str]:
    """Without the inputs that are left out at the end."""
    kept = list(operands)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _change(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> None:
    """Attributes set anew, those of None taken away; the others stay as they are."""
    import onnx.helper

    kept = [entry for entry in node.attribute if entry.name not in attributes]
    if len(kept) != len(node.attribute):
        copies = [type(entry).FromString(entry.SerializeToString()) for entry in kept]
        del node.attribute[:]
        node.attribute.extend(copies)
    for name, value in attributes.items():
        if value is not None:
            node.attribute.append(onnx.helper.make_attribute(name, value))


def _become(node: onnx.NodeProto, words: onnx.NodeProto) -> None:
    """The node as it is to be, under its own name; fields that do not change are left alone."""
    name = node.name
    node.CopyFrom(words)
    node.name = name


def _spliced(scope: _Scope) -> None:
    """Puts the new nodes where they go."""
    if not any((*scope.before.values(), *scope.behind.values())):
        return
    nodes = list(scope.graph.node)
    order = list(scope.before.get(-1, ()))
    for position, node in enumerate(nodes):
        order += (*scope.before.get(position, ()), node, *scope.behind.get(position, ()))
    copies = [type(node).FromString(node.SerializeToString()) for node in order]
    del scope.graph.node[:]
    scope.graph.node.extend(copies)


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value
    return text(dim.dim_param) or None


def _set_shape(entry: onnx.ValueInfoProto, shape: Sequence[int | str | None]) -> None:
    sizes = entry.type.tensor_type.shape
    del sizes.dim[:]
    sizes.SetInParent()
    for size in shape:
        dim = sizes.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor that may have its data in another file."""
    for graph in graphs_of(model.graph):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        for node in graph.node:
            for attribute in node.attribute:
                yield attribute.t
                yield from attribute.tensors


def edit(path: Path) -> OnnxEditor:
    """The file, open for changes.

    Raises:
        ModelError: it cannot be read.
    """
    return OnnxEditor(path)


__all__ = ["OnnxEditor", "edit"]
