"""ONNX files for converters that lack ops: sizes as numbers, and other ops that mean the same.

`files` reads and writes, `rewriting` replaces nodes of a graph, `substitutes` has a rule for each
op, `unrolled` writes recurrent ones. In: a file, the ops that are lacking. Out: a file.
"""

from .files import reads_rows, rewritten, with_functions, with_shapes
from .substitutes import RULES

__all__ = ["RULES", "reads_rows", "rewritten", "with_functions", "with_shapes"]
