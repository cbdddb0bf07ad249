"""Strict mode on the PyTorch code of real packages: which lines does it report, and rightly?

`drivers` calls each package as a user would, with random inputs and weights; `child` runs a driver
under `zs.strict(level="log")` in the interpreter that has the package; `command` keeps the results
and the verdicts of a person in `results.json`; `page` writes the table.
"""
