"""Changes of IR files: changed parts, unchanged parts, refusals."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
import pytest
from ir_models import Ir, binary, port

import zerostride as zs
from zerostride.errors import ModelError
from zerostride.models.findings import Verdict
from zerostride.models.formats import read_model
from zerostride.models.formats.openvino import edit
from zerostride.models.formats.openvino.sites import AXIS
from zerostride.models.ir.graph import Place
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep

pytest.importorskip("defusedxml", reason="IR files are read with defusedxml")

ROW = RewriteStep("reshape", (Input(1),), shape=(1, 5))


def places(path: Path) -> dict[str, Place]:
    return {node.path: node.place or () for node in read_model(path).nodes}


def changed(path: Path, *rewrites: Rewrite) -> Path:
    """The file after the rewrites, under another name."""
    editor = edit(path)
    editor.apply(rewrites)
    return editor.save(path.with_name("out.xml"))[0]


def touched(old: Path, new: Path) -> tuple[int, int]:
    """Lines that went and lines that came."""
    lines = [path.read_text().splitlines() for path in (old, new)]
    diff = [line[0] for line in difflib.ndiff(*lines)]
    return diff.count("-"), diff.count("+")


def rows() -> Ir:
    """Two layers that add rows to squares: one that it shares, one of its own."""
    model = Ir()
    x = model.parameter("x", (5, 5))
    shared = model.constant("shared", np.arange(5, dtype=np.float32))
    own = model.constant("own", np.arange(5, 10, dtype=np.float32))
    one = model.layer("one", "Add", (x, shared), (5, 5), 'auto_broadcast="numpy"')
    two = model.layer("two", "Add", (one, own), (5, 5), 'auto_broadcast="numpy"')
    three = model.layer("three", "Multiply", (two, shared), (5, 5), 'auto_broadcast="numpy"')
    model.result(three, "last")
    model.result(one, "early")
    return model


def test_file_without_rewrites_is_unchanged(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    new = changed(path)
    assert new.read_bytes() == path.read_bytes()
    assert new.with_suffix(".bin").read_bytes() == path.with_suffix(".bin").read_bytes()


def test_constant_with_one_reader_changes_its_shape(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    new = changed(path, Rewrite(places(path)["two"], (ROW, SELF(Input(0), Earlier(0)))))
    # Its layer's shape and port, and the port that reads it; no layer, no edge, no weights.
    assert new.read_text().count("<layer") == path.read_text().count("<layer")
    assert new.with_suffix(".bin").read_bytes() == path.with_suffix(".bin").read_bytes()
    assert touched(path, new)[0] == 3
    own = read_model(new).nodes[1].inputs[1]
    assert own is not None
    assert own.shape == (1, 5)
    assert own.name == "own"
    np.testing.assert_array_equal(own.data(), [[5, 6, 7, 8, 9]])


def test_shared_constant_gets_one_copy(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    at = places(path)
    steps = (ROW, SELF(Input(0), Earlier(0)))
    new = changed(path, Rewrite(at["one"], steps), Rewrite(at["three"], steps))
    graph = read_model(new)
    first, third = (next(n for n in graph.nodes if n.name == name) for name in ("one", "three"))
    assert first.inputs[1] is third.inputs[1]
    brother = first.inputs[1]
    assert brother is not None
    assert brother.shape == (1, 5)
    assert new.with_suffix(".bin").read_bytes() == path.with_suffix(".bin").read_bytes()
    assert zs.audit(new, target="ncnn").findings[0].verdict is Verdict.SAME


def test_reshaped_tensor_gets_a_layer_and_weights_at_the_end(tmp_path: Path) -> None:
    model = rows()
    y = model.parameter("y", (5,))
    model.result(model.layer("four", "Add", (5, y), (5, 5)), "end")
    path = model.save(tmp_path / "m.xml")
    lift = RewriteStep("unsqueeze", (Input(1),), axes=(0,))
    new = changed(path, Rewrite(places(path)["four"], (lift, SELF(Input(0), Earlier(0)))))
    old, grown = (p.with_suffix(".bin").read_bytes() for p in (path, new))
    assert grown.startswith(old)
    graph = read_model(new)
    four = next(node for node in graph.nodes if node.name == "four")
    assert four.inputs[1] is not None
    assert four.inputs[1].shape == (1, 5)
    axes = next(node for node in graph.nodes if node.op == "Unsqueeze").inputs[1]
    assert axes is not None
    assert axes.content == (0,)
    # Everything else stands as it stood.
    gone, _ = touched(path, new)
    assert gone == 2  # the layer's ports, the edge


#: Both operands get axes, and the result loses them.
RESHAPED = (
    RewriteStep("unsqueeze", (Input(0),), axes=(0,)),
    RewriteStep("unsqueeze", (Input(1),), axes=(0, 1)),
    SELF(Earlier(0), Earlier(1)),
    RewriteStep("reshape", (Earlier(2),), shape=(5, -1)),
)


def test_reshaped_result_keeps_its_name_and_readers(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    text = path.read_text().replace(
        '<port id="2" precision="FP32">', '<port id="2" precision="FP32" names="tensor">', 1
    )
    path.write_text(text)
    new = changed(path, Rewrite(places(path)["one"], RESHAPED))
    graph = read_model(new)
    one = next(node for node in graph.nodes if node.name == "one")
    assert one.op == "Reshape"
    assert one.outputs[0].shape == (5, 5)
    assert graph.outputs[1] is one.outputs[0]
    assert next(n for n in graph.nodes if n.name == "two").inputs[0] is one.outputs[0]
    inner = next(node for node in graph.nodes if node.name == "one/inner")
    assert inner.outputs[0].shape == (1, 5, 5)
    assert new.read_text().count('names="tensor"') == 1


def test_layer_is_replaced_by_another_op(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    swapped = Rewrite(places(path)["two"], (ROW, RewriteStep("add", (Earlier(0), Input(0)))))
    graph = read_model(changed(path, swapped))
    two = next(node for node in graph.nodes if node.name == "two")
    assert [value and value.shape for value in two.inputs] == [(1, 5), (5, 5)]
    assert [node.name for node in graph.nodes] == ["one", "two", "three"]


def prelu(kind: str = "f32") -> Ir:
    """A PReLU whose slope lies along the channels."""
    model = Ir()
    x = model.parameter("x", (2, 3, 4), kind)
    slope = model.parameter("slope", (3,), kind)
    model.result(model.layer("p", "PReLU", (x, slope), (2, 3, 4), kind=kind), "y")
    return model


def written_out(dtype: str, value: float = 0.0) -> tuple[RewriteStep, ...]:
    """x < 0 ? slope times x : x."""
    return (
        RewriteStep("reshape", (Input(1),), shape=(3, 1)),
        RewriteStep("number", (), attributes={"value": value, "dtype": dtype}),
        RewriteStep("less", (Input(0), Earlier(1))),
        RewriteStep("multiply", (Earlier(0), Input(0))),
        RewriteStep("where", (Earlier(2), Earlier(3), Input(0))),
    )


@pytest.mark.parametrize(
    ("kind", "dtype", "value"),
    [("f32", "float32", 0.0), ("f16", "float16", 1.5), ("i32", "int32", -3.0)],
)
def test_number_becomes_a_constant_of_rank_0(
    tmp_path: Path, kind: str, dtype: str, value: float
) -> None:
    path = prelu(kind).save(tmp_path / "m.xml")
    new = changed(path, Rewrite(places(path)["p"], written_out(dtype, value)))
    graph = read_model(new)
    less = next(node for node in graph.nodes if node.op == "Less")
    number = less.inputs[1]
    assert number is not None
    assert (number.shape, number.dtype, number.constant) == ((), dtype, True)
    np.testing.assert_array_equal(number.data(), np.array(value, dtype))
    last = graph.nodes[-1]
    assert (last.name, last.op) == ("p", "Select")
    assert less.outputs[0].dtype == "bool"
    assert [out.shape for out in graph.outputs if out is not None] == [(2, 3, 4)]
    # Whole model: it broadcasts as the target does, and no layer of the old kind is left.
    assert {f.verdict for f in zs.audit(new, target="mnn").findings} == {Verdict.SAME}
    # Reading it, so that a port without any sizes is a number's.
    again = edit(new)
    again.apply([])
    assert again.save(tmp_path / "again.xml")[0].read_bytes() == new.read_bytes()


def test_prelu_is_ported_to_other_ops(tmp_path: Path) -> None:
    path = prelu().save(tmp_path / "m.xml")
    report = zs.port(path, target="mnn", output=tmp_path / "out.xml")
    assert [finding.verdict for finding in report.before] == [Verdict.REFUSED]
    assert {finding.verdict for finding in report.findings} == {Verdict.SAME}
    assert [change.by for change in report.changes] == ["equivalent"]
    assert report.changes[0].elements > 0
    ops = [node.op for node in read_model(tmp_path / "out.xml").nodes]
    assert ops[-3:] == ["Less", "Multiply", "Select"]


def test_prelu_of_a_type_without_numbers_is_kept(tmp_path: Path) -> None:
    path = prelu().save(tmp_path / "m.xml")
    path.write_text(path.read_text().replace('"f32"', '"bf16"').replace("FP32", "BF16"))
    report = zs.port(path, target="mnn", output=tmp_path / "out.xml")
    assert [finding.verdict for finding in report.findings] == [Verdict.REFUSED]
    assert not report.changes


def test_number_outside_its_type_is_refused(tmp_path: Path) -> None:
    path = prelu().save(tmp_path / "m.xml")
    at = places(path)["p"]
    for dtype, value in (("uint8", -1.0), ("int64", 0.5), ("bfloat16", 0.0), ("int4", 0.0)):
        with pytest.raises(ModelError, match=f"'p'.*a constant {value} of {dtype} cannot be"):
            edit(path).apply([Rewrite(at, written_out(dtype, value))])
    with pytest.raises(ModelError, match="there is no op 'nonsense'"):
        edit(path).apply([Rewrite(at, (RewriteStep("nonsense", (Input(0), Input(1))),))])


def test_attributes_are_changed(tmp_path: Path) -> None:
    data = f'auto_broadcast="pdpd" {AXIS}="1"'
    path = binary("Add", (2, 3, 4), (3,), data, result=(2, 3, 4)).save(tmp_path / "m.xml")
    changes = {"auto_broadcast": "numpy", AXIS: None}
    lift = RewriteStep("unsqueeze", (Input(1),), axes=(1,))
    explicit = RewriteStep("self", (Input(0), Earlier(0)), attributes=changes)
    new = changed(path, Rewrite(places(path)["op"], (lift, explicit)))
    node = read_model(new).nodes[-1]
    assert dict(node.attributes) == {"auto_broadcast": "numpy"}
    assert new.with_suffix(".bin").stat().st_size == 8  # a model that had no weights
    bare = binary("Add", (2, 3), (2, 3), result=(2, 3)).save(tmp_path / "bare.xml")
    only = RewriteStep("self", (Input(0), Input(1)), attributes={"auto_broadcast": "none"})
    assert read_model(changed(bare, Rewrite((2,), (only,)))).nodes[0].attributes == {
        "auto_broadcast": "none"
    }


def test_layers_in_bodies_are_rewritten(tmp_path: Path) -> None:
    def inside(name: str) -> str:
        sizes = (port(0, (5, 5)), port(1, (5,)))
        return (
            f'<{name}_port_map><input external_port_id="1" internal_layer_id="0"/><input '
            f'external_port_id="2" internal_layer_id="1"/><output external_port_id="3" '
            f'internal_layer_id="3"/></{name}_port_map>\n<{name}_body>\n<layers>\n'
            f'<layer id="0" name="p" type="Parameter" version="opset1"><data shape="5,5" '
            f'element_type="f32"/><output>{sizes[0]}</output></layer>\n'
            f'<layer id="1" name="q" type="Parameter" version="opset1"><data shape="5" '
            f'element_type="f32"/><output>{port(0, (5,))}</output></layer>\n'
            f'<layer id="2" name="inner" type="Add" version="opset1"><input>{sizes[0]}{sizes[1]}'
            f"</input><output>{port(2, (5, 5))}</output></layer>\n"
            f'<layer id="3" name="r" type="Result" version="opset1"><input>{sizes[0]}</input>'
            f'</layer>\n</layers>\n<edges>\n<edge from-layer="0" from-port="0" to-layer="2" '
            f'to-port="0"/>\n<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>\n'
            f'<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>\n</edges>\n'
            f"</{name}_body>"
        )

    model = Ir()
    given = (
        model.parameter("cond", (), "boolean"),
        model.parameter("x", (5, 5)),
        model.parameter("y", (5,)),
    )
    both = inside("then") + inside("else")
    model.result(model.layer("if", "If", given, (5, 5), "", "opset8", "f32", both))
    path = model.save(tmp_path / "m.xml")
    place = places(path)["if/else_body/inner"]
    assert place == (3, "else_body", 2)
    lift = RewriteStep("unsqueeze", (Input(1),), axes=(0,))
    new = changed(path, Rewrite(place, (lift, SELF(Input(0), Earlier(0)))))
    verdicts = {f.node: f.verdict for f in zs.audit(new, target="ncnn").findings}
    assert verdicts["if/else_body/inner"] is Verdict.SAME
    assert verdicts["if/then_body/inner"] is Verdict.DIFFERENT
    text = path.read_text()
    assert new.read_text().startswith(text[: text.index("<else_body>")])


def test_all_other_bytes_stay_the_same(tmp_path: Path) -> None:
    """Comments, odd blanks and quotes of other layers are not rewritten."""
    path = rows().save(tmp_path / "m.xml")
    text = path.read_text()
    text = text.replace('name="x" type="Parameter"', "name = 'x>y'\n type='Parameter'")
    text = text.replace("\t<rt_info />", "\t<!-- <port id='1'> --><rt_info a='&lt;'/>")
    text = text.replace("\n", "\r\n")
    path.write_bytes(text.encode())
    new = changed(path, Rewrite(places(path)["two"], (ROW, SELF(Input(0), Earlier(0)))))
    data = new.read_bytes()
    assert data.startswith(text[: text.index('name="own"')].encode())
    assert data.endswith(text[text.index("<edges>") :].encode())
    assert read_model(new).inputs[0].name == "x>y"


def test_file_may_be_saved_over_itself(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    weights = path.with_suffix(".bin").read_bytes()
    editor = edit(path)
    lift = RewriteStep("reshape", (Input(0),), shape=(1, 5, 5))
    back = RewriteStep("squeeze", (Earlier(1),), axes=(0,))
    editor.apply([Rewrite(places(path)["one"], (lift, SELF(Earlier(0), Input(1)), back))])
    assert editor.save(path) == (path, path.with_suffix(".bin"))
    assert path.with_suffix(".bin").read_bytes().startswith(weights)
    assert read_model(path).nodes[0].op == "Reshape"
    assert list(tmp_path.glob(".*")) == []


def test_impossible_rewrites_are_refused_and_not_written(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    at = places(path)["one"]
    wrong = [
        Rewrite((99,), (SELF(Input(0), Input(1)),)),
        Rewrite(at, (SELF(Input(0)),)),
        Rewrite(at, (SELF(Input(0), Input(7)),)),
        Rewrite(at, (SELF(Input(0), Input(1)), SELF(Input(0), Input(1)))),
        Rewrite(
            at, (RewriteStep("reshape", (Input(1),), shape=(5, 1, 2)), SELF(Input(0), Earlier(0)))
        ),
    ]
    for rewrite in wrong:
        editor = edit(path)
        with pytest.raises(ModelError) as caught:
            editor.apply([rewrite])
        assert str(path) in str(caught.value)
        with pytest.raises(ModelError, match="nothing is written"):
            editor.save(tmp_path / "out.xml")
    assert not (tmp_path / "out.xml").exists()
    with pytest.raises(ModelError, match=r"ends in \.xml"):
        edit(path).save(tmp_path / "out.onnx")
    with pytest.raises(ModelError, match="No such file"):
        edit(path).save(tmp_path / "nowhere" / "out.xml")


def test_missing_weights_allow_only_rewrites_without_them(tmp_path: Path) -> None:
    path = rows().save(tmp_path / "m.xml")
    path.with_suffix(".bin").unlink()
    new = changed(path, Rewrite(places(path)["two"], (ROW, SELF(Input(0), Earlier(0)))))
    assert not new.with_suffix(".bin").exists()
    own = read_model(new).nodes[1].inputs[1]
    assert own is not None
    assert own.shape == (1, 5)
    lift = RewriteStep("reshape", (Input(0),), shape=(5, 5))
    with pytest.raises(ModelError, match=r"m\.bin are missing"):
        changed(path, Rewrite(places(path)["one"], (lift, SELF(Earlier(0), Input(1)))))
    new.with_suffix(".bin").write_bytes(b"another model's")
    with pytest.raises(ModelError, match="is not this model's"):
        changed(path)


def test_fragments_and_other_encodings_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text('<layer ... type="Abs"><input><port id="0"/></input></layer>')
    with pytest.raises(ModelError, match="layers without a net"):
        edit(path)
    text = rows().text
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(ModelError, match="not in UTF-8"):
        edit(path)


def test_precision_is_written_in_xml_form(tmp_path: Path) -> None:
    """Whatever word a file has there, what is added beside it can be read."""
    path = rows().save(tmp_path / "m.xml")
    path.write_text(path.read_text().replace('precision="FP32"', 'precision="&lt;&quot;"'))
    new = changed(path, Rewrite(places(path)["one"], RESHAPED))
    assert {"Unsqueeze", "Reshape"} <= {node.op for node in read_model(new).nodes}
