"""JAX's arrays: read where they lie, or lowered to JAX's functions under a trace.

`adapter` is the way in, `data` reads memory, `ops` has the op table in JAX's functions, which is
what jit, grad and vmap see.
In: JAX arrays. Out: JAX arrays.
"""
