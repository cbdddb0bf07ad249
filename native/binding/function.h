// The Python type of an op's public function: a call that never enters Python when its plan and its
// dtypes are known.
#pragma once

#include "python.h"

namespace zs {

// Function(name, inputs, python, configure)
//   name: of the native kernel;
//   inputs: how many operands;
//   python: what does the call where this does not; it may call evaluate();
//   configure(rule, axis, engine, broadcast) -> (planner, resolver), or None to leave it to `python`:
//     planner(*shapes) -> (shape, axes of all operands in turn, -1 for a dropped one), or None for
//     NumPy's rule;
//     resolver(kinds, dtype) -> names of the dtypes that the operands and the result are computed in,
//     or None for the reference backend.
// Adds the type to the module. Negative with an error set if that fails.
int add_function_type(PyObject* module);

}  // namespace zs
