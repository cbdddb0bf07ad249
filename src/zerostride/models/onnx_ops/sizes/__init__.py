"""Functions that compute the sizes, and the small numbers, of an op's results.

`facts` has the call that a function receives. `numbers` computes with sizes as numbers.
In: an OpCall with the facts of the operands. Out: the facts of the results.
"""
