"""Home folders that are read-only, full, missing or unset: every command still works."""

import os
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx", reason="the model is an ONNX file")
import small  # noqa: E402

import warm  # noqa: E402
from sampled import few  # noqa: E402
from zerostride.models.findings import Outcome  # noqa: E402
from zerostride.runtimes.verify.cache import Cache  # noqa: E402
from zerostride.runtimes.verify.compare import Agreement  # noqa: E402
from zerostride.system.cache_folder import cache_folder  # noqa: E402

ANSWER = Agreement(Outcome.AGREES, "", 6, 0.0)
#: Every command that keeps something for later, and some that write a file that is named.
COMMANDS = {
    "verify": ("verify", "m.onnx", "--engine", "numpy"),
    "audit": ("audit", "m.onnx", "--target", "ncnn", "-o", "report.html"),
    "port": ("port", "m.onnx", "--target", "ncnn", "-o", "ported.onnx"),
    "shapes": ("shapes", "m.onnx", "-o", "shapes.onnx"),
    "run": ("run", "m.onnx", "--random", "0", "-o", "y=out.npy"),
    "engines": ("engines", "numpy", "--measure"),
}


@pytest.fixture
def model(tmp_path):
    content = small.model([small.node("Add", "a b")], {"a": (2, 3), "b": (3,)})
    (tmp_path / "m.onnx").write_bytes(content.SerializeToString())
    return tmp_path / "m.onnx"


def run(model: Path, words, home: str, most: int | None = None):
    """A command in the model's folder; `most` bytes are the longest file that it may write."""
    environment = {**os.environ, "HOME": home}
    for name in ("XDG_CACHE_HOME", "ZEROSTRIDE_CACHE"):
        environment.pop(name, None)
    return warm.run(words, cwd=model.parent, env=environment, most=most)


#: The commands; the last one, a measurement, takes seconds.
EACH = few(len(COMMANDS) - 1, COMMANDS)


@pytest.mark.parametrize("command", EACH)
@pytest.mark.parametrize("home", ["/proc", "/dev/null/home", "/proc/nowhere/home"])
def test_unwritable_home_changes_no_result(model, command, home):
    usual = run(model, COMMANDS[command], str(model.parent / "home"))
    there = run(model, COMMANDS[command], home)
    assert usual.returncode in (0, 1), usual.stderr
    assert (there.returncode, there.stderr) == (usual.returncode, usual.stderr)
    assert there.stdout.splitlines()[0] == usual.stdout.splitlines()[0]


@pytest.mark.parametrize("command", EACH)
def test_full_disk_is_one_line_and_leaves_no_file(model, command):
    """The limit is below every file that is written, and above what a pipe needs."""
    words, before = COMMANDS[command], {"m.onnx"}
    answer = run(model, words, str(model.parent / "home"), most=10)
    if "-o" in words:
        name = words[-1].rpartition("=")[2]
        named = model.parent.resolve() / name
        assert (answer.returncode, answer.stdout) == (2, "")
        assert answer.stderr == f"zerostride: {named}: File too large\n" or (
            answer.stderr == f"zerostride: {name}: File too large\n"
        )
    else:
        assert (answer.returncode, answer.stderr) == (0, "")
    left = [path for path in model.parent.rglob("*") if path.is_file()]
    assert {path.name for path in left} == before


def test_full_folder_of_temporary_files_is_one_line(model):
    for engine in ("onnxruntime", "openvino"):
        pytest.importorskip(engine, reason="two engines are compared")
    words = ("bisect", "m.onnx", "--other-engine", "openvino")
    answer = run(model, words, str(model.parent / "home"), most=10)
    assert (answer.returncode, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
    assert "(TMPDIR names the folder of temporary files)" in answer.stderr


def test_results_are_cached_only_where_possible(tmp_path, monkeypatch):
    monkeypatch.setenv("ZEROSTRIDE_CACHE", str(tmp_path))
    kept = Cache("numpy", "2")
    kept.put("task", ANSWER)
    assert kept.get("task") == ANSWER
    (tmp_path / "file").write_bytes(b"")
    for name in ("/proc/nowhere", str(tmp_path / "file"), str(tmp_path / ("n" * 300))):
        monkeypatch.setenv("ZEROSTRIDE_CACHE", name)
        none = Cache("numpy", "2")
        none.put("task", ANSWER)
        none.trim()
        assert none.get("task") is None
        assert not none.on


def test_user_without_a_home_has_no_cache(monkeypatch):
    import pwd

    def nobody(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_CACHE_HOME", "ZEROSTRIDE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache_folder("verify") is None
    cache = Cache("numpy", "2")
    cache.put("task", ANSWER)
    assert cache.get("task") is None
