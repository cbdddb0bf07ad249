"""The installed releases of engines, from the metadata of packages; no engine is imported."""

from __future__ import annotations

import functools
import os

from ..errors import BadInput

#: Packages with the same code under another name.
_OTHER_NAMES = {
    "tensorflow-cpu": ("tensorflow",),
    "onnxruntime": ("onnxruntime-gpu",),
    "paddlepaddle": ("paddlepaddle-gpu",),
}
#: The variable that chooses the row of an engine that is named without a release.
VARIABLE = "ZEROSTRIDE_RELEASES"


@functools.cache
def installed(distribution: str) -> str | None:
    """The installed version of a distribution, or None; an engine without a package has no name."""
    from importlib import metadata  # slow to import, and most callers never ask

    if not distribution:
        return None
    for name in (distribution, *_OTHER_NAMES.get(distribution, ())):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


@functools.cache
def newest_wanted() -> bool:
    """Whether the newest measured rows answer, whichever releases are installed.

    Raises:
        BadInput: ZEROSTRIDE_RELEASES is neither "installed" nor "newest".
    """
    wanted = os.environ.get(VARIABLE, "").strip().lower() or "installed"
    if wanted not in ("installed", "newest"):
        raise BadInput(f"{VARIABLE} is {wanted!r}; it is installed, newest or unset")
    return wanted == "newest"
