"""A script of a user with an installed zerostride: it runs, and mypy --strict checks it.

tools/wheels.py and cibuildwheel run it on each wheel. An argument names the backend that the wheel
must have: `native` (the default) or `reference`.
"""

import sys
from typing import Any

import numpy as np

import zerostride as zs


def main(backend: str = "native") -> None:
    """Plans, explains, computes, fuses, and is refused."""
    found: str = zs.backend()
    assert found.startswith(backend), found
    plan: zs.Plan = zs.plan((5, 5), (5,), engine="ncnn")
    shape: tuple[int, ...] = (5, 5)
    assert plan.shape == shape
    assert zs.plan(shape, (5,)) != plan
    x = np.arange(6.0).reshape(2, 3)
    column = np.array([1.0, 2.0])
    assert np.array_equal(zs.add(x, column, rule="pdpd", axis=0), x + column[:, None])

    @zs.fuse
    def centred(a: Any) -> Any:
        return a - zs.mean(a, axis=1, keepdims=True)

    assert np.allclose(centred(x), x - x.mean(1, keepdims=True))
    try:
        zs.plan((2, 3), (4,))
    except zs.BroadcastError as error:
        reason: str = error.reason
    else:
        reason = "no error"
    assert reason == zs.Reason.EXTENT_MISMATCH, reason
    print(f"zerostride {zs.__version__} computes: {found}")


if __name__ == "__main__":
    main(*sys.argv[1:])
