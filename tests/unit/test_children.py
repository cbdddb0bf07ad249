"""Child processes: one function starts them, and they import nothing from the current folder."""

from __future__ import annotations

import ast
import functools
import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import zerostride as zs
from sampled import few
from zerostride.cli.main import cli
from zerostride.system import children

SOURCE = Path(zs.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"
#: Every command, and those of its calls that start children or load packages late.
CALLS: dict[str, list[list[str]]] = {
    "audit": [
        ["model.onnx", "--target", "ncnn"],
        ["model.onnx", "copy.onnx", "--target", "mnn", "--jobs", "2", "--output", "page.html"],
        ["net.param", "--target", "ncnn"],
    ],
    "bisect": [["model.onnx", "--other-engine", "openvino"]],
    "compare": [["5,5", "5"]],
    "completion": [["bash"]],
    "convert": [["model.onnx", "-o", "out", "--to", "openvino"]],
    "compute": [["add", "a.npy", "b.npy", "-o", "c.npy"]],
    "engines": [["numpy", "--measure"], []],
    "equivalent": [["model.onnx", "copy.onnx"]],
    "explain": [["2,3", "3", "--svg", "plan.svg"]],
    "port": [["model.onnx", "--target", "ncnn", "--output", "ported.onnx"]],
    "run": [["model.onnx", "--random", "0"]],
    "shapes": [["model.onnx"], ["net.param"]],
    "verify": [["model.onnx", "--engine", "numpy"], ["model.onnx", "--engine", "onnxruntime"]],
}
#: It measures an engine, which takes seconds.
SLOWEST = "engines"
NET = "7767517\n2 2\nInput in 0 1 x 0=3 1=5\nBinaryOp add 1 1 x y 0=0 1=1 2=1.0\n"


@functools.cache
def sources() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_bytes()) for path in SOURCE.rglob("*.py")}


def imported(tree: ast.Module) -> set[str]:
    """The outermost names of what a module imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return names


def plant(folder: Path) -> Path:
    """Files of the names of all imports, which leave their name when they run; the mark."""
    mark = folder.parent / "planted"
    text = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    names = {*re.findall(r"^ *(?:from|import) (\w+)", text, re.MULTILINE), *sys.stdlib_module_names}
    names |= {"sitecustomize", "usercustomize", "zerostride", "numpy", "MNN", "onnxruntime"}
    code = f"open({str(mark)!r}, 'a').write(__name__ + '\\n')\nraise ImportError('planted')\n"
    for name in names:
        (folder / f"{name}.py").write_text(code)
    return mark


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, arrays and the planted files; a command puts its own beside them."""
    folder = tmp_path_factory.mktemp("planted") / "models"
    folder.mkdir()
    for name in ("model.onnx", "copy.onnx"):
        shutil.copy(EXAMPLES / "tiny_vision.onnx", folder / name)
    (folder / "net.param").write_text(NET)
    for name, shape in (("a.npy", (2, 3)), ("b.npy", (3,))):
        np.save(folder / name, np.ones(shape, np.float32))
    plant(folder)
    return folder


def test_every_command_has_calls_in_this_test() -> None:
    assert set(CALLS) == set(cli.commands)


@pytest.mark.parametrize("command", few(len(CALLS) - 1, sorted(CALLS, key=SLOWEST.__eq__)))
def test_no_command_runs_code_in_the_current_folder(command: str, planted: Path) -> None:
    if (
        command in ("audit", "bisect", "convert", "equivalent", "port", "run", "shapes", "verify")
        and find_spec("onnx") is None
    ):
        pytest.skip("the models are ONNX files")
    mark = planted.parent / "planted"
    for words in CALLS[command]:
        if command in ("bisect", "convert", "verify") and find_spec(words[-1]) is None:
            continue
        call = children.module("zerostride", command, *words)
        done = subprocess.run(call, cwd=planted, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), done.stderr
        assert not mark.exists(), f"{command} {words} ran {mark.read_text()}"


def test_planted_module_runs_if_the_current_folder_is_on_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    mark = plant(folder)
    subprocess.run([sys.executable, "-c", "import numpy"], cwd=folder, stderr=subprocess.DEVNULL)
    assert mark.read_text(), "nothing planted ran"  # Python 3.13 imports linecache first


def test_child_gets_no_current_folder_and_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["", ".", "beside", *sys.path, str(tmp_path)])
    monkeypatch.setenv("PYTHONPATH", "/named/by/environment")
    text = "print(json.dumps([sys.path, sys.argv[1:], sys.flags.isolated]))"
    done = subprocess.run(children.source(text, "a", "b c"), capture_output=True, check=True)
    path, words, isolated = json.loads(done.stdout)
    assert path == [entry for entry in sys.path[3:] if Path(entry).is_absolute()]
    assert words == ["a", "b c"]
    assert isolated


def test_module_runs_as_with_m(tmp_path: Path) -> None:
    done = subprocess.run(
        children.module("zerostride", "--version"), capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.startswith("zerostride, version")
    assert not done.stderr


def test_all_children_are_started_by_one_function() -> None:
    """No other command line of Python, and no package that starts Pythons of its own."""
    for path, tree in sources().items():
        if path == Path(children.__file__):
            continue
        # A campaign's pool of processes is a copy of this one, which imports nothing.
        assert not imported(tree) & {"multiprocessing", "concurrent"} or path.stem == "exhaustion"
        for node in ast.walk(tree):
            if isinstance(node, ast.List | ast.Tuple):
                words = {one.value for one in node.elts if isinstance(one, ast.Constant)}
                assert not words & {"-c", "-m", "-I", "-P"}, f"{path}:{node.lineno}"
