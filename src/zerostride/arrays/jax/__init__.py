"""JAX's arrays: read without a copy, or lowered to JAX's functions under a trace.

`adapter` is the entry point, `data` reads memory, `ops` has the op table in JAX's functions, for
jit, grad and vmap.
In: JAX arrays. Out: JAX arrays.
"""
