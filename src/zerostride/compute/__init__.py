"""Computing over plans: the native engine, and the reference behind it.

`functions` and `unary` make the public functions from the op table. `native` says which calls
the C++ engine takes; `reference` is NumPy over zero-stride views, and the oracle of all tests.
`semantics` chooses an op's function and dtypes under an engine; `kernels` holds the functions.
In: a Plan and arrays. Out: an array.
"""
