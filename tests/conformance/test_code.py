"""The source that `Plan.code` writes, run in the frameworks it is written for.

Each plan is run by value against a broadcast made of repeats. A framework runs in one process of
its own, because some die instead of raising: it takes cases and prints results as JSON.
"""

from __future__ import annotations

import functools
import json
import subprocess
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.code import code
from zerostride.measure.isolation import interpreter_for

pytestmark = pytest.mark.conformance

PLANS = {
    "rank 0": zs.plan((), ()),
    "a scalar": zs.plan((2, 3), ()),
    "equal": zs.plan((2, 3), (2, 3)),
    "a row": zs.plan((4, 3), (3,)),
    "a column": zs.plan((4, 3), (4, 1)),
    "two-sided": zs.plan((4, 1), (1, 3)),
    "a channel": zs.plan((2, 3, 4, 5), (3,), rule="pdpd", axis=1),
    "a run of axes": zs.plan((2, 3, 4, 5), (3, 4, 1), rule="pdpd", axis=1),
    "smaller first": zs.plan((3,), (2, 3, 4), rule="paddle", axis=1),
    "both ways": zs.plan((8, 1, 6, 1), (7, 1, 5), rule="paddle", axis=1),
    "a square": zs.plan((5, 5), (5,)),
    "ncnn's square": zs.plan((5, 5), (5,), rule="ncnn"),
    "rank 5": zs.plan((2, 1, 3, 1, 2), (3, 2, 2)),
    "rank 8": zs.plan((2, 1, 1, 2, 1, 1, 1, 2), (2, 1, 2, 1)),
    "three": zs.plan((2, 1, 4), (3, 1), (4,)),
    "explicit": zs.plan_to((3,), (2, 3, 4), mode="explicit", axes_mapping=[1]),
    "empty": zs.plan((0, 1), (1, 3)),
    "one to none": zs.plan((3, 1), (3, 0)),
}

#: What turns a list of arrays into operands, and the results back; `source` has run in between.
HARNESS = {
    "torch": ("torch", "torch.tensor(a)", "np.asarray(v)"),
    "jax": ("jax.numpy", "jax.numpy.asarray(a)", "np.asarray(v)"),
    "tensorflow": ("tensorflow", "tensorflow.constant(a)", "v.numpy()"),
    "paddle": ("paddle", "paddle.to_tensor(a)", "v.numpy()"),
    "mnn": (
        "MNN.expr",
        "MNN.expr.const(a.ravel().tolist(), list(a.shape), MNN.expr.NCHW)",
        "np.array(v.read()).reshape(v.shape)",
    ),
}

_LIBRARY = """
import {module}

def run(source, names, operands):
    space = {{name: {enter} for name, a in zip(names, operands)}}
    exec(source, space)
    return [{leave} for v in map(space.get, names)]
"""

_OPENVINO = """
def run(source, names, operands):
    space = {}
    exec(source, space)
    answer = space["ov"].compile_model(space["model"], "CPU")(operands)
    return [answer[k] for k in range(len(operands))]
"""

_ONNX = """
import onnxruntime

def run(source, names, operands):
    space = {}
    exec(source, space)
    session = onnxruntime.InferenceSession(space["model"].SerializeToString())
    return session.run(None, dict(zip(names, operands)))
"""

_NCNN = """
import ncnn

def run(source, names, operands):
    net = ncnn.Net()
    assert net.load_param_mem(source) == 0
    net.load_model_mem(b"")
    extractor = net.create_extractor()
    for name, a in zip(names, operands):
        extractor.input(name, ncnn.Mat(np.atleast_1d(a)).clone())
    status, out = extractor.extract("broadcast.sum")
    assert status == 0
    return [np.array(out)]
"""

_MAIN = """
import json, sys
import numpy as np

for key, case in json.load(sys.stdin).items():
    operands = [np.arange(np.prod(s, dtype=int), dtype="f4").reshape(s) for s in case["shapes"]]
    results = run(case["source"], case["names"], operands)
    answer = [[list(r.shape), r.ravel().tolist()] for r in results]
    print("\\nRESULT" + json.dumps([key, answer]), flush=True)
"""

PROGRAMS = {
    **{
        name: ("MNN" if name == "mnn" else name, _LIBRARY.format(module=m, enter=e, leave=v))
        for name, (m, e, v) in HARNESS.items()
    },
    "openvino": ("openvino", _OPENVINO),
    "onnx": ("onnxruntime", _ONNX),
    "ncnn": ("ncnn", _NCNN),
}


@functools.cache
def run(target: str) -> tuple[dict[str, Any], str]:
    """What the framework gives for each plan (for ncnn the sum), and how its process ended."""
    module, program = PROGRAMS[target]
    python = interpreter_for(target)
    found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"{module} cannot be imported by {python}")
    cases = {}
    for name, plan in PLANS.items():
        if name not in REFUSED.get(target, ()):
            names = [f"operand{k}" for k in range(len(plan.operands))]
            source = code(plan, target, names)
            cases[name] = {"shapes": plan.operands, "names": names, "source": source}
    done = subprocess.run(
        [python, "-c", program + _MAIN],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    results = dict(json.loads(line.removeprefix("RESULT")) for line in lines)
    return results, f"{target} ended with {done.returncode}:\n{done.stderr[-2000:]}"


def expected(plan: zs.Plan) -> list[np.ndarray[Any, Any]]:
    """Each operand broadcast by repeating its elements."""
    found = []
    for shape, aligned in zip(plan.operands, plan.aligned, strict=True):
        whole = np.arange(np.prod(shape, dtype=int), dtype="f4").reshape(aligned)
        for axis, (size, full) in enumerate(zip(aligned, plan.shape, strict=True)):
            whole = np.repeat(whole, full, axis) if size != full else whole
        found.append(whole)
    return found


#: Plans that a target's own limits refuse: a clear error, tested in the unit tests.
REFUSED = {
    "mnn": {"empty", "one to none"},
    "openvino": {"empty", "one to none"},
    "ncnn": {"empty", "one to none", "three", "explicit", "rank 5", "rank 8"},
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("target", PROGRAMS)
def test_the_source_runs_where_it_is_written_for(target: str, name: str) -> None:
    plan = PLANS[name]
    if name in REFUSED.get(target, ()):
        with pytest.raises(zs.BroadcastError):
            code(plan, target)
        return
    want = expected(plan)
    if target == "ncnn":
        want = [(want[0] + want[1]).reshape(plan.shape or (1,))]
    results, ended = run(target)
    assert name in results, ended
    for (shape, data), right in zip(results[name], want, strict=True):
        assert tuple(shape) == right.shape
        np.testing.assert_array_equal(np.array(data, "f4").reshape(shape), right)
