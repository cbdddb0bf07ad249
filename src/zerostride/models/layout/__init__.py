"""A model's images from channels-first to channels-last.

`images` finds the tensors that are images, `changes` the new form of every operand of every
broadcast, `proof` computes both ways.
In: Graph. Out: rewrites.
"""
