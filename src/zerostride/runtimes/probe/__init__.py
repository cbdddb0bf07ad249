"""Runs the real engines and compares them with zerostride's predictions, by value.

Every engine runs in its own process, so a crash is an outcome and does not end the run. The heavy
packages are imported only there. An engine that is not installed is reported by name.

Reading order: `case` (the data), `kinds` (the functions, and the operands that prove where every
element went), `catalogue` (the ops of each engine), `runners` (one module an engine), `isolation`
(the child processes), `conformance` (the comparison).
"""
