"""The protocol of a process and its child: frames of a length, a JSON header and raw bytes.

Frames carry data only, never code, so the two ends may be different interpreters with different
releases of NumPy.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from typing import Any

_LENGTHS = struct.Struct("<II")
#: The most bytes of one payload, whose length is a number of 32 bits.
MOST_BYTES = 2**32 - 1
#: Bytes of one read: a read allocates the requested number, and a pipe holds fewer.
_MOST_READ = 1 << 20


class Closed(Exception):  # noqa: N818 - a fact about the other end, handled by the caller
    """The other end is closed."""


class TooLate(Exception):  # noqa: N818 - likewise
    """The other end did not answer in time."""


def send(
    descriptor: int, header: dict[str, Any], payload: bytes = b"", seconds: float | None = None
) -> None:
    """Writes one frame; Closed if the reader is gone, TooLate if it does not read in `seconds`."""
    head = json.dumps(header).encode()
    rest = memoryview(_LENGTHS.pack(len(head), len(payload)) + head + payload)
    try:
        if seconds is not None:  # a blocking write would wait forever for a stopped reader
            os.set_blocking(descriptor, False)
        while rest:
            if seconds is not None and not _ready(descriptor, select.POLLOUT, seconds):
                raise TooLate
            rest = rest[os.write(descriptor, rest) :]
    except BrokenPipeError as error:
        raise Closed from error


def receive(descriptor: int, seconds: float | None = None) -> tuple[dict[str, Any], bytes]:
    """Reads one frame; Closed at the end of the stream, TooLate after `seconds`."""
    deadline = None if seconds is None else time.monotonic() + seconds
    head_length, payload_length = _LENGTHS.unpack(_exactly(descriptor, _LENGTHS.size, deadline))
    header: dict[str, Any] = json.loads(_exactly(descriptor, head_length, deadline))
    return header, _exactly(descriptor, payload_length, deadline)


def take_output(errors: bool) -> int:
    """A private copy of this process's output for frames; what libraries print goes elsewhere.

    Args:
        errors: prints go to the error output; otherwise they are discarded, errors too.
    """
    answers = os.dup(1)
    if errors:
        os.dup2(2, 1)
    else:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    return answers


def _exactly(descriptor: int, count: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not _ready(descriptor, select.POLLIN, left):
                raise TooLate
        part = os.read(descriptor, min(count - len(parts), _MOST_READ))
        if not part:
            raise Closed
        parts += part
    return bytes(parts)


def _ready(descriptor: int, event: int, seconds: float) -> bool:
    """Whether a descriptor becomes readable or writable, or its other end closes, in time."""
    poller = select.poll()  # select() takes no descriptor above 1023
    poller.register(descriptor, event)
    return bool(poller.poll(seconds * 1000))
