"""The place of the user's own source that a node was exported from.

PyTorch's ONNX exporter writes two entries into a node's metadata: the names of the modules around
the operation, and the stack of Python's calls. Both are text of a file: bounded, never opened.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

#: The exporter's keys.
STACK, SCOPES, CLASSES = (
    f"pkg.torch.onnx.{key}" for key in ("stack_trace", "name_scopes", "class_hierarchy")
)
#: Longest entry that is read; a stack of a hundred frames is shorter.
MAX_ENTRY = 1 << 16
_FRAME = re.compile(
    r'^ {0,8}File "([^"\n]{1,4096})", line (\d{1,9}), in [^\n]*\n {0,16}(\S[^\n]*)', re.MULTILINE
)
#: Files of PyTorch itself: a user does not edit them.
_LIBRARY = re.compile(
    r"(?:^|[/\\])torch[/\\](?:nn|_[^/\\]+|functional\.py|utils|fx|export)(?:[/\\.]|$)"
)


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a node.

    Attributes:
        module: the path of the innermost module, as in `named_modules()`; "" for the model itself.
        operator: PyTorch's name of the operation, such as "aten.add.Tensor".
        file: the source file; "" if the stack has no frame outside PyTorch.
        line: the line in it.
        code: the line's text.
        caller: the path of the module whose `forward` has the line.
        name: the operation's name in the exported graph: one operation may be several nodes.
    """

    module: str
    operator: str
    file: str = ""
    line: int = 0
    code: str = ""
    caller: str = ""
    name: str = ""

    @property
    def place(self) -> str:
        """The file's name and the line: 'model.py:37'; "" without a line."""
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.line}" if name else ""

    def __str__(self) -> str:
        inside = f"in {self.module}" if self.module else ""
        line = f"{self.place}  {self.code}" if self.file else ""
        return "   ".join(part for part in (line, inside) if part) or "in the model itself"


def origin_of(metadata: Mapping[str, str]) -> Origin | None:
    """The origin that a node's metadata names; None without the exporter's entries.

    >>> stack = 'File "/a/m.py", line 7, in forward' + chr(10) + '    x + self.b'
    >>> print(origin_of({STACK: stack, SCOPES: "['', 'l.0', 'add']"}))
    m.py:7  x + self.b   in l.0
    """
    scopes, classes = _texts(metadata.get(SCOPES)), _texts(metadata.get(CLASSES))
    stack = metadata.get(STACK, "")
    frames = _FRAME.findall(stack) if len(stack) <= MAX_ENTRY else []
    if not scopes and not frames:
        return None
    # The last scope is the operation's own.
    modules = scopes[:-1] or [""]
    operator = classes[-1] if classes else ""
    name = scopes[-1] if scopes else ""
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    if not own:
        return Origin(modules[-1], operator, name=name)
    file, line, code = own[-1]
    # PyTorch's own modules have no line of the user's.
    kinds = classes[: len(modules)]
    users = [name for name, kind in zip(modules, kinds, strict=False) if not _own_module(kind)]
    caller = users[-1] if users else modules[-1]
    return Origin(modules[-1], operator, file, int(line), code.strip(), caller, name)


def _own_module(kind: str) -> bool:
    return kind.startswith(("torch.nn.", "torch.ao."))


def _texts(entry: str | None) -> list[str]:
    """A Python list of texts, as the exporter writes one; empty if it is something else."""
    if entry is None or len(entry) > MAX_ENTRY:
        return []
    try:
        texts = ast.literal_eval(entry)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return []
    return texts
