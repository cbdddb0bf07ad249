"""The example models equal their scripts' output, run, and match their README."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the examples are ONNX files")
from onnx import TensorProto, helper, shape_inference  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


def _script(name: str) -> Any:
    """Import a script of the examples folder, which is no package of ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return importlib.import_module(name)


make_models = _script("make_models")
counter = _script("count_broadcasts")
MODELS: dict[str, bytes] = dict(make_models.models())
BUGS: list[dict[str, Any]] = json.loads((EXAMPLES / "bugs.json").read_text("utf-8"))["bugs"]
#: Made by export_dynamic.py, whose bytes depend on the release of torch.
EXPORTED = {
    f"{network}_dynamic{exporter}.onnx"
    for network in ("transformer", "unet")
    for exporter in ("", "_script")
}
RELEASES = json.loads((EXAMPLES / "bugs.json").read_text("utf-8"))["releases"]

# Counted by hand from the builders, not by the counter.
BY_HAND = {
    "tiny_vision.onnx": {
        "Add": 18,
        "Mul": 9,
        "MatMul": 6,
        "Sub": 4,
        "Pow": 2,
        "Div": 2,
        "Gemm": 2,
        "Greater": 2,
        "Where": 2,
        "GreaterOrEqual": 1,
        "Expand": 1,
        "PRelu": 1,
        "Clip": 1,
        "Max": 1,
        "Sum": 1,
        "DequantizeLinear": 1,
        "BatchNormalization": 1,
        "LayerNormalization": 1,
    },
    "legacy_opset6.onnx": {
        "Add": 4,
        "Mul": 3,
        "Sub": 1,
        "Div": 1,
        "PRelu": 1,
        "Sum": 1,
        "Gemm": 1,
    },
    "clean.onnx": {"Add": 2, "Mul": 2, "Sub": 1, "Div": 1, "Max": 1},
    # Normalize 3, add_symbolic 1, then 2, else 1, Loop 1, Scan 1, and the three unknown ones.
    "functions_and_subgraphs.onnx": {"Add": 6, "Mul": 2, "Sub": 2, "MatMul": 1, "Mean": 1},
}


def _feeds(seed: int = 0) -> dict[str, np.ndarray]:
    image = np.random.default_rng(seed).normal(size=(1, 3, 16, 16)).astype(np.float32)
    return {"image": image, "keep": np.array([[1] * 12 + [0] * 4], dtype=np.float32)}


# --- the files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_file_is_the_scripts_output(name: str) -> None:
    assert (EXAMPLES / name).read_bytes() == MODELS[name], "run python examples/make_models.py"


def test_script_gives_the_same_bytes_again() -> None:
    assert dict(make_models.models()) == MODELS


def test_every_model_is_listed_and_small() -> None:
    files = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.onnx")}
    assert files == set(MODELS) | EXPORTED
    sizes = [(EXAMPLES / name).stat().st_size for name in files]
    assert max(sizes) < 200_000
    assert sum(sizes) < 1_000_000


def test_check_reports_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_models, "HERE", tmp_path)
    assert make_models.main([]) == 0
    assert make_models.main(["--check"]) == 0
    (tmp_path / "clean.onnx").write_bytes(b"something else")
    capsys.readouterr()
    assert make_models.main(["--check"]) == 1
    assert capsys.readouterr().out == "clean.onnx: is not as made\n"


@pytest.mark.parametrize("name", sorted(EXPORTED))
def test_exported_model_has_open_sizes_and_no_export_traces(name: str) -> None:
    content = (EXAMPLES / name).read_bytes()
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model)
    free = {
        dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim
    }
    assert len(free - {""}) == 3
    assert not model.graph.value_info, "shapes in between are for a reader to find"
    assert not any(part in content for part in (b"site-packages", b".py", b"/home", b"/tmp"))


#: A custom op; an op of ONNX Runtime in ONNX's domain.
NOT_ONNX = {"functions_and_subgraphs.onnx", "optimisers/onnx-8203-after.onnx"}


@pytest.mark.parametrize("name", sorted(set(MODELS) - NOT_ONNX))
def test_types_and_shapes_are_consistent(name: str) -> None:
    onnx.checker.check_model(onnx.load_from_string(MODELS[name]), full_check=True)


def test_every_example_is_in_the_readme() -> None:
    text = (EXAMPLES / "README.md").read_text("utf-8")
    names = [name for name in [*MODELS, *sorted(EXPORTED)] if "/" not in name]
    assert [name for name in [*names, *(bug["id"] for bug in BUGS)] if name not in text] == []


# --- what is in them -------------------------------------------------------------------------


def _operand_shapes(name: str) -> set[tuple[str, tuple[tuple[int, ...], ...]]]:
    graph = shape_inference.infer_shapes(onnx.load_from_string(MODELS[name])).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        shapes.setdefault(value.name, tuple(dim.dim_value for dim in dims))
    return {(node.op_type, tuple(shapes[i] for i in node.input)) for node in graph.node}


@pytest.mark.parametrize(
    "operands",
    [
        ("Mul", ((1, 8, 8, 8), (8, 1, 1))),
        ("Mul", ((1, 8, 8, 8), (8,))),  # the trap: C = H = W
        ("Add", ((1, 16, 4, 4), (4,))),  # the same pattern where no extent is ambiguous
        ("Mul", ((1, 16, 1, 1), (1, 16, 4, 4))),
        ("Mul", ((1, 16, 16), (16,))),  # gamma against a square
        ("Add", ((1, 4, 16, 16), (16, 16))),
        ("Add", ((1, 4, 16, 16), (1, 1, 16, 16))),
        ("Where", ((16, 16), (1, 4, 16, 16), ())),
        ("MatMul", ((1, 4, 16, 4), (1, 1, 4, 16))),
        ("GreaterOrEqual", ((16, 1), (1, 16))),
        ("Max", ((1, 16, 4, 4), (16, 1, 1), (1,))),
    ],
    ids=str,
)
def test_tiny_vision_holds_the_broadcast(operands: Any) -> None:
    assert operands in _operand_shapes("tiny_vision.onnx")


def test_legacy_file_uses_the_attributes() -> None:
    model = onnx.load_from_string(MODELS["legacy_opset6.onnx"])
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 6)]
    used = [
        tuple(a.i for key in ("broadcast", "axis") for a in node.attribute if a.name == key)
        for node in model.graph.node
        if node.op_type in {"Add", "Mul", "Sub", "Div"}
    ]
    assert {(1, 1): used.count((1, 1)), (1,): used.count((1,)), (): used.count(())} == {
        (1, 1): 5,
        (1,): 3,
        (): 1,
    }


def test_reference_evaluator_runs_the_networks() -> None:
    logits, accepted = ReferenceEvaluator(MODELS["tiny_vision.onnx"]).run(None, _feeds())
    assert logits.shape == accepted.shape == (1, 10)
    assert np.isfinite(logits).all()
    assert 0 < accepted.sum() < 10
    image = np.ones((1, 3, 6, 5), dtype=np.float32)
    (features,) = ReferenceEvaluator(MODELS["clean.onnx"]).run(None, {"image": image})
    assert features.shape == (1, 8, 6, 5)


def test_masked_tokens_matter_without_the_mask() -> None:
    """The additive mask is a broadcast that the result depends on."""
    run = ReferenceEvaluator(MODELS["tiny_vision.onnx"]).run
    everything = {**_feeds(), "keep": np.ones((1, 16), dtype=np.float32)}
    assert not np.allclose(run(None, _feeds())[0], run(None, everything)[0])


def test_onnxruntime_runs_the_networks() -> None:
    ort = pytest.importorskip("onnxruntime", reason="the engine is an extra, not a test need")
    options = ort.SessionOptions()
    # Optimised, ONNX Runtime fuses the int8 product and rounds its inputs: 0.003 away.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for seed in range(3):
        content, feeds = MODELS["tiny_vision.onnx"], _feeds(seed)
        ours = ReferenceEvaluator(content).run(None, feeds)
        theirs = ort.InferenceSession(content, options).run(None, feeds)
        np.testing.assert_allclose(theirs[0], ours[0], atol=1e-5)
    for name in ("tiny_vision.onnx", "clean.onnx", *(f"bugs/{bug['id']}.onnx" for bug in BUGS)):
        ort.InferenceSession(MODELS[name])  # loads with every optimisation, too


# --- the bugs --------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["id"])
def test_bug_has_two_shapes_that_numpy_combines(bug: dict[str, Any]) -> None:
    words = {"symptom", "happened", "today"}
    required = {"id", "references", "op", "shapes", "shapes_from", "source", "target", *words}
    optional = {"attributes", "declared", "target_shapes", "also", "backend"}
    assert required <= set(bug) <= required | optional
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", reference) for reference in bug["references"])
    assert bug["today"] in {
        "same",
        "same at these sizes",
        "different",
        "refused",
        "invalid",
        "not run",
    }
    assert bug["today"] == "not run" or bug["target"] in RELEASES
    assert bug["happened"].endswith(".")
    for pair in [bug["shapes"], bug.get("target_shapes", bug["shapes"]), *bug.get("also", [])]:
        np.broadcast_shapes(*pair)
    if "target_shapes" not in bug and "declared" not in bug:
        model = onnx.load_from_string(MODELS[f"bugs/{bug['id']}.onnx"])
        result = shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape.dim
        assert tuple(d.dim_value for d in result) == np.broadcast_shapes(*bug["shapes"])


def test_bugs_have_their_own_names() -> None:
    assert len({bug["id"] for bug in BUGS}) == len(BUGS)
    assert len({bug["symptom"] for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize(
    "bug",
    [b for b in BUGS if b["target"] == "ncnn" and b["today"] != "invalid"],
    ids=lambda b: b["id"],
)
def test_listed_ncnn_results_match_ncnn(bug: dict[str, Any]) -> None:
    ncnn = pytest.importorskip("ncnn", reason="the engine is an extra, not a test need")
    if importlib.metadata.version("ncnn") != RELEASES["ncnn"]:
        pytest.skip("another release than the one that the table names")
    shapes = bug.get("target_shapes", bug["shapes"])
    same = _ncnn_agrees(ncnn, bug["op"], shapes)
    assert same == (bug["today"] != "different")
    flipped = [_ncnn_agrees(ncnn, bug["op"], pair) for pair in bug.get("also", [])]
    if bug["today"] == "same at these sizes":
        assert False in flipped


def _ncnn_agrees(ncnn: Any, op: str, shapes: list[list[int]]) -> bool:
    code, function = {
        "Add": (0, np.add),
        "Sub": (1, np.subtract),
        "Mul": (2, np.multiply),
        "Div": (3, np.divide),
    }[op]
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1, 2, shape).astype(np.float32) for shape in shapes)
    net = ncnn.Net()
    net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
    net.load_param_mem(
        f"7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\nBinaryOp y 2 1 a b y 0={code}\n"
    )
    extractor = net.create_extractor()
    extractor.input("a", ncnn.Mat(a).clone())
    extractor.input("b", ncnn.Mat(b).clone())
    status, result = extractor.extract("y")
    assert status == 0
    wanted, array = function(a, b), np.array(result)
    return array.shape == wanted.shape and bool(np.allclose(array, wanted, rtol=1e-5))


# --- the independent count -------------------------------------------------------------------


@pytest.mark.parametrize("name", BY_HAND)
def test_count_matches_the_manual_count(name: str) -> None:
    counts = counter.count_file(EXAMPLES / name)
    assert counts.by_op() == dict(sorted(BY_HAND[name].items()))
    assert [site.op for site in counts.custom] == (["SoftWindow"] if "functions" in name else [])


def test_each_bug_has_one_site() -> None:
    counts = {b["id"]: counter.count_file(EXAMPLES / f"bugs/{b['id']}.onnx") for b in BUGS}
    assert {key: len(count.sites) for key, count in counts.items()} == dict.fromkeys(counts, 1)


def test_every_operator_is_classified() -> None:
    assert counter.SILENT.isdisjoint(counter.CONDITIONS)
    schemas = onnx.defs.get_all_schemas_with_history()
    names = {
        s.name for s in schemas if s.domain == "" and s.since_version <= counter.LAST_OPSET_READ
    }
    assert names - counter.SILENT - set(counter.CONDITIONS) == set()


def test_documents_that_mention_broadcasting_are_counted() -> None:
    """Guards the reading by hand: a silent op whose document has the word says why it has it."""
    mentioned = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        described = [schema.doc or "", *(i.description for i in schema.inputs)]
        if schema.domain == "" and re.search("broadcast", " ".join(described), re.IGNORECASE):
            mentioned.add(schema.name)
    # Tile and SwiGLU say that they do not.
    assert (mentioned & counter.SILENT) <= {"Tile", "SwiGLU"}


def _one(op: str, shapes: dict[str, Any], inputs: list[str], opset: int = 21, **attrs: Any) -> Any:
    """Count a model of one node; a shape of "unknown" belongs to no value at all."""
    node = helper.make_node(op, inputs, ["out"], name="node", **attrs)
    known = {name: shape for name, shape in shapes.items() if shape != "unknown"}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in known.items()]
    graph = helper.make_graph([node], "g", values, [])
    return counter.count(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))


A, B, C = (2, 3), (2, 3), (3,)


@pytest.mark.parametrize(
    ("op", "shapes", "inputs", "attributes", "sites"),
    [
        ("Add", {"a": A, "b": B}, ["a", "b"], {}, 1),  # equal extents do not matter
        ("Add", {"a": A}, ["a", "a"], {}, 1),
        ("Add", {"a": A, "b": B}, ["a", "b"], {"opset": 6}, 1),
        ("Sum", {"a": A}, ["a"], {}, 0),
        ("Max", {"a": A, "b": B, "c": C}, ["a", "b", "c"], {}, 1),
        ("Clip", {"a": A}, ["a"], {}, 0),
        ("Clip", {"a": A, "m": ()}, ["a", "", "m"], {}, 1),
        ("Clip", {"a": A}, ["a", "", ""], {}, 0),
        ("Clip", {"a": A}, ["a"], {"opset": 6, "min": 0.0}, 0),
        ("Gemm", {"a": (2, 2), "b": (2, 2)}, ["a", "b"], {}, 0),
        ("Gemm", {"a": (2, 2), "b": (2, 2), "c": (2,)}, ["a", "b", "c"], {}, 1),
        ("MatMul", {"a": (2, 3), "b": (3, 4)}, ["a", "b"], {}, 0),
        ("MatMul", {"a": (3,), "b": (3,)}, ["a", "b"], {}, 0),
        ("MatMul", {"a": (2, 3), "b": (3,)}, ["a", "b"], {}, 0),
        ("MatMul", {"a": (1, 2, 3), "b": (3, 4)}, ["a", "b"], {}, 1),
        ("MatMul", {"a": (2, 3), "b": "unknown"}, ["a", "b"], {}, 1),
        ("MatMulInteger", {"a": (2, 3), "b": (3, 4)}, ["a", "b"], {}, 0),
        ("MatMulInteger", {"a": (2, 3), "b": (3, 4), "z": (2,)}, ["a", "b", "z"], {}, 1),
        ("ConvInteger", {"x": (1, 1, 3, 3), "w": (1, 1, 3, 3), "z": ()}, ["x", "w", "z"], {}, 0),
        (
            "ConvInteger",
            {"x": (1, 1, 3, 3), "w": (1, 1, 3, 3), "z": ()},
            ["x", "w", "", "z"],
            {},
            1,
        ),
        ("Einsum", {"a": A, "b": B}, ["a", "b"], {"equation": "ij,ij->ij"}, 0),
        ("Einsum", {"a": A, "b": B}, ["a", "b"], {"equation": "...j,...j->...j"}, 1),
        ("Einsum", {"a": A, "b": C}, ["a", "b"], {"equation": "...j,j->...j"}, 0),
        ("Einsum", {"a": A}, ["a"], {"equation": "...j->...j"}, 0),
        ("Attention", dict.fromkeys("qkv", (1, 2, 3, 4)), ["q", "k", "v"], {"opset": 23}, 0),
        (
            "Attention",
            {**dict.fromkeys("qkv", (1, 2, 3, 4)), "m": (3, 3)},
            ["q", "k", "v", "m"],
            {"opset": 23},
            1,
        ),
        ("QuantizeLinear", {"x": A, "s": ()}, ["x", "s"], {}, 1),
        ("Conv", {"x": (1, 1, 3, 3), "w": (1, 1, 3, 3), "b": (1,)}, ["x", "w", "b"], {}, 0),
        ("Tile", {"x": A}, ["x", "r"], {}, 0),
    ],
)
def test_site_is_counted_by_the_convention(
    op: str, shapes: dict[str, Any], inputs: list[str], attributes: dict[str, Any], sites: int
) -> None:
    count = _one(op, shapes, inputs, **attributes)
    assert (len(count.sites), len(count.custom)) == (sites, 0)


def test_other_domains_and_unknown_ops_are_custom() -> None:
    for op, domain in (("Add", "com.example"), ("Scaler", "ai.onnx.ml"), ("NoSuchOp", "")):
        count = _one(op, {"a": A, "b": B}, ["a", "b"], domain=domain)
        assert [site.op for site in count.custom] == [op]
        assert count.sites == ()
    assert len(_one("Add", {"a": A, "b": B}, ["a", "b"], domain="ai.onnx").sites) == 1


def test_function_counts_at_each_call() -> None:
    body = [helper.make_node("Add", ["p", "q"], ["r"], name="inner")]
    for function_opset in (21, 13):  # the inliner skips a function of another opset
        imports = [helper.make_opsetid("", function_opset)]
        function = helper.make_function("f", "Plus", ["p", "q"], ["r"], body, imports)
        calls = [
            helper.make_node("Plus", ["a", "b"], ["x"], name="first", domain="f"),
            helper.make_node("Plus", ["x", "b"], ["y"], name="second", domain="f"),
        ]
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, A) for n in ("a", "b")]
        model = helper.make_model(
            helper.make_graph(calls, "g", values, []),
            opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("f", 1)],
            functions=[function],
        )
        counts = counter.count(model)
        assert [site.op for site in counts.sites] == ["Add", "Add"]
        assert counts.custom == ()


def test_command_prints_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "clean.onnx")
    assert counter.main([path]) == 0
    assert "7 sites, 0 custom" in capsys.readouterr().out
    assert counter.main([path, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)[path]["sites"]) == 7
