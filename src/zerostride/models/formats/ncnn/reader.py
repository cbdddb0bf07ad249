"""ncnn's .param (and .bin) as a neutral graph.

Values are blobs, in NumPy's order of axes: (c, d, h, w), (c, h, w), (h, w) or (w,). ncnn's blobs
have one to four axes and no batch. A layer's weights are constants after its blobs in
`Node.inputs`. A MemoryData is a node with a constant result. An Input is a graph input and not a
node. Attributes are the parameters by their numbers as text ("0", "1"). A node's place is its
layer's position in the file.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ....errors import Misfit, ModelError, printable
from ....sizes.dim import Dim, Number
from ....sizes.parse import read as read_size
from ...ir.graph import FileShape, FileSize, Graph, Node, Value
from ...ir.readings import once_per_file
from ...onnx_ops.sizes.facts import NoSizes
from . import engine
from .embedding import index_blobs
from .inference import Inferred, infer
from .layers import LAYERS, loads_of
from .shapes.call import Sizes, checked
from .text import Layer, ParamFile, Params, contents, in_order, parsed, shown
from .weights import Stored, Weights, bin_path, dtype_of, is_half, load, locate

DOMAIN = "ncnn"
#: ncnn's layers have no versions.
VERSION = 1
_DTYPES = {1: "float32", 2: "float16", 3: "int8"}
#: Suffixes of binary files.
_BINARY = (".param.bin", ".ncnn.bin")


def read_ncnn(path: str | Path, inputs: Mapping[str, Sizes | None] | None = None) -> Graph:
    """The graph of a .param file, with the .bin beside it if there is one.

    Args:
        path: the file.
        inputs: shapes of input blobs, by name, that replace those of the file.

    Raises:
        ModelError: the file cannot be read; says why, with line and layer.
    """
    file = Path(path)
    if file.name.lower().endswith(_BINARY):
        raise ModelError(f"{file}: a binary file without names; name the .param text beside it")
    data = contents(file)
    return _sized(file, data, inputs) if inputs else graph_of(file, data)


@once_per_file
def graph_of(file: Path, data: bytes) -> Graph:
    """The graph in a file's bytes."""
    return _sized(file, data, {})


def _sized(file: Path, data: bytes, inputs: Mapping[str, Sizes | None]) -> Graph:
    text = parsed(file, data)
    try:
        inferred = infer(text.layers, inputs=_input_sizes(text, inputs))
        weights = locate(text.layers, bin_path(file))
        inferred = _completed(text, inferred, _input_sizes(text, inputs))
        return _Builder(text, inferred, weights).graph()
    except ModelError as error:
        if str(file) in str(error):
            raise
        raise ModelError(f"{file}: {error}") from None


def _input_sizes(parsed: ParamFile, inputs: Mapping[str, Sizes | None]) -> dict[str, Sizes]:
    """A caller's shapes, by the blobs' names in the file.

    Raises:
        ModelError: ncnn has no such blob.
    """
    shapes = {}
    for layer in parsed.layers:
        for name in layer.tops if layer.type == "Input" else ():
            shape = inputs.get(printable(name))
            if shape is not None:
                try:
                    shapes[name] = checked(shape)
                except NoSizes as error:
                    raise ModelError(f"the input {shown(name)} is given {shape}: {error}") from None
    return shapes


def _completed(parsed: ParamFile, inferred: Inferred, declared: Mapping[str, Sizes]) -> Inferred:
    """The shapes completed by the real ncnn, if it is installed."""
    tops = [name for layer in parsed.layers for name in layer.tops]
    followed = inferred.shapes.keys() | inferred.wrong | inferred.open
    missing = [name for name in tops if name not in followed]
    if not missing or inferred.unsized or inferred.named:
        return inferred
    kinds = {layer.type for layer in parsed.layers if set(layer.tops) & set(missing)}
    if any(layer.type not in LAYERS for layer in parsed.layers):
        return inferred  # ncnn refuses the file
    who = ", ".join(shown(kind)[1:-1] for kind in sorted(kinds)[:5])
    if not engine.installed():
        inferred.notes.append(
            f"the shapes of {len(missing)} blobs are not known ({who}); ncnn, which could be asked "
            "for them, is not installed: pip install 'zerostride[ncnn]'"
        )
        return inferred
    inputs: dict[str, tuple[int, ...]] = {}
    for layer in parsed.layers:
        for name in layer.tops if layer.type == "Input" else ():
            sizes = inferred.shapes[name]
            inputs[name] = tuple(size for size in sizes if isinstance(size, int))
            if len(inputs[name]) < len(sizes):
                return inferred  # ncnn needs numbers
    text = "".join(parsed.lines)
    answers, failure = engine.ask(text, inputs, missing)
    again = infer(parsed.layers, answers, declared)
    again.notes.append(
        f"the shapes of {len(answers)} blobs ({who}) are those that the installed ncnn makes"
        if failure is None
        else f"the installed ncnn was asked for {len(missing)} shapes ({who}): {printable(failure)}"
    )
    return again


class _Builder:
    def __init__(self, parsed: ParamFile, inferred: Inferred, weights: Weights) -> None:
        self.parsed = parsed
        self.inferred = inferred
        self.weights = weights
        self.values: dict[str, Value] = {}
        self.notes = [*parsed.notes, *inferred.notes]

    def graph(self) -> Graph:
        """Values and nodes, layer by layer."""
        inputs: list[Value] = []
        nodes: list[Node] = []
        for layer in self.parsed.layers:
            operands = [self.values[name] for name in layer.bottoms]
            stored = self.weights.stored[layer.index]
            outputs = [self._made(layer, k, operands, stored) for k in range(len(layer.tops))]
            self.values.update(zip(layer.tops, outputs, strict=True))
            if layer.type == "Input":
                inputs += outputs
                continue
            if layer.type != "MemoryData":
                operands += self._constants(layer, stored)
            nodes.append(_node(layer, operands, outputs))
        read = Counter(name for layer in self.parsed.layers for name in set(layer.bottoms))
        ends = in_order(name for name in self.values if not read[name])
        self._say(read)
        notes = tuple(dict.fromkeys(map(printable, self.notes)))
        return Graph(
            str(self.parsed.path),
            "ncnn",
            VERSION,
            tuple(inputs),
            tuple(nodes),
            notes,
            tuple(self.values[name] for name in ends),
            MappingProxyType({DOMAIN: VERSION}),
        )

    def _made(
        self,
        layer: Layer,
        k: int,
        operands: Sequence[Value],
        stored: tuple[Stored, ...] | None,
    ) -> Value:
        """A result of a layer."""
        name = printable(layer.tops[k])
        shape = _written(self.inferred.shapes.get(layer.tops[k]))
        own = self._constants(layer, stored) if layer.type == "MemoryData" else []
        if own:
            constant = own[0]
            return Value(
                name,
                shape,
                True,
                missing=constant.missing,
                declared=shape,
                dtype=constant.dtype,
                source=constant.source,
            )
        constant_ = bool(operands) and all(value.constant for value in operands)
        passed = operands[0] if layer.type == "Split" and operands else None
        return Value(
            name,
            shape,
            constant_,
            missing=passed.missing if passed is not None else None,
            declared=shape,
            dtype=self._dtype(layer, operands),
            source=passed.source if passed is not None else None,
        )

    def _dtype(self, layer: Layer, operands: Sequence[Value]) -> str | None:
        """Blobs are 32-bit floats, except results of casts and indices."""
        if layer.type == "Cast":
            return _DTYPES.get(Params(layer).whole(1))
        if layer.type == "Input":
            return "int32" if layer.tops and layer.tops[0] in self._indices() else "float32"
        row = LAYERS.get(layer.type)
        if row is None:
            return None
        if row.dtype is None and row.keeps and operands:
            return operands[0].dtype
        return row.dtype or "float32"

    def _indices(self) -> set[str]:
        if not hasattr(self, "_embedded"):
            self._embedded = index_blobs(self.parsed.layers)
        return self._embedded

    def _constants(self, layer: Layer, stored: tuple[Stored, ...] | None) -> list[Value]:
        """The weights of a layer."""
        constants = []
        for k, row in enumerate(loads_of(layer)):
            if min(row.shape) < 0:
                continue
            name = printable(f"{layer.name}.{row.name}")
            if stored is None:
                missing = self.weights.missing
                constants.append(Value(name, row.shape, True, missing=missing, dtype="float32"))
                continue
            source = partial(load, stored[k], self.weights.path)
            dtype = dtype_of(stored[k])
            half = "float16" if is_half(stored[k]) else ""
            constants.append(Value(name, row.shape, True, dtype=dtype, source=source, stored=half))
        return constants

    def _say(self, read: Mapping[str, int]) -> None:
        """Adds notes about the whole file."""
        inferred, weights = self.inferred, self.weights
        for name in inferred.unsized:
            how = f"--input-shape {shlex.quote(f'{printable(name)}=SIZES')}"
            self.notes.append(
                f"the file does not give the sizes of the input {shown(name)}, and no layer says "
                f"how many axes it has; give them ({how}), or write them into its line "
                "(0=w 1=h 11=d 2=c)"
            )
        for name in inferred.named:
            names = [str(size) for size in inferred.shapes[name] if isinstance(size, Dim)]
            sizes, how = ", ".join(names), " ".join(f"--set {size}=NUMBER" for size in names)
            self.notes.append(
                f"the file does not give the sizes of the input {shown(name)}; they are called "
                f"{sizes}; give them ({how}), or write them into its line (0=w 1=h 11=d 2=c)"
            )
        strange = sorted({layer.type for layer in self.parsed.layers} - LAYERS.keys())
        if strange:
            self.notes.append(
                f"ncnn has no layer called {', '.join(shown(kind)[1:-1] for kind in strange[:5])}"
                f"{f' and {len(strange) - 5} more' if len(strange) > 5 else ''}: it refuses the "
                "file, and what such a layer makes has no known size"
            )
        shared = [name for name, count in read.items() if count > 1]
        if shared:
            more = f" and {len(shared) - 3} more" if len(shared) > 3 else ""
            self.notes.append(
                f"{', '.join(map(shown, shared[:3]))}{more} are read by several layers without a "
                "Split: ncnn frees a blob after its first reader, and its process ends at the next"
            )
        if any(map(loads_of, self.parsed.layers)) and weights.missing is not None:
            self.notes.append(f"weights are missing: {weights.missing}")
        if weights.missing is None and weights.size is not None and weights.end < weights.size:
            self.notes.append(
                f"{weights.path.name} has {weights.size - weights.end} bytes more than its layers "
                "read; it may belong to another file"
            )


def _node(layer: Layer, operands: Sequence[Value], outputs: Sequence[Value]) -> Node:
    return Node(
        printable(layer.name),
        printable(layer.type),
        DOMAIN,
        VERSION,
        tuple(operands),
        tuple(outputs),
        MappingProxyType({str(number): value for number, value in layer.params.items()}),
        place=(layer.index,),
    )


def _written(shape: Sizes | None) -> FileShape:
    """The shape as a file writes it: numbers, and names or expressions as text."""
    return None if shape is None else tuple(map(_text, shape))


def _text(size: Number) -> FileSize:
    if not isinstance(size, Dim):
        return size
    text = str(size)
    try:
        return text if read_size(text) == size else None
    except Misfit:
        return None
