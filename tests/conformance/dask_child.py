"""The process of test_dask_cluster that reduces 20 GB without holding them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def peak() -> int:
    """The most bytes that this process has had resident."""
    match = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) << 10


def main(elements: int) -> None:
    """Sums the first odd numbers, which is a square, and takes the mean of rows of float32."""
    import dask
    import dask.array as da
    import numpy as np

    import zerostride as zs

    with dask.config.set(scheduler="threads", num_workers=2):
        numbers = da.arange(elements, chunks=8 << 20, dtype="int64")
        odd = int(zs.fuse(lambda x: (x * 2 + 1).sum())(numbers).compute())
        # Rows of 0.0 ... 0.75 in steps of 1/4: of what is computed nothing has to be rounded.
        wide = (numbers[: 64 << 20] % 4).astype("float32").reshape(-1, 1024) / np.float32(4)
        means = zs.fuse(lambda x: (x - x.mean(0)).mean(1) + x.mean())(wide).compute()
    right = odd == elements**2 and np.allclose(means, 0.375, atol=1e-6)
    print(json.dumps({"right": bool(right), "bytes": numbers.nbytes, "peak": peak()}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
