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

// Computes without Python's lock. False if `poll` stopped it, or there is no memory for scratch.
using Computation = bool (*)(void* context, int threads, bool (*poll)(void*), void* poll_context);
// Runs it on all threads, without the lock. False with an error set as above.
bool run_unlocked(Computation compute, void* context);

}  // namespace zs
