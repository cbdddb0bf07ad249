"""The op table's names compared with the packages' own lists of ops.

    python -m pytest --override-ini addopts= -m conformance tests/conformance/test_op_names.py

ONNX's are held against its schemas in the unit tests; those that are functions in Python are called
by name in test_op_semantics.py.
"""

import importlib
import importlib.util
import pathlib
import warnings

import numpy as np
import pytest

from zerostride.ops import OPS

pytestmark = pytest.mark.conformance

#: Layers and op types, which are in no enumeration of operations.
LAYERS = {"PReLU", "Select", "Cast", "ELU", "ReLU", "ReLU6", "Selu"}
#: What OpenVINO's ops cannot do without, by their names.
ATTRIBUTES = {
    "Elu": {"alpha": 1.0},
    "Clamp": {"min": 0.0, "max": 1.0},
    "Convert": {"destination_type": "f32"},
}


def names(column):
    return {
        name
        for op in OPS.values()
        for name in op.names.get(column, ())
        if isinstance(name, str) and name not in LAYERS
    }


def test_openvino_has_the_named_ops():
    ops = pytest.importorskip("openvino.opset15")
    factory = pytest.importorskip("openvino.utils.node_factory").NodeFactory("opset15")
    for op in OPS.values():
        for name in op.names.get("openvino", ()):
            bits = op.name.startswith(("bitwise", "logical"))
            more = ATTRIBUTES.get(name, {})
            kind = np.dtype(bool if bits else "f4")
            inputs = [ops.parameter([2], kind) for _ in range(1 if more else op.tensors)]
            if not more:
                inputs += [ops.constant(np.float32(1)) for _ in op.parameters]
            if "shift" in op.name:
                inputs = [ops.parameter([2], np.dtype("i4")) for _ in range(2)]
            if op.name == "where":
                inputs[0] = ops.parameter([2], np.dtype(bool))
            assert factory.create(name, inputs, more).get_type_name() == name
    with pytest.raises(Exception, match="NoSuchOp"):
        factory.create("NoSuchOp", [])


def test_mnn_has_the_named_ops():
    """The names of BinaryOpOperation are strings in the converter's library."""
    if importlib.util.find_spec("_tools") is None or importlib.util.find_spec("MNN") is None:
        pytest.skip("MNN is not installed")
    library = pathlib.Path(importlib.util.find_spec("_tools").origin).read_bytes()
    # A linker keeps one string for all that end alike, so only the end is looked for.
    assert b"NO_SUCH_OP\0" not in library
    missing = [name for name in names("mnn") if name.encode() + b"\0" not in library]
    assert not missing


def test_paddle_has_the_named_ops():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        framework = pytest.importorskip("paddle.base.framework")
    known = set(framework.OpProtoHolder.instance().op_proto_map)
    assert names("paddle") <= known
    assert "no_such_op" not in known


@pytest.mark.parametrize(
    ("engine", "homes"),
    [
        ("torch", ("torch", "torch.nn.functional")),
        ("jax", ("jax.numpy", "jax.nn", "jax.lax")),
        ("tensorflow", ("tensorflow", "tensorflow.math", "tensorflow.bitwise", "tensorflow.nn")),
    ],
)
def test_libraries_have_the_named_functions(engine, homes):
    root = pytest.importorskip(homes[0])
    modules = [root]
    for home in homes[1:]:  # TensorFlow's are attributes, no modules of these names
        function = importlib.import_module(homes[0].partition(".")[0])
        for part in home.split(".")[1:]:
            function = getattr(function, part)
        modules.append(function)
    if engine == "tensorflow":
        modules.append(root.raw_ops)
    public = {
        name.lower()
        for module in modules
        for name in (*dir(module), *getattr(module, "__all__", ()))
    }
    assert not [name for name in names(engine) if name.lower() not in public]
