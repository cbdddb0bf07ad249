"""Finds accidental broadcasts in NumPy code while it runs.

`rewrite` inserts checks of the operands into a module's syntax tree, `loading` applies it when
modules are imported, and `checks` judges the operands. :mod:`zerostride.pytest_plugin` makes test
failures of the results. The syntax tree is used because NumPy 2 has no hook for its operators, and
tracing and monitoring in CPython 3.11 do not see operands.
In: modules under test. Out: accidents, with file and line.
"""
