"""Every op of the table on the real engines: zerostride's values must agree.

    python -m pytest --override-ini addopts= -m conformance tests/conformance/test_op_semantics.py

An engine that refuses what zerostride computes is counted, not failed: which op takes which dtype
is not what the table is for. An engine that answers otherwise is a failure.
"""

import numpy as np
import op_engines
import pytest
from processor import processor

import zerostride as zs
from zerostride.compute.semantics import DTYPES, select
from zerostride.ops import OPS, column_of

pytestmark = pytest.mark.conformance

ALL = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ALL += ("float16", "float32", "float64")
TRANSCENDENTAL = {"pow", "atan2", "logaddexp", "logaddexp2", "hypot"}
#: Functions whose small values are differences of large ones.
CANCELLING = {"gelu", "gelu_tanh", "mish", "swish", "selu", "hard_sigmoid"}
#: Ops of one tensor that are exact, or rounded once.
EXACT = {"negative", "positive", "abs", "sign", "square", "floor", "ceil", "round", "trunc"}
EXACT |= {"isnan", "isinf", "isfinite", "logical_not", "bitwise_invert"}
EXACT |= {"relu", "leaky_relu", "thresholded_relu", "shrink"}
DIVIDING = {"divide", "floor_divide", "remainder", "fmod"}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 7.5)
FLOAT = np.dtype("f")
#: Fewest (op, dtype) pairs that must have agreed; so that a broken runner cannot pass.
FEWEST = {"ncnn": 40, "mnn": 80, "litert": 90}


def operands_for(op, dtype, engine, rng):
    """Two operands of a dtype: whole ranges of integers, special floats among random ones."""
    dtype = np.dtype(dtype)
    if op.name == "clip":
        x, _ = operands_for(OPS["add"], dtype, engine, rng)
        return x, np.array(1, dtype), np.array(5 if dtype.kind != "b" else 1, dtype)
    if op.tensors == 1:
        x, _ = operands_for(OPS["add"], dtype, engine, rng)
        if dtype.kind == "f":
            x = np.concatenate([x, rng.uniform(-1.5, 1.5, 60), np.arange(-4.5, 5, 0.5)])
        # Parameters by their defaults, and by others.
        others = [v * 1.5 + (k == 0) * 0.25 for k, v in enumerate(op.parameters.values())]
        usual = rng.random() < 0.5 or engine in op.fixed
        return x.astype(dtype), list(op.parameters.values()) if usual else others
    if dtype.kind == "b":
        y = np.array([True, False, True, False])
        return np.array([True, True, False, False]), y | (op.name in DIVIDING)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = max(info.min, -(2**60)), min(info.max, 2**60)
        x = np.concatenate([rng.integers(low, high, 40), rng.integers(max(low, -9), 9, 60)])
        y = np.concatenate([rng.integers(low, high, 20), rng.integers(max(low, -9), 9, 80)])
        if op.name == "pow":
            y = rng.integers(max(low, -3), 40, 100)
            x = np.where(y < 0, x % 4 - (2 if dtype.kind == "i" else 0), x)
        if "shift" in op.name:
            y = rng.integers(0, 40, 100)
        if op.name in DIVIDING:
            y[y == 0] = 3
        return x.astype(dtype), y.astype(dtype)
    x, y = rng.normal(size=(2, 100)) * 5
    if engine != "ncnn":
        pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL])
        x, y = np.concatenate([x, pairs[:, 0]]), np.concatenate([y, pairs[:, 1]])
    elif op.name == "pow":
        x = np.abs(x)
    return x.astype(dtype), y.astype(dtype)


def agree(op, engine, actual, expected, dtype=FLOAT):
    """Whether the engine's answer is ours."""
    if engine == "mnn" and op.name in op_engines.PREDICATES | {"logical_or"}:
        actual = actual.astype(bool)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if expected.dtype.kind != "f":
        return np.array_equal(actual, expected)
    rtol = 0.0
    unary = op.tensors == 1 and op.name not in EXACT
    if engine == "ncnn" or op.name in TRANSCENDENTAL or unary:
        rtol = {2: 4e-3, 4: 1e-4}.get(expected.dtype.itemsize, 1e-12)
        rtol = max(rtol, 1e-5 * (engine in ("openvino", "jax")))  # which compute float64 in float32
    if op.name in ("leaky_relu", "shrink"):  # by a float32, whatever the tensor is
        rtol = {2: 4e-3}.get(expected.dtype.itemsize, 1e-7)
    if engine == "openvino":  # divides by multiplying with a reciprocal
        rtol = max(rtol, 4e-3 if expected.dtype.itemsize == 2 else 3e-7 * (op.name == "divide"))
    if engine == "paddle" and op.name == "atan2" and dtype.kind in "iu":
        rtol = 3e-7  # of integers it is a float32's
    atol = rtol / 10
    if op.name in CANCELLING and dtype.kind == "f":
        # Their parameters are float32s in engines, whatever the tensor is.
        rtol, atol = {2: (4e-3, 4e-3)}.get(expected.dtype.itemsize, (1e-5, 2e-6))
    return np.allclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


def test_agree_can_fail():
    one = np.ones(2, "f")
    for wrong in (one + 1e-6, one.astype(float), np.ones(3, "f"), one * np.nan):
        assert not agree(OPS["add"], "torch", wrong, one)
    assert not agree(OPS["pow"], "ncnn", one + 1e-3, one)


def computed(op, operands, engine):
    """What the op's row says that the engine gives on this processor."""
    if not op.variants.get(f"{engine}/{processor()}"):
        return getattr(zs, op.name)(*operands, engine=engine)
    plan = zs.plan(*map(np.shape, operands), engine=engine, op=op.name)
    views = list(plan.views(*operands))
    with np.errstate(all="ignore"):
        kernel, given, dtype = select(op, plan, views, None, processor())
        assert dtype is None
        return kernel(*given)


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(op_engines.ENGINES))
def test_values_match_the_engine(engine):
    try:
        run = op_engines.ask(engine)
    except ImportError:
        pytest.skip(f"{engine} is not installed")
    rng = np.random.default_rng(20)
    agreed, refused, wrong = [], [], []
    for op in OPS.values():
        if column_of(engine) not in op.names or op.name in ("prelu", "cast"):
            continue
        for dtype in ALL:
            if dtype not in (DTYPES[engine].takes or ALL):
                continue
            operands = operands_for(op, dtype, engine, rng)
            if op.tensors == 1:
                operands = (operands[0], *operands[1])
            elif op.name == "where":
                operands = (np.arange(len(operands[0])) % 3 == 0, *operands)
                if engine == "mnn":
                    continue
            case = f"{op.name} {dtype}"
            try:
                expected = computed(op, operands, engine)
            except (zs.BroadcastError, TypeError, ValueError):
                continue
            try:
                actual = run(op, operands)
            except op_engines.Uncalled:
                continue
            except Exception as error:  # noqa: BLE001 - engines refuse in many ways; counted
                refused.append(f"{case}: {str(error).strip().splitlines()[-1:]}")
                continue
            ok = agree(op, engine, actual, expected, operands[0].dtype)
            (agreed if ok else wrong).append(case)
    print(f"{engine}: {len(agreed)} agreed, {len(refused)} refused by the engine, wrong: {wrong}")
    print("\n".join(refused))
    assert not wrong
    assert len(agreed) >= FEWEST.get(engine, 300)


#: All pairs of bytes, of numbers about 2^24, and of special floats.
EDGES = {
    **{kind: np.arange(np.iinfo(kind).min, np.iinfo(kind).max + 1) for kind in ("int8", "uint8")},
    **{kind: 2**24 + np.arange(-3, 4) for kind in ("int32", "uint32", "int64", "uint64")},
    **{kind: np.array(SPECIAL) for kind in ("float16", "float32", "float64")},
}
BINARY = "add subtract multiply divide remainder fmod pow maximum minimum equal not_equal less "
BINARY += "less_equal greater greater_equal prelu"


@pytest.mark.parametrize("dtype", sorted(EDGES))
def test_edge_values_match_openvino(dtype):
    """Where vector kernels round, saturate or compare otherwise, by processor."""
    try:
        run = op_engines.ask("openvino")
    except ImportError:
        pytest.skip("openvino is not installed")
    values = EDGES[dtype].astype(dtype)
    pairs = [grid.ravel() for grid in np.meshgrid(values, values)]
    agreed, wrong = 0, []
    for op in map(OPS.get, BINARY.split()):
        x, y = pairs
        if op.name in DIVIDING:
            x, y = x[y != 0], y[y != 0]
        try:
            expected = computed(op, (x, y), "openvino")
        except zs.BroadcastError:
            continue  # the row says that nothing is known, or that it is refused
        actual = run(op, (x, y))
        same = agree(op, "openvino", actual, expected, x.dtype)
        agreed += same
        wrong += [] if same else [op.name]
    assert not wrong
    assert agreed >= 12
