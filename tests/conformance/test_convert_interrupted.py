"""A conversion that is interrupted or meets a full disk: whole files alone, and a run that goes on.

Real processes end at chosen moments: when the n-th file gets its name, or some time after the n-th
child process has started.
"""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs

onnx: Any = pytest.importorskip("onnx", reason="the model is made with the onnx package")
for package in ("pnnx", "ncnn"):
    pytest.importorskip(package, reason="the converter is an extra")

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's"),
]
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,6,3] x) => (float[1,3,6,3] y) <float[3] bias = {1, 2, 3}> {
    r = Relu(x)
    y = Max(r, bias, x)
}
"""
FILES = {
    *("m.ncnn.onnx", "m.ncnn.param", "m.ncnn.bin", "m.ncnn.py", "convert.json"),
    *("report.html", "how.txt", "inputs.npz", "inputs-2.npz"),
}
#: The command, which sends itself a signal when it renames its n-th file into the folder, or some
#: time after it has started its n-th child.
PROGRAM = """
import os, subprocess, sys, threading
event, number, delay, sign, *words = sys.argv[1:]
left = int(number)

def end():
    os.kill(os.getpid(), int(sign))

replace, start = os.replace, subprocess.Popen.__init__

def counted_replace(source, goal):
    global left
    if event == "file" and os.path.basename(os.path.dirname(goal)) == "out":
        left -= 1
        if left == 0:
            end()
    replace(source, goal)

def counted_start(*args, **keywords):
    global left
    start(*args, **keywords)
    if event == "child":
        left -= 1
        if left == 0:
            threading.Timer(float(delay), end).start()

os.replace, subprocess.Popen.__init__ = counted_replace, counted_start
sys.argv = ["zerostride", *words]
from zerostride.cli.main import main
main()
"""


def _set_up(limit: int) -> None:
    """Limits the size of files, and takes interrupts: a job in the background ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


class Done:
    """A finished run in a folder with a model, with temporary files of its own."""

    def __init__(self, folder: Path, *end: object, limit: int = 0) -> None:
        temporary = folder / "temporary"
        temporary.mkdir(exist_ok=True)
        words = ["-c", PROGRAM, *map(str, end or ("", 0, 0, 0))]
        process = subprocess.Popen(
            [sys.executable, *words, "convert", "m.onnx", "--to", "ncnn", "-o", "out"],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=partial(_set_up, limit),
        )
        self.output, self.error = process.communicate(timeout=120)
        self.status = process.returncode
        self.group = process.pid
        self.temporary = [path.name for path in temporary.iterdir()]
        self.files = {
            path.name: path.read_bytes()
            for path in (folder / "out").glob("*")
            if not path.name.startswith(".zerostride-")
        }
        self.leftovers = [path.name for path in (folder / "out").glob(".zerostride-*")]

    @property
    def has_children(self) -> bool:
        """Whether a process of the run is left."""
        try:
            os.killpg(self.group, 0)
        except ProcessLookupError:
            return False
        return True


def modelled(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    onnx.save(onnx.parser.parse_model(MODEL), folder / "m.onnx")
    return folder


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nobody interrupts."""
    done = Done(modelled(tmp_path_factory.mktemp("a") / "run"))
    assert (done.status, done.error, done.temporary) == (0, "", [])
    assert set(done.files) == FILES
    return done.files


def moments() -> Iterator[tuple[str, int, float]]:
    """At a random time of the first of three children, at the last file's rename, and before."""
    yield "child", 1, random.Random(0).uniform(0, 0.1)
    yield "file", len(FILES), 0.0
    yield "file", 3, 0.0


def same(files: dict[str, bytes], clean: dict[str, bytes]) -> bool:
    """Whether each file is that of the clean run."""
    return all(clean.get(name) == content for name, content in files.items())


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=lambda sign: sign.name)
def test_each_file_is_whole_or_absent(
    sign: signal.Signals, tmp_path: Path, clean: dict[str, bytes]
) -> None:
    folder = modelled(tmp_path / "run")
    for moment in moments():
        done = Done(folder, *moment, int(sign))
        assert same(done.files, clean), moment
        if sign is signal.SIGKILL:
            assert done.status == -sign, (moment, done.error)
            continue
        assert done.status == 130, (moment, done.error)
        assert done.error.startswith("zerostride: interrupted"), moment
        assert done.error.count("\n") == 1, moment
        assert not done.output
        assert not done.leftovers, moment
        assert not done.temporary, moment
        assert not done.has_children, moment
    if sign is signal.SIGKILL:  # a half set is not trusted
        (folder / "out" / "m.ncnn.bin").write_bytes(b"another run's")
    done = Done(folder)
    assert (done.status, done.error) == (0, "")
    assert set(done.files) == FILES
    assert same(done.files, clean)


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    folder = modelled(tmp_path / "run")
    out = folder / "out"
    out.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(out)]
    mounted = not os.geteuid() and not subprocess.run(mount, check=False).returncode
    try:
        done = Done(folder) if mounted else Done(folder, limit=8000)
        reason = os.strerror(errno.ENOSPC if mounted else errno.EFBIG)
        assert done.status == 2
        assert done.error.startswith("zerostride: out/")
        assert f"{reason}; nothing was written; make room, then run the same" in done.error
        assert done.error.count("\n") == 1
        assert not done.files
        assert not done.leftovers
    finally:
        if mounted:
            subprocess.run(["umount", str(out)], check=True)


def test_a_full_temporary_folder_says_which_setting_moves_it(tmp_path: Path) -> None:
    folder = modelled(tmp_path / "run")
    temporary = folder / "temporary"
    temporary.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(temporary)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        done = Done(folder)
        assert done.status == 2, done.output
        assert "No space left on device" in done.error
        assert "TMPDIR" in done.error
        assert not done.files
    finally:
        subprocess.run(["umount", str(temporary)], check=True)


def test_the_folder_names_the_option_that_is_wrong(tmp_path: Path) -> None:
    modelled(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(zs.ModelError, match="no folder can be made there: it is a file; -o names"):
        zs.convert(tmp_path / "m.onnx", "ncnn", tmp_path / "file")
