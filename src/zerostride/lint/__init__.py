"""Floor 4: accidental broadcasts in NumPy code, found where they are computed.

`checks` looks at operands at run time, `rewrite` puts those looks into a module's syntax tree, and
`loading` into the modules that are imported. :mod:`zerostride.pytest_plugin` makes tests of it.

Why the syntax tree: NumPy 2 has no hook for its operators (`set_numeric_ops` is gone) and a ufunc
cannot be replaced in an array's slots; a subclass of arrays changes what is tested; tracing and
monitoring see the operation but, in CPython 3.11, not its operands. The tree has both, and the
place in the user's file for nothing.
"""
