"""Why PyTorch does not export a module, out of its errors: the reason, the fix, the user's line.

PyTorch wraps the reason in errors of its exporter, adds advice on its own logs, and colours some
words. A user gets the reason, the fixes that it suggests (which size to bound or to fix), and the
innermost line outside PyTorch.
"""

from __future__ import annotations

import linecache
import re
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

from ...errors import printable

#: The most characters of all that is shown, of the reason alone, and of a line of source.
MAX_REASON, MAX_WORDS, _MAX_CODE = 900, 500, 120
#: The most bullets and suggested fixes of one error.
_MOST = 4
#: A size of an input, as guards name it: L['x'].size()[0] for x[0].
_SIZE = re.compile(r"L\['(\w+)'\]\.size\(\)\[(\d+)\]")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
#: The package whose errors wrap a reason.
_WRAPPERS = "torch.onnx._internal.exporter._errors"
_NO_OP = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)', overload='([^']+)'\)>")
_PLACE = re.compile(r'^ *File "([^"\n]+)", line (\d+), in (\S+)', re.MULTILINE)
_FIXES = "Suggested fixes"
#: Beginnings of paragraphs and sentences about PyTorch itself.
_ADVICE = (
    *("For more information", "For extended logs", "For more debugging help", "For C++ stack"),
    *("If you suspect the guard", "The error above occurred", "(Refer to the full", "Caused by:"),
    *("The following call raised", "consider using data-dependent", "If you're using mark_dynamic"),
    *("See https://github.com", "If you don't need to register", "from user code", "File "),
)
#: Details inside a sentence that say nothing to a user.
_DETAILS = re.compile(r" *\((?:unhinted: [^\n]*?|Size-like symbols: \w+)\)(?=[ .]|$)|^- +")
#: Words on errors of PyTorch, by the names of their classes.
_KINDS = {
    "GuardOnDataDependentSymNode": "a branch or a size depends on the numbers in a tensor: ",
}
#: Folders whose frames are not the user's.
_STANDARD = sysconfig.get_path("stdlib")
_OWN = str(Path(__file__).parents[2])


def reason_of(error: BaseException) -> str:
    """Why an export failed, in one line for a user.

    Args:
        error: what PyTorch raised.

    Returns:
        The reason; PyTorch's suggested fixes, if it has some; the user's line, if it is known.
    """
    chain = list(_chain(error))
    root = _root(chain)
    text = _ESCAPES.sub("", str(root)).strip()
    words = _no_op(text) or _reason(text)
    words = f"{_kind(root)}{words}" if words else type(root).__name__
    fixes = [fix for one in chain for fix in _fixes(_ESCAPES.sub("", str(one)))]
    parts = [_SIZE.sub(r"\1[\2]", words)[:MAX_WORDS]]
    if fixes:
        parts.append(f"PyTorch suggests: {', '.join(dict.fromkeys(fixes[:_MOST]))}")
    place = _place(chain)
    if place:
        parts.append(place)
    return printable("; ".join(part.rstrip(".;") for part in parts))[:MAX_REASON]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that led to it."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _root(chain: list[BaseException]) -> BaseException:
    """The first error that is no wrapper of the exporter; the last one if all are."""
    for error in chain:
        if type(error).__module__ != _WRAPPERS:
            return error
    return chain[-1]


def _kind(error: BaseException) -> str:
    """The kind of an error, in words or by the name of Python's own: its text may be one word."""
    kind = type(error)
    own = kind.__module__ == "builtins" and kind is not RuntimeError
    return _KINDS.get(kind.__name__, f"{kind.__name__}: " if own else "")


def _no_op(text: str) -> str:
    """The words on an op that the exporter does not know; "" for other errors."""
    match = _NO_OP.search(text)
    if match is None:
        return ""
    name, overload = match.groups()
    op = name if overload == "default" else f"{name}.{overload}"
    return f"no ONNX ops for {op}: the exporter has no translation of it"


def _reason(text: str) -> str:
    """The sentences on the reason: the first paragraph, and its bullets."""
    kept: list[str] = []
    for line in _before_fixes(text).splitlines():
        stripped = line.strip()
        if not stripped:
            if kept:
                break
            continue
        sentences = _without_advice(_DETAILS.sub("", stripped))
        if sentences:
            kept.append(sentences)
    return " ".join(kept[: _MOST + 1])


def _without_advice(line: str) -> str:
    """The sentences of a line up to the first one about PyTorch itself."""
    starts = [match.start() for match in re.finditer(r"(?:(?<=^)|(?<=[.!] ))\S", line)]
    for start in starts:
        if line.startswith(_ADVICE, start):
            return line[:start].strip()
    return line


def _before_fixes(text: str) -> str:
    return text.partition(_FIXES)[0]


def _fixes(text: str) -> Iterator[str]:
    """The lines of the suggested fixes."""
    for line in text.partition(_FIXES)[2].splitlines()[1:]:
        if not line.strip():
            return
        yield " ".join(line.split())


def _place(chain: list[BaseException]) -> str:
    """The innermost line outside PyTorch, with its code; "" if none is known."""
    for error in reversed(chain):
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if _is_users(frame.filename):
                return _line(frame.filename, frame.lineno or 0, frame.name)
    texts = (_ESCAPES.sub("", str(error)) for error in reversed(chain))
    for text in (*texts, *map(_stack_of, reversed(chain))):
        for file, line, function in reversed(_PLACE.findall(text)):
            if _is_users(file):
                return _line(file, int(line), function)
    return ""


def _stack_of(error: BaseException) -> str:
    """The stack that the node that was translated keeps of its source; "" without one."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        meta = getattr(frame.f_locals.get("node"), "meta", None)
        if isinstance(meta, dict) and meta.get("stack_trace"):
            return str(meta["stack_trace"])
    return ""


def _is_users(file: str) -> bool:
    """Whether a file is neither PyTorch's, Python's nor this package's."""
    if file.startswith(("<", _OWN)):
        return False
    parts = Path(file).parts
    if "site-packages" in parts or "dist-packages" in parts:
        return not {"torch", "onnxscript", "onnx_ir", "torchgen", "sympy"} & {*parts}
    return not file.startswith(_STANDARD)


def _line(file: str, line: int, function: str) -> str:
    code = linecache.getline(file, line).strip()[:_MAX_CODE]
    return f"at {file}:{line}, in {function}{f': {code}' if code else ''}"


__all__ = ["MAX_REASON", "MAX_WORDS", "reason_of"]
