"""The formats of model files: a row each, and the one place where a file finds its reader.

A format is a module of this package with the four functions of :class:`FormatModule` and a row of
`FORMATS`. Nothing else in the package asks which format a graph came from.
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

from ...core.plugins import Table, said
from ...errors import BroadcastError, ModelError, ZerostrideError
from ..ir.graph import Body, Graph, Node, bounded
from ..ir.rewrite import Editor
from .onnx.sites import Site


class FormatModule(Protocol):
    """What every format's module has.

    A module may also have `explicit(node)`: the attributes that change, None for those that go, for
    a node to follow NumPy's rule, or to take identical shapes alone; None where it does already.
    `SIZES`: rows for the flow of sizes by op, of ops without words whose sizes are known all the
    same. And `read_sized(path, shapes)`: the graph of a file whose inputs have these shapes, by
    name; without it the sizes that a caller gives flow through the graph.
    """

    def read(self, path: Path) -> Graph:
        """The graph of a file; ModelError where it cannot be read, and says why."""
        ...

    def find_site(self, node: Node) -> Site | None:
        """What a node broadcasts and by which rule, or None if it cannot broadcast."""
        ...

    def lower(self, node: Node) -> tuple[Node, ...] | None:
        """The node in ONNX's words (domain "", attributes of a current op set).

        Only where those mean exactly the same. The last of the nodes hands out the node's own
        values, the very objects; what lies between is new. None where there are no such words.
        """
        ...

    def edit(self, path: Path) -> Editor:
        """The file, open for changes; ModelError where the format cannot be written."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table.

    Attributes:
        name: how the format is called here, and in `Graph.format`.
        suffixes: the ends of its files' names.
        module: its module, imported when it is needed.
        package: the package that the module is in.
        engine: the engine that runs such files, whose meaning they have; None where documents say
            what they mean.
        writable: whether it can be written back.
        hints: the sizes that a file gives tensors inside the model are hints, which the engine does
            not read: it infers sizes from the inputs.
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
    """The functions of another package's format: their faults are ModelErrors that name it."""

    def __init__(self, row: Format) -> None:
        self._whose = f"format {row.name!r} of {FORMATS.source(row.name) or row.package}"
        try:
            self._module = importlib.import_module(f"{row.package}.{row.module}")
        except (Exception, SystemExit) as error:
            raise ModelError(f"{self._whose} does not load: {said(error)}") from error

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
                raise ModelError(f"{self._whose} failed in {name!r}: {said(error)}") from error

        return call


#: What every format's module has to have.
_FUNCTIONS = ("read", "find_site", "lower", "edit")


_OWN = (
    Format("onnx", (".onnx",), "onnx.format"),
    Format("ncnn", (".param",), "ncnn", engine="ncnn"),
    Format("openvino", (".xml",), "openvino", engine="openvino", hints=True),
    Format("mnn", (".mnn",), "mnn", engine="mnn", writable=False),
)


def _accept(row: Format, package: str) -> Format:
    """Another package's format: files of other names than these, and a module of its own."""
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


def path_of(model: object) -> Path:
    """The file of a model, as a caller names it.

    Raises:
        TypeError: it is a model, or anything else that is no name; says how it becomes a file.
    """
    if isinstance(model, str | os.PathLike) and not isinstance(fspath := os.fspath(model), bytes):
        return Path(fspath)
    kind = type(model).__name__
    hint = "; onnx.save(model, 'model.onnx') makes one" if kind == "ModelProto" else ""
    raise TypeError(f"a model is named by its file, not given as {kind}{hint}")


def format_of(path: str | Path) -> Format:
    """The format of a file, by the end of its name.

    Raises:
        ModelError: no format has files of that name; says which there are.
        TypeError: it is no file's name.
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
    if Path(path).is_dir():
        raise ModelError(
            f"{path}: a folder; name a model in it, or audit them all by the command line"
        )
    formats = ", ".join(f"{' '.join(row.suffixes)} ({row.name})" for row in FORMATS.values())
    raise ModelError(f"{path}: its name does not end like a model's; known: {formats}")


def read_model(path: str | Path) -> Graph:
    """The graph of a model file of any format.

    Raises:
        ModelError: the file cannot be read; says why.
    """
    return bounded(format_of(path).load().read(Path(path)))


def module_of(graph: Graph) -> FormatModule:
    """The functions of the format that a graph came from."""
    return FORMATS[graph.format].load()


def lowered(graph: Graph) -> Graph:
    """The graph in ONNX's words as far as they reach; what has no such words stays as it is.

    The values are the same objects, so what is found out about one holds in both graphs.
    """
    if graph.format == "onnx":
        return graph
    module = module_of(graph)

    def nodes(originals: tuple[Node, ...]) -> Iterator[Node]:
        for node in originals:
            # What stands for an If may have bodies that are in those words already.
            for words in (module.lower(node) if node.domain else None) or (node,):
                bodies = tuple(map(body, words.bodies))
                yield replace(words, bodies=bodies) if bodies else words

    def body(original: Body) -> Body:
        return replace(original, nodes=tuple(nodes(original.nodes)))

    return replace(graph, nodes=tuple(nodes(graph.nodes)))
