"""Archives of torch.export (.pt2), checked before PyTorch reads them.

`torch.export.load` runs code of the file: it unpickles weights, constants and sample inputs, gives
expressions of sizes to an `eval`, takes any function of `torch` as an operation, imports modules
that a tree of arguments names, and compiles guards. So PyTorch never gets the file. It gets a new
archive with the parts that cannot run anything: JSON in which every such entry has been checked,
and weights as plain bytes. Any other file is refused, with the reason.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import ModelError, printable
from ..ir.graph import Graph
from ..ir.rewrite import Editor
from . import child
from .model_file import model_file
from .onnx.format import find_site, lower
from .onnx.reader import read_onnx
from .torch_export import NOT_EXPORTED, line_of
from .torch_reasons import MAX_REASON

#: Weights of a model and its graph; larger ones are exported with the model in Python.
MAX_FILE = 2**31 - 1
#: The JSON of a network of thousands of nodes has some megabytes.
MAX_JSON = 1 << 27
MAX_PARTS = 100_000
#: Time and memory of the export, which includes the import of PyTorch.
SECONDS, MEMORY = 300.0, 6 << 30

#: An operation of PyTorch's core. It computes on tensors and numbers alone, but for `from_file`.
_CORE = re.compile(r"torch\.ops\.aten\.(?!from_file\b)[a-z0-9_]+\.[A-Za-z0-9_]+", re.ASCII)
_SIZES = re.compile(
    r"_operator\.(?:add|and_|eq|floordiv|ge|getitem|gt|le|lt|mod|mul|ne|neg|or_|pos|pow|sub|truediv)"
    r"|torch\.sym_(?:float|int|ite|max|min|not|sum)"
    r"|math\.(?:ceil|floor|sqrt|trunc)"
)
#: Expressions of sizes: numbers, symbols such as s0 or Symbol('s0', integer=True), and functions of
#: sizes. PyTorch 2.13 writes them as SymPy's `srepr` does, older releases as its `str` does.
_EXPRESSION = re.compile(
    r"(?:(?:Abs|Add|And|CeilToInt|CleanDiv|Eq|Equality|FloatTrueDiv|FloorDiv|FloorToInt|Ge"
    r"|GreaterThan|Gt|IntTrueDiv|Integer|Le|LessThan|Lt|Max|Min|Mod|ModularIndexing|Mul|Ne|Not|Or"
    r"|Pow|PowByNatural|PythonMod|Rational|RoundToInt|StrictGreaterThan|StrictLessThan|ToFloat"
    r"|TruncToInt|True|Unequality|False)\b|(?:s|u|zuf|zf)\d{1,6}\b"
    r"|Symbol\('(?:s|u|zuf|zf)\d{1,6}'(?:, [a-z]{1,20}=(?:True|False)){0,8}\)"
    r"|\d{1,19}(?:\.\d{1,19})?\b|\*\*?(?!\*)|[-+/(),<>=!&|~ ])+",
    re.ASCII,
)
#: Characters of one expression; a symbol has about fifty.
_MAX_EXPRESSION = 4000
_SYMBOL = re.compile(r"(?:s|u|zuf|zf)\d{1,6}", re.ASCII)
_PAYLOAD = re.compile(r"(?:weight|tensor)_\d{1,9}", re.ASCII)
#: Types in a tree of arguments that are made without an import.
_TREES = frozenset({None, "builtins.tuple", "builtins.list", "builtins.dict"})
#: A node's metadata that is kept: text, which nothing looks up.
_METADATA = ("stack_trace", "nn_module_stack")

_CHILD = """
limit_memory(int(sys.argv[1]))
load_package()
from zerostride.models.formats.torch_export import onnx_of_archive
answer.write(onnx_of_archive(sys.stdin.buffer.read()))
"""


def read(path: Path) -> Graph:
    """The graph of the ONNX model that PyTorch exports; see :func:`onnx_of`."""
    with model_file(path) as file:
        return replace(read_onnx(file.path), path=str(path))


def edit(path: Path) -> Editor:
    """Not possible: such a file is exported to ONNX first."""
    raise ModelError(f"{path}: files of torch.export are read, not written")


def onnx_of(path: Path) -> bytes:
    """The ONNX model that PyTorch exports from an archive, in a child process.

    Raises:
        ModelError: the file is no such archive, has a part that may run code, or cannot be
            exported; gives the reason.
    """
    archive = checked_archive(path)
    output, failure = child.ask(
        _CHILD, str(MEMORY), seconds=SECONDS, question=archive, most=MAX_FILE, shown=MAX_REASON
    )
    if failure is not None:
        reason = failure.rpartition(NOT_EXPORTED)[2]
        raise ModelError(f"{path}: PyTorch does not export it: {printable(reason)}")
    return output


def checked_archive(path: Path) -> bytes:
    """An archive with the parts of a file that cannot run anything.

    Raises:
        ModelError: the file is no archive of torch.export, or has a part that may run code.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise ModelError(f"{path}: more than 2 GiB; export the module in Python")
        with zipfile.ZipFile(path) as archive:
            return _checked(_Parts(path, archive))
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
        raise ModelError(f"{path}: not an archive of torch.export: {line_of(error)}") from None
    # The graph is JSON of no schema: a key may be absent, a value of any type, at any depth.
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ModelError(f"{path}: its graph is malformed: {line_of(error)}") from None


class _Parts:
    """The parts of an archive by their names below its folder."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self.archive = archive
        self.left = MAX_FILE
        entries = archive.infolist()
        if len(entries) > MAX_PARTS:
            raise ModelError(f"{path}: more than {MAX_PARTS:,} parts")
        self.entries = {entry.filename.partition("/")[2]: entry for entry in entries}

    def refuse(self, reason: str) -> ModelError:
        """The error for a part that may run code."""
        return ModelError(
            f"{self.path}: {printable(reason)[:200]}; zerostride loads no file that may run code: "
            "load it in Python if you trust it, and audit the ExportedProgram"
        )

    def read(self, name: str, most: int) -> bytes:
        """A part; parts are not compressed, so they cannot grow."""
        entry = self.entries.get(name)
        if entry is None:
            raise ModelError(f"{self.path}: not an archive of torch.export: it lacks {name!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > min(most, self.left):
            raise ModelError(f"{self.path}: {printable(name)} is compressed or too large")
        self.left -= entry.file_size
        return self.archive.read(entry)

    def json(self, name: str) -> dict[str, Any]:
        """A part that is a JSON object."""
        value = json.loads(self.read(name, MAX_JSON))
        if not isinstance(value, dict):
            raise ModelError(f"{self.path}: {printable(name)} is no JSON object")
        return value


def _checked(parts: _Parts) -> bytes:
    models = [name for name in parts.entries if re.fullmatch(r"models/[^/]+\.json", name)]
    if len(models) != 1:
        raise ModelError(f"{parts.path}: an archive of {len(models)} exported programs, not of one")
    name = models[0][len("models/") : -len(".json")]
    written: dict[str, bytes] = {
        "archive_format": b"pt2",
        "archive_version": parts.read("archive_version", 16),
        "byteorder": parts.read("byteorder", 16),
        ".data/version": b"3\n",
        "models/model.json": json.dumps(_program(parts, models[0])).encode(),
        "data/sample_inputs/model.pt": b"",
    }
    for kind in ("weights", "constants"):
        config = parts.json(f"data/{kind}/{name}_{kind}_config.json")
        written[f"data/{kind}/model_{kind}_config.json"] = json.dumps(config).encode()
        for payload in _payloads(parts, config):
            written[f"data/{kind}/{payload}"] = parts.read(f"data/{kind}/{payload}", MAX_FILE)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for part, data in written.items():
            archive.writestr(f"model/{part}", data)
    return file.getvalue()


def _payloads(parts: _Parts, config: dict[str, Any]) -> list[str]:
    """The files of weights, all of them plain bytes."""
    names: dict[str, None] = {}
    for key, meta in config["config"].items():
        name = meta["path_name"]
        if meta["use_pickle"] is not False or not _PAYLOAD.fullmatch(name):
            raise parts.refuse(f"its tensor or object {key!r} is pickled")
        names[name] = None
    _check_all(parts, config)
    return list(names)


def _program(parts: _Parts, name: str) -> dict[str, Any]:
    """The graph: every entry that PyTorch evaluates is checked, what is not needed is left out."""
    program = parts.json(name)
    module = program["graph_module"]
    calls = [call for call in module["module_call_graph"] if call["fqn"] == ""]
    for call in calls:
        for key in ("in_spec", "out_spec"):
            _check_tree(parts, json.loads(call["signature"][key])[1])
    module["module_call_graph"] = calls
    module["treespec_namedtuple_fields"] = {}
    module["metadata"] = {}
    program["guards_code"] = []
    for symbol in program["range_constraints"]:
        if not _SYMBOL.fullmatch(symbol):
            raise parts.refuse(f"a size is called {symbol!r}")
    _check_all(parts, program)
    return program


def _check_tree(parts: _Parts, tree: dict[str, Any]) -> None:
    """A tree of arguments: of plain containers, with plain names."""
    context = tree["context"]
    keys = json.loads(context) if isinstance(context, str) else context
    plain = keys is None or (isinstance(keys, list) and all(isinstance(key, str) for key in keys))
    if tree["type"] not in _TREES or not plain:
        raise parts.refuse(f"its arguments have a {tree['type']!r}")
    for branch in tree["children_spec"]:
        _check_tree(parts, branch)


def _check_all(parts: _Parts, value: object) -> None:
    for key, entry in _entries(value):
        check = _CHECKS.get(key)
        if check is not None:
            check(parts, entry)


def _entries(value: object) -> Iterator[tuple[str, Any]]:
    """Every key of every object in JSON, with its value, at any depth."""
    if isinstance(value, dict):
        for key, entry in [*value.items()]:
            yield key, entry
            yield from _entries(value[key])
    elif isinstance(value, list):
        for entry in value:
            yield from _entries(entry)


def _check_target(parts: _Parts, target: object) -> None:
    # A tensor may be called "target": its entry is no text, and no operation.
    if isinstance(target, str) and not (_CORE.fullmatch(target) or _SIZES.fullmatch(target)):
        raise parts.refuse(f"the operation {target!r} is not one of PyTorch's core")


def _check_expression(parts: _Parts, text: object) -> None:
    if not isinstance(text, str) or len(text) > _MAX_EXPRESSION or not _EXPRESSION.fullmatch(text):
        raise parts.refuse(f"the size {text!r} is no arithmetic of sizes")


def _keep_text(parts: _Parts, metadata: object) -> None:
    """Leaves out the text of a node's metadata that PyTorch looks up."""
    if isinstance(metadata, dict):
        for key in [*metadata]:
            if key not in _METADATA and isinstance(metadata[key], str):
                del metadata[key]


def _refuse_object(parts: _Parts, entry: object) -> None:
    if entry:
        raise parts.refuse("it has objects that are not tensors")


#: By the key in the JSON.
_CHECKS: dict[str, Callable[[_Parts, Any], None]] = {
    "target": _check_target,
    "expr_str": _check_expression,
    "metadata": _keep_text,
    "as_custom_obj": _refuse_object,
    "custom_obj": _refuse_object,
    "custom_obj_values": _refuse_object,
    "as_operator": _refuse_object,
}

__all__ = ["checked_archive", "edit", "find_site", "lower", "onnx_of", "read"]
