"""Every op and every node of a traced program has a row in each library."""

from __future__ import annotations

import importlib
import typing

import numpy as np
import pytest

from zerostride.arrays import standard
from zerostride.compute.kernels import KERNELS
from zerostride.fusion import reference
from zerostride.fusion.evaluate import evaluate
from zerostride.fusion.grad.table import RULES, STEPS
from zerostride.fusion.trace.graph import Apply, Graph, Input, Node, Reduce
from zerostride.ops import OPS

pytestmark = pytest.mark.conformance

#: A program converts by itself.
APPLIED = {*OPS} - {"cast"}


@pytest.fixture(params=["torch", "jax"])
def library(request):
    pytest.importorskip(request.param, reason="its functions are what is tested")
    module = importlib.import_module(f"zerostride.arrays.{request.param}.ops")
    return module.Torch("cpu") if request.param == "torch" else module.Jax()


def test_library_has_every_op_and_no_other(library):
    assert {*library.ops} == APPLIED
    assert all(map(callable, library.ops.values()))


def test_library_has_every_reduction_and_no_other(library):
    assert {*library.reductions} == {*reference._REDUCTIONS}


def test_namespace_has_every_op_by_name_or_composed():
    """The array API standard has these names, except erf, which other libraries have."""
    strict = pytest.importorskip("array_api_strict", reason="it has the standard's names alone")
    composed = {*standard.compositions(np)}
    named = {name for name in APPLIED - composed if hasattr(strict, name)}
    assert named | composed | {"erf"} == APPLIED
    assert composed <= APPLIED


def test_float_op_has_a_derivative_or_is_piecewise_constant():
    """Ops whose results are floats; of the others there is none."""
    x = {1: np.ones(2), 2: np.ones(2), 3: np.ones(2)}
    for name in sorted(APPLIED - {*RULES} - {*STEPS}):
        op = OPS[name]
        try:
            result = KERNELS[name](*(x[k + 1] for k in range(op.operands)))
        except TypeError:  # of integers
            continue
        assert np.asarray(result).dtype == np.bool_, name


def test_program_of_pytorch_may_have_every_node():
    pytest.importorskip("torch", reason="its op takes a program as text")
    from zerostride.arrays.torch.custom_op import _NODES

    assert {*_NODES.values()} == {*typing.get_args(Node)}


def test_op_without_a_row_is_named(library):
    x = Input(0, (2,), "float32")
    strange = Apply("twist", (0,), ((0,),), ("float32",) * 2, (2,), "float32")
    folded = Reduce("median", 0, (0,), False, "float32", (), "float32")
    for node, name in ((strange, "twist"), (folded, "median")):
        array = library.number(np.float32(1))
        with pytest.raises(LookupError, match=rf"op '{name}'.*ops has no row.*formula"):
            evaluate(Graph((x, node), (1,), 1), [library.laid(array, (), (2,))], library)
