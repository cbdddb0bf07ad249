"""A model's images from channels-first to channels-last.

`images` finds the tensors that are images, `changes` what every operand of every broadcast must
become, `proof` computes both ways.
In: Graph. Out: rewrites.
"""
