"""Every op of the table is in the lists of the native engine and of its checks."""

import re
from pathlib import Path

import pytest
from campaigns.native.judge import FAMILIES

from zerostride.ops import OPS

ROOT = Path(__file__).parents[2]

#: Ops that are computed without a kernel of their own: `cast` is the engine's conversion.
WITHOUT_KERNEL = {"cast"}
#: Ops without a row in the C++ oracle. `where` has its own check there; `campaigns native` compares
#: the others with the Python reference.
WITHOUT_ORACLE = {
    *("celu", "clip", "elu", "gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "heaviside"),
    *("leaky_relu", "logaddexp", "logaddexp2", "mish", "prelu", "relu", "selu", "shrink"),
    *("softplus", "softsign", "swish", "thresholded_relu", "where"),
}


def test_op_has_a_kernel_or_is_listed_without():
    native = pytest.importorskip("zerostride.compute._native", reason="its kernels are listed")
    kernels = {op for op, _ in native.kernels()}
    assert {*OPS} - kernels == WITHOUT_KERNEL


def test_op_has_a_row_in_the_oracle_or_is_listed_without():
    rows = (ROOT / "native/tests/oracle/check.cpp").read_text("utf-8")
    assert {*OPS} - {*re.findall(r'\{"(\w+)",', rows)} - WITHOUT_KERNEL == WITHOUT_ORACLE


def test_op_has_a_family_of_the_judge():
    assert {*FAMILIES} == {*OPS}
