"""Numbers that the native engine shares with the programs that this package writes for it.

`docs/generate.py` writes them into `native/shared_limits.h`.
"""

from __future__ import annotations

#: The most arrays that a phase of a program loads and stores; a single op has at most four.
MOST_OPERANDS = 32
#: The largest number of threads that a call may use: more than the processors of any machine that
#: this was written for. The engine counts seats in 16 bits.
MOST_THREADS = 4096
#: Elements of a block of a phase, and the bytes that all of its rows may take: they stay in a first
#: cache of 32 KB and more.
MOST_BLOCK, LEAST_BLOCK = 1024, 256
BLOCK_BYTES = 24 << 10
#: Largest absolute exponents of dividends and divisors that are divided by one number quickly
#: (native/kernels/divisor.h), of float32 and of float64.
QUICK_DIVIDENDS, QUICK_DIVISORS = 100, 24
QUICK_WIDE_DIVIDENDS, QUICK_WIDE_DIVISORS = 900, 100
