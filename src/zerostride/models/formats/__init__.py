"""The formats of model files: one row each, and the lookup of a file's reader.

A format is a folder of this package with the four functions of :class:`FormatModule`, and a row of
`FORMATS`. To add one, copy `mnn/`. Other rooms call these functions and read the row; a few ask
whether a graph is ONNX's (to write shapes back) or its engine's own. Parts that formats share:

- to read: `..ir.files` (untrusted bytes, sections of weights), `flatbuffer` and `schema_fields`
  (files with a flatbuffers schema), `Value.with_numbers` (numbers of small constants), `child`
  (asks a package in a child process), `ranks` (adds ranks and numbers that a file lacks).
- to find broadcasts: `..ir.site`, and `site_rows` for ops that broadcast like ONNX's.
- to translate: `lowering`, a table with a row per op type.
- to edit: `..ir.moves`, the shapes of a rewrite's steps.
"""

from __future__ import annotations

import functools
import importlib
import operator
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

from ...core.plugins import Table, error_line
from ...errors import BroadcastError, ModelError, ZerostrideError
from ..ir.graph import Body, Graph, Node, bounded
from ..ir.rewrite import Editor
from ..ir.site import Site
from .other_files import advice_for


class FormatModule(Protocol):
    """The functions of a format's module.

    `Node.domain` names a node's op set: "" if it is an ONNX node, and the name of the format's
    engine if the op is the format's own. `lower` is not called for ONNX nodes.

    Three more names are optional:

    - `explicit(node)`: the attribute changes (None removes one) after which a node follows NumPy's
      rule, or takes only identical shapes; None if it does already.
    - `SIZES`: rows for the flow of sizes, by op, of ops without an ONNX equivalent.
    - `read_sized(path, shapes)`: the graph of a file with these input shapes, by name; without it a
      caller's sizes flow through the graph.
    """

    def read(self, path: Path) -> Graph:
        """The graph of a file; ModelError with the reason if it cannot be read."""
        ...

    def find_site(self, node: Node) -> Site | None:
        """The operands and rule of a node that broadcasts; None if it cannot broadcast."""
        ...

    def lower(self, node: Node) -> tuple[Node, ...] | None:
        """The node as ONNX nodes (domain "", attributes of a current op set) of the same meaning.

        The last of the nodes returns the node's own value objects; values between are new. None if
        ONNX has no exact equivalent.
        """
        ...

    def edit(self, path: Path) -> Editor:
        """The file, open for changes; ModelError if the format cannot be written."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table.

    Attributes:
        name: the format's name, also in `Graph.format`.
        suffixes: the suffixes of its files.
        module: its module, imported on first use.
        package: the package of the module.
        engine: the engine that defines the meaning of such files; None if documents define it.
        writable: whether it can be written back.
        hints: a file's sizes of tensors inside the model are hints: the engine infers sizes from
            the inputs and does not read them.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str
    engine: str | None = None
    writable: bool = True
    hints: bool = False
    package: str = __name__

    def load(self) -> FormatModule:
        """The format's functions."""
        if self.package == __name__:
            return cast(FormatModule, importlib.import_module(f"{self.package}.{self.module}"))
        return cast(FormatModule, _Foreign(self))


class _Foreign:
    """The functions of another package's format; exceptions become ModelErrors that name it."""

    def __init__(self, row: Format) -> None:
        self._whose = f"format {row.name!r} of {FORMATS.source(row.name) or row.package}"
        try:
            self._module = importlib.import_module(f"{row.package}.{row.module}")
        except (Exception, SystemExit) as error:
            raise ModelError(f"{self._whose} does not load: {error_line(error)}") from error

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not hasattr(self._module, name):
            if name in _FUNCTIONS:
                raise ModelError(
                    f"{self._whose} has no function {name!r} in {self._module.__name__}"
                )
            raise AttributeError(name)
        function = getattr(self._module, name)

        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except (ZerostrideError, BroadcastError, OSError, MemoryError):
                raise
            except Exception as error:
                raise ModelError(
                    f"{self._whose} failed in {name!r}: {error_line(error)}"
                ) from error

        return call


#: The required functions of a format's module.
_FUNCTIONS = ("read", "find_site", "lower", "edit")


_OWN = (
    Format("onnx", (".onnx",), "onnx.format"),
    Format("ncnn", (".param",), "ncnn", engine="ncnn"),
    Format("openvino", (".xml",), "openvino", engine="openvino", hints=True),
    Format("mnn", (".mnn",), "mnn", engine="mnn", writable=False),
    Format("litert", (".tflite",), "tflite", engine="litert", hints=True),
    Format("torch", (".pt2",), "pt2", writable=False),
    Format("paddle", (".pdmodel", ".json"), "paddle", engine="paddle", writable=False, hints=True),
)


def _accept(row: Format, package: str) -> Format:
    """Accepts another package's format: it has its own suffixes and module."""
    if row.package == __name__:
        raise ValueError(f"format {row.name!r} does not say which package its module is in")
    if not row.suffixes or not all(suffix.startswith(".") for suffix in row.suffixes):
        raise ValueError(f"format {row.name!r} has suffixes that begin with a dot, in a tuple")
    for own in _OWN:
        taken = sorted({*own.suffixes} & {*row.suffixes})
        if taken:
            raise ValueError(f"files that end in {', '.join(taken)} are {own.name}'s")
    return row


#: Every format by its name; entry points of the group `zerostride.formats` add to it.
FORMATS: Table[Format] = Table(
    "zerostride.formats", Format, _OWN, _accept, operator.attrgetter("name")
)


#: How a model in memory becomes a file or a module, by the name of its type.
_WAYS = {
    "ModelProto": "; onnx.save(model, 'model.onnx') makes one",
    "ONNXProgram": "; model.save('model.onnx') makes one",
}


def path_of(model: object) -> Path:
    """The path that names a model.

    Raises:
        TypeError: the argument is not a path; for a model the message says how to write a file.
    """
    if isinstance(model, str | os.PathLike) and not isinstance(fspath := os.fspath(model), bytes):
        return Path(fspath)
    kind = type(model).__name__
    hint = _WAYS.get(kind, "")
    raise TypeError(f"a model is named by its file, not given as {kind}{hint}")


def format_of(path: str | Path) -> Format:
    """The format of a file, by its suffix.

    Raises:
        ModelError: no format has that suffix; names the known ones.
        TypeError: the argument is not a path.
    """
    name = path_of(path).name.lower()
    own = (row for row in _OWN if name.endswith(row.suffixes))
    own_row = next(own, None)
    if own_row is not None:
        return own_row
    for row in FORMATS.values():
        if name.endswith(row.suffixes):
            return row
    if name.endswith((".param.bin", ".ncnn.bin")):
        raise ModelError(f"{path}: a binary .param has no names; name the .param text itself")
    advice = advice_for(Path(path))
    if advice is not None:
        raise ModelError(f"{path}: {advice}")
    if str(path) in ("", "."):
        raise ModelError("no model is named: its path is empty, or the current folder")
    if Path(path).is_dir():
        raise ModelError(
            f"{path}: a folder; name a model in it, or audit them all by the command line"
        )
    formats = ", ".join(f"{' '.join(row.suffixes)} ({row.name})" for row in FORMATS.values())
    raise ModelError(f"{path}: its name does not end like a model's; known: {formats}")


def read_model(path: str | Path) -> Graph:
    """The graph of a model file of any format.

    Raises:
        ModelError: the file cannot be read; gives the reason.
    """
    return bounded(format_of(path).load().read(Path(path)))


def module_of(graph: Graph) -> FormatModule:
    """The functions of the format that a graph came from."""
    return FORMATS[graph.format].load()


def lowered(graph: Graph) -> Graph:
    """The graph as ONNX nodes; a node without an ONNX equivalent stays as it is.

    The values are the same objects, so facts about a value hold in both graphs.
    """
    if graph.format == "onnx":
        return graph
    module = module_of(graph)

    def nodes(originals: tuple[Node, ...]) -> Iterator[Node]:
        for node in originals:
            # The nodes that replace an If may have bodies of ONNX nodes already.
            for words in (module.lower(node) if node.domain else None) or (node,):
                bodies = tuple(map(body, words.bodies))
                yield replace(words, bodies=bodies) if bodies else words

    def body(original: Body) -> Body:
        return replace(original, nodes=tuple(nodes(original.nodes)))

    return replace(graph, nodes=tuple(nodes(graph.nodes)))
