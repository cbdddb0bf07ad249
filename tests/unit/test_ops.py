"""The op table: its names, held against onnx's own schemas, and its own consistency."""

import itertools

import numpy as np
import pytest

from zerostride import BroadcastError
from zerostride.compute.kernels import KERNELS, VARIANTS
from zerostride.compute.semantics import DTYPES
from zerostride.engines.table import ENGINES
from zerostride.ops import COLUMNS, OPS, column_of, find_op, find_reversed

NCNN_BINARY_OPS = range(19)


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
class TestRow:
    def test_numpy_has_what_the_row_names(self, op):
        assert not op.numpy or callable(getattr(np, op.numpy))
        assert callable(KERNELS[op.name])

    def test_columns_are_known(self, op):
        assert set(op.names) | set(op.reversed_names) <= set(COLUMNS)

    def test_swap_gives_the_same_with_the_operands_exchanged(self, op):
        if op.swap is None:
            return
        x, y = np.array([1, 5, 2, 3]), np.array([4, 5, 0, 3])
        exchanged = KERNELS[op.swap](y, x)
        np.testing.assert_array_equal(KERNELS[op.name](x, y), exchanged)
        assert OPS[op.swap].swap == op.name

    def test_variants_are_of_engines_that_have_the_op(self, op):
        for engine, functions in op.variants.items():
            assert engine in ENGINES
            assert column_of(engine) in op.names
            assert set(functions.values()) <= {"refused", "unknown", *VARIANTS}

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
    assert set(VARIANTS) == used - {"refused", "unknown"}
    assert set(DTYPES) == {row.name for row in ENGINES.values() if row.run} - {"numpy"}


def test_ncnn_numbers_are_all_there_once():
    numbers = [
        name
        for op in OPS.values()
        for name in itertools.chain(op.names.get("ncnn", ()), op.reversed_names.get("ncnn", ()))
        if isinstance(name, int)
    ]
    assert sorted(numbers) == list(NCNN_BINARY_OPS)


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
    ],
)
def test_find_op(name, engine, expected):
    assert find_op(name, engine).name == expected


@pytest.mark.parametrize(
    ("name", "engine"), [("ad", None), (7, "ncnn"), ("Add", "ncnn"), (1, None)]
)
def test_no_such_op(name, engine):
    with pytest.raises(BroadcastError, match="there is no op") as caught:
        find_op(name, engine)
    assert caught.value.reason == "unknown_op"
    assert caught.value.hint


def test_hints_are_near():
    with pytest.raises(BroadcastError, match=r"there is no op 'substract'.*\n.*subtract"):
        find_op("substract")
    with pytest.raises(BroadcastError) as caught:
        find_op("zork")
    assert caught.value.hint.startswith("one of add")


def test_reversed_names():
    assert find_reversed(7, "ncnn") is OPS["subtract"]
    assert find_reversed("RDIV", "ncnn") is OPS["divide"]
    assert find_reversed(0, "ncnn") is None
    assert find_reversed("Sub", "onnx") is None
