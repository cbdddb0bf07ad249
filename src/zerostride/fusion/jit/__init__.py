"""The compiled tier: hot programs become machine code, if llvmlite is installed.

`tier` decides what is compiled, `partition` splits it into loops, `phases` writes a phase as a
function in LLVM's language, with `instruction_sets`, `values`, `loops`, `ops` and `vmath` (the
engine's elementary functions). Results have the same bits as the interpreter's.
In: a program's steps. Out: functions for the engine to call.
"""
