"""Files written whole, and leftovers of killed processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from zerostride.cli import files
from zerostride.system.whole_files import sweep, temporary_name, write_whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="on Windows nothing is swept")

#: Writes half a file, says so, and waits to be killed.
_HALF = """
import sys, time
from pathlib import Path
from zerostride.system.whole_files import write_whole

def half(file):
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    time.sleep(600)

write_whole((Path(sys.argv[1]), half))
"""


@pytest.fixture(autouse=True)
def swept_anew():
    """Folders are swept once a process, and here each test is another one."""
    sweep.cache_clear()


def killed_while_writing(goal: Path) -> Path:
    """What a process leaves that is killed in the middle of a file."""
    with subprocess.Popen(
        [sys.executable, "-c", _HALF, str(goal)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    (left,) = goal.parent.glob(f".zerostride-{process.pid}-*{goal.suffix}")
    return left


def age(path: Path, hours: float) -> None:
    then = time.time() - hours * 3600
    os.utime(path, (then, then), follow_symlinks=False)


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_file_left_by_a_killed_process_is_removed_after_a_day(tmp_path):
    left = killed_while_writing(tmp_path / "out.npy")
    age(left, 23)
    files.write_array(str(tmp_path / "out.npy"), np.zeros(3))
    assert left.read_bytes() == b"half"
    sweep.cache_clear()
    age(left, 25)
    files.write_array(str(tmp_path / "out.npy"), np.ones(3))
    assert os.listdir(tmp_path) == ["out.npy"]
    assert np.load(tmp_path / "out.npy").tolist() == [1, 1, 1]


def test_files_of_other_owners_stay(tmp_path):
    dead, other = dead_process(), tmp_path / "victim"
    other.write_bytes(b"victim")
    names = {
        "living": f".zerostride-{os.getpid()}-{'0' * 16}.onnx",
        "init": f".zerostride-1-{'0' * 16}.onnx",
        "link": f".zerostride-{dead}-{'1' * 16}.onnx",
        "folder": f".zerostride-{dead}-{'2' * 16}.onnx",
        "young": f".zerostride-{dead}-{'3' * 16}.onnx",
        "only copy": f".zerostride-{dead}-{'4' * 16}.old0",
        "another name": f".zerostride-{dead}-{'5' * 16}x",
        "no number": f".zerostride-x-{'5' * 16}",
        "too large": f".zerostride-9999999999-{'5' * 16}",
    }
    for what, name in names.items():
        path = tmp_path / name
        if what == "link":
            path.symlink_to(other)
        elif what == "folder":
            path.mkdir()
        else:
            path.write_bytes(b"")
        if what != "young":
            age(path, 1000)
    age(other, 1000)
    if os.geteuid() == 0:
        names["another user's"] = f".zerostride-{dead}-{'6' * 16}.xml"
        path = tmp_path / names["another user's"]
        path.write_bytes(b"")
        os.chown(path, 65534, 65534)
        age(path, 1000)
    gone = [tmp_path / f".zerostride-{dead}-{'a' * 16}{end}" for end in ("", ".onnx", ".old1")]
    for path in gone:
        path.write_bytes(b"")
        age(path, 1000)
    os.link(gone[2], tmp_path / "kept")  # the file that was to be replaced is there itself
    sweep(tmp_path)
    assert not any(path.exists() for path in gone)
    assert {*os.listdir(tmp_path)} == {"victim", "kept", *names.values()}
    assert other.read_bytes() == b"victim"


def test_missing_or_unreadable_folder_is_no_error(tmp_path):
    sweep(tmp_path / "missing")
    (tmp_path / "file").write_bytes(b"")
    sweep(tmp_path / "file")


def test_several_files_are_replaced_together_or_not(tmp_path):
    first, second = tmp_path / "a.bin", tmp_path / "b.param"
    first.write_bytes(b"old")

    def fail(file):
        file.write(b"x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_whole((first, lambda file: file.write(b"new")), (second, fail))
    assert (os.listdir(tmp_path), first.read_bytes()) == (["a.bin"], b"old")
    write_whole((first, lambda file: file.write(b"1")), (second, lambda file: file.write(b"2")))
    assert first.read_bytes() + second.read_bytes() == b"12"
    assert {*os.listdir(tmp_path)} == {"a.bin", "b.param"}


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole((tmp_path / "a", lambda file: file.write(b"")))
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_concurrent_cleanups_do_not_collide(tmp_path):
    dead = dead_process()
    for k in range(2000):
        path = tmp_path / f".zerostride-{dead}-{k:016x}"
        path.write_bytes(b"")
        age(path, 48)
    code = (
        "import sys; from pathlib import Path\n"
        "from zerostride.system.whole_files import write_whole\n"
        "for k in range(50): write_whole((Path(sys.argv[1]), lambda file: file.write(b'whole')))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "out"]) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_temporary_name_has_its_process_id(tmp_path):
    assert temporary_name(tmp_path / "m.onnx").name.startswith(f".zerostride-{os.getpid()}-")
