// Kernels: one op on one row of elements. They know nothing of strides, shapes, blocks or threads.
#pragma once

#include <cstdint>

#include "dtype.h"

namespace zs {

constexpr int kMaxInputs = 3;

// Computes n elements. Each operand lies one element after the other, or (by the form) is one
// element. `out` may be one of the operands that are rows, and overlaps none of them otherwise.
using Row = void (*)(const void* const* in, void* out, std::int64_t n);

// One op on one dtype.
struct Kernel {
  const char* op;  // the name in the op table
  int inputs;
  DType in[kMaxInputs];
  DType out;
  // By a number whose bit k says that operand k is one element. Absent (null) forms are computed by
  // widening operands to rows; form[0] is always there.
  Row form[1 << kMaxInputs];
};

struct Nest;
struct Program;

// All that one instruction set computes with. One object file set each; chosen once.
struct Isa {
  const char* name;  // "baseline", "avx2", "avx512", "neon"
  const Kernel* kernels;
  int count;
  // Elements of one dtype to another, as NumPy's astype; floats to integers truncate, stop at the
  // ends of the range, and NaN becomes 0.
  Row convert[kDTypes][kDTypes];
  // Writes one element, which is not in the row, all over it; by the logarithm of its bytes.
  Row fill[4];
  // Computes blocks first..last-1. `scratch` has scratch_bytes(nest, program), aligned to 64.
  void (*run)(const Nest& nest, const Program& program, char* const* data, std::int64_t first,
              std::int64_t last, char* scratch);
};

// The instruction set in use; the best that this processor has, unless chosen.
const Isa& isa();
// By name. False if this build or this processor has no such set.
bool choose_isa(const char* name);
// The names that would be accepted, best first, null at the end.
const char* const* available_isas();
// The name in ZEROSTRIDE_ISA, if it is none of these (the best set is in use, and a caller should
// say so); else null.
const char* refused_isa();

// The kernel of an op on a dtype (of its last operand), or null.
const Kernel* find_kernel(const Isa& isa, const char* op, DType dtype);

}  // namespace zs
