// The Python type of a fused expression: what fusion/schedule/engine.py makes of a program.
#pragma once

#include "python.h"

namespace zs {

// Program(spec)
//   spec: plain tuples, laid out as fusion/schedule/engine.py says. ValueError where it is wrong,
//   NotImplementedError where the engine has no such dtype, kernel or number of operands.
// Adds the type to the module. Negative with an error set if that fails.
int add_program_type(PyObject* module);
bool is_program(PyObject* object);
int outputs_of(PyObject* program);
// Whether an object is an array of an output's shape and dtype that may be written to.
bool fits_output(PyObject* program, int output, PyObject* object);

// Runs it. `outs` has an array or null for each output; `results` gets new references. False with an
// error set, and then no results.
bool run_program(PyObject* program, PyObject* const* operands, Py_ssize_t count,
                 PyObject* const* outs, PyObject** results);

// A tuple for as many results, null with an error set. The garbage collector, and with it other
// threads, see it when it is shown: it is filled while the lock may be released.
PyObject* new_results(Py_ssize_t count);
void show_results(PyObject* results);

}  // namespace zs
