"""Fused functions compared with other libraries: `python -m benchmarks fuse --help`.

Reads from top to bottom: `functions` has each expression once, for every library; `rows` its
operands; `peers` says who computes it; `first` times first calls and `peak` measures memory, each
in a fresh process; `goals` judges and `printing` shows. Timing in turns, the streaming limit and
the check against NumPy are the other benchmark's.
"""
