"""The file of a model, whatever a caller has: a path, an object in memory, or a PyTorch module."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ...errors import ArgumentError, ZerostrideError
from ..ir.files import write_scratch
from ..ir.graph import Array
from . import format_of, path_of
from .objects import kind_of, label_of, stem_of, write_object
from .onnx.in_memory import STEM, Numbers
from .torch_export import Example, exported, is_torch_model, onnx_bytes

#: How names of temporary folders begin.
_PREFIX = "zerostride-"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The file of a model.

    Attributes:
        path: the file.
        label: what reports call the model, where its file is temporary; else None.
        form: the form in which the caller has it: "module" where PyTorch exports it, else "".
        stem: of the names of files that are written for it.
        example: the inputs that a module was exported with, in order.
        program: the `ExportedProgram` of a module; None for a file.
        numbers: of constants that the temporary file of an object lacks, by name.
        notes: on the temporary file of an object.
        read: an object of the same kind from a changed file; None for a path and a module.
    """

    path: Path
    label: str | None = None
    form: str = ""
    stem: str = ""
    example: tuple[Array, ...] = ()
    program: Any = None
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    read: Callable[[Path], Any] | None = None

    def named(self, result: _Result) -> _Result:
        """A report, or shapes, that calls the model by its label and not by its temporary file."""
        if self.label is None:
            return result
        renamed: Any = self.hidden(result)
        return replace(renamed, model=self.label, notes=(*renamed.notes, *self.notes))  # type: ignore[no-any-return]

    def hidden(self, result: _Result) -> _Result:
        """A report, or shapes, whose texts have the label in the place of the temporary file."""
        if self.label is None:
            return result
        return _renamed(result, self.path.parent, self.label)  # type: ignore[no-any-return]


def _without_files(text: str, folder: Path, label: str) -> str:
    """A text with a label in the place of a temporary file, whose path may have been cut off.

    >>> _without_files("a /tmp/zerostride-x1/model-in-memory.onnx", Path("/tmp/zerostride-x1"), "M")
    'a M'
    >>> _without_files("a /tmp/zerostride-x ... b", Path("/tmp/zerostride-x1"), "M")
    'a M ... b'
    >>> _without_files("/tmp/zerostride-own/m.onnx", Path("/tmp/zerostride-x1"), "M")
    '/tmp/zerostride-own/m.onnx'
    """
    name = ""
    for character in reversed(folder.name.removeprefix(_PREFIX)):
        name = rf"(?:{re.escape(character)}{name})?"
    start = re.escape(str(folder.with_name(_PREFIX)))
    file = rf"{start}{name}(?![\w-])(?:[/\\][\w-]+(?:\.\w+)*)?|\b{STEM}(?:\.\w+)?"
    return re.sub(file, lambda _: label, text)


def _renamed(part: Any, folder: Path, label: str) -> Any:
    if type(part) is str:
        return _without_files(part, folder, label) if _PREFIX in part or STEM in part else part
    if type(part) is tuple:
        entries = tuple(_renamed(entry, folder, label) for entry in part)
        return entries if any(a is not b for a, b in zip(entries, part, strict=True)) else part
    if is_dataclass(part) and type(part).__name__ in _WITH_TEXTS:
        changed = {}
        for row in fields(part):
            old = getattr(part, row.name)
            new = _renamed(old, folder, label)
            if new is not old:
                changed[row.name] = new
        return replace(part, **changed) if changed else part  # type: ignore[type-var]
    return part


#: The parts of results that quote messages of engines and readers.
_WITH_TEXTS = frozenset(
    {
        *("Report", "Shapes", "Check", "Bisection", "Culprit", "Judged"),
        *("Equivalence", "Output", "Difference"),
    }
)


@contextmanager
def model_file(
    model: object,
    example: Example = Example(),  # noqa: B008 - frozen
    *,
    weights: bool = True,
) -> Iterator[ModelFile]:
    """The file of a model while the context lasts: its own, or a temporary one.

    Args:
        model: a path, an object of `.objects`, a `torch.nn.Module`, or an `ExportedProgram`.
        example: the inputs of a module.
        weights: whether the temporary file of an object needs large constants. Without them it is
            small, and readers take their numbers from the object (`ModelFile.numbers`).

    Raises:
        ModelError: it cannot be exported; gives the reason.
        ArgumentError: inputs are given for a model that is not a module, or missing for one.
        TypeError: it is no model.
    """
    if is_torch_model(model):
        label = type(model).__name__
        program = exported(model, example)
        data = onnx_bytes(program, label, example.dynamic_shapes)
        with _of_bytes(data, label) as file:
            yield replace(file, example=example.arrays(), program=program)
        return
    kind = kind_of(model)
    path = path_of(model) if kind is None else Path()
    if example != Example():
        raise ArgumentError("args, kwargs and dynamic_shapes are for a torch.nn.Module")
    if kind is not None:
        label = label_of(model, kind)
        with _folder(label) as folder:
            written = write_object(model, kind, folder, label, weights=weights)
            yield ModelFile(
                written.path,
                label,
                stem=stem_of(model, kind),
                numbers=written.numbers,
                notes=written.notes,
                read=written.read,
            )
    elif path.name.lower().endswith(".pt2"):
        from .pt2 import onnx_of

        with _of_bytes(onnx_of(path), str(path)) as file:
            yield file
    else:
        yield ModelFile(path, stem=path.stem)


@contextmanager
def _of_bytes(data: bytes, label: str) -> Iterator[ModelFile]:
    """A file of an ONNX model that PyTorch exported."""
    with _folder(label) as folder:
        path = folder / f"{STEM}.onnx"
        write_scratch(path, lambda path: path.write_bytes(data))
        yield ModelFile(path, label, "module", Path(label).stem)


@contextmanager
def _folder(label: str) -> Iterator[Path]:
    """A folder of a temporary model; errors name the label."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        try:
            yield folder
        except ZerostrideError as error:
            error.args = (_without_files(str(error), folder, label), *error.args[1:])
            raise


def form_and_label(model: object) -> tuple[str, str]:
    """The format of a model, and what messages call it; a module's format is "torch".

    Raises:
        ModelError: no format has the suffix of a path.
        TypeError: it is no model.
    """
    if is_torch_model(model):
        return "torch", type(model).__name__
    kind = kind_of(model)
    if kind is not None:
        return kind.form, label_of(model, kind)
    path = path_of(model)
    return format_of(path).name, str(path)


__all__ = ["ModelFile", "form_and_label", "model_file"]
