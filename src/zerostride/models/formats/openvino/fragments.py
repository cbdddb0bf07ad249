"""Layers as in documents: without a net, and with ``...`` for attributes that are left out.

    <layer ... type="Broadcast" ...>
        <data mode="explicit"/>
        <input>
            <port id="0"><dim>16</dim></port>
            <port id="1"><dim>4</dim> <!--The tensor contains 4 elements: [1, 16, 50, 50] --></port>
            <port id="1"><dim>1</dim> <!--The tensor contains 1 elements: [1] --></port>
        </input>
        ...

``...`` inside a tag is read as blanks. Ports are operands in their order, whatever their ids are;
each is an input of the graph. If a comment in a port lists as many whole numbers as the port has
elements, the port is a constant of these numbers, as the documents mean it. (In a whole file
comments have no meaning: there the numbers are in the .bin.) A Broadcast's target without a comment
has the output's sizes. A layer without a version is of the newest operation set, also a Broadcast,
PRelu or Select, which have older versions.
"""

from __future__ import annotations

import re

from .markup import Port

#: A tag with its quoted attributes, in which dots are literal.
_TAG = re.compile(rb"<[^<>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^<>\"']*)*>")
_TOKENS = re.compile(rb"\"[^\"]*\"|'[^']*'|\.\.\.|\xe2\x80\xa6")
_LAYER = re.compile(rb"<layer[\s>/]")
_MARK = b"\xef\xbb\xbf"
_NUMBERS = re.compile(r"\[\s*((?:[+-]?\d{1,19}\s*(?:,\s*|(?=\])))*)\]", re.ASCII)
#: Most numbers in a comment; shapes and axes have a few.
MAX_LISTED = 64


def is_fragment(data: bytes) -> bool:
    """Whether a file begins with a layer.

    >>> is_fragment(b'<layer ... type="Add">'), is_fragment(b"<net><layers/></net>")
    (True, False)
    """
    return _LAYER.match(data, _first(data)) is not None


def _first(data: bytes) -> int:
    """The start of the first element, after a declaration and comments."""
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
            if tag is None:  # not XML; the parser reports it
                at = start
                break
            stop = tag.end()
            pieces.append(_TOKENS.sub(_without_dots, tag[0]))
        at = stop
    return b"".join((*pieces, data[at:], b"</layers>"))


def _without_dots(token: re.Match[bytes]) -> bytes:
    return token[0] if token[0][:1] in b"\"'" else b"   "


def listed(port: Port, count: int | None) -> tuple[int, ...] | None:
    """The numbers in a port's comment, if they are as many as its elements."""
    for comment in port.comments:
        match = _NUMBERS.search(comment)
        if match is None:
            continue
        numbers = tuple(int(text) for text in match[1].replace(",", " ").split())
        if len(numbers) == count and len(numbers) <= MAX_LISTED:
            return numbers
    return None
