"""A model's images from channels-first to channels-last.

`images` finds the tensors that are images, `proof` computes both ways; `audit.relaid` finds the
new form of every operand of every broadcast.
In: Graph. Out: rewrites.
"""
