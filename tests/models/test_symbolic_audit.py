"""Audits of models with open sizes: conditions, witnesses, fixes, notes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import small

import zerostride as zs
from zerostride.derive.regions import real_shapes
from zerostride.engines import find_engine
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Finding, Verdict
from zerostride.models.flow.input_sizes import sized
from zerostride.models.ir.graph import Graph, Node, Value
from zerostride.models.options import ModelOptions
from zerostride.sizes import Answer
from zerostride.sizes.condition import Condition
from zerostride.sizes.dim import Symbol, dim
from zerostride.sizes.parse import as_condition
from zerostride.sizes.solve import satisfiable

ENGINES = ("ncnn", "openvino", "mnn", "torch", "tensorflow", "onnxruntime", "numpy", "jax")


def graph(op: str, *shapes: Any, constants: int = 0) -> Graph:
    """A graph of one node, the last `constants` operands weights."""
    values = [
        Value(name, shape, k >= len(shapes) - constants)
        for k, (name, shape) in enumerate(zip("xyz", shapes, strict=False))
    ]
    node = Node("node", op, "", 17, tuple(values), (Value("out", None),))
    inputs = tuple(value for value in values if not value.constant)
    return Graph("made", "onnx", 17, inputs, (node,))


def judged(op: str, *shapes: Any, target: str = "ncnn", **more: Any) -> Finding:
    more.setdefault("batch_axis", -1)
    sized_graph = graph(op, *shapes, constants=more.pop("constants", 0))
    sized_graph = sized(sized_graph, more.pop("sizes", None))
    return audit_graph(
        sized_graph, find_engine(target), ModelOptions(more.pop("via", "none"), **more)
    ).findings[0]


CASES = [
    (("H", "W"), ("W",), "same_here", "size_trap", "H == W and W != 1"),
    (("H", "W"), (1, "W"), "same", "same_plan", None),
    (("N", 5), (5,), "same_here", "size_trap", "N == 5"),
    ((None, 4), (4,), "same_here", "size_trap", "x[0] == 4"),
    (("N", "C", "H", "W"), ("C", 1, 1), "same_here", "size_trap", "C != 1"),
    (("A", "B", "C", "D", "E"), ("E",), "refused", "rank_limit", "always"),
    (("N", 3), ("M", 3), "same", "same_plan", None),
    ((2, "N", "M"), ("N", "M"), "same_here", "size_trap", None),
]


@pytest.mark.parametrize(("x", "y", "verdict", "reason", "when"), CASES)
def test_ncnn_differs_under_the_stated_condition(
    x: Any, y: Any, verdict: str, reason: str, when: str | None
) -> None:
    finding = judged("Add", x, y)
    assert (finding.verdict, finding.reason) == (verdict, reason)
    if when is not None:
        assert str(finding.when) == when
    assert (finding.witness is None) == (verdict == "same")


def test_witness_has_numbers_for_which_the_plans_differ() -> None:
    finding = judged("Add", ("H", "W"), ("W",))
    assert finding.values == {"H": 2, "W": 2}
    witness = finding.witness
    assert witness is not None
    assert witness.shapes == ((2, 2), (2,))
    a, b = np.arange(4.0).reshape(2, 2), np.arange(4.0, 6.0)
    assert (a + b)[witness.index] == witness.source
    assert (a + b[:, None])[witness.index] == witness.target
    assert "H=2, W=2" in finding.message
    assert "for example" in finding.message


@pytest.mark.parametrize("target", ENGINES)
def test_verdicts_hold_for_every_assignment(target: str) -> None:
    """What an audit of symbols says is what audits of numbers say."""
    rng = random.Random(target)
    seen = set()
    for _ in range(40):
        rank = rng.choice([1, 2, 3, 4])
        x = tuple(rng.choice(["N", "C", "H", 3]) for _ in range(rank))
        y = tuple(rng.choice([size, size, 1, "C"]) for size in x[rng.randint(0, rank) :])
        finding = judged("Add", x, y, target=target)
        if finding.reason == "invalid_source":
            continue
        symbols = {
            s for _, shape in finding.operands for size in shape or () for s in dim(size).symbols
        }
        for _ in range(8):
            values = {symbol: rng.choice([1, 2, 3]) for symbol in symbols}
            real = real_shapes([shape or () for _, shape in finding.operands], values)
            numbers = judged("Add", *real, target=target)
            if numbers.reason == "invalid_source":
                continue
            bad = numbers.verdict in (Verdict.DIFFERENT, Verdict.REFUSED)
            predicted = finding.when is not None and finding.when.evaluate(values)
            assert bad == (predicted or finding.verdict in (Verdict.DIFFERENT, Verdict.REFUSED)), (
                finding.message,
                real,
                numbers.message,
            )
            seen.add(bad)
    assert False in seen


def test_fix_holds_for_all_sizes() -> None:
    finding = judged("Add", ("H", "W"), ("W",))
    fix = finding.fix
    assert fix is not None
    assert fix.shapes == (("H", "W"), (1, "W"))
    assert fix.only_if is None
    for h, w in ((2, 2), (1, 3), (4, 4), (3, 1)):
        values = {Symbol("H"): h, Symbol("W"): w}
        meant = zs.plan((h, w), (w,))
        assert zs.plan(*real_shapes(fix.shapes, values), engine="ncnn") == meant
    merged = judged("Add", ("A", "B", "C", "D", "E"), ("E",)).fix
    assert merged is not None
    assert merged.only_if is None
    assert merged.merged_axes == ((0,), (1,), (2, 3), (4,))


def test_given_facts_and_sizes_are_used() -> None:
    assert judged("Add", ("H", "W"), ("W",), facts=Condition.parse("H < W")).verdict == "same"
    assert judged("Add", ("N", 5), (5,), facts=Condition.parse("N % 8 == 0")).verdict == "same"
    assert judged("Add", ("H", "W"), ("W",), sizes={"H": 3, "W": 3}).verdict == "different"
    assert judged("Add", ("H", "W"), ("W",), sizes={"H": 3}).values == {"W": 3}


def test_empty_tensors_give_a_note() -> None:
    finding = judged("Add", ("N", 3), ("N", 3))
    assert finding.verdict is Verdict.SAME
    assert any("N=0" in note for note in finding.notes)
    assert judged("Add", ("N", 3), ("N", 3), target="torch").notes == ()


def test_needs_of_earlier_nodes_are_known_later() -> None:
    x, y = Value("x", ("N", 4)), Value("y", ("M", 4))
    first, result = Value("first", None), Value("result", None)
    z = Value("z", ("M",), constant=False)
    nodes = (
        Node("one", "Sub", "", 17, (x, y), (first,)),
        Node("two", "Add", "", 17, (first, z), (result,)),
    )
    model = Graph("made", "onnx", 17, (x, y, z), nodes)
    report = audit_graph(model, find_engine("onnxruntime"))
    assert [str(need.condition) for need in report.needs] == [
        "M == N or N == 1 or M == 1",
        "M == 4 or M == 1",
    ]
    assert report.ok
    assert report.as_dict()["needs"][0]["node"] == "one"


@pytest.mark.parametrize(
    ("size", "words"),
    [("batch", None), ("N", None), ("unk__7", "a batch"), (None, "a batch"), ("frames", "data")],
)
def test_open_batch_is_noted_once(size: Any, words: str | None) -> None:
    """A name that says batch is a batch; one that says nothing is, and the report says so."""
    model = graph("Add", (size, 5, 5), (5,), constants=1)
    report = audit_graph(model, find_engine("ncnn"))
    assert [note for note in report.notes if "batch" in note] == [
        note for note in report.notes if words is not None and f"taken for {words}" in note
    ]
    assert len(report.notes) == (words is not None)
    # (5, 5) + (5,) is laid along the rows; (frames, 5, 5) along the frames, where they are 5.
    assert report.findings[0].verdict == ("same_here" if words == "data" else "different")
    named = audit_graph(model, find_engine("ncnn"), ModelOptions("none", 0))
    assert named.notes == ()
    assert named.findings[0].verdict == "different"


def test_trap_at_a_batch_size_is_no_finding() -> None:
    model = graph("Add", ("batch", 7), (7,), constants=1)
    assert audit_graph(model, find_engine("ncnn")).ok
    (trap,) = audit_graph(model, find_engine("ncnn"), ModelOptions("none", -1)).findings
    assert "batch == 7" in str(trap.when)


def test_pnnx_inserts_ones_for_all_sizes() -> None:
    assert judged("Add", ("H", "W"), ("W",), via="pnnx").verdict == "same"


def test_more_than_two_operands_are_unknown() -> None:
    finding = judged("Sum", ("H", "W"), ("W",), ("W",))
    assert (finding.verdict, finding.reason) == ("unknown", "unknown_shape")


def test_openvino_compiles_prelu_before_its_sizes_are_known() -> None:
    finding = judged("PRelu", ("N", "C", "W"), ("W",), target="openvino")
    assert str(finding.when) == "W != 1"
    static = judged("PRelu", ("N", 3, "W"), (4,), target="openvino")
    assert static.verdict != "different"


def test_reports_of_symbols_have_text_and_json() -> None:
    report = audit_graph(graph("Add", ("H", "W"), ("W",)), find_engine("ncnn"))
    text, page, data = str(report), report.to_html(), report.to_json()
    assert "H == W and W != 1" in text
    assert "H == W and W != 1" in page
    assert '"when": "H == W and W != 1"' in data
    assert '"values": {' in data


def test_file_with_symbols_is_audited(tmp_path: Any) -> None:
    finding = small.site("Add", {"x": ("H", "W")}, {"c": (7,)}, options={"via": "none"})
    assert finding.verdict == "same_here"
    assert "H == 7" in str(finding.when)


def test_refusal_for_all_sizes_needs_no_solver() -> None:
    """Whether the facts hold anywhere is beyond what is decided; that ranks differ is not."""
    facts = as_condition("N*N*N + M*M*M + 1 == K*K*K*1000 + 77")
    assert satisfiable(facts) is Answer.UNKNOWN
    finding = judged("Add", (), ("N", "M", "K"), target="tosa", facts=facts)
    assert (finding.verdict, finding.reason) == ("refused", "rank")
    assert "refused for all sizes" in finding.message
    assert not finding.values
    assert finding.witness is None
    other = judged("Add", ("N", 1, 1), ("K", "M", 1), target="litert-gpu", facts=facts)
    assert other.verdict == "unknown"
