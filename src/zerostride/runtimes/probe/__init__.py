"""Runs the real engines and compares them with zerostride's predictions, by value.

Promises: every engine runs in a process of its own, so that a crash is an outcome and not an end;
the heavy packages are imported only there; an engine that is not installed is reported by name.

Reading order: `case` (the data), `kinds` (what is computed, and the operands that prove where
every element went), `catalogue` (which ops each engine is asked), `runners` (one module an
engine), `isolation` (the child processes), `conformance` (the comparison).
"""
