"""Finds the first tensors at which two runs of one model differ: matches, judges, names the cause.

`layouts` says how a tensor of another file can hold the numbers of a tensor of the model, and
`matching` which tensor does.
`..judging` compares numbers. `walk` computes the model node by node on the other side's own
numbers, so that each node is judged alone. `cause` compares the two files at a culprit. `faults`
asks which faults of a node a run's tensors would show, to choose inputs.
In: Graph, tensors of the other side. Out: Bisection.
"""
