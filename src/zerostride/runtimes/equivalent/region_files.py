"""The regions of an output as model files."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ModelError
from ...models.equivalence import Output, Sameness
from ...models.equivalent.proof import Proven
from ...models.execute.cut import Tensor, constants_of, cut_out
from ...models.execute.part import Part
from ...models.ir.graph import Value

#: Constants of more bytes are not put into a file.
_MOST_BYTES = 2**26
_NAMES = "first.onnx", "second.onnx"


def region_files(proven: Sequence[Proven], outputs: Sequence[Output]) -> dict[str, bytes]:
    """The files of the first output's region that is not shown to be the same; none if none can be.

    Args:
        proven: the outputs with their regions.
        outputs: the same after runs.
    """
    settled = (Sameness.EQUAL, Sameness.ROUNDED)
    pairs = zip(proven, outputs, strict=True)
    parts = next((p.parts for p, o in pairs if p.parts and o.verdict not in settled), None)
    files = {}
    for name, part in zip(_NAMES, parts or (), strict=False):
        data = _file(part)
        if data is None:
            return {}
        files[name] = data
    return files


def _file(part: Part) -> bytes | None:
    values = (*part.operands, part.result)
    ends = [_tensor(value) for value in values]
    known = [end for end in ends if end is not None]
    whole = part.nodes and len(known) == len(ends)
    if not whole or sum(array.nbytes for array in constants_of(part).values()) > _MOST_BYTES:
        return None
    inputs = {v.name: end for v, end in zip(part.operands, known[:-1], strict=True)}
    try:
        return cut_out(part, inputs, (part.result.name, known[-1]))
    except ModelError:
        return None


def _tensor(value: Value) -> Tensor | None:
    """The type and shape of a tensor; None where its element type is not known."""
    if value.dtype is None:
        return None
    shape = value.shape
    sizes = None if shape is None else [s if isinstance(s, int) else str(s) for s in shape]
    return Tensor(value.dtype, sizes)


__all__ = ["region_files"]
