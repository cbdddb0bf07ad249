"""The campaign of files that ask for much work: its files are read, and it finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="half of the files are ONNX files")
pytest.importorskip("flatbuffers", reason="writes .tflite files")
pytest.importorskip("resource", reason="measures processes as POSIX does")
from campaigns.hostile import command

import zerostride as zs


@pytest.mark.slow
def test_every_file_is_a_model(tmp_path: Path) -> None:
    """A file that its reader refuses would test nothing."""
    for name, write in command.files(tmp_path, 20).items():
        sizes = zs.shapes(write())
        assert sizes.tensors, name


def test_exception_that_is_not_the_packages_own_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: Path, target: str) -> None:
        raise IndexError("broken")

    file = command.files(tmp_path, 20)["onnx: names of rank 4"]()
    monkeypatch.setitem(command.USES, "shapes", broken)
    assert command.measured(file, "shapes", "ncnn")["slipped"] == "IndexError: broken"
    refused = command.measured(file, "run", "ncnn")
    assert "has no size" in refused["refused"]
    assert not refused["slipped"]
