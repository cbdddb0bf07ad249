"""Finds accidental broadcasts in NumPy and PyTorch code while it runs.

NumPy: `rewrite` inserts checks of the operands into a module's syntax tree, `loading` applies it
when modules are imported, and `checks` judges the operands. :mod:`zerostride.pytest_plugin` makes
test failures of the results. The syntax tree is used because NumPy 2 has no hook for its
operators, and tracing and monitoring in CPython 3.11 do not see operands.

PyTorch: `torch_watch` puts the mode of `torch_mode` on a thread's stack while strict mode is in
force. `torch_table` lists the functions that broadcast, `torch_frames` looks for the user's line,
and `torch_accident` judges the shapes and proposes fixes. `accident` and `source` serve both.
In: modules under test, operations of PyTorch. Out: accidents, with file and line.
"""
