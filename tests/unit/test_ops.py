"""The op table: its names, compared with onnx's own schemas, and its consistency."""

import itertools

import numpy as np
import pytest

from zerostride import BroadcastError
from zerostride.compute.kernels import KERNELS, VARIANTS
from zerostride.compute.semantics import DTYPES
from zerostride.engines.table import ENGINES
from zerostride.models.formats.mnn.schema import BINARY, UNARY
from zerostride.models.formats.openvino.opsets import OPS as OPENVINO_OPS
from zerostride.ops import COLUMNS, OPS, column_of, find_op, find_reversed

NCNN_BINARY_OPS, NCNN_UNARY_OPS = range(19), range(28)


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
class TestRow:
    def test_numpy_has_the_named_functions(self, op):
        assert not op.numpy or callable(getattr(np, op.numpy))
        assert callable(KERNELS[op.name])

    def test_names_are_of_known_columns(self, op):
        assert set(op.names) | set(op.reversed_names) <= set(COLUMNS)

    def test_exchanged_operands_give_the_same_result(self, op):
        if op.swap is None:
            return
        x, y = np.array([1, 5, 2, 3]), np.array([4, 5, 0, 3])
        exchanged = KERNELS[op.swap](y, x)
        np.testing.assert_array_equal(KERNELS[op.name](x, y), exchanged)
        assert OPS[op.swap].swap == op.name

    def test_variants_belong_to_engines_that_have_the_op(self, op):
        for engine, functions in op.variants.items():
            name, _, processor = engine.partition("/")
            assert name in ENGINES
            assert column_of(name) in op.names
            assert set(functions.values()) <= {"refused", "unknown", "numpy", *VARIANTS}
            assert processor in ("", "avx2")
            # Users are told by the engine's row where processors differ.
            for dtype in functions if processor else ():
                rows = ENGINES[name].divergences_of(op.name, {"f": "float32"}.get(dtype, dtype))
                assert any("without AVX-512" in row.text for row in rows), dtype

    def test_onnx_has_the_op(self, op):
        defs = pytest.importorskip("onnx.defs")
        for name in op.names.get("onnx", ()):
            schema = defs.get_schema(name)
            assert schema.max_input >= op.tensors >= schema.min_input
            assert set(op.parameters) <= set(schema.attributes)
            for parameter, value in op.parameters.items():
                # Attributes are float32s.
                default = schema.attributes[parameter].default_value.f
                assert np.float32(value) == np.float32(default)


def test_every_variant_is_used_and_every_engine_has_its_dtypes():
    used = {
        function for op in OPS.values() for row in op.variants.values() for function in row.values()
    }
    assert set(VARIANTS) == used - {"refused", "unknown", "numpy"}
    assert set(DTYPES) == {row.name for row in ENGINES.own.values() if row.run} - {"numpy"}


def test_ncnns_binary_op_numbers_appear_once():
    numbers = [
        name
        for op in OPS.values()
        for name in itertools.chain(op.names.get("ncnn", ()), op.reversed_names.get("ncnn", ()))
        if isinstance(name, int)
    ]
    assert sorted(numbers) == list(NCNN_BINARY_OPS)


def test_ncnns_unary_op_numbers_appear_once():
    names = [name for op in OPS.values() for name in op.names.get("ncnn", ())]
    numbers = [int(str(name)[8:]) for name in names if str(name).startswith("UnaryOp.")]
    assert sorted(numbers) == list(NCNN_UNARY_OPS)


#: Operations of MNN that are no rows, and why.
NOT_OF_MNN = {
    "MUL_SILU": "two ops that MNN fuses by itself; MNN's process ends where its operands broadcast",
    "BNLL": "softplus by Caffe's name; no other engine has it",
    "ERFC": "no other engine has it",
    "ERFINV": "no other engine has it",
}


def test_every_operation_of_mnn_has_a_row():
    names = {name for op in OPS.values() for name in op.names.get("mnn", ())}
    assert {*BINARY.values(), *UNARY.values()} - names == set(NOT_OF_MNN)


#: Element-wise ops of OpenVINO's operation sets that are no rows, and why.
NOT_OF_OPENVINO = {
    "HSigmoid": "hard_sigmoid with other numbers",
    "Xor": "LogicalXor in the first operation set",
    "Identity": "computes nothing",
    "FakeQuantize": "several ops of quantisation",
    "FakeConvert": "several ops of quantisation",
    "ConvertLike": "Convert, its dtype from an operand",
    "ConvertPromoteTypes": "Convert of two",
}
#: Its arithmetic, comparisons, logic, bits, activations and conversions: its documents' chapters.
OPENVINO = """
Abs Acos Acosh Add Asin Asinh Atan Atanh Ceiling Clamp Cos Cosh Divide Elu Erf Exp Floor FloorMod
Gelu HSigmoid HSwish HardSigmoid IsFinite IsInf IsNaN Log Maximum Minimum Mish Mod Multiply
Negative PRelu Power Relu Round Selu Sigmoid Sign Sin Sinh SoftPlus SoftSign Sqrt
SquaredDifference Subtract Swish Tan Tanh Equal Greater GreaterEqual Less LessEqual NotEqual
LogicalAnd LogicalNot LogicalOr LogicalXor Xor BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
BitwiseLeftShift BitwiseRightShift Select Convert ConvertLike ConvertPromoteTypes Identity
FakeQuantize FakeConvert
"""


def test_every_element_wise_op_of_openvino_has_a_row():
    names = {name for op in OPS.values() for name in op.names.get("openvino", ())}
    listed = set(OPENVINO.split())
    assert listed <= OPENVINO_OPS
    assert listed - names == set(NOT_OF_OPENVINO)
    assert names <= listed


#: Element-wise ops of ONNX that are no rows, and why.
NOT_OF_ONNX = {
    "Identity": "computes nothing",
    "Sum": "add of many",
    "Mean": "add of many, divided by their number",
    "CastLike": "Cast, its dtype from an operand",
    "BitCast": "the same bytes by another name",
}


ONNX = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr
BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater
GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean
Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh
Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor
"""


def test_every_element_wise_op_of_onnx_has_a_row():
    defs = pytest.importorskip("onnx.defs", reason="the list is onnx's")
    names = {name for op in OPS.values() for name in op.names.get("onnx", ())}
    known = {schema.name for schema in defs.get_all_schemas() if schema.domain == ""}
    listed = set(ONNX.split())
    assert listed <= known
    assert listed - names == set(NOT_OF_ONNX)
    assert names <= listed


class TestParameters:
    def test_listed_engines_lack_the_op(self):
        for op in OPS.values():
            assert all(column_of(engine) in op.names for engine in op.fixed)
            assert not op.fixed or op.parameters
            assert op.tensors == op.operands - len(op.parameters) >= 1

    def test_parameters_have_defaults(self):
        assert dict(OPS["shrink"].parameters) == {"bias": 0.0, "lambd": 0.5}
        assert OPS["shrink"].tensors == 1


@pytest.mark.parametrize(
    ("name", "engine", "expected"),
    [
        ("add", None, "add"),
        ("power", None, "pow"),
        ("Sub", None, "subtract"),
        ("SUBTRACT", None, "subtract"),
        ("elementwise_floordiv", None, "floor_divide"),
        ("Mod", None, "remainder"),
        ("Mod", "openvino", "fmod"),
        ("Mod", "onnxruntime", "remainder"),
        (17, "ncnn", "remainder"),
        ("LessOrEqual", "onnx", "less_equal"),
        ("arctan2", None, "atan2"),
        ("UnaryOp.7", "ncnn", "exp"),
        ("Neg", None, "negative"),
        ("silu", None, "swish"),
        ("Clamp", "openvino", "clip"),
        ("bitwise_not", None, "bitwise_invert"),
    ],
)
def test_find_op_knows_engines_names(name, engine, expected):
    assert find_op(name, engine).name == expected


@pytest.mark.parametrize(
    ("name", "engine"), [("ad", None), (7, "ncnn"), ("Add", "ncnn"), (1, None)]
)
def test_unknown_op_is_refused(name, engine):
    with pytest.raises(BroadcastError, match="there is no op") as caught:
        find_op(name, engine)
    assert caught.value.reason == "unknown_op"
    assert caught.value.hint


def test_unknown_op_gets_near_names():
    with pytest.raises(BroadcastError, match=r"there is no op 'substract'.*\n.*subtract"):
        find_op("substract")
    with pytest.raises(BroadcastError) as caught:
        find_op("zork")
    assert caught.value.hint.startswith("one of add")


def test_reversed_names_find_their_op():
    assert find_reversed(7, "ncnn") is OPS["subtract"]
    assert find_reversed("RDIV", "ncnn") is OPS["divide"]
    assert find_reversed(0, "ncnn") is None
    assert find_reversed("Sub", "onnx") is None
