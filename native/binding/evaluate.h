// Running a program over laid-out operands, from Python's threads.
#pragma once

#include "shape.h"

#include "../run.h"

namespace zs {

// An operand where it lies.
struct Place {
  char* data;
  const npy_intp* strides;
  bool aligned;
};

// Computes `program` over a shape that has elements. False with an error set if it was interrupted, or
// there is no memory for scratch.
bool evaluate(const Program& program, const Shape& shape, const Place* places);

}  // namespace zs
