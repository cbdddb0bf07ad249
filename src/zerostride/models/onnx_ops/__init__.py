"""What each ONNX op does to sizes and to arrays.

`table` has one row an op: the function of `sizes` that computes the facts of its results, the
function of `kernels` that computes their elements, and what these cost. The sites of the ops that
broadcast are in `formats.onnx.sites`.
In: a call of an op. Out: facts, arrays.
"""
