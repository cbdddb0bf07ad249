// Programs of fused expressions, read from Python.
#pragma once

#include <string>

#include "python.h"

#include "../fused/program.h"

namespace zs {

// Why a spec is no program: thrown by read_spec, and made a Python error where that is called.
struct Refusal {
  PyObject* type;  // borrowed: ValueError; NotImplementedError where the engine has no such thing
  std::string why;
};

// Reads and checks a spec of plain tuples, laid out as fusion/schedule/engine.py says. What it returns can be run
// on any arrays of its slots' shapes and dtypes.
FusedProgram read_spec(PyObject* spec);

}  // namespace zs
