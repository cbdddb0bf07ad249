"""The shapes of layers' results.

`formulas` and `windows` have one function for each kind of layer. `expression` evaluates sizes that
a parameter writes as text. `call` is a layer with its operands' shapes.
In: a layer, shapes. Out: shapes, or an exception with the reason.
"""
