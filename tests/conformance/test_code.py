"""The source of `Plan.code`, run in its frameworks.

Each plan is run by value against a broadcast made of repeats: some that are written down, and some
that are drawn for every rule (so many as ZEROSTRIDE_PLANS says), with `plan.views`' values,
too. A framework runs in one process of its own, because some die instead of raising: it takes cases
and prints results as JSON.
"""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.core.rules import RULES
from zerostride.core.symbolic import symbols
from zerostride.derive.code import code
from zerostride.runtimes.process import interpreter_for

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

#: Plans of sizes that are not known, run with all of them bound to the same number.
SYMBOLS = {
    "a batch": zs.plan(("N", 3), (3,)),
    "channels": zs.plan(("N", 1, "H"), ("C", "H")),
    "an axis": zs.plan(("N", "C", "H"), ("C", 1), rule="paddle", axis=1),
    "two sizes": zs.plan(("N", 3), ("M", 3)),
    "three operands": zs.plan(("N", 3), ("M", 3), ("K", 1, 1)),
    "expressions": zs.plan(("2*N", "H"), ("H",)),
    "cases": zs.plan(("H", "W"), ("W",), rule="ncnn"),
}
BOUND = {
    f"{name} of {n}": (plan, plan.bind(dict.fromkeys(symbols(plan), n)))
    for name, plan in SYMBOLS.items()
    for n in (1, 2, 3)
}
#: Targets that refuse some of them, and which: sizes decide there what a graph or pattern is.
UNSAID = {
    "einops": {"two sizes", "three operands"},
    "onnx": {"cases"},
    "openvino": {"cases"},
    "openvino-ir": {"cases"},
    "ncnn": set(SYMBOLS),
    "stablehlo": set(SYMBOLS),
}

#: Drawn plans of each of ten rules, for each target.
COUNT = int(os.environ.get("ZEROSTRIDE_PLANS", "30"))


def shape_of(rng: random.Random, most: int = 4) -> list[int]:
    sizes = (0, *(1, 1, 1, 2, 2, 2, 3, 3, 4) * 4)
    return [rng.choice(sizes) for _ in range(rng.randint(0, most))]


def drawn(rng: random.Random, rule: str) -> zs.Plan:
    """A plan of a rule; BroadcastError where the shapes do not fit."""
    whole = shape_of(rng, 5)
    first = rng.randint(0, len(whole))
    last = rng.randint(first, len(whole))
    part = [size if rng.random() < 0.7 else 1 for size in whole[first:last]]
    if rule == "explicit":
        # Along these axes the sizes are the target's, or 1.
        places = sorted(rng.sample(range(len(whole)), rng.randint(0, len(whole))))
        data = [whole[place] if rng.random() < 0.7 else 1 for place in places]
        return zs.plan_to(data, whole, mode="explicit", axes_mapping=places)
    if RULES[rule].to_target:
        return zs.plan_to(part if rng.random() < 0.5 else whole[first:], whole, mode=rule)
    attributes: dict[str, Any] = {}
    if "axis" in RULES[rule].attributes and rng.random() < 0.8:
        attributes["axis"] = first
    if "broadcast" in RULES[rule].attributes and rng.random() < 0.8:
        attributes["broadcast"] = 1
        part = whole[first:last] if rng.random() < 0.9 else [1]
    other = whole if rng.random() < 0.7 else [n if rng.random() < 0.6 else 1 for n in whole]
    if rule == "none" or rng.random() < 0.1:
        part = whole
        other = whole
    operands = [other, part]
    if RULES[rule].operands[1] > 2:
        operands += [whole[k:] for k in rng.sample(range(len(whole) + 1), rng.randint(0, 1))]
        operands = operands if rule != "none" else [whole] * len(operands)
    elif rule == "ncnn" and rng.random() < 0.5:
        operands.reverse()
    return zs.plan(*operands, rule=rule, **attributes)


@functools.cache
def plans_of(rule: str) -> Mapping[str, zs.Plan]:
    """Plans drawn for a rule, by a name: no two the same."""
    rng, table, seen = random.Random(rule), {}, set()
    for _ in range(100 * COUNT):
        try:
            plan = drawn(rng, rule)
        except zs.BroadcastError:
            continue
        key = (plan.operands, plan.shape, plan.axes_mapping)
        if key not in seen and len(table) < COUNT:
            seen.add(key)
            table[f"{rule} {len(table)}"] = plan
    return table


#: What turns a list of arrays into operands, and the results back; `source` has run in between.
HARNESS = {
    "numpy": ("numpy", "a", "v"),
    "einops": ("einops", "a", "v"),
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
    core = space["ov"].Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    answer = core.compile_model(space["model"], "CPU")(operands)
    return [answer[k] for k in range(len(operands))]
"""

_OPENVINO_IR = """
import re
import openvino as ov

core = ov.Core()
core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})

def run(source, names, operands):
    said = re.search("hexadecimal: ([0-9a-f]+)", source)
    data = bytes.fromhex(said[1]) if said else b""
    model = core.compile_model(core.read_model(source.encode(), data), "CPU")
    answer = model({name: a for name, a in zip(names, operands)})
    return [answer[k] for k in range(len(operands))]
"""

_STABLEHLO = """
import jax
import jaxlib._jax
from jax._src.lib import xla_client

def run(source, names, operands):
    devices = jax.devices("cpu")
    listed = jaxlib._jax.DeviceList(tuple(devices))
    options = xla_client.CompileOptions()
    program = devices[0].client.compile_and_load(source, listed, options)
    made = program.execute_sharded([jax.device_put(a) for a in operands])
    return [np.asarray(part[0]) for part in made.disassemble_into_single_device_arrays()]
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
    "openvino-ir": ("openvino", _OPENVINO_IR),
    "stablehlo": ("jax", _STABLEHLO),
    "onnx": ("onnxruntime", _ONNX),
    "ncnn": ("ncnn", _NCNN),
}


@functools.cache
def run(target: str) -> tuple[dict[str, Any], str]:
    """What the framework gives for each plan (for ncnn the sum), and how its process ended."""
    module, program = PROGRAMS[target]
    python = interpreter_for({"openvino-ir": "openvino", "stablehlo": "jax"}.get(target, target))
    process = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    if process.returncode:
        pytest.skip(f"{module} cannot be imported by {python}")
    plans = {name: (plan, plan) for name, plan in PLANS.items()} | BOUND
    for rule in RULES:
        plans.update((name, (plan, plan)) for name, plan in plans_of(rule).items())
    cases = {}
    for name, (said, plan) in plans.items():
        names = [f"operand{k}" for k in range(len(plan.operands))]
        try:
            source = code(said, target, names)
        except zs.BroadcastError:
            continue  # refused: which ones is asserted below
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
    entries = []
    for shape, aligned in zip(plan.operands, plan.aligned, strict=True):
        whole = np.arange(np.prod(shape, dtype=int), dtype="f4").reshape(aligned)
        for axis, (size, full) in enumerate(zip(aligned, plan.shape, strict=True)):
            whole = np.repeat(whole, full, axis) if size != full else whole
        entries.append(whole)
    return entries


#: Plans that a target's own limits refuse: a clear error, tested in the unit tests.
REFUSED = {
    "mnn": {"empty", "one to none"},
    "openvino": {"empty", "one to none"},
    "openvino-ir": {"empty", "one to none"},
    "ncnn": {"empty", "one to none", "three", "explicit", "rank 5", "rank 8"},
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("target", PROGRAMS)
def test_source_runs_in_its_framework(target: str, name: str) -> None:
    plan = PLANS[name]
    if name in REFUSED.get(target, ()):
        with pytest.raises(zs.BroadcastError):
            code(plan, target)
        return
    check(target, name, plan, expected(plan))


def check(target: str, name: str, plan: zs.Plan, want: list[np.ndarray[Any, Any]]) -> None:
    """The framework gave what is wanted; of ncnn the sum."""
    if target == "ncnn":
        want = [(want[0] + want[1]).reshape(plan.shape or (1,))]
    results, ended = run(target)
    assert name in results, f"{name}: {ended}"
    for (shape, data), right in zip(results[name], want, strict=True):
        assert tuple(shape) == right.shape, name
        np.testing.assert_array_equal(np.array(data, "f4").reshape(shape), right, err_msg=name)


@pytest.mark.parametrize("target", PROGRAMS)
def test_source_with_open_sizes_runs(target: str) -> None:
    for name, plan in SYMBOLS.items():
        if name in UNSAID.get(target, ()):
            with pytest.raises(zs.BroadcastError) as caught:
                code(plan, target)
            assert caught.value.reason == "unknown_size"
            continue
        for n in (1, 2, 3):
            _, bound = BOUND[f"{name} of {n}"]
            check(target, f"{name} of {n}", bound, expected(bound))


#: What a target may refuse of the drawn plans: tensors without elements, and for ncnn more.
def may_refuse(target: str, plan: zs.Plan) -> bool:
    empty = 0 in plan.shape or any(0 in shape for shape in plan.operands)
    if target == "ncnn":
        to_target = RULES[plan.rule.name].to_target
        merged = plan.rank > 4  # else it is said with axes merged, or is not expressible
        return empty or merged or len(plan.operands) != 2 or to_target
    if target in ("openvino", "openvino-ir"):  # a Broadcast op of rank 0 ends the process
        return empty or (not plan.rank and RULES[plan.rule.name].to_target)
    return empty and target == "mnn"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("target", PROGRAMS)
def test_source_of_every_rules_drawn_plans_runs(target: str, rule: str) -> None:
    plans = plans_of(rule)
    assert len(plans) >= COUNT // 2
    ran = 0
    for name, plan in plans.items():
        try:
            code(plan, target)
        except zs.BroadcastError:
            assert may_refuse(target, plan), (name, plan)
            continue
        arrays = [np.arange(np.prod(s, dtype=int), dtype="f4").reshape(s) for s in plan.operands]
        views = [np.asarray(view) for view in plan.views(*arrays)]
        for view, repeated in zip(views, expected(plan), strict=True):
            np.testing.assert_array_equal(view, repeated, strict=True)
        check(target, name, plan, views)
        ran += 1
    print(f"{target}, {rule}: {ran} of {len(plans)} plans")
    assert ran >= 20 or target == "ncnn"
