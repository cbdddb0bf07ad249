"""The reader of OpenVINO IR files: its results and refusals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_models import Ir, binary, broadcast, port

import zerostride as zs
from zerostride.errors import ModelError
from zerostride.models.findings import Verdict
from zerostride.models.flow.resolved import resolved
from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Graph

pytest.importorskip("defusedxml", reason="IR files are read with defusedxml")


def small() -> Ir:
    """x + c, and the sum's shape."""
    model = Ir()
    x = model.parameter("x", ("?", 3, "1..10"))
    c = model.constant("c", np.array([[1.5], [2], [3]], np.float32))
    total = model.layer("total", "Add", (x, c), ("?", 3, "?"), 'auto_broadcast="numpy"')
    shape = model.layer("shape", "ShapeOf", (total,), (3,), 'output_type="i64"', "opset3", "i64")
    model.result(total)
    model.result(shape)
    return model


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert message.isprintable()
    return message


def test_values_nodes_and_places_are_read(tmp_path: Path) -> None:
    graph = read_model(small().save(tmp_path / "m.xml"))
    (x,) = graph.inputs
    assert (x.name, x.dtype) == ("x", "float32")
    assert x.shape is not None
    assert [str(size) for size in x.shape] == ["None", "3", "1..10"]
    total, shape = graph.nodes
    assert (total.op, total.domain, total.version, total.place) == ("Add", "openvino", 1, (2,))
    assert (shape.op, shape.version, shape.attributes["output_type"]) == ("ShapeOf", 3, "i64")
    c = total.inputs[1]
    assert c is not None
    assert (c.shape, c.constant, c.reals, c.dtype) == ((3, 1), True, (1.5, 2.0, 3.0), "float32")
    np.testing.assert_array_equal(c.data(), np.array([[1.5], [2], [3]], np.float32))
    assert shape.inputs[0] is total.outputs[0]
    assert [value.name for value in graph.outputs] == ["total", "shape"]
    assert [user.name for user, _ in graph.uses[id(total.outputs[0])]] == ["shape"]


def test_integers_are_read_at_once_and_large_constants_on_demand(tmp_path: Path) -> None:
    model = Ir()
    x = model.parameter("x", (2, 50))
    target = model.constant("target", np.array([100], np.int64))
    model.result(model.layer("re", "Reshape", (x, target), (100,), 'special_zero="false"'))
    big = model.constant("big", np.arange(100, dtype=np.float32))
    model.result(model.layer("add", "Add", (2, big), (100,)))
    graph = read_model(model.save(tmp_path / "m.xml"))
    one, two = graph.nodes[0].inputs[1], graph.nodes[1].inputs[1]
    assert one is not None
    assert two is not None
    assert one.content == (100,)
    assert two.reals is None
    assert two.data()[99] == 99
    (tmp_path / "m.bin").unlink()
    with pytest.raises(ModelError, match="No such file"):
        two.data()


def test_model_without_weights_is_audited(tmp_path: Path) -> None:
    path = small().save(tmp_path / "m.xml")
    (tmp_path / "m.bin").unlink()
    graph = read_model(path)
    c = graph.nodes[0].inputs[1]
    assert c is not None
    assert c.missing == "m.bin"
    assert c.shape == (3, 1)
    assert "missing" in graph.notes[0]
    report = zs.audit(path, target="ncnn", batch_axis=-1)
    assert [finding.node for finding in report.findings] == ["total"]
    with pytest.raises(ModelError, match="missing"):
        c.data()


def test_types_outside_numpy_are_named_and_not_read(tmp_path: Path) -> None:
    for kind, dtype in (("u4", "uint4"), ("bf16", "bfloat16"), ("nf4", None), ("string", None)):
        model = small()
        model.layers[1] = model.layers[1].replace('element_type="f32"', f'element_type="{kind}"')
        c = read_model(model.save(tmp_path / "m.xml")).nodes[0].inputs[1]
        assert c is not None
        assert c.dtype == dtype
        with pytest.raises(ModelError, match="NumPy has no numbers"):
            c.data()


def test_port_without_sizes_has_unknown_rank_until_inferred(tmp_path: Path) -> None:
    model = Ir()
    x = model.parameter("x", ("?", 4))
    n = model.parameter("n", ())
    total = model.layer("total", "Add", (n, n), ())
    model.result(model.layer("scaled", "Multiply", (x, total), ("?", 4)))
    graph = read_model(model.save(tmp_path / "m.xml"))
    assert graph.inputs[1].shape == ()
    assert graph.nodes[0].outputs[0].shape is None
    whole, _, _ = resolved(graph)
    assert whole.nodes[0].outputs[0].shape == ()


def test_unknown_rank_is_reported(tmp_path: Path) -> None:
    model = binary("Add", ("...",), (3,))
    report = zs.audit(model.save(tmp_path / "m.xml"), target="ncnn")
    assert [finding.reason for finding in report.findings] == ["unknown_shape"]


def loops(tmp_path: Path) -> Graph:
    """An If whose branches have an Add each."""

    def body(name: str, second: str) -> str:
        return (
            f'<{name}_body><layers><layer id="0" name="p" type="Parameter" version="opset1">'
            f'<data shape="?,3" element_type="f32"/><output>{port(0, ("?", 3))}</output></layer>'
            f'<layer id="5" name="inner_{name}" type="{second}" version="opset1">'
            f"<input>{port(0, ('?', 3))}{port(1, ('?', 3))}</input>"
            f'<output>{port(2, ("?", 3))}</output></layer><layer id="2" name="r" type="Result" '
            f'version="opset1"><input>{port(0, ("?", 3))}</input></layer></layers><edges>'
            '<edge from-layer="0" from-port="0" to-layer="5" to-port="0"/>'
            '<edge from-layer="0" from-port="0" to-layer="5" to-port="1"/>'
            f'<edge from-layer="5" from-port="2" to-layer="2" to-port="0"/></edges></{name}_body>'
            f'<{name}_port_map><input external_port_id="1" internal_layer_id="0"/>'
            f'<output external_port_id="2" internal_layer_id="2"/></{name}_port_map>'
        )

    model = Ir()
    given = model.parameter("cond", (), "boolean"), model.parameter("x", ("?", 3))
    inside = body("then", "Add") + body("else", "Multiply")
    both = model.layer("if", "If", given, ("?", 3), "", "opset8", "f32", inside)
    model.result(both)
    return read_model(model.save(tmp_path / "m.xml"))


def test_bodies_are_read(tmp_path: Path) -> None:
    graph = loops(tmp_path)
    assert [node.path for node in graph.nodes] == [
        "if",
        "if/then_body/inner_then",
        "if/else_body/inner_else",
    ]
    outer, then, _ = graph.nodes
    assert then.place == (2, "then_body", 1)
    assert [body.name for body in outer.bodies] == ["then_body", "else_body"]
    assert outer.attributes["then_body_inputs"] == (1,)
    assert outer.attributes["then_body_outputs"] == (0,)
    assert outer.bodies[0].outputs == (then.outputs[0],)
    # What the body is handed has the size that the outer tensor has, and so has the result.
    whole, _, flow = resolved(graph)
    assert flow is not None
    assert flow.ok
    assert (
        whole.nodes[1].outputs[0].shape == whole.inputs[1].shape == whole.nodes[0].outputs[0].shape
    )
    words = lowered(graph).nodes[0]
    assert (words.op, words.domain) == ("If", "")
    assert [body.name for body in words.bodies] == ["then_branch", "else_branch"]
    assert words.outputs is outer.outputs


def test_layers_may_be_in_any_order_and_ports_have_any_numbers(tmp_path: Path) -> None:
    model = small()
    model.layers.reverse()
    text = model.text.replace('to-layer="2" to-port="1"', 'to-layer="2" to-port="7"')
    sizes = ' precision="FP32"><dim>3</dim><dim>1</dim></port></input>'
    text = text.replace(f'<port id="1"{sizes}', f'<port id="7"{sizes}')
    path = tmp_path / "m.xml"
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(model.weights)
    graph = read_model(path)
    assert [node.name for node in graph.nodes] == ["total", "shape"]
    assert [value and value.name for value in graph.nodes[0].inputs] == ["x", "c"]


#: Where the sum's sizes are.
OUT = '<output><port id="2" precision="FP32"><dim>-1</dim>'
CHANGES: list[tuple[str, str, str]] = [
    ('<layer id="1"', '<layer id="0"', "another layer has its id"),
    ('from-layer="1"', 'from-layer="9"', "there is no layer 9"),
    ('from-layer="1" from-port="0"', 'from-layer="1" from-port="4"', "no such output port"),
    ('to-layer="2" to-port="1"', 'to-layer="2" to-port="0"', "two edges lead to port 0"),
    ('<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />', "", "no edge leads to"),
    ('from-layer="0" from-port="0"', 'from-layer="2" from-port="2"', "it feeds itself"),
    (OUT, OUT.replace("-1", "many"), "'many' is no size"),
    (OUT, OUT.replace("-1", "-7"), "'-7' is no size"),
    (OUT, OUT.replace("-1", "9" * 30), "is no size"),
    ('shape="?,3,1..10"', 'shape="?,3,10..1"', "is no size"),
    ('offset="0" size="12"', 'offset="1" size="12"', "end after the 12 of the .bin"),
    ('offset="0" size="12"', 'offset="-1" size="12"', "do not hold"),
    ('offset="0" size="12"', 'offset="0" size="11"', "do not hold 3 elements"),
    ('offset="0"', 'offset="99999999999999999999999"', "which is no number"),
    ('offset="0"', 'offset="9999999999999999999"', "beyond 64 bits"),
    ('shape="3, 1"', 'shape="9223372036854775807, 3"', "more than 2^63-1"),
    ('shape="3, 1"', 'shape="3, -1"', "a constant of shape"),
    ('element_type="f32" shape="3, 1"', 'element_type="f33" shape="3, 1"', "no element type"),
    ('version="11"', 'version="7"', "IR version 7"),
    ('version="11"', 'version="x"', "no number"),
    ("<net ", "<nett ", "its root is <nett>"),
    ("</net>", "", "not well-formed"),
    ("<rt_info />", "&nothing;", "not well-formed"),
    ("<rt_info />", "<a>" * 200 + "</a>" * 200, "nested more than 100"),
    ('<?xml version="1.0"?>', '<!DOCTYPE net [<!ENTITY a "b">]>', "document type or entities"),
    ('name="total" type="Add"', 'name="total"', "has no type"),
    ('id="2" name="total"', 'name="total"', "the id of layer 'total' is missing"),
]


@pytest.mark.parametrize(("old", "new", "words"), CHANGES)
def test_malformed_file_is_reported(tmp_path: Path, old: str, new: str, words: str) -> None:
    model = small()
    path = tmp_path / "m.xml"
    text = model.text.replace(old, new) if old.startswith("</") else model.text.replace(old, new, 1)
    if new.startswith("</") or "nett" in new:
        text = text.replace("</net>", "</nett>")
    assert text != model.text
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(model.weights)
    assert words in refusal(path)


def test_invalid_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    assert "No such file" in refusal(path)
    path.write_bytes(b"")
    assert "empty" in refusal(path)
    path.write_bytes(b'<net version="11" name="\xff\xfe"><layers/></net>')
    assert "not well-formed" in refusal(path)
    path.write_bytes(b'<?xml version="1.0" encoding="nonsense"?><net version="11"/>')
    assert "cannot be decoded" in refusal(path)
    folder = tmp_path / "folder.xml"
    folder.mkdir()
    assert "a folder" in refusal(folder)
    os.mkfifo(tmp_path / "pipe.xml")
    assert "not a regular file" in refusal(tmp_path / "pipe.xml")
    good = small().save(tmp_path / "good.xml")
    good.with_suffix(".bin").unlink()
    os.mkfifo(good.with_suffix(".bin"))
    assert "not a regular file" in refusal(good)


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    laughs = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10 if k else "ha"}">' for k in range(12))
    path.write_text(f'<!DOCTYPE net [{laughs}]><net version="11" name="&a11;"/>')
    assert "document type" in refusal(path)
    path.write_text('<!DOCTYPE net SYSTEM "file:///etc/passwd"><net version="11"/>')
    assert "document type" in refusal(path)


def test_missing_defusedxml_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small().save(tmp_path / "m.xml")
    monkeypatch.setitem(__import__("sys").modules, "defusedxml.common", None)
    with pytest.raises(ModelError, match="pip install defusedxml"):
        read_model(path)


def test_escape_codes_do_not_reach_a_terminal(tmp_path: Path) -> None:
    model = small()
    path = tmp_path / "m.xml"
    path.write_text(
        model.text.replace('name="total"', 'name="to&#9;tal"').replace("<dim>3", "<dim>x")
    )
    assert "to\\ttal" in refusal(path) or "is no size" in refusal(path)


# Fragments of documents.

FRAGMENT = """<layer ... type="Broadcast" ...>
<data mode="{mode}"/>
<input>
<port id="0">{data}</port>
<port id="1">
<dim>4</dim> {comment}
</port>{third}
</input>
<output>
<port id="2">
<dim>1</dim>
<dim>16</dim>
<dim>50</dim>
<dim>50</dim>
</port>
</output>
</layer>
"""
TARGET = "<!--The tensor contains 4 elements: [1, 16, 50, 50] -->"
AXES = '<port id="1"><dim>1</dim> <!--The tensor contains 1 elements: [1] --></port>'


def fragment(mode: str, data: tuple[int, ...], comment: str = TARGET, third: str = "") -> str:
    sizes = "".join(f"<dim>{size}</dim>" for size in data)
    return FRAGMENT.format(mode=mode, data=sizes, comment=comment, third=third)


def plans(path: Path) -> list[Any]:
    from zerostride.models.formats.openvino import find_site

    entries = []
    for node in read_model(path).nodes:
        site = find_site(node)
        assert site is not None
        entries.append(site.plan(tuple(part.shape for part in site.operands)))  # type: ignore[arg-type,misc]
    return entries


def test_fragments_of_the_documents_are_read(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(
        fragment("numpy", (16, 1, 1))
        + fragment("explicit", (16,), third=AXES)
        + fragment("bidirectional", (16, 1, 1), TARGET.replace("16", "1"))
        + fragment("numpy", (50,), "")
    )
    graph = read_model(path)
    assert [value.shape for value in graph.inputs] == [(16, 1, 1), (16,), (16, 1, 1), (50,)]
    assert len(graph.outputs) == 4
    assert [plan.shape for plan in plans(path)] == [(1, 16, 50, 50)] * 4
    assert plans(path)[1].axes_mapping == ((1,),)
    assert [node.domain for node in lowered(graph).nodes] == [""] * len(lowered(graph).nodes)
    # What the comment says is data, so that the layer can be run.
    target = graph.nodes[0].inputs[1]
    assert target is not None
    np.testing.assert_array_equal(target.data(), [1, 16, 50, 50])
    report = zs.audit(path, target="torch")
    assert report.findings[0].verdict is Verdict.SAME


def test_fragments_comment_of_the_wrong_size_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(fragment("explicit", (16,), third=AXES.replace("[1]", "[1, 2]")))
    report = zs.audit(path, target="ncnn")
    assert [finding.reason for finding in report.findings] == ["not_modelled"]


def test_fragment_of_an_add_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    sizes = "<dim>8</dim><dim>1</dim><dim>6</dim><dim>1</dim>"
    path.write_text(
        f'<?xml version="1.0"?>\n<!-- an example -->\n<layer ... type="Add">\n'
        f'<data auto_broadcast="numpy"/>\n<input><port id="0">{sizes}</port><port id="1">'
        '<dim>7</dim><dim>1</dim><dim>5</dim></port></input>\n<output><port id="2">'
        "<dim>8</dim><dim>7</dim><dim>6</dim><dim>5</dim></port></output></layer>"
    )
    (plan,) = plans(path)
    assert plan.shape == (8, 7, 6, 5)
    path.write_text(path.read_text().replace('type="Add"', 'type="Add" name="a>...<b"'))
    assert "not well-formed" in refusal(path)


def test_comments_of_a_whole_file_are_ignored(tmp_path: Path) -> None:
    model = broadcast((3,), (2, 3), "numpy", result=(2, 3))
    path = model.save(tmp_path / "m.xml")
    path.write_text(path.read_text().replace("<dim>2</dim>", "<dim>2</dim><!-- [9, 9] -->", 1))
    node = read_model(path).nodes[0]
    assert node.inputs[1] is not None
    assert node.inputs[1].content == (2, 3)
