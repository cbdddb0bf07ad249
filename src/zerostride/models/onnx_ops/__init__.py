"""The effect of each ONNX op on sizes and on arrays.

`table` has one row an op: the function of `sizes` that computes the facts of its results, the
function of `kernels` that computes their elements, and what these cost. `sites` finds the operands
and the rule of a node that broadcasts, `quantised_sites` those of quantised ops. `validation`
protects the onnx package from hostile files.
In: a call of an op. Out: facts, arrays.
"""
