"""PyTorch's modules, exported programs and .pt2 files: audits, lines of source, and fixes."""

from __future__ import annotations

import importlib.util
import linecache
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="modules are exported by PyTorch")
pytest.importorskip("onnx", reason="the exporter needs it")
pytest.importorskip("onnxscript", reason="the exporter needs it")

import numpy as np
import onnx
import torch
import torch_networks
from torch_networks import NETS

import zerostride as zs

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

SOURCE = Path(torch_networks.__file__)
#: How many findings of each network are not the same on ncnn, and can be fixed in its source.
FIXABLE = {
    "MaskedAttention": 5,
    "SqueezeExcite": 0,
    "ConvNeXtBlock": 3,
    "Rotary": 2,
    "Recurrent": 1,
    "YoloHead": 1,
    "AffineGroupNorm": 0,
    "FiLM": 0,
    "LayerScale": 2,
    "Positions": 1,
}
NAMES = [network.__name__ for network in NETS]


def network(name, module=torch_networks):
    torch.manual_seed(0)
    return getattr(module, name)().eval()


def inputs(name):
    return NETS[getattr(torch_networks, name)]


def dicts(report):
    return [finding.as_dict() for finding in report.findings]


def wrong(report):
    return [finding for finding in report.findings if finding.verdict != "same"]


@pytest.mark.parametrize("name", NAMES)
def test_module_is_audited_as_its_file(tmp_path, name):
    torch.onnx.export(network(name), inputs(name), tmp_path / "m.onnx", dynamo=True, verbose=False)
    of_module = zs.audit(network(name), "ncnn", via="none", args=inputs(name))
    of_file = zs.audit(tmp_path / "m.onnx", "ncnn", via="none")
    # As data: two refusals of the same are not equal objects.
    assert dicts(of_module) == dicts(of_file)
    assert of_module.findings
    assert of_module.notes == of_file.notes
    assert of_module.model == name
    # The oracle of a line: it names the parameter that the node adds or multiplies.
    parameters = dict(network(name).named_parameters()) | dict(network(name).named_buffers())
    named = 0
    for finding in of_module.findings:
        assert finding.origin.file == str(SOURCE)
        assert finding.origin.code == linecache.getline(str(SOURCE), finding.origin.line).strip()
        for operand in finding.names:
            if operand in parameters:
                assert f"self.{operand.split('.')[0]}" in finding.origin.code
                named += 1
    assert named >= FIXABLE[name] - (name == "MaskedAttention")  # `mask` is no parameter


def load(text, path):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", [name for name in NAMES if FIXABLE[name]])
def test_every_fix_of_the_source_makes_its_finding_clean(tmp_path, name):
    """Fixes are applied one by one: after each, its finding is gone and no other has come."""
    lines = SOURCE.read_text().splitlines()
    model = network(name)
    expected = model(*inputs(name))
    report = zs.audit(model, "ncnn", via="none", args=inputs(name))
    applied = 0
    while fixable := [finding for finding in wrong(report) if finding.source_fix]:
        first = fixable[0]
        place = first.origin.line - 1
        indent = len(lines[place]) - len(lines[place].lstrip())
        lines[place] = " " * indent + first.source_fix
        module = load("\n".join(lines), tmp_path / f"fixed_{applied}.py")
        fixed = network(name, module)
        fixed.load_state_dict(model.state_dict())
        again = zs.audit(fixed, "ncnn", via="none", args=inputs(name))
        assert len(wrong(again)) == len(wrong(report)) - 1
        assert torch.allclose(fixed(*inputs(name)), expected, atol=1e-5)
        report, applied = again, applied + 1
    assert applied == FIXABLE[name]
    assert report.ok, wrong(report)


@pytest.mark.slow
def test_programs_and_archives_are_audited_as_the_module(tmp_path):
    name = "MaskedAttention"
    program = torch.export.export(network(name), inputs(name))
    torch.export.save(program, tmp_path / "m.pt2")
    of_module = zs.audit(network(name), "ncnn", via="none", args=inputs(name))
    of_program = zs.audit(program, "ncnn", via="none")
    of_archive = zs.audit(tmp_path / "m.pt2", "ncnn", via="none")
    assert dicts(of_module) == dicts(of_program) == dicts(of_archive)
    assert of_archive.model == str(tmp_path / "m.pt2")
    assert zs.shapes(tmp_path / "m.pt2").shapes["add"] == (1, 6, 6)
    ported = zs.port(tmp_path / "m.pt2", "ncnn", via="none", output=tmp_path / "out.onnx")
    assert ported.ok
    assert len(ported.changes) == 5
    assert zs.audit(tmp_path / "out.onnx", "ncnn", via="none").ok


class Scaled(torch.nn.Module):
    def forward(self, x, y):
        return torch.relu(x) * y


class Halved(torch.nn.Module):
    """Sizes that are sums, products and quotients of the input's."""

    def forward(self, x, y):
        rows = torch.cat([x, x[:1]])[::2]
        return torch.nn.functional.pad(rows, (0, 0, 1, 0)) * y


def exported(module, rows):
    dynamic = {"x": {0: rows}, "y": None}
    return torch.export.export(module, (torch.ones(3, 5), torch.ones(5)), dynamic_shapes=dynamic)


@pytest.mark.parametrize(
    ("rows", "name"), [(torch.export.Dim("rows"), "rows"), (torch.export.Dim.AUTO, "x_0")]
)
def test_a_program_names_its_open_sizes(rows, name):
    """As the user did; without a name, by the input and the axis."""
    program = exported(Halved(), rows)
    *_, result = zs.shapes(program, sizes={name: 8}).shapes.values()
    assert result == (6, 5)


def test_an_archive_names_its_open_sizes(tmp_path):
    torch.export.save(exported(Halved(), torch.export.Dim("rows")), tmp_path / "m.pt2")
    report = zs.audit(tmp_path / "m.pt2", "ncnn", via="none")
    (finding,) = report.findings
    assert "x_0" in str(finding.operands[0][1][0])
    assert "s77" not in str(report) + report.to_json()
    assert finding.values is not None
    assert set(finding.values) == {"x_0"}


def test_open_sizes_keep_their_names():
    example = (torch.ones(3, 5), torch.ones(5))
    rows = torch.export.Dim("rows")
    dynamic = {"x": {0: rows}, "y": None}
    report = zs.audit(Scaled(), "ncnn", via="none", args=example, dynamic_shapes=dynamic)
    (finding,) = wrong(report)
    assert finding.verdict == "same_here"
    assert finding.values == {"rows": 5}
    assert finding.source_fix == "return torch.relu(x) * y.reshape(1, 5)"
    assert finding.operands[0][1][0] == "rows"


def test_commands_take_modules(tmp_path):
    module = network("Positions").train()
    example = inputs("Positions")
    assert zs.shapes(module, args=example).shapes["mul"] == (1, 6, 6)
    assert zs.port(module, "ncnn", via="none", args=example, output=tmp_path / "out.onnx").ok
    assert not all(
        finding.verdict == "same"
        for finding in zs.port(module, "ncnn", via="none", args=example, dry_run=True).before
    )
    assert module.training  # as it was


def test_bad_calls():
    module = network("Positions")
    with pytest.raises(TypeError, match="example inputs"):
        zs.audit(module, "ncnn", via="none")
    with pytest.raises(TypeError, match=r"^args is .* a tuple"):
        zs.audit(module, "ncnn", via="none", args=torch.ones(1, 6, 6))
    with pytest.raises(TypeError, match=r"for a torch\.nn\.Module"):
        zs.audit("model.onnx", "ncnn", via="none", args=(1,))
    with pytest.raises(zs.ModelError, match=r"Positions: torch\.export refuses it"):
        zs.audit(module, "ncnn", via="none", args=(torch.ones(2, 3),))
    scripted = torch.jit.script(module)
    with pytest.raises(zs.ModelError, match="a TorchScript module"):
        zs.audit(scripted, "ncnn", via="none", args=inputs("Positions"))


def test_an_error_about_an_input_names_the_module():
    words = "^Positions: input 'x' is complex128; the model wants float32"
    with pytest.raises(zs.ZerostrideError, match=words):
        zs.verify(
            network("Positions"), "numpy", args=inputs("Positions"), inputs={"x": np.ones(2) * 1j}
        )


def test_bisection_of_a_module_names_the_line_of_the_fault(tmp_path):
    module, other = network("FiLM"), tmp_path / "other.onnx"
    torch.onnx.export(module, inputs("FiLM"), other, dynamo=True, verbose=False)
    assert zs.bisect(module, other, args=inputs("FiLM")).culprit is None
    content = onnx.load(other)
    add = next(node for node in content.graph.node if node.op_type == "Add")
    add.op_type = "Sub"
    onnx.save(content, other)
    report = zs.bisect(module, other, args=inputs("FiLM"))
    assert report.model == "FiLM"
    assert report.culprit.op == "Add"
    assert report.culprit.origin.file == str(SOURCE)
    assert "+" in report.culprit.origin.code


def test_bisection_runs_a_module_on_its_example(tmp_path):
    class Far(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x - 100)

    other, x = tmp_path / "other.onnx", torch.full((2, 3), 101.0)
    torch.onnx.export(Far(), (x,), other, dynamo=True, verbose=False)
    content = onnx.load(other)
    next(node for node in content.graph.node if node.op_type == "Relu").op_type = "Abs"
    onnx.save(content, other)
    # Relu and Abs differ on random inputs, and not on the example.
    assert zs.bisect(Far(), other, args=(x,)).culprit is None
    assert (
        zs.bisect(Far(), other, args=(x,), inputs={"x": np.zeros((2, 3), np.float32)}).culprit
        is not None
    )
