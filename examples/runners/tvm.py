# /// script
# dependencies = ["apache-tvm", "onnx"]
# ///
"""Apache TVM on the CPU (PyPI: apache-tvm, onnx): one ONNX node by Relax's importer, compiled.

A call takes a third of a second: learn it with --seconds 600.
"""

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from zerostride.runtimes.learn.onnx_model import onnx_model

NAME = "tvm"
DISTRIBUTION = "apache-tvm"
NAMES = "onnx"


def run(op, arrays, target=None):
    """One node."""
    module = from_onnx(onnx.load_from_string(onnx_model(op, arrays, target)))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    result = machine["main"](*map(tvm.runtime.tensor, arrays))
    return (result if hasattr(result, "numpy") else result[0]).numpy()
