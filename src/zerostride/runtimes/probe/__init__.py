"""Runs single ops on the real engines and compares them with zerostride's predictions, by value.

Reading order: `case` (the data), `kinds` (the functions, and the operands that prove where every
element went), `catalogue` (the ops of each engine), `conformance` (the comparison). An engine that
is not installed is reported by name.
In: cases. Out: what agrees, and every disagreement.
"""
