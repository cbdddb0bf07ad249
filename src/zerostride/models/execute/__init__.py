"""A graph executed with NumPy: broadcasts by their sites' plans, other ops by rows of `onnx_ops`.

`program` plans the steps and finds nodes that cannot be computed. `run` walks the graph.
`broadcasts` computes the nodes that broadcast, and `work` counts what a node costs. `part` has the
nodes between some tensors, and `cut` makes a file of them.
In: Graph, inputs. Out: outputs, within a limit of work.
"""

from .run import (
    Execution,
    Nudge,
    execute,
    is_computed,
    not_executed,
    prepare,
    prepare_part,
    run_part,
    run_program,
)

__all__ = [
    "Execution",
    "Nudge",
    "execute",
    "is_computed",
    "not_executed",
    "prepare",
    "prepare_part",
    "run_part",
    "run_program",
]
