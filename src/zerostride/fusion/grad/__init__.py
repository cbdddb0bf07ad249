"""Gradients of fused functions.

`vjp` is the public function, `graph` builds the graph of gradients from the last node to the
first, `table` holds the derivatives of the ops, `stabilizer` finds maxima that a result does not
depend on, `adjoint` sums a gradient to an operand's shape.
In: a graph. Out: the graph of its gradients.
"""
