"""C files of this folder, compiled for this processor."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any


@functools.cache
def library(name: str) -> Any | None:
    """The functions of a C file of this folder; None without a C compiler."""
    compiler = next(
        filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), ""
    )
    if not compiler:
        return None
    source = Path(__file__).with_name(name)
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, source.stem + ".so")
        flags = ("-O3", "-march=native", "-shared", "-fPIC", "-pthread")
        command = [compiler, *flags, "-o", str(built), str(source)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return None
        return ctypes.CDLL(str(built))
