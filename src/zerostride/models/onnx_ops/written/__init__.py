"""Compound ops written out as ops of the standard: rotary embeddings, ONNX Runtime's attentions.

A rule writes an op through a `Writer`: into a graph for a converter, or as arrays that are computed
at once. So both mean the same. `table` has a rule for each op, `calls` what it receives, and
`heads` the products and the softmax that all attentions share.
In: a CompoundCall. Out: the names of its results, or NotWritten.
"""
