"""Functions that compute an op's results with NumPy.

`call` has the call that a function receives, and the limits of work and memory.
In: a NodeCall with arrays. Out: arrays, or Unfit.
"""
