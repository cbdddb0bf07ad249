"""PyTorch's tensors: gradients, torch.compile and devices included.

`adapter` is the entry point, `running` runs a program on tensors, `data` reads their memory, `ops`
computes where the native engine cannot. `custom_op` makes a program one op of PyTorch's graphs,
`compiler` registers it with PyTorch's compiler, once `watch` has seen that compiler imported.
In: tensors. Out: tensors.
"""
