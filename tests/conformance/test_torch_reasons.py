"""Why PyTorch does not export a module: the error has its reason, its fix and the user's line."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="modules are exported by PyTorch")
pytest.importorskip("onnx", reason="the exporter needs it")
pytest.importorskip("onnxscript", reason="the exporter needs it")

import torch

import zerostride as zs
from zerostride.models.formats import torch_reasons
from zerostride.models.formats.torch_reasons import MAX_REASON, MAX_WORDS, reason_of

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore"),
]


class Branch(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x


class Reads(torch.nn.Module):
    def forward(self, x):
        count = int(x.sum().item())
        return torch.zeros(count) + 1


class Specialised(torch.nn.Module):
    def forward(self, x):
        return x.reshape(4, 3) + 1


class Halves(torch.nn.Module):
    def forward(self, x):
        return x.reshape(-1, 2, 3) + x[:2].reshape(1, 2, 3)


class Bounded(torch.nn.Module):
    def forward(self, x):
        assert x.shape[0] < 8
        return x * 2


class Eigenvalues(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x)


class Misfit(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(7, 2)


class Absent(torch.nn.Module):
    def forward(self, x):
        return self.absent(x)


class Objects(torch.nn.Module):
    def forward(self, x):
        return x + 1, object()


class Plain(torch.nn.Module):
    def forward(self, x):
        return x * 2


X = torch.ones(4, 3)
N = {"x": {0: torch.export.Dim("n", min=2, max=64)}}
#: A module, what is open, words of the reason, and the user's line.
CASES = {
    "control flow": (Branch(), None, "depends on the numbers in a tensor", "if x.sum() > 0:"),
    "a number of a tensor": (
        *(Reads(), None, "depends on the numbers in a tensor"),
        "count = int(x.sum().item())",
    ),
    "a fixed size": (Specialised(), N, "specialized it to be a constant (4)", ""),
    "the fix of a fixed size": (Specialised(), N, "PyTorch suggests: n = 4", ""),
    "a multiple": (Halves(), N, "_n = Dim('_n', min=1, max=32), n = 2*_n", ""),
    "the guard of a multiple": (Halves(), N, "((3*x[0]) % 6) == 0", ""),
    "a bound": (Bounded(), N, "PyTorch suggests: n = Dim('n', max=7)", ""),
    "no ONNX op": (
        *(Eigenvalues(), None, "no ONNX ops for aten.linalg_eig: "),
        "return torch.linalg.eigvals(x)",
    ),
    "shapes": (Misfit(), None, "same reduction dim, but got", "return x @ torch.ones(7, 2)"),
    "Python": (Absent(), None, "AttributeError: 'Absent' object has", "return self.absent(x)"),
    "objects": (Objects(), None, "<class 'object'> in output, which is not a known type", ""),
    "names": (Plain(), {"z": N["x"]}, "must be the arg names ['x']", ""),
}
#: Words of PyTorch about its own parts.
ADVICE = ("\x1b", "\\x1b", "Next steps", "TORCH_LOGS", "draft_export", "TORCHDYNAMO", "report=True")


def error_of(name):
    module, dynamic, *_ = CASES[name]
    x = torch.ones(3, 3) if isinstance(module, Eigenvalues) else X
    with pytest.raises(zs.ModelError) as caught:
        zs.audit(module, "ncnn", args=(x,), dynamic_shapes=dynamic)
    return str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_an_error_has_the_reason_and_the_line(name):
    module, _, words, code = CASES[name]
    error = error_of(name)
    assert error.startswith(f"{type(module).__name__}: torch.")
    assert words in error
    assert not [advice for advice in ADVICE if advice in error]
    assert "\n" not in error
    place = re.search(r"; at (.+):(\d+), in forward: (.+)$", error)
    assert (place is not None) == bool(code), error
    if place is not None:
        assert place[1] == __file__
        assert place[3] == code == linecache.getline(__file__, int(place[2])).strip()


def test_an_archive_has_the_reason(tmp_path):
    program = torch.export.export(Eigenvalues().eval(), (torch.ones(3, 3),))
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(zs.ModelError) as caught:
        zs.audit(tmp_path / "m.pt2", "ncnn")
    error = str(caught.value)
    assert error.startswith(f"{tmp_path / 'm.pt2'}: PyTorch does not export it: no ONNX ops for ")
    assert "aten.linalg_eig" in error
    assert f"at {Path(__file__)}:" in error
    assert not [advice for advice in ADVICE if advice in error]


def test_a_reason_has_the_user_s_names_of_sizes(monkeypatch):
    program = torch.export.export(Plain(), (X,), dynamic_shapes=N)
    (symbol,) = program.range_constraints

    def fail(*_, **__):
        raise ValueError(f"no view of ({symbol}, 3)")

    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(zs.ModelError, match=r"ValueError: no view of \(n, 3\)"):
        zs.audit(program, "ncnn")


def test_an_installed_package_is_no_place_of_a_user(monkeypatch):
    own = "/env/lib/site-packages/zerostride"
    monkeypatch.setattr(torch_reasons, "_OWN", own)
    assert not torch_reasons._is_users(f"{own}/models/formats/torch_export.py")
    assert not torch_reasons._is_users("/env/lib/site-packages/torch/nn/modules/module.py")
    assert not torch_reasons._is_users("<eval_with_key>.0")
    assert not torch_reasons._is_users(linecache.__file__)
    assert torch_reasons._is_users("/env/lib/site-packages/transformers/modeling_t5.py")
    assert torch_reasons._is_users("/home/user/torch/model.py")


def test_reasons_are_short_and_of_one_line():
    try:
        try:
            raise ValueError("the inner \x1b[96mreason\x1b[0m")
        except ValueError as inner:
            raise RuntimeError(
                f"line one\nFor more information, run with X\n{'x' * 5000}"
            ) from inner
    except RuntimeError as error:
        reason = reason_of(error)
    assert "For more information" not in reason
    assert reason.startswith(f"line one {'x' * (MAX_WORDS - 9)}; at {__file__}:")
    assert len(reason) <= MAX_REASON
    assert reason_of(ValueError("\x1b[96mred\x1b[0m\n\nmore")) == "ValueError: red"
    assert reason_of(KeyError()) == "KeyError"
