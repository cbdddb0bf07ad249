# /// script
# dependencies = ["executorch"]
# ///
"""ExecuTorch on the CPU (PyPI: executorch): one PyTorch call, on its portable kernels.

A call takes half a second: learn it with --seconds 600.
"""

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

NAME = "executorch-portable"
DISTRIBUTION = "executorch"

OWN = {"equal": "eq"}  # torch.equal asks whether all are equal


class Module(torch.nn.Module):
    """A model of one call."""

    def __init__(self, op, target):
        super().__init__()
        self.call, self.target = getattr(torch, OWN.get(op, op)), target

    def forward(self, *tensors):
        """The call; `target` is the shape, for broadcast_to."""
        return self.call(*tensors) if self.target is None else self.call(*tensors, self.target)


def run(op, arrays, target=None):
    """One call: exported, lowered, and run."""
    tensors = tuple(map(torch.from_numpy, arrays))
    # NumPy's empty arrays have strides of 0, which ExecuTorch refuses.
    tensors = tuple(x if x.numel() else torch.empty(x.shape, dtype=x.dtype) for x in tensors)
    program = torch.export.export(Module(op, target), tensors)
    lowered = to_edge_transform_and_lower(program).to_executorch()
    method = Runtime.get().load_program(lowered.buffer).load_method("forward")
    return method.execute(tensors)[0].numpy().copy()
