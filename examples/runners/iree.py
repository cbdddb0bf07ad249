# /// script
# dependencies = ["iree-base-compiler", "iree-base-runtime", "onnx"]
# ///
"""IREE on the CPU (PyPI: iree-base-compiler, iree-base-runtime, onnx): one ONNX node, compiled.

A call takes a third of a second: learn it with --seconds 600.
"""

import onnx
from iree import compiler, runtime
from iree.compiler.extras import onnx_importer
from iree.compiler.ir import Context

from zerostride.runtimes.learn.onnx_model import onnx_model

NAME = "iree"
DISTRIBUTION = "iree-base-compiler"
NAMES = "onnx"

FLAGS = (
    "--iree-input-type=onnx",
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",  # else it reads the bytes of a float64 as float32
)


def run(op, arrays, target=None):
    """One node: imported to MLIR, compiled, and run on one thread."""
    model = onnx.load_from_string(onnx_model(op, arrays, target))
    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    program = compiler.compile_str(str(module), extra_args=FLAGS)
    config = runtime.Config("local-sync")
    loaded = runtime.VmModule.copy_buffer(config.vm_instance, program)
    return runtime.load_vm_module(loaded, config)["node"](*arrays).to_host()
