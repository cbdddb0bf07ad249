// Machine code for fused programs, made by fusion/jit/tier.py: the facts of the engine that it needs.
#pragma once

#include "python.h"

#include "../fused/body.h"

namespace zs {

// Adds kernel_forms to the module. Negative with an error set if that fails.
int add_machine_functions(PyObject* module);

// A list of a program's bodies that are compiled or are to be: (instruction set, phase, splats, results,
// whether it is compiled).
PyObject* list_machines(const FusedProgram& program);

// Installs code, given as (instruction set, phase, splats, results, address, scratch). Returns whether a
// body uses it; -1 with an error set if the arguments are wrong.
int install_machine(const FusedProgram& program, PyObject* args);

}  // namespace zs
