"""The names in the op table against the packages' own lists of ops.

    python -m pytest --override-ini addopts= -m conformance tests/conformance/test_op_names.py

ONNX's are held against its schemas in the unit tests; those that are functions in Python are called
by name in test_op_semantics.py.
"""

import importlib.util
import pathlib
import warnings

import numpy as np
import pytest

from zerostride.ops import OPS

pytestmark = pytest.mark.conformance

#: Layers and op types, which are in no enumeration of binary ops.
LAYERS = {"PReLU", "Select"}


def names(column):
    return {
        name
        for op in OPS.values()
        for name in op.names.get(column, ())
        if isinstance(name, str) and name not in LAYERS
    }


def test_openvino():
    ops = pytest.importorskip("openvino.opset15")
    factory = pytest.importorskip("openvino.utils.node_factory").NodeFactory("opset15")
    for op in OPS.values():
        for name in op.names.get("openvino", ()):
            bits = op.name.startswith(("bitwise", "logical"))
            inputs = [
                ops.parameter([2], np.dtype(bool if bits else "f4")) for _ in range(op.operands)
            ]
            if "shift" in op.name:
                inputs = [ops.parameter([2], np.dtype("i4")) for _ in range(2)]
            if op.name == "where":
                inputs[0] = ops.parameter([2], np.dtype(bool))
            assert factory.create(name, inputs).get_type_name() == name
    with pytest.raises(Exception, match="NoSuchOp"):
        factory.create("NoSuchOp", [])


def test_mnn():
    """The names of BinaryOpOperation are strings in the converter's library."""
    if importlib.util.find_spec("_tools") is None or importlib.util.find_spec("MNN") is None:
        pytest.skip("MNN is not installed")
    library = pathlib.Path(importlib.util.find_spec("_tools").origin).read_bytes()
    # A linker keeps one string for all that end alike, so only the end is looked for.
    assert b"NO_SUCH_OP\0" not in library
    missing = [name for name in names("mnn") if name.encode() + b"\0" not in library]
    assert not missing


def test_paddle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        framework = pytest.importorskip("paddle.base.framework")
    known = set(framework.OpProtoHolder.instance().op_proto_map)
    assert names("paddle") <= known
    assert "no_such_op" not in known


@pytest.mark.parametrize(
    ("engine", "homes"),
    [
        ("torch", ("torch",)),
        ("jax", ("jax.numpy",)),
        ("tensorflow", ("tensorflow", "tensorflow.math", "tensorflow.bitwise")),
    ],
)
def test_functions(engine, homes):
    root = pytest.importorskip(homes[0])
    modules = [root, *[getattr(root, home.rpartition(".")[2]) for home in homes[1:]]]
    if engine == "tensorflow":
        modules.append(root.raw_ops)
    public = {
        name.lower()
        for module in modules
        for name in (*dir(module), *getattr(module, "__all__", ()))
    }
    assert not [name for name in names(engine) if name.lower() not in public]
