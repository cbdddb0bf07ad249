"""Learns the row of an engine from a runner: `zerostride engines learn`.

`shapes` has the questions, `operands` values that prove alignment, `space` the hypotheses as
matrices, `learner` learns one op from answers, `numbers` its numbers. `asking` asks a process,
`engine` asks all ops on all element types, `writing` reads a runner's head and writes the file.
`onnx_model` is for runners.
In: a runner's file. Out: the data of a learnt engine (`engines.learnt`).
"""
