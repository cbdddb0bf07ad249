"""Element types that pnnx and ncnn do not carry (run: tests/conformance/test_front_doors.py)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ...core.rules import NCNN_RANK
from ...engines.rows import frozen
from ...errors import Reason
from ...sizes import Shape
from ..ir.site import Kind, Operand, Site
from .ways import refusal

#: Element types whose kernels pnnx's own copy of ONNX Runtime lacks, by op: pnnx crashes then.
_NO_KERNEL: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "Div": frozen("int8 uint8 int16 uint16 int32 uint32 uint64"),
        "Mod": frozen("int8 uint8 int16 uint16 int32 uint32 uint64"),
        "Pow": frozen("int8 uint8 int16 uint16 uint32 uint64"),
        "Expand": frozen("bool"),
        "Gemm": frozen("int8 uint8 int16 uint16 int32 uint32 int64 uint64"),
        **dict.fromkeys(("Max", "Min"), frozen("int16 uint16")),
    }
)
#: Ops that pnnx runs unless the divisor is a constant; of int64 only if the divisor has rank 0.
_FOLDED = frozenset({"Div", "Mod"})
#: Element types whose kernels take no other type beside them.
_UNMIXED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "BatchNormalization": frozenset({"float64"}),
        "RMSNormalization": frozenset({"float16", "float32", "float64"}),
    }
)
#: The first op sets of which it has kernels for float64.
_WITH_DOUBLES: Mapping[str, int] = MappingProxyType({"Max": 8, "Min": 8})


class _Constants(NamedTuple):
    """The fate of constants; in a table the first row that fits decides.

    Attributes:
        dtypes: their element types; empty: any.
        effect: why that fails; None: it works.
        words: how it fails, after "pnnx".
        silent: whether a file is made that computes something else, or pnnx crashes.
        deep: whether they have more axes than ncnn's tensors, without ones in front; None: any.
        single: whether they have one number; None: any.
        rank: their rank; None: any.
        place: which operand they are; None: any.
        ops: the ops that read them; empty: any.
        elementwise: whether the op is element-wise; None: any.
    """

    dtypes: frozenset[str]
    effect: Reason | None
    words: str = ""
    silent: bool = False
    deep: bool | None = None
    single: bool | None = None
    rank: int | None = None
    place: int | None = None
    ops: frozenset[str] = frozenset()
    elementwise: bool | None = None

    def fits(self, site: Site, place: int, dtype: str, shape: Shape) -> bool:
        """Whether the row is about such a constant of a site."""
        return (
            (not self.dtypes or dtype in self.dtypes)
            and self.deep in (None, len(cut(shape)) > NCNN_RANK)
            and self.single in (None, all(size == 1 for size in shape))
            and self.rank in (None, len(shape))
            and self.place in (None, place)
            and (not self.ops or site.node.op in self.ops)
            and self.elementwise in (None, site.kind is Kind.ELEMENTWISE)
        )


def cut(shape: Shape) -> Shape:
    """The shape without the ones in front.

    >>> cut((1, 2, 1)), cut((1, 1))
    ((2, 1), ())
    """
    return tuple(itertools.dropwhile(lambda size: size == 1, shape))


_ANY, _FLOATS = frozen(""), frozen("float16 float32")
_EXPRESSION = "writes pnnx.Expression, which ncnn does not have, of a list of {dtype}"
_CONSTANTS = (
    _Constants(
        _ANY,
        Reason.RANK_LIMIT,
        "loses the numbers of a constant of more than 4 axes",
        silent=True,
        deep=True,
    ),
    _Constants(frozen("float32 int32 int64"), None, single=True, ops=frozen("Clip")),
    _Constants(
        _ANY,
        Reason.NO_OP,
        "writes pnnx.Expression, which ncnn does not have, of a bound of {dtype}",
        single=True,
        ops=frozen("Clip"),
    ),
    _Constants(frozen("float16 float32 int32 int64"), None, single=True, elementwise=True),
    _Constants(
        _ANY,
        Reason.CRASH,
        "ends with an abort on a constant of one number of {dtype}",
        silent=True,
        single=True,
        elementwise=True,
    ),
    _Constants(frozen("int32 int64"), Reason.NO_OP, _EXPRESSION, rank=1, elementwise=True),
    _Constants(
        _ANY,
        Reason.NO_OP,
        "writes torch.matmul, which ncnn does not have, of a constant of one number",
        single=True,
        ops=frozen("MatMul"),
    ),
    _Constants(
        _ANY,
        Reason.NO_OP,
        "writes F.rms_norm, which ncnn does not have, of a scale of one number",
        single=True,
        ops=frozen("RMSNormalization"),
    ),
    # The weights of an InnerProduct.
    _Constants(frozen("float64"), None, rank=2, place=1, ops=frozen("MatMul")),
    _Constants(
        frozen("float64 int32 int64"),
        Reason.WRONG_RESULT,
        "writes a constant of {dtype} as it is, and ncnn reads it as float32",
        silent=True,
    ),
    _Constants(_FLOATS, None),
    _Constants(_ANY, Reason.DTYPE, "writes a constant of {dtype} that ncnn does not load"),
)


def check_types(site: Site, operands: Sequence[Operand]) -> None:
    """Refuses element types that pnnx does not carry, of the operands that it writes."""
    values = [(part.constant, part.tensor) for part in operands if part.tensor is not None]
    kinds = {str(value.computed_type) for _, value in values if value.computed_type}
    node = site.node
    lacking = kinds & (_NO_KERNEL.get(node.op, frozenset()) | {"bfloat16"})
    if node.op in _FOLDED:
        if values[-1][0]:
            lacking = set()
        elif values[-1][1].shape == ():
            lacking |= kinds & {"int64"}
    if node.version < _WITH_DOUBLES.get(node.op, 0):
        lacking |= kinds & {"float64"}
    mixed = len(kinds) > 1 and bool(kinds & _UNMIXED.get(node.op, frozenset()))
    if lacking or mixed:
        words = " and ".join(sorted(kinds)) if mixed else min(lacking)
        detail = f"pnnx ends with a segmentation fault on {node.op} of {words}"
        raise refusal(site, detail, Reason.CRASH, silent=True)
    if node.op == "Mod" and not node.attributes.get("fmod", 0):
        detail = "pnnx writes a layer Mod, which ncnn does not have, of a Mod with fmod=0"
        raise refusal(site, detail, Reason.NO_OP)
    for place, (constant, value) in enumerate(values):
        dtype = value.computed_type
        if not (constant and dtype and value.known):
            continue
        row = next(row for row in _CONSTANTS if row.fits(site, place, dtype, value.shape or ()))
        if row.effect is not None:
            detail = f"pnnx {row.words.format(dtype=dtype)}"
            raise refusal(site, detail, row.effect, silent=row.silent)
    # Of a power only a fraction in the exponent makes one in the result.
    first = str(values[0][1].computed_type or "") if values else ""
    if "int" in first and (
        node.op == "Div" or (node.op == "Pow" and any("float" in kind for kind in kinds))
    ):
        word = "divides" if node.op == "Div" else "computes powers of"
        detail = f"ncnn {word} {first} as floats, and does not cut the result off"
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
