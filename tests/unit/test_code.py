"""Source for other frameworks: NumPy's and ONNX's run here, the others with the real engines."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx.reference
import pytest
from code_runs import execute, expected, inputs
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import any_plan

import zerostride as zs
from zerostride.core.plan import Plan
from zerostride.derive.code import TARGETS, code
from zerostride.derive.explain.facts import names_of


def run_numpy(plan: zs.Plan, names: list[str]) -> list[np.ndarray[Any, Any]]:
    space = dict(zip(names, inputs(plan), strict=True))
    execute(code(plan, "numpy", names), space)
    return [space[name] for name in names]


def run_onnx(plan: zs.Plan, names: list[str]) -> list[np.ndarray[Any, Any]]:
    space: dict[str, Any] = {}
    execute(code(plan, "onnx", names), space)
    session = onnx.reference.ReferenceEvaluator(space["model"])
    table: list[np.ndarray[Any, Any]] = session.run(
        None, dict(zip(names, inputs(plan), strict=True))
    )
    return table


NAMES = ["a", "b", "shape", "result", "aligned"]


@settings(max_examples=100, deadline=None)
@given(plan=any_plan(max_rank=6, largest=4), run=st.sampled_from([run_numpy, run_onnx]))
def test_source_runs_and_broadcasts(plan: zs.Plan, run: Any) -> None:
    results = run(plan, NAMES[: len(plan.operands)])
    for got, want in zip(results, expected(plan, inputs(plan)), strict=True):
        assert got.shape == plan.shape
        np.testing.assert_array_equal(got, want)


def test_comparison_finds_wrong_source() -> None:
    plan = zs.plan((2, 2), (2,), rule="paddle", axis=0)
    wrong = zs.plan((2, 2), (2,))
    assert not np.array_equal(run_numpy(wrong, ["a", "b"])[1], expected(plan, inputs(plan))[1])


def test_reshapes_appear_only_where_alignment_needs_them() -> None:
    assert "reshape" not in code(zs.plan((2, 3), (3,), ()), "numpy")
    assert "y.reshape(3, 1)" in code(zs.plan((3, 4), (3,), rule="pdpd", axis=0), "numpy")


def test_plan_to_names_its_operand_data() -> None:
    plan = zs.plan_to((16,), (1, 16, 5), mode="explicit", axes_mapping=[1])
    assert plan.code("torch").splitlines()[-1] == (
        "data = torch.broadcast_to(data.reshape(1, 16, 1), (1, 16, 5))"
    )


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_target_writes_something_that_parses(target: str) -> None:
    text = zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1).code(target)
    if target == "openvino-ir":
        assert ElementTree.fromstring(text).tag == "net"
        return
    if target == "stablehlo":
        assert text.count("{") == text.count("}") == 1
        return
    assert "{" not in text
    if target == "ncnn":
        lines = text.splitlines()
        assert lines[0] == "7767517"
        assert int(lines[1].split()[0]) == len(lines) - 2
    else:
        compile(text, target, "exec")


@pytest.mark.parametrize("target", ["fortran", "", None, 3, ["numpy"]])
def test_unknown_targets_are_listed(target: Any) -> None:
    with pytest.raises(zs.BroadcastError, match="there is no code for") as caught:
        code(zs.plan((2,), (2,)), target)
    assert caught.value.hint is not None
    assert all(name in caught.value.hint for name in TARGETS)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a b", "c"], "not an identifier"),
        (["a", "class"], "not an identifier"),
        (["a\nimport os", "b"], "not an identifier"),
        (["a", "a"], "names two operands"),
        (["y"], "names two operands"),
        (["a", "b", "c"], "3 names for 2 operands"),
        (["np", "b"], "is the module's name"),
    ],
)
def test_unusable_names_are_refused(names: list[str], says: str) -> None:
    with pytest.raises(zs.BroadcastError, match=re.escape(says)):
        code(zs.plan((2,), (2,)), "numpy", names)


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize(
    "name",
    ["a b", "a\nimport os", 'a"', "a;b", "%a", "a>", "a/><b", "", "1a", "class", "a.b", "-->"],
)
def test_names_cannot_inject_code(target: str, name: str) -> None:
    for plan in (zs.plan((2, 3), (3,)), zs.plan(("N", 3), (3,))):
        with pytest.raises(zs.BroadcastError, match="needs distinct identifiers"):
            code(plan, target, [name, "b"])


def test_names_in_other_scripts_are_accepted() -> None:
    plan = zs.plan((2, 3), (3,))
    for target in TARGETS:
        if target == "stablehlo":
            with pytest.raises(zs.BroadcastError, match="'größe' is not written in ASCII"):
                code(plan, target, ["größe", "b"])
        else:
            assert "größe" in code(plan, target, ["größe", "b"])


def test_einops_patterns_have_one_letter_per_axis() -> None:
    def lines(*shapes: Any, **more: Any) -> list[str]:
        return code(zs.plan(*shapes, **more), "einops", ["x", "y"]).splitlines()[3:]

    assert lines((4, 3), (4, 1)) == [
        'x = einops.repeat(x, "a b -> a b", a=4, b=3)',
        'y = einops.repeat(y, "a 1 -> a b", a=4, b=3)',
    ]
    # An axis that is dropped, one that is absent, and nothing at all.
    use = zs.plan((2,), (2,)).rule
    dropped = Plan((3, 4), ((3, 1), (1, 4)), ((0, None), (0, 1)), use)
    assert code(dropped, "einops").splitlines()[3:] == [
        'x = einops.repeat(x, "a 1 -> a b", a=3, b=4)',
        'y = einops.repeat(y, "1 b -> a b", a=3, b=4)',
    ]
    assert lines((2, 1), ())[1] == 'y = einops.repeat(y, "-> a 1", a=2)'
    assert lines((), ()) == ['x = einops.repeat(x, "->")', 'y = einops.repeat(y, "->")']


def test_einops_supports_symbols_with_known_stretches() -> None:
    lines = code(zs.plan(("N", 1, "H"), (3, "H"), facts="N >= 2"), "einops").splitlines()
    assert lines[-2:] == [
        'x = einops.repeat(x, "a 1 c -> a b c", a=N, b=3, c=H)',
        'y = einops.repeat(y, "b c -> a b c", a=N, b=3, c=H)',
    ]
    with pytest.raises(zs.BroadcastError, match="depends on sizes which axes stretch") as caught:
        code(zs.plan(("N", 3), ("M", 3)), "einops")
    assert caught.value.reason == "unknown_size"
    # What sizes decide case by case is written case by case.
    cases = code(zs.plan(("H", "W"), ("W",), rule="ncnn"), "einops")
    assert 'y = einops.repeat(y, "a -> a b", a=H, b=W)' in cases
    assert 'y = einops.repeat(y, "b -> a b", a=H, b=W)' in cases


@pytest.mark.parametrize(
    "plan",
    [
        zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1),
        zs.plan((2, 3), (2, 3)),
        zs.plan((4, 1), (1, 3), (3,)),
        zs.plan((), ()),
        zs.plan(("N", "C", "H"), ("C", 1), rule="paddle", axis=1),
        zs.plan(("N", 3), ("M", 3), ("K", 1, 1)),
        zs.plan_to(("N",), ("M", 4, "K")),
    ],
)
def test_ir_is_complete(plan: zs.Plan) -> None:
    """Edges join ports of one shape, constants have their bytes, and nothing is left over."""
    text = code(plan, "openvino-ir")
    net = ElementTree.fromstring(text)
    match = re.search("hexadecimal: ([0-9a-f]+)", text)
    data = bytes.fromhex(match[1]) if match else b""
    ports, read, offset = {}, set(), 0
    for layer in net.iter("layer"):
        for side in ("input", "output"):
            for port in layer.findall(f"{side}/port"):
                sizes = [int(dim.text or "") for dim in port]
                ports[layer.get("id"), port.get("id")] = (side, sizes, port.get("precision"))
        if layer.get("type") == "Const":
            row = layer.find("data")
            assert row is not None
            assert int(row.get("offset", "")) == offset
            count = int(row.get("shape", ""))
            assert int(row.get("size", "")) == 8 * count
            numbers = np.frombuffer(data, np.int64, count, offset)
            offset += 8 * count
            assert numbers.min() >= (0 if plan.open else 1)
    assert offset == len(data)
    for edge in net.iter("edge"):
        source = ports[edge.get("from-layer"), edge.get("from-port")]
        target = ports[edge.get("to-layer"), edge.get("to-port")]
        assert (source[0], target[0]) == ("output", "input")
        assert source[1:] == target[1:]
        read.add((edge.get("to-layer"), edge.get("to-port")))
    assert read == {key for key, (side, _, _) in ports.items() if side == "input"}
    results = [layer.get("name") for layer in net.iter("layer") if layer.get("type") == "Result"]
    assert results == [f"{name}.broadcast" for name in names_of(plan)[:-1]]


def test_stablehlo_drops_axes_and_keeps_fitting_operands() -> None:
    use = zs.plan((2,), (2,)).rule
    plan = Plan((2, 3), ((2, 1), (2, 3)), ((0, None), (0, 1)), use)
    lines = code(plan, "stablehlo", ["a", "b"]).splitlines()
    assert lines[3:] == [
        "  %a.reshaped = stablehlo.reshape %a : (tensor<2x1xf32>) -> tensor<2xf32>",
        "  %a.broadcast = stablehlo.broadcast_in_dim %a.reshaped, dims = [0]",
        "      : (tensor<2xf32>) -> tensor<2x3xf32>",
        "  return %a.broadcast, %b : tensor<2x3xf32>, tensor<2x3xf32>",
        "}",
    ]


@pytest.mark.parametrize(
    ("target", "shapes", "reason"),
    [
        ("paddle", ((2,) * 9, (2,)), "rank_limit"),
        ("mnn", ((1,) * 10, (1,)), "rank_limit"),
        ("mnn", ((0, 3), (3,)), "crash"),
        ("openvino", ((0, 3), (3,)), "crash"),
        ("openvino", ((2,) * 13, (2,)), "crash"),
        ("ncnn", ((0, 3), (3,)), "crash"),
    ],
)
def test_plans_beyond_a_targets_limits_are_refused(
    target: str, shapes: tuple[tuple[int, ...], ...], reason: str
) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        code(zs.plan(*shapes), target)
    assert caught.value.reason == reason


def test_ncnn_source_reshapes_operands() -> None:
    assert code(zs.plan((5, 5), (5,)), "ncnn", ["a", "b"]).splitlines() == [
        "7767517",
        "4 4",
        "Input a 0 1 a 0=5 1=5",
        "Input b 0 1 b 0=5",
        "Reshape b.reshape 1 1 b b.reshaped 0=5 1=1",
        "BinaryOp broadcast.add 2 1 a b.reshaped broadcast.sum 0=0",
    ]
    assert "Reshape" not in code(zs.plan((3, 5), (5,)), "ncnn")
    assert "0=1" in code(zs.plan((2, 3), ()), "ncnn")


def test_ncnn_refuses_plans_it_cannot_express() -> None:
    merged = zs.plan((2, 3, 4, 5, 6), (6,))
    with pytest.raises(zs.BroadcastError, match="at most 4 axes") as caught:
        code(merged, "ncnn")
    assert "reshape" in (caught.value.hint or "")
    with pytest.raises(zs.NotExpressible):
        code(zs.plan((2, 1, 4, 1, 6), (1, 3, 1, 5, 1)), "ncnn")
    with pytest.raises(zs.BroadcastError):
        code(zs.plan((2,), (2,), (2,)), "ncnn")
    with pytest.raises(zs.BroadcastError):
        code(zs.plan_to((2,), (3, 2)), "ncnn")
