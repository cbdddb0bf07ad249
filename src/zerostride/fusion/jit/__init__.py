"""The compiled tier: hot programs become machine code, if llvmlite is installed.

`tier` decides what is compiled, `partition` which loops, `phases` writes a phase as a function in
LLVM's language, with `values`, `loops`, `ops` and `vmath` (the engine's own elementary functions).
The bits are those of the interpreter.
In: a program's steps. Out: functions for the engine to call.
"""
