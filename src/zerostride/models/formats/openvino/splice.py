"""Elements in the bytes of an IR for an edit, and the text of new elements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

#: Comments and similar, which contain no elements; then tags, whose attributes may contain ">".
_TAG = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", re.DOTALL
)
_NAME = re.compile(rb"<\s*([^\s/>]+)")
_ATTRIBUTE = re.compile(rb"([^\s=<>/\"']+)\s*=\s*(\"[^\"]*\"|'[^']*')")

Sizes = tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True)
class Element:
    """An element in the file's bytes.

    Attributes:
        tag: its name.
        start, stop: its first byte, and the first after it.
        open_stop: the first byte after its start tag.
        depth: 0 for the outer element, 1 for its children, and so on.
    """

    tag: str
    start: int
    open_stop: int
    stop: int
    depth: int


def elements(data: bytes, start: int) -> list[Element]:
    """The element that begins at `start` and all elements in it, in order."""
    nested: list[Element | None] = []
    opened: list[tuple[int, str, int, int]] = []
    for match in _TAG.finditer(data, start):
        text = match[0]
        if text[:2] in (b"<!", b"<?"):
            continue
        if text.startswith(b"</"):
            slot, tag, begin, open_stop = opened.pop()
            nested[slot] = Element(tag, begin, open_stop, match.end(), len(opened))
        else:
            name = _NAME.match(text)
            tag = name[1].decode("utf-8", "replace") if name else ""
            nested.append(None)
            opened.append((len(nested) - 1, tag, match.start(), match.end()))
            if text.endswith(b"/>"):
                slot, tag, begin, open_stop = opened.pop()
                nested[slot] = Element(tag, begin, open_stop, match.end(), len(opened))
        if not opened:
            break
    return [element for element in nested if element is not None]


def margin(data: bytes, start: int) -> str:
    """The blanks before an element on its line; "" if the line has other text before it."""
    line = data.rfind(b"\n", 0, start) + 1
    blanks = data[line:start]
    return blanks.decode() if not blanks.strip() else ""


def with_attributes(tag: bytes, changes: Mapping[str, str | None]) -> bytes:
    """A start tag with attributes changed, removed (None) or added at its end.

    >>> with_attributes(b'<data a="1" b="2" />', {"a": "5", "b": None, "c": "x"})
    b'<data a="5" c="x" />'
    """
    left = dict(changes)

    def change(match: re.Match[bytes]) -> bytes:
        name = match[2].decode("utf-8")
        if name not in left:
            return match[0]
        value = left.pop(name)
        return b"" if value is None else match[1] + _pair(name, value)

    spaced = re.compile(rb"(\s+)" + _ATTRIBUTE.pattern)
    replaced = spaced.sub(change, tag)
    added = b"".join(b" " + _pair(name, v) for name, v in left.items() if v is not None)
    if not added:
        return replaced
    end = len(replaced) - (2 if replaced.endswith(b"/>") else 1)
    body = replaced[:end].rstrip()
    return body + added + replaced[len(body) :]


def _pair(name: str, value: str) -> bytes:
    return f"{name}={quoteattr(value)}".encode()


def attribute_of(tag: bytes, name: str) -> str | None:
    """An attribute's text in the file, with its entities."""
    for match in _ATTRIBUTE.finditer(tag):
        if match[1].decode("utf-8") == name:
            return match[2][1:-1].decode("utf-8")
    return None


def written(value: Any) -> str:
    """A Python value as the text of an attribute.

    >>> written(True), written((1, 2)), written("numpy")
    ('true', '1, 2', 'numpy')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ", ".join(map(written, value))
    return str(value)


def port(number: int, precision: str, shape: Sizes, blanks: str, more: str = "") -> str:
    """The text of a port."""
    kind = f" precision={quoteattr(precision)}" if precision else ""
    head = f'{blanks}<port id="{number}"{kind}{more}'
    if not shape:
        return f"{head} />\n"
    return f"{head}>\n{dims(shape, blanks)}{blanks}</port>\n"


def dims(shape: Sizes, blanks: str) -> str:
    """The text of a port's sizes."""
    sizes = (-1 if size is None else size for size in shape or ())
    return "".join(f"{blanks}\t<dim>{size}</dim>\n" for size in sizes)


def edge(source: tuple[int, int], target: tuple[int, int]) -> str:
    """The text of an edge."""
    return (
        f'<edge from-layer="{source[0]}" from-port="{source[1]}" '
        f'to-layer="{target[0]}" to-port="{target[1]}" />'
    )


def layer(
    number: int,
    name: str,
    kind: str,
    version: str,
    attributes: Mapping[str, Any],
    inputs: Sequence[tuple[str, Sizes]],
    output: tuple[str, Sizes],
    blanks: str,
    names: str | None = None,
) -> str:
    """The text of a layer of one output, whose port number follows those of the inputs."""
    lines = [f'{blanks}<layer id="{number}" name={quoteattr(name)} type="{kind}" ']
    lines[0] += f'version="{version}">\n'
    if attributes:
        attribute_text = " ".join(f"{key}={quoteattr(written(v))}" for key, v in attributes.items())
        lines.append(f"{blanks}\t<data {attribute_text} />\n")
    inner = f"{blanks}\t\t"
    if inputs:
        lines.append(f"{blanks}\t<input>\n")
        lines += [port(k, *operand, inner) for k, operand in enumerate(inputs)]
        lines.append(f"{blanks}\t</input>\n")
    more = "" if names is None else f' names="{names}"'
    lines.append(f"{blanks}\t<output>\n{port(len(inputs), *output, inner, more)}")
    lines.append(f"{blanks}\t</output>\n{blanks}</layer>\n")
    return "".join(lines)
