"""The compiled tier is imported on every system, and machine code is loaded on few."""

from __future__ import annotations

import subprocess
import sys


def test_a_system_without_posix_can_fuse() -> None:
    """As on Windows: `mmap` has no protections, and `os` no users."""
    text = """
import mmap, os
for module, names in ((mmap, ("PROT_READ", "PROT_WRITE", "PROT_EXEC")), (os, ("geteuid",))):
    for name in names:
        delattr(module, name)
os.environ["ZEROSTRIDE_BACKEND"] = "reference"
import numpy as np, zerostride as zs
print(zs.fuse(lambda x: x * 2 + 1)(np.ones(2)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[3.0, 3.0]\n"), done.stderr
