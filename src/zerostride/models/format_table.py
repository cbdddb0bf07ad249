"""The formats of model files, a row each: what every room may ask of a format."""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

from ..core.plugins import Table, error_line
from ..errors import BroadcastError, ModelError, ZerostrideError
from .ir.graph import Body, Graph, Node
from .ir.rewrite import Editor
from .ir.site import Site

_PACKAGE = "zerostride.models.formats"


class FormatModule(Protocol):
    """The functions of a format's module.

    `Node.domain` names a node's op set: "" if it is an ONNX node; if the op is the format's own,
    the name of the format's engine, or the format's name if it has no engine. `lower` is not called
    for ONNX nodes.

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
    package: str = _PACKAGE

    def load(self) -> FormatModule:
        """The format's functions."""
        if self.package == _PACKAGE:
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


OWN = (
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
    if row.package == _PACKAGE:
        raise ValueError(f"format {row.name!r} does not say which package its module is in")
    if not row.suffixes or not all(suffix.startswith(".") for suffix in row.suffixes):
        raise ValueError(f"format {row.name!r} has suffixes that begin with a dot, in a tuple")
    for own in OWN:
        taken = sorted({*own.suffixes} & {*row.suffixes})
        if taken:
            raise ValueError(f"files that end in {', '.join(taken)} are {own.name}'s")
    return row


#: Every format by its name; entry points of the group `zerostride.formats` add to it.
FORMATS: Table[Format] = Table(
    "zerostride.formats", Format, OWN, _accept, operator.attrgetter("name")
)


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
            for one in (module.lower(node) if node.domain else None) or (node,):
                bodies = tuple(map(body, one.bodies))
                yield replace(one, bodies=bodies) if bodies else one

    def body(original: Body) -> Body:
        return replace(original, nodes=tuple(nodes(original.nodes)))

    return replace(graph, nodes=tuple(nodes(graph.nodes)))
