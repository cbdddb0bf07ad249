"""Accidental broadcasts in NumPy code, found where they are computed.

`rewrite` puts looks at the operands into a module's syntax tree, `loading` does so when modules
are imported, and `checks` judges the operands. :mod:`zerostride.pytest_plugin` makes tests of it.
Why the syntax tree: NumPy 2 has no hook for its operators, and in CPython 3.11 tracing and
monitoring do not see operands. In: modules under test. Out: accidents, with file and line.
"""
