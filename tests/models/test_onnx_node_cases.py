"""ONNX's own operator cases (onnx.backend.test), computed by zerostride.

Every case of an op that is in the op table, of Cast and of Expand is computed and compared, or is
of a dtype in `WITHOUT`. Attributes become operands by the table; nothing is said of one case.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
from collections import Counter
from unittest import mock

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.execute import execute, not_executed
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.ops import OPS, find_op

onnx = pytest.importorskip("onnx", reason="the cases are onnx's")
node_cases = pytest.importorskip("onnx.backend.test.case.node", reason="the cases are onnx's")

#: Modules of cases that take seconds each to make, of pooling alone.
SLOW = ("averagepool", "lppool", "maxpool")
#: Op types that are of another op of the table by an attribute.
BY_ATTRIBUTE = {
    ("Mod", "fmod", 1): "fmod",
    ("BitShift", "direction", b"LEFT"): "bitwise_left_shift",
    ("BitShift", "direction", b"RIGHT"): "bitwise_right_shift",
    ("Gelu", "approximate", b"tanh"): "gelu_tanh",
}
#: Op types beyond the table's names.
MORE = {"Sum", "Mean", "Expand", "Cast", "CastLike"}
TYPES = MORE | {str(name) for op in OPS.values() for name in op.names.get("onnx", ())}
#: Dtypes that zerostride does not compute with, by how their names begin, and why.
WITHOUT = {
    "float8": "8-bit floats are storage of quantised models",
    "float4": "4-bit floats are packed two to a byte",
    "int4": "4-bit integers are packed two to a byte",
    "uint4": "4-bit integers are packed two to a byte",
    "int2": "2-bit integers are packed four to a byte",
    "uint2": "2-bit integers are packed four to a byte",
    "str": "strings are no numbers",
    "object": "strings are no numbers",
}
#: Fewest cases that are computed, so that none gets lost: by the functions; by the interpreter.
FEWEST, FEWEST_RUN = 330, 390


@functools.cache
def collected():
    """The cases of ops of ours, each with its node; and those that write the op out in others."""
    stubs = {f"{node_cases.__name__}.{name}": types.ModuleType(name) for name in SLOW}
    with warnings.catch_warnings(), mock.patch.dict(sys.modules, stubs):
        warnings.simplefilter("ignore")
        cases = node_cases.collect_testcases()
    single, written_out = [], []
    for case in cases:
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].domain == "" and nodes[0].op_type in TYPES:
            single.append((case, nodes[0]))
        elif case.name.endswith("expanded") or "_expanded_" in case.name:
            written_out.append(case)
    names = {case.name for case, _ in single}
    return single, [case for case in written_out if case.name.partition("_expanded")[0] in names]


def row_of(node, attributes):
    """The row of the op table that computes a node."""
    for (op, attribute, value), name in BY_ATTRIBUTE.items():
        if node.op_type == op and attributes.get(attribute) == value:
            return OPS[name]
    return find_op({"Sum": "Add", "CastLike": "Cast"}.get(node.op_type, node.op_type), "onnx")


def engine_of(row, x):
    """ONNX Runtime where its values are not NumPy's: integer division, the dtype of a power."""
    kind = row.variants.get("onnxruntime", {}).get(x.dtype.kind)
    decides = "onnxruntime" in row.first_decides or kind not in (None, "refused")
    return "onnxruntime" if decides else None


def computed(node, inputs):
    """What zerostride gives for a node."""
    attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    given = iter(inputs)
    operands = [next(given) if name else None for name in node.input]
    if node.op_type == "Expand":
        return zs.broadcast(operands[0], operands[1].tolist(), mode="bidirectional")
    if node.op_type == "Mean":
        return zs.divide(functools.reduce(zs.add, operands), len(operands))
    row = row_of(node, attributes)
    function = getattr(zs, row.name)
    if row.name == "cast":
        to = attributes.get("to")
        like = operands[1].dtype if to is None else onnx.helper.tensor_dtype_to_np_dtype(to)
        return function(operands[0], like)
    if row.name == "isinf":
        x = operands[0]
        sides = [
            side(x, 0)
            for name, side in (("detect_negative", zs.less), ("detect_positive", zs.greater))
            if attributes.get(name, 1)
        ]
        return functools.reduce(zs.logical_or, [zs.logical_and(zs.isinf(x), s) for s in sides])
    if row.tensors == 2 and len(operands) != 2:
        return functools.reduce(function, operands) if operands[1:] else zs.positive(*operands)
    parameters = {name: attributes[name] for name in row.parameters if name in attributes}
    return function(*operands, **parameters, engine=engine_of(row, operands[0]))


def arrays(given):
    """Some are tensors of the format."""
    to_array = onnx.numpy_helper.to_array
    return [
        to_array(one) if isinstance(one, onnx.TensorProto) else np.asarray(one) for one in given
    ]


def reason(given):
    """Why arrays are not computed, or None."""
    for array in given:
        name = "str" if array.dtype.kind in "UST" else array.dtype.name
        for begins, why in WITHOUT.items():
            if name.startswith(begins):
                return why
    return None


def check(case, actual, expected):
    """As onnx's own runner compares, and more strictly where nothing is rounded."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
    else:
        wide = (array.astype(np.float64) for array in (actual, expected))
        np.testing.assert_allclose(*wide, rtol=case.rtol, atol=case.atol)


def test_comparison_can_fail():
    case, _ = collected()[0][0]
    one = np.ones(2, "f")
    for wrong in (one * 1.01, one.astype(float), np.ones(3, "f"), one * np.nan):
        with pytest.raises(AssertionError):
            check(case, wrong, one)


def test_executed_onnx_cases_give_the_expected_values():
    done, left, wrong = Counter(), Counter(), []
    for case, node in collected()[0]:
        for data_set in case.data_sets:
            inputs, outputs = map(arrays, data_set)
            why = reason([*inputs, *outputs])
            if why is not None:
                left[why] += 1
                continue
            try:
                check(case, np.asarray(computed(node, inputs)), outputs[0])
            except Exception as error:  # noqa: BLE001 - all are told together
                wrong.append(f"{case.name}: {type(error).__name__} {error}"[:300])
                continue
            done[node.op_type] += 1
    print(f"{done.total()} computed, {left.total()} left out: {dict(left)}")
    assert not wrong, "\n".join(wrong)
    assert done.total() >= FEWEST
    assert set(done) == {node.op_type for _, node in collected()[0]}
    assert set(left) == set(WITHOUT.values())


def test_interpreted_onnx_cases_give_the_expected_values(tmp_path):
    """Single nodes as `zerostride run` computes them, and ops written out in other ops."""
    single, written_out = collected()
    done, left, wrong = Counter(), Counter(), []
    file = tmp_path / "model.onnx"
    for case in [*(case for case, _ in single), *written_out]:
        inputs, outputs = map(arrays, case.data_sets[0])
        if reason([*inputs, *outputs]) is not None:
            continue
        file.write_bytes(case.model.SerializeToString())
        try:
            graph = read_onnx(file)
            if missing := not_executed(graph):
                left.update(one.op for one in missing)
                continue
            names = [value.name for value in graph.inputs]
            results = execute(graph, dict(zip(names, inputs, strict=True)))
            check(case, next(iter(results.values())), outputs[0])
        except Exception as error:  # noqa: BLE001 - all are told together
            wrong.append(f"{case.name}: {type(error).__name__} {error}"[:300])
            continue
        done[case.name in {one.name for one in written_out}] += 1
    print(f"{done[False]} of one node, {done[True]} written out; not executed: {dict(left)}")
    assert not wrong, "\n".join(wrong)
    assert done.total() >= FEWEST_RUN
