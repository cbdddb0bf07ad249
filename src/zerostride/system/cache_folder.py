"""The folder in which zerostride keeps what it can compute again: answers and machine code.

`ZEROSTRIDE_CACHE` names another folder; `off` keeps nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

#: The variable that names another folder, and its word for none.
ENVIRONMENT, OFF = "ZEROSTRIDE_CACHE", "off"


def cache_folder(name: str) -> Path | None:
    """A folder in the user's cache folder by XDG; None if nothing is to be kept, or has no place.

    >>> import os
    >>> os.environ["ZEROSTRIDE_CACHE"] = "off"
    >>> cache_folder("verify")
    >>> del os.environ["ZEROSTRIDE_CACHE"]
    """
    named = os.environ.get(ENVIRONMENT, "")
    if named.strip().lower() == OFF:
        return None
    if named:
        return Path(named) / name
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "zerostride" / name
    except RuntimeError:  # neither HOME nor a home of the user, as in containers
        return None
