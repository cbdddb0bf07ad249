"""Build the command that starts a Python in a child process.

Every child process of the package has a command from here: engines (`runtimes/process.py`), readers
of files (`models/formats/child.py`), audits of several files (`models/audit/many.py`) and
measurements (`cli/engines.py`). `child.Child` runs it. A child imports from the same folders as
this process and from no other: not from the current folder, as ``python -c`` and ``python -m``
would, and from nothing that the environment names. So a folder of downloaded models may hold a
`numpy.py`, and no command runs it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
#: Runs before the child's own source, with `sys` and `json` imported; `sys.argv[1:]` holds the
#: source's arguments. `load_package` imports this zerostride, whichever release the interpreter
#: has, and nothing else from its folder. `limit_memory` limits the process to a number of bytes
#: beyond its present use.
_PROLOGUE = """
import json, sys
folder, path, *sys.argv[1:] = sys.argv[1:]
if path:
    sys.path[:] = json.loads(path)
elif sys.prefix == sys.base_prefix:
    import site
    site.addsitedir(site.getusersitepackages())

def load_package():
    import importlib.util
    spec = importlib.util.spec_from_file_location(
        "zerostride", folder + "/__init__.py", submodule_search_locations=[folder])
    package = sys.modules["zerostride"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)

def limit_memory(more):
    import runpy
    runpy.run_path(folder + "/system/limits.py")["limit_memory"](more)
"""
_MODULE = """
import runpy
load_package()
name = sys.argv.pop(1)
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""


def source(text: str, *words: str, python: str | None = None) -> list[str]:
    """The command that runs Python source in a child.

    Args:
        text: the source. It may use `json`, `sys`, `load_package()` and `limit_memory(bytes)`.
        words: its arguments, in `sys.argv[1:]`.
        python: the interpreter; this one if None. Another one imports what is installed for it.
    """
    same = python is None or python == sys.executable
    # "" and relative entries mean the current folder of the child, so they are left out.
    path = json.dumps([entry for entry in sys.path if os.path.isabs(entry)]) if same else ""
    program = python or sys.executable
    return [program, "-I", "-c", _PROLOGUE + text, str(_PACKAGE), path, *words]


def module(name: str, *words: str, python: str | None = None) -> list[str]:
    """The command that runs a module of this zerostride in a child, as ``python -m`` would."""
    return source(_MODULE, name, *words, python=python)


__all__ = ["module", "source"]
