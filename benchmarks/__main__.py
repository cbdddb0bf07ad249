"""The command: `python -m benchmarks` compares libraries; `python -m benchmarks NAME` runs NAME."""

from __future__ import annotations

import faulthandler
import importlib
import os
import runpy
import sys
from pathlib import Path

#: Before any library is imported: nobody looks for other devices, or stays around.
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # No processes that stay and wait to compile more.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
#: Modules with a `main(arguments)`.
_COMMANDS = (
    "scaling",
    "memory",
    "fuse",
    "sums",
    "arrays",
    "dask",
    "devices",
    "pages",
    "cores",
    "equivalent_scale",
)
#: Scripts, which read sys.argv.
_SCRIPTS = ("symbolic", "audit_scale", "report_scale")


def main() -> int:
    """Runs the command that the first argument names."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in _SCRIPTS:
        sys.argv = [f"python -m benchmarks {name}", *sys.argv[2:]]
        runpy.run_path(str(Path(__file__).with_name(f"{name}.py")), run_name="__main__")
        return 0
    arguments = sys.argv[1:]
    if name in _COMMANDS:
        arguments = sys.argv[2:]
    else:
        name = "compare"
    module = importlib.import_module(f"benchmarks.{name}")
    status: int = module.main(arguments)
    return status


if __name__ == "__main__":
    # Libraries can end the process; which one it was should be seen.
    faulthandler.enable()
    raise SystemExit(main())
