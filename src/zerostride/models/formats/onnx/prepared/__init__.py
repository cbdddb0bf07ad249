"""ONNX files for converters that lack ops: sizes as numbers, and other ops that mean the same.

`files` reads and writes, `rewriting` replaces nodes of a graph, `substitutes` has a rule for each
op: `layouts` for parts and orders of axes, `reductions`, `waves` for Fourier transforms, `unrolled`
for recurrent layers; `attention` writes attention and rotary embeddings. `numbers` writes truth
values and whole numbers as floats, where `ranges` shows that none wraps around, and `decisions`
takes the branch of an If that a number decides. `copies` is for a port. In: a file, the ops that
are lacking. Out: a file.
"""

from .attention import COMPOUND_OPS
from .copies import WrittenCopy, write_out
from .decisions import with_decisions
from .files import (
    in_order,
    reads_rows,
    rewritten,
    with_floats,
    with_functions,
    with_shapes,
)
from .substitutes import RULES

__all__ = [
    "COMPOUND_OPS",
    "RULES",
    "WrittenCopy",
    "in_order",
    "reads_rows",
    "rewritten",
    "with_decisions",
    "with_floats",
    "with_functions",
    "with_shapes",
    "write_out",
]
