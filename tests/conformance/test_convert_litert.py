"""Modules, .pt2 files and .tflite files brought to LiteRT: litert-torch, the port, the outputs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.findings import Outcome, Verdict
from zerostride.runtimes.convert import tries as conversion

torch: Any = pytest.importorskip("torch", reason="the models are modules of PyTorch")
pytest.importorskip("litert_torch", reason="the converter is the extra litert-torch")
pytest.importorskip("onnxscript", reason="PyTorch's exporter needs it")

pytestmark = pytest.mark.conformance


class Turned(torch.nn.Module):  # type: ignore[misc]
    """Its last addition has operands of rank 4 and 2, which LiteRT's GPU delegate refuses."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: Any, *, z: Any) -> Any:
        return torch.relu(self.conv(x)).permute(0, 2, 3, 1) + z


TURNED = {"args": (torch.ones(2, 3, 5, 5),), "kwargs": {"z": torch.ones(5, 4)}}
FILES = {"Turned.litert-torch.tflite", conversion.STATE, "report.html", "how.txt", "inputs.npz"}


class Mixed(torch.nn.Module):  # type: ignore[misc]
    """Outputs and inputs in containers, in no order of the alphabet, one of them unused."""

    def forward(self, pair: Any, rows: Any, unused: Any, scale: float = 3.0) -> Any:
        difference = pair["b"] - pair["a"]
        return {
            "z": difference * scale,
            "a": difference + rows[1],
            "m": rows[0] | (difference > 0),
            "n": torch.arange(4) + 2**20,
        }


def outcomes(report: Any) -> list[Outcome]:
    return [check.outcome for check in report.checks]


def test_a_module_is_converted_and_proven(tmp_path: Path) -> None:
    report = zs.convert(Turned(), "litert", tmp_path / "out", **TURNED)
    assert report.ok, report
    assert (report.model, report.command) == ("Turned", "convert")
    assert outcomes(report) == [Outcome.AGREES]
    assert report.output == str(tmp_path / "out" / "Turned.litert.tflite")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {*FILES, "Turned.litert.tflite"}


def test_the_converted_file_is_ported_for_the_gpu_delegate(tmp_path: Path) -> None:
    report = zs.convert(Turned(), "litert-gpu", tmp_path / "out", **TURNED)
    assert report.ok, report
    assert [change.by for change in report.changes] == ["operands"]
    assert outcomes(report) == [Outcome.AGREES]
    assert any("litert-gpu does not run here" in note for note in report.notes)
    unported = zs.audit(tmp_path / "out" / "Turned.litert-torch.tflite", "litert-gpu")
    assert not unported.ok
    assert zs.audit(report.output, "litert-gpu").ok


def test_a_file_of_litert_is_ported_and_not_converted(tmp_path: Path) -> None:
    zs.convert(Turned(), "litert", tmp_path, **TURNED)
    model = tmp_path / "Turned.litert-torch.tflite"
    report = zs.convert(model, "litert-gpu", tmp_path / "out")
    assert report.ok, report
    assert len(report.changes) == 1
    assert set(outcomes(report)) == {Outcome.AGREES}
    files = {file.name for file in (tmp_path / "out").iterdir()}
    model = "Turned.litert-torch.litert-gpu.tflite"
    assert files == {model, "report.html", "how.txt", "inputs.npz"}


def test_inputs_and_outputs_keep_their_order(tmp_path: Path) -> None:
    pair = {"b": torch.ones(3, 4), "a": torch.ones(4)}
    rows = [torch.ones(3, 1, dtype=torch.bool), torch.ones(3, 1, dtype=torch.float64)]
    report = zs.convert(Mixed(), "litert", tmp_path / "out", args=(pair, rows, torch.ones(2)))
    assert outcomes(report) == [Outcome.AGREES] * 4, report
    many = torch.export.export(Many(), tuple(torch.ones(2, 3) for _ in range(12)))
    report = zs.convert(many, "litert", tmp_path / "out")
    assert outcomes(report) == [Outcome.AGREES] * 12, report


class Many(torch.nn.Module):  # type: ignore[misc]
    """Twelve outputs of twelve inputs, so that a name's end 10 comes before its end 2."""

    def forward(self, *arrays: Any) -> Any:
        return tuple(array * (k + 2) for k, array in enumerate(reversed(arrays)))


def test_open_sizes_get_the_numbers_that_are_given(tmp_path: Path) -> None:
    shapes = {"x": {0: torch.export.Dim("N")}, "z": None}
    report = zs.convert(
        Turned(), "litert", tmp_path / "out", **TURNED, dynamic_shapes=shapes, sizes={"N": 3}
    )
    assert outcomes(report) == [Outcome.AGREES], report
    assert report.checks[0].operands[0][1] == (3, 5, 5, 4)
    with pytest.raises(zs.ZerostrideError, match="--set N=NUMBER"):
        zs.convert(Turned(), "litert", tmp_path / "none", **TURNED, dynamic_shapes=shapes)


class Added(torch.nn.Module):  # type: ignore[misc]
    """Integers of 64 bits, which litert-torch stores in 32."""

    def forward(self, n: Any) -> Any:
        return n + torch.arange(3)


def test_numbers_that_the_file_does_not_hold_are_refused(tmp_path: Path) -> None:
    def convert(number: int) -> Any:
        args, inputs = (torch.ones(3, dtype=torch.int64),), {"n": [number, 0, 0]}
        return zs.convert(Added(), "litert", tmp_path, args=args, inputs=inputs)

    assert convert(2**31 - 1).ok
    (check,) = convert(2**31).checks
    assert check.outcome is Outcome.REFUSED
    assert "an input of int32 does not hold numbers of this int64" in check.detail


def counting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Counts the calls of the converter."""
    calls = []
    run_converter = conversion.run_converter

    def counted(*words: Any) -> Any:
        calls.append(words)
        return run_converter(*words)

    monkeypatch.setattr(conversion, "run_converter", counted)
    return lambda: len(calls)


def test_a_second_call_converts_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, out, module = counting(monkeypatch), tmp_path / "out", Turned()
    assert zs.convert(module, "litert", out, **TURNED).ok
    assert zs.convert(module, "litert", out, **TURNED).ok
    assert zs.convert(module, "litert-gpu", out, **TURNED).ok
    assert count() == 1  # the file before the port is the same for both
    with torch.no_grad():
        module.conv.bias += 1
    assert zs.convert(module, "litert", out, **TURNED).ok
    assert count() == 2
    (out / "Turned.litert-torch.tflite").write_bytes(b"another file")
    assert zs.convert(module, "litert", out, **TURNED).ok
    assert count() == 3


class Deep(torch.nn.Module):  # type: ignore[misc]
    """A product of rank 7 that broadcasts, which litert-torch cannot write."""

    def forward(self, x: Any, y: Any) -> Any:
        return x * y


def test_a_conversion_that_fails_is_an_answer(tmp_path: Path) -> None:
    args = (torch.ones(1, 2, 1, 3, 2, 3, 2), torch.ones(2, 2, 2, 1, 2, 1, 2))
    report = zs.convert(Deep(), "litert", tmp_path / "out", args=args)
    assert not report.ok
    assert report.output is None
    assert (report.model, report.command) == ("Deep", "convert")
    (check,) = report.checks
    assert (check.outcome, check.op) == (Outcome.REFUSED, "litert-torch")
    assert "failed to legalize operation 'tfl.mul'" in check.detail
    assert [finding.op for finding in report.findings] == ["Mul"]
    assert not list((tmp_path / "out").iterdir())


def saved(folder: Path) -> Path:
    program = torch.export.export(Turned().eval(), **TURNED)
    torch.export.save(program, folder / "m.pt2")
    return folder / "m.pt2"


def test_the_command_converts_an_archive(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["convert", str(saved(tmp_path)), "--to", "litert-gpu", "-o", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "zerostride", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"file: {out / 'm.litert-gpu.tflite'}\n" in done.stdout
    assert "1 agrees: 1 add (200 numbers" in done.stdout
    assert "Conversion" in (out / "report.html").read_text()


def test_an_archive_with_code_is_refused_before_the_converter_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = counting(monkeypatch)
    program = torch.export.export(Odd(), (torch.ones(2),))
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(zs.ModelError, match="is not one of PyTorch's core"):
        zs.convert(tmp_path / "m.pt2", "litert", tmp_path / "out")
    assert count() == 0


@torch.library.custom_op("zerostride_test::odd", mutates_args=())  # type: ignore[untyped-decorator]
def odd(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@odd.register_fake  # type: ignore[untyped-decorator]
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Odd(torch.nn.Module):  # type: ignore[misc]
    """Calls an operation that its file only names."""

    def forward(self, x: Any) -> Any:
        return odd(x)


def test_a_wrong_file_differs(tmp_path: Path) -> None:
    """The comparison of a module with a file of another one."""
    module = Turned()
    zs.convert(module, "litert", tmp_path, **TURNED)
    with torch.no_grad():
        module.conv.bias += np.float32(0.5)
    report = zs.verify(module, "litert", against=tmp_path / "Turned.litert.tflite", **TURNED)
    assert set(outcomes(report)) == {Outcome.DIFFERS}  # inside, and the output
    assert {finding.verdict for finding in report.findings} == {Verdict.SAME}
