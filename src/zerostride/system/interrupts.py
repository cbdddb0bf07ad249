"""Ctrl-C while the command line starts and ends: status 130 and no traceback.

Python prints a traceback for an interrupt during an import, and during its own end. So the package
imports this module first. It changes nothing where zerostride is imported as a library.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from pathlib import PurePath

#: The status by which shells report an interrupt.
INTERRUPTED = 130


def is_command() -> bool:
    """Whether this process is the command `zerostride`, or `python -m zerostride`."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # so while Python looks for the module that it will run
        place = sys.orig_argv.index("-m") if "-m" in sys.orig_argv else 0
        return sys.orig_argv[place + 1 : place + 2] == ["zerostride"]
    path = PurePath(program)
    return path.name in ("zerostride", "zerostride.exe") or path.parts[-2:] == (
        "zerostride",
        "__main__.py",
    )


def end_silently() -> None:
    """Lets an interrupt end the command at once; nothing if another handler is set."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_again() -> None:
    """Lets an interrupt raise KeyboardInterrupt again, after :func:`end_silently`."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def be_handled() -> None:
    """Tells Python that an interrupt was handled.

    Python notes an interrupt that leaves code which was given as text, as that of dataclasses is,
    even if it is caught further up. `python -m` would end by the signal. New text removes the note.
    """
    exec("")


def _ignore() -> None:
    """Ignores interrupts once all is done: at its end Python gives signals their default again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)


end_silently()
atexit.register(_ignore)  # the first that is registered runs last
