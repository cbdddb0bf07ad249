"""Bisection keeps its bounds: memory on a large network, and nothing is left after Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("onnxruntime", reason="runs both files")
from campaigns.models.bisect_graphs import saved  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX's")

#: 200 layers of these activations are 500 MiB.
LAYERS, SHAPE = 200, (1, 10, 256, 256)
#: The children's peak and the command's own, each in bytes: 2 GiB together.
MOST = 2**30


def network(layers: int, shape: tuple[int, ...], fault: int | None = None) -> onnx.ModelProto:
    """Layers that add, multiply and clip; one of them may add other numbers."""
    nodes, constants = [], []
    for k in range(layers):
        numbers = np.linspace(-0.5, 0.5, shape[1], dtype=np.float32).reshape(-1, 1, 1)
        if k == fault:
            numbers = numbers[::-1].copy()
        constants.append(numpy_helper.from_array(numbers, f"c{k}"))
        op = ("Add", "Mul", "Max")[k % 3]
        nodes.append(helper.make_node(op, [f"t{k}", f"c{k}"], [f"t{k + 1}"], f"n{k}"))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name in ("t0", f"t{layers}")
    ]
    graph = helper.make_graph(nodes, "deep", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_500_mib_of_activations_within_2_gib(tmp_path: Path) -> None:
    file = saved(network(LAYERS, SHAPE), tmp_path / "a.onnx")
    other = saved(network(LAYERS, SHAPE, fault=150), tmp_path / "b.onnx")
    words = ["bisect", str(file), str(other), "--json", "--timeout", "120"]
    script = (
        "import resource, sys; from zerostride.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end:\n"
        "    # Not getrusage of itself: that counts the process that started it, too.\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    peak = next(line.split()[1] for line in lines if line.startswith('VmHWM'))\n"
        "    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "    print(peak, children, file=sys.stderr)\n"
        "    raise\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert '"node": "n150"' in done.stdout
    own, children = (int(line) * 1024 for line in done.stderr.split()[-2:])
    assert own < MOST
    assert children < MOST


@pytest.mark.parametrize("tenths", [2, 6, 10, 15, 20, 30])
def test_an_interrupt_leaves_nothing(tmp_path: Path, tenths: int) -> None:
    """The terminal sends Ctrl-C to the command and to its children."""
    file = saved(network(60, (1, 8, 64, 64)), tmp_path / "a.onnx")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-m", "zerostride", "bisect", str(file), str(file), "--repro", "repro"],
        cwd=scratch,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(tenths / 10)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=300)
    assert child.returncode in (0, 130), err
    assert b"Traceback" not in err
    assert list(scratch.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
