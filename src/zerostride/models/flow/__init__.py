"""Sizes through a whole model: every tensor's shape in terms of the inputs' sizes.

`walk` goes through a graph once, in order. The rows of `onnx_ops` give the results' sizes and the
conditions for them; nothing is guessed. `..needs` collects the conditions. `input_sizes` takes the
sizes that a user gives, and `advice` says which to give. `..shapes` is the command of that name.
In: Graph, sizes. Out: every tensor's facts.
"""

from ..needs import Failure, Need
from .result import Counts, Flow
from .walk import flow

__all__ = ["Counts", "Failure", "Flow", "Need", "flow"]
