"""Graphs as terms, node by node.

`reader` walks a graph. `call` is one node with its operands as terms. `forms` (element-wise ops),
`computing` (sums, products and others) and `moving` (views) have a row for each op, and
`fused_ops` writes ops that stand for several. `operands` has one form for operands that are the
same to an op, and `opsets` the attributes and versions of ops.
In: a graph with its sizes. Out: the term of each tensor.
"""
