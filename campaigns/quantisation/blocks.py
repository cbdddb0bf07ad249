"""Scales of blocks on the installed OpenVINO, beside the audit's verdict for its release.

``python -m campaigns.quantisation.blocks`` runs under any release that zerostride's rows name.
Exit status 0: each verdict is what the release does; 1: one is not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from onnx import TensorProto

import zerostride as zs
from zerostride.models.findings import Verdict

from .draw import Array
from .engines import model, on_openvino

#: Axis, sizes and block of a node; the last block is cut off in some.
NODES = (
    *((axis, (8, 8), 2) for axis in (1, -1, -2, 0)),
    *((1, (2, 8), block) for block in (8, 4, 1)),
    *((1, (2, 4, 3), 2), (0, (4, 2, 3), 2), (2, (2, 3, 4), 2)),
    *((1, (4, 5), 2), (0, (5, 4), 2), (-1, (4, 5), 3), (1, (4, 3), 8), (1, (2, 5, 3), 2)),
)


def nodes() -> Iterator[tuple[str, list[Array], int, int, Array]]:
    """The op, operands, axis and block of each node, and the numbers that ONNX means."""
    for op in ("DequantizeLinear", "QuantizeLinear"):
        for axis, sizes, block in NODES:
            shape = [-(-n // block) if k == axis % len(sizes) else n for k, n in enumerate(sizes)]
            scale = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
            numbers = np.arange(np.prod(sizes)).reshape(sizes)
            whole = tuple(map(slice, sizes))
            every = np.repeat(scale, block, axis)[whole]
            for zeros in ([], [(scale % 5).astype(np.uint8)]):
                repeated = [np.repeat(zero, block, axis)[whole] for zero in zeros]
                offset = repeated[0].astype(np.float32) if zeros else 0
                if op == "DequantizeLinear":
                    data = numbers.astype(np.uint8)
                    means = (data - offset) * every
                else:  # no quotient is a tie
                    data = (numbers * np.float32(1.2345678) * every).astype(np.float32)
                    means = np.clip(np.rint(data / every) + offset, 0, 255)
                yield op, [data, scale, *zeros], axis, block, means


def outcome(op: str, operands: list[Array], axis: int, block: int, means: Array) -> str:
    """What the release does: same, different or refused."""
    kind = TensorProto.FLOAT if op == "DequantizeLinear" else TensorProto.UINT8
    attributes = {"axis": axis, "block_size": block}
    try:
        answer = on_openvino(*model(op, operands, attributes, 21, result=kind))[0]
    except Exception:  # noqa: BLE001 - engines refuse in many ways
        return Verdict.REFUSED
    alike = answer.shape == means.shape and np.allclose(answer, means)
    return Verdict.SAME if alike else Verdict.DIFFERENT


def main() -> int:
    """Prints what differs from the audit, and how many nodes were run."""
    import openvino

    release = openvino.__version__.partition("-")[0]
    wrong = total = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "node.onnx"
        for op, operands, axis, block, means in nodes():
            kind = TensorProto.FLOAT if op == "DequantizeLinear" else TensorProto.UINT8
            built = model(op, operands, {"axis": axis, "block_size": block}, 21, result=kind)[0]
            file.write_bytes(built.SerializeToString())
            right = outcome(op, operands, axis, block, means)
            verdict = zs.audit(file, f"openvino@{release}").findings[0].verdict
            total += 1
            if verdict != right:
                wrong += 1
                shape = operands[0].shape
                print(
                    f"{op} {shape} axis {axis} block {block} of {len(operands)}: "
                    f"{release} {right}, the audit says {verdict}"
                )
    print(f"openvino {release}: {total} nodes, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
