"""The memory of a call, and the error if it is not available."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from native_scripts import needs_native, run

import zerostride as zs
from sampled import few

pytestmark = needs_native
MIB = 1 << 20


def stretched(*shape: int, dtype: str = "float64") -> np.ndarray:
    """Many elements in the memory of one."""
    return np.broadcast_to(np.ones((), dtype), shape)


@pytest.mark.parametrize(
    ("make", "shape", "size"),
    [
        (
            lambda: zs.add(stretched(1 << 30, 1), stretched(1, 1 << 20)),
            (1 << 30, 1 << 20),
            "8.00 PiB",
        ),
        (lambda: zs.exp(stretched(1 << 25, 1 << 25)), (1 << 25, 1 << 25), "8.00 PiB"),
        (
            lambda: zs.less(stretched(1 << 31, 1), stretched(1, 1 << 30)),
            (1 << 31, 1 << 30),
            "bytes",
        ),
        # More bytes than fit in 63 bits.
        (lambda: zs.add(stretched(1 << 62, dtype="int8"), np.float64(1)), (1 << 62,), str(1 << 65)),
        (
            lambda: zs.add(stretched(1 << 62, dtype="int8"), 1, rule="pdpd"),
            (1 << 62,),
            str(1 << 62),
        ),
        # Of operands of one byte, and a result of more.
        (lambda: zs.exp(stretched(1 << 62, dtype="int8")), (1 << 62,), "bytes"),
        (lambda: zs.cast(stretched(1 << 60, dtype="int8"), "float64"), (1 << 60,), "bytes"),
        (lambda: zs.where(stretched(1 << 60, dtype="bool"), 1, 2.0), (1 << 60,), "bytes"),
    ],
)
def test_result_beyond_memory_is_refused(make, shape, size):
    with pytest.raises(MemoryError) as error:
        make()
    assert str(shape) in str(error.value)
    assert size in str(error.value)


def test_more_elements_than_64_bits_count_are_refused():
    with pytest.raises(zs.BroadcastError, match="more elements than a 64-bit index can count"):
        zs.add(stretched(1 << 40, 1, 1), stretched(1, 1 << 30, 3))


def test_empty_results_need_no_memory():
    assert zs.add(stretched(0, 1 << 40), stretched(1 << 40)).shape == (0, 1 << 40)


#: Operands and what takes the result, by name: some of each path through the engine.
CALLS = {
    "bias": "a = ones((2000, 1500), 'f4'); b = ones((1500,), 'f4')",
    "outer": "a = ones((2000, 1), 'f4'); b = ones((1, 1500), 'f4')",
    "transposed": "a = ones((1500, 2000), 'f4').T; b = ones((2000, 1500), 'f4')",
    "both transposed": "a = ones((1500, 2000), 'f4').T; b = ones((1500, 2000), 'f4').T",
    "strided": "a = ones((2000, 3000), 'f4')[:, ::-2]; b = ones((1500,), 'f8')",
    "half": "a = ones((2000, 1500), 'f2'); b = ones((1500,), 'f4')",
    "mixed": "a = ones((2000, 1500), 'i1'); b = ones((2000, 1), 'f8')",
    "threes": "a = ones((1000000, 3), 'f4'); b = ones((3,), 'f4')",
    "out": "a = ones((2000, 1500), 'f4'); b = a[0].copy(); out = ones((1500, 2000), 'f4').T",
    "in place": "a = ones((2000, 1500), 'f4'); b = ones((1500,), 'f4'); out = a",
}


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="AddressSanitizer keeps what is freed")
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("call", few(5, CALLS))
def test_peak_is_inputs_output_and_a_mebibyte(call):
    out = run(
        f"""
        def ones(shape, dtype):
            return np.ones(shape, dtype)
        def peak():
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) << 10 for line in file if "VmHWM" in line)
        def now():
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) << 10 for line in file if "VmRSS" in line)
        zs.set_num_threads(4)
        def measured(shrink):
            out = None
            {CALLS[call]}
            if shrink:  # the same kind of call, so that what is loaded once is loaded
                a, b = a[:200], b if b.shape[0] == a.shape[-1] or b.shape[0] == 1 else b[:200]
                out = None if out is None else out[:200]
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")  # the peak begins anew
            before = now()
            result = zs.add(a, b, out=out)
            return peak() - before - (result.nbytes if out is None else 0)
        measured(True)
        print(measured(False))
        """,
        OMP_NUM_THREADS="1",
    )
    assert int(out) <= MIB, f"{int(out):,} bytes more than inputs and output"
