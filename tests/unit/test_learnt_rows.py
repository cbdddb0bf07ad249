"""Learnt rows: forms, traits, files, and a learnt engine in the other commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import zerostride as zs
from learnt_row import row_of
from zerostride.core.plan import Plan
from zerostride.core.plugins import PLUGINS
from zerostride.engines import ENGINES, table
from zerostride.engines.learnt import FORMS, TRAITS, Form, LearntRow, Literal
from zerostride.engines.learnt.file import engine_of, learnt_files, read_engine
from zerostride.errors import ModelError, PluginWarning, Reason


def refusal(learnt: LearntRow, *shapes: Any) -> zs.BroadcastError:
    """The refusal of shapes."""
    outcome = learnt.outcome(shapes)
    assert isinstance(outcome, zs.BroadcastError)
    return outcome


@pytest.mark.parametrize(
    ("form", "shapes", "aligned"),
    [
        (Form("right", "all"), ((5, 5), (5,)), (1, 5)),
        (Form("left", "all"), ((5, 5), (5,)), (5, 1)),
        (Form("ncnn", "all"), ((3, 5), (5,)), (1, 5)),
        (Form("ncnn", "all"), ((5, 5), (5,)), (5, 1)),
        (Form("channel", "all"), ((2, 3, 3), (3,)), (1, 3, 1)),
        (Form("channel", "all"), ((2, 3, 4), (4,)), (1, 1, 4)),
        (Form("always_channel", "all"), ((2, 3, 4), (3,)), (1, 3, 1)),
        (Form("bias", "all"), ((2, 3, 4), (3,)), (1, 3, 1)),
        (Form("bias", "all"), ((3, 3), (1, 3, 1)), (1, 3)),
        (Form("bias", "all"), ((2, 5), (3, 1, 1)), (3, 1, 1)),
        (Form("right", "second"), ((2, 3), (1, 3)), (1, 3)),
        (Form("right", "absent"), ((2, 3), (3,)), (1, 3)),
    ],
)
def test_forms_place_operands(form: Form, shapes: Any, aligned: tuple[int, ...]) -> None:
    plan = LearntRow(form).outcome(shapes)
    assert isinstance(plan, Plan)
    assert plan.aligned[1] == aligned


@pytest.mark.parametrize(
    ("form", "shapes"),
    [
        (Form("right", "second"), ((1, 3), (2, 3))),
        (Form("right", "second"), ((3,), (2, 3))),
        (Form("right", "first"), ((2, 3), (3,))),
        (Form("right", "one"), ((2, 1), (1, 3))),
        (Form("right", "absent"), ((2, 3), (1, 3))),
        (Form("right", "absent_second"), ((3,), (2, 3))),
        (Form("equal_ranks", "all"), ((2, 3), (3,))),
        (Form("always_channel", "all"), ((2, 3, 4), (4,))),
    ],
)
def test_forms_refuse_what_may_not_stretch(form: Form, shapes: Any) -> None:
    assert isinstance(LearntRow(form).outcome(shapes), zs.BroadcastError)


def test_every_form_takes_equal_shapes() -> None:
    for form in FORMS:
        plan = LearntRow(form).outcome(((2, 3), (2, 3)))
        assert isinstance(plan, Plan), form
        assert plan.shape == (2, 3)


def test_deviations_have_reasons() -> None:
    learnt = row_of(
        ("rank_above 4", "refuses"),
        ("stretches_to_zero", "crashes"),
        ("first_stretches & extent_above 7", "garbles"),
        ("square", "unknown"),
    )
    assert refusal(learnt, (1,) * 5, ()).reason is Reason.RANK_LIMIT
    assert refusal(learnt, (1, 3), (0, 3)).reason is Reason.CRASH
    assert refusal(learnt, (1, 8), (2, 8)).reason is Reason.WRONG_RESULT
    assert refusal(learnt, (1, 8), (2, 8)).silent
    assert refusal(learnt, (3, 3), (3,)).reason is Reason.NOT_UNDERSTOOD
    assert not refusal(learnt, (3, 3), (3,)).silent
    assert isinstance(learnt.outcome(((2, 8), (1, 8))), Plan)


def test_a_refusal_without_a_rank_is_a_limit() -> None:
    error = refusal(row_of(("operand_is_empty", "refuses")), (0, 3), (3,))
    assert error.reason is Reason.LIMIT
    assert "no elements" in str(error)


def test_the_first_deviation_decides() -> None:
    learnt = row_of(("second_rank 1", "crashes"), ("first_rank 2", "refuses"))
    assert refusal(learnt, (2, 3), (3,)).reason is Reason.CRASH
    assert refusal(learnt, (2, 3), (2, 3)).reason is Reason.LIMIT


def test_misfits_that_are_not_refused_are_silent() -> None:
    learnt = row_of(("not operand_is_empty", "answers"))
    assert refusal(learnt, (2, 3), (4,)).silent
    assert not refusal(learnt, (0, 3), (4,)).silent
    assert isinstance(learnt.outcome(((2, 3), (3,))), Plan)


def test_another_form_holds_where_a_deviation_says_so() -> None:
    learnt = row_of(("rank_above 3", Form("left", "all")))
    plan, other = learnt.outcome(((5, 5), (5,))), learnt.outcome(((5, 2, 2, 2), (5,)))
    assert isinstance(plan, Plan)
    assert isinstance(other, Plan)
    assert plan.aligned[1] == (1, 5)
    assert other.aligned[1] == (5, 1, 1, 1)


def test_an_open_size_that_decides_is_a_condition() -> None:
    learnt = row_of(("extent_above 64 & stretching_above 0", "garbles"))
    plan = learnt.outcome((("N", 3), (3,)))
    assert isinstance(plan, Plan)
    assert str(plan.conditions) == "N <= 64"


def test_every_trait_can_be_written_and_read() -> None:
    for name in TRAITS:
        for literal in (Literal(name), Literal(name, holds=False)):
            assert Literal.read(str(literal)) == literal
            assert literal.words


def test_a_row_can_be_written_and_read() -> None:
    learnt = row_of(("rank_above 4", "refuses"), ("not square", Form("left", "one")))
    assert LearntRow.read(json.loads(json.dumps(learnt.as_dict()))) == learnt


def data(**changes: Any) -> dict[str, Any]:
    """The data of a file: an engine with a limit, an op of its own, and types that it lacks."""
    op = {"types": {"float32": "A"}, "refused": ["int32"]}
    op |= {key: [] for key in ("crashed", "strange", "unasked")}
    numbers = [["int64", "large numbers", "in int32", "1", "4294967297", "1", "4294967297"]]
    return {
        "form": 1,
        "name": "toy",
        "release": "1.0",
        "distribution": "toy",
        "names": "onnx",
        "runner": "toy.py",
        "questions": 300,
        "seconds": 1.0,
        "rows": {
            "A": row_of(("rank_above 4", "refuses")).as_dict(),
            "B": row_of(("any", "unknown")).as_dict(),
            "C": LearntRow(Form("right", "first")).as_dict(),
            "D": LearntRow(Form("left", "all")).as_dict(),
        },
        "ops": {
            "add": {**op, "numbers": numbers},
            "maximum": {**op, "strange": ["int64"], "numbers": []},
            "prelu": {**op, "types": {"float32": "B"}, "numbers": []},
            "pow": {**op, "types": {}, "numbers": []},
            "minimum": {**op, "types": {"float32": "A", "int8": "D"}, "numbers": []},
            "equal": {**op, "types": {}, "refused": [], "unasked": ["float32"], "numbers": []},
            "broadcast_to": {
                **op,
                "types": {"float32": "C", "int8": "B"},
                "unasked": ["int16"],
                "numbers": [],
            },
        },
        **changes,
    }


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of learnt engines that all commands find, with the engine "toy"."""
    monkeypatch.setenv("ZEROSTRIDE_ENGINES", str(tmp_path))
    path = tmp_path / "toy@1.0.json"
    path.write_text(json.dumps(data()))
    PLUGINS.forget()
    yield path
    monkeypatch.undo()
    PLUGINS.forget()


def model(op: str, *shapes: tuple[int, ...], dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """A model of one node."""
    names = [f"x{k}" for k in range(len(shapes))]
    inputs = [
        helper.make_tensor_value_info(n, dtype, s) for n, s in zip(names, shapes, strict=True)
    ]
    result = helper.make_tensor_value_info("y", dtype, None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "g", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def expand(
    data: tuple[int, ...], target: tuple[int, ...], dtype: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    """A model of one Expand."""
    given = helper.make_tensor_value_info("x", dtype, data)
    result = helper.make_tensor_value_info("y", dtype, None)
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [len(target)], target)
    node = helper.make_node("Expand", ["x", "sizes"], ["y"])
    graph = helper.make_graph([node], "g", [given], [result], [sizes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def test_a_learnt_engine_plans(toy: Path) -> None:
    assert zs.plan((2, 3), (3,), engine="toy").shape == (2, 3)
    with pytest.raises(zs.BroadcastError, match="more than 4 axes"):
        zs.plan((2,) * 5, (2,), engine="toy")
    with pytest.raises(zs.BroadcastError, match="not understood"):
        zs.plan((2, 3), (3,), engine="toy", op="prelu")
    assert zs.plan_to((3,), (2, 3), engine="toy").shape == (2, 3)
    with pytest.raises(zs.BroadcastError):
        zs.plan_to((2, 3), (3,), engine="toy")


def test_a_learnt_engine_lacks_ops_and_types(toy: Path) -> None:
    assert not zs.supports("toy", "Pow")
    assert zs.supports("toy", "Add", "float32")
    support = zs.supports("toy", "Add", "int32")
    assert not support
    assert "does not take int32" in support.reason
    assert "learnt by 300 questions" in support.source


@pytest.mark.parametrize(
    ("graph", "verdict"),
    [
        (model("Add", (2, 3), (3,)), "same"),
        (model("Add", (2, 2, 2, 2, 2), (2,)), "refused"),
        (model("PRelu", (2, 3), (3,)), "unknown"),
        (model("Add", (2, 3), (3,), dtype=TensorProto.INT32), "refused"),
        (model("Add", (2, 3), (3,), dtype=TensorProto.INT64), "same_here"),
        (model("Max", (2, 3), (3,), dtype=TensorProto.INT64), "unknown"),
        (model("Min", (5, 5), (5,)), "same"),
        (model("Min", (5, 5), (5,), dtype=TensorProto.INT8), "different"),
        (model("Equal", (2, 3), (3,)), "unknown"),
        (model("Pow", (2, 3), (3,)), "refused"),
        (model("Sub", (2, 3), (3,)), "unknown"),
        (expand((3,), (2, 3)), "same"),
        (expand((3,), (2, 3), TensorProto.INT8), "unknown"),
        (expand((3,), (2, 3), TensorProto.INT16), "unknown"),
        (expand((3,), (2, 3), TensorProto.INT32), "refused"),
    ],
)
def test_an_audit_takes_a_learnt_engine(toy: Path, graph: onnx.ModelProto, verdict: str) -> None:
    (finding,) = zs.audit(graph, target="toy").findings
    assert finding.verdict == verdict


@pytest.mark.parametrize(
    ("op", "dtype", "shapes", "words"),
    [
        ("Min", "float32", ((5, 5), (5,)), ""),
        ("Min", "int8", ((5, 2), (2,)), "5 against 2"),
        ("Expand", "float32", ((3,), (2, 3)), ""),
        ("Expand", "int32", ((3,), (2, 3)), "does not take int32"),
        ("Expand", "int16", ((3,), (2, 3)), "was not asked"),
        ("Equal", "float32", ((3,), (2, 3)), "was not asked"),
        ("Add", "int32", (), "add does not take int32"),
        ("Expand", "int64", (), ""),
    ],
)
def test_an_element_type_decides(toy: Path, op: str, dtype: str, shapes: Any, words: str) -> None:
    support = zs.supports("toy", op, dtype, shapes)
    assert bool(support) is (not words), support
    assert words in support.reason


def test_learning_again_replaces_cached_plans(toy: Path) -> None:
    assert zs.plan((5, 5), (5,), engine="toy").aligned[1] == (1, 5)
    rows = {**data()["rows"], "A": data()["rows"]["D"]}
    toy.write_text(json.dumps(data(rows=rows)))
    PLUGINS.forget()
    assert zs.plan((5, 5), (5,), engine="toy").aligned[1] == (5, 1)


def test_a_comparison_has_a_learnt_engine(toy: Path) -> None:
    assert "toy" in {row.name for row in zs.compare((2, 3), (3,)).rows}


def test_the_newest_release_of_a_folder_answers(toy: Path) -> None:
    for release in ("0.9", "1.10", "1.9"):
        (toy.parent / f"toy@{release}.json").write_text(json.dumps(data(release=release)))
    files = {file.name: file for file in learnt_files()}
    assert files["toy"].path.name == "toy@1.10.json"
    assert not files["toy"].own


def test_other_releases_of_a_folder_answer_by_name(toy: Path) -> None:
    rows = {**data()["rows"], "A": data()["rows"]["D"]}
    (toy.parent / "toy@0.9.json").write_text(json.dumps(data(release="0.9", rows=rows)))
    (toy.parent / "toy@0.8.json").write_text("no JSON")
    PLUGINS.forget()
    with pytest.warns(PluginWarning, match=r"toy@0\.8\.json is not the file"):
        assert zs.plan((5, 5), (5,), engine="toy").aligned[1] == (1, 5)
    assert zs.plan((5, 5), (5,), engine="toy@1.0").aligned[1] == (1, 5)
    assert zs.plan((5, 5), (5,), engine="toy@0.9").aligned[1] == (5, 1)
    compared = zs.compare((5, 5), (5,), engine="toy", releases=True)
    assert [row.release for row in compared.rows] == ["1.0", "0.9"]
    with pytest.raises(zs.BroadcastError, match=r"measured: 1\.0, 0\.9"):
        zs.plan((2, 3), (3,), engine="toy@0.1")


def test_the_installed_release_of_a_learnt_engine_answers(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {**data()["rows"], "A": data()["rows"]["D"]}
    older = data(release=np.__version__, rows=rows, distribution="numpy")
    newest = data(release="99.0", distribution="numpy")
    for file in (older, newest):
        (toy.parent / f"toy@{file['release']}.json").write_text(json.dumps(file))
    monkeypatch.setattr(table, "newest_wanted", lambda: False)
    PLUGINS.forget()
    assert zs.plan((5, 5), (5,), engine="toy").aligned[1] == (5, 1)
    assert zs.plan((5, 5), (5,), engine="toy@99.0").aligned[1] == (1, 5)


def test_a_users_file_goes_before_that_of_the_package(toy: Path) -> None:
    own = next(file for file in learnt_files() if file.own)
    assert not ENGINES.source(own.name)
    (toy.parent / f"{own.name}@0.1.json").write_text(json.dumps(data(name=own.name, release="0.1")))
    PLUGINS.forget()
    assert ENGINES[own.name].release == "0.1"
    assert ENGINES.source(own.name)


def test_every_file_of_the_package_is_a_row() -> None:
    files = [file for file in learnt_files() if file.own]
    assert {file.path.name for file in files} == {
        f"{row.name}@{row.release}.json" for row in (file.load() for file in files)
    }
    assert {file.name for file in files} <= set(ENGINES)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        json.dumps(data(form=2)),
        json.dumps(data(rows={})),
        json.dumps(data(rows={"A": {"form": {"place": "below", "stretch": "all"}}})),
        json.dumps(data(ops={})),
        json.dumps(data(ops=[])),
        json.dumps(data(names="german")),
        json.dumps(
            data(rows={"A": {"form": {"place": "right", "stretch": "all"}, "deviations": [1]}})
        ),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "toy@1.0.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=r"toy@1\.0\.json"):
        read_engine(path)


def test_a_malformed_file_stops_no_other_engine(toy: Path) -> None:
    toy.write_text("{}")
    PLUGINS.forget()
    with pytest.warns(PluginWarning, match=r"toy@1\.0\.json"), pytest.raises(zs.BroadcastError):
        zs.plan((2, 3), (3,), engine="toy")
    assert zs.plan((2, 3), (3,), engine="ncnn").shape == (2, 3)


def test_a_file_is_a_row_of_the_table(toy: Path) -> None:
    engine = read_engine(toy)
    assert (engine.title, engine.release, engine.reads) == ("toy", "1.0", "onnx")
    assert engine.has >= {"add", "maximum", "prelu", "minimum", "equal"}
    assert "pow" not in engine.has
    assert engine_of(data()).has == engine.has


def test_an_engine_that_was_not_understood_is_unknown(toy: Path) -> None:
    rows = {**data()["rows"], "A": data()["rows"]["B"]}
    toy.write_text(json.dumps(data(rows=rows)))
    PLUGINS.forget()
    for shapes in (((2, 6), (6,)), (("N", 6), (6,))):
        comparison = zs.compare(*shapes)
        verdicts = {row.name: row.verdict for row in comparison.rows}
        assert verdicts["toy"] == "unknown"
        assert "unknown: it was not understood" in str(comparison)
    with pytest.raises(zs.BroadcastError, match="toy was run, and was not understood here"):
        zs.plan((2, 6), (6,), engine="toy")
