"""Layers as documents show them: no net around them, and ``...`` where attributes are left out.

    <layer ... type="Broadcast" ...>
        <data mode="explicit"/>
        <input>
            <port id="0"><dim>16</dim></port>
            <port id="1"><dim>4</dim> <!--The tensor contains 4 elements: [1, 16, 50, 50] --></port>
            <port id="1"><dim>1</dim> <!--The tensor contains 1 elements: [1] --></port>
        </input>
        ...

Such a file is read as it stands. ``...`` inside a tag stands for attributes that are left out, and
is taken for blanks. Ports are operands in the order in which they stand, whatever their ids are;
each is an input of the graph. A comment in a port that lists as many whole numbers as the port has
elements says what the tensor holds, as the documents mean it: the port is a constant then. (In a
whole file comments say nothing: there the numbers are in the .bin.) A target of a Broadcast about
which no comment speaks is as its output's sizes say. A layer without a version is of the newest
operation set; a Broadcast, PRelu or Select, of which there were others, means the newest one.
"""

from __future__ import annotations

import re

from .markup import Port

#: A tag with its quoted attributes, which may hold dots and mean them.
_TAG = re.compile(rb"<[^<>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^<>\"']*)*>")
_TOKENS = re.compile(rb"\"[^\"]*\"|'[^']*'|\.\.\.|\xe2\x80\xa6")
_LAYER = re.compile(rb"<layer[\s>/]")
_MARK = b"\xef\xbb\xbf"
_NUMBERS = re.compile(r"\[\s*((?:[+-]?\d{1,19}\s*(?:,\s*|(?=\])))*)\]", re.ASCII)
#: Numbers that a comment may list; shapes and axes have a few.
MAX_LISTED = 64


def is_fragment(data: bytes) -> bool:
    """Whether a file begins with a layer.

    >>> is_fragment(b'<layer ... type="Add">'), is_fragment(b"<net><layers/></net>")
    (True, False)
    """
    return _LAYER.match(data, _first(data)) is not None


def _first(data: bytes) -> int:
    """Where the first element begins, after a declaration and comments."""
    at = len(_MARK) if data.startswith(_MARK) else 0
    while True:
        while at < len(data) and data[at : at + 1].isspace():
            at += 1
        for head, tail in ((b"<!--", b"-->"), (b"<?", b"?>")):
            if data.startswith(head, at):
                end = data.find(tail, at + len(head))
                if end < 0:
                    return at
                at = end + len(tail)
                break
        else:
            return at


def whole(data: bytes) -> bytes:
    """The layers as well-formed XML under one root.

    >>> whole(b'<layer ... type="Add" name="a...b" ...></layer>')
    b'<layers><layer     type="Add" name="a...b"    ></layer></layers>'
    """
    pieces = [b"<layers>"]
    at = _first(data)
    while True:
        start = data.find(b"<", at)
        if start < 0:
            break
        pieces.append(data[at:start])
        if data.startswith(b"<!--", start):
            end = data.find(b"-->", start)
            stop = len(data) if end < 0 else end + 3
            pieces.append(data[start:stop])
        else:
            tag = _TAG.match(data, start)
            if tag is None:  # no XML; what reads it says why
                at = start
                break
            stop = tag.end()
            pieces.append(_TOKENS.sub(_without_dots, tag[0]))
        at = stop
    return b"".join((*pieces, data[at:], b"</layers>"))


def _without_dots(token: re.Match[bytes]) -> bytes:
    return token[0] if token[0][:1] in b"\"'" else b"   "


def listed(port: Port, count: int | None) -> tuple[int, ...] | None:
    """The numbers that a comment in a port says it holds, if they are as many as its elements."""
    for comment in port.comments:
        match = _NUMBERS.search(comment)
        if match is None:
            continue
        numbers = tuple(int(text) for text in match[1].replace(",", " ").split())
        if len(numbers) == count and len(numbers) <= MAX_LISTED:
            return numbers
    return None
