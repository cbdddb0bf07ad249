// Machine code for fused programs, made by fusion/jit/tier.py: the facts of the engine that it needs.
#pragma once

#include "python.h"

#include "../fused/body.h"

namespace zs {

// Adds kernel_forms to the module. Negative with an error set if that fails.
int add_machine_functions(PyObject* module);

// A list of what is compiled and wanted of a program's bodies: (instruction set, phase, splats,
// results, whether it is compiled).
PyObject* list_machines(const FusedProgram& program);

// Installs code as (instruction set, phase, splats, results, address, scratch): whether anybody wants
// it. -1 with an error set where that is no such thing.
int install_machine(const FusedProgram& program, PyObject* args);

}  // namespace zs
