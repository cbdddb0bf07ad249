// Shapes and strides of a call: the broadcast shape, the layout of the result, overlaps.
#pragma once

#include "operand.h"

#include "../nest.h"

namespace zs {

// A call's operands laid over the result's axes.
struct Shape {
  int rank;
  npy_intp extent[kMaxAxes];
  npy_intp strides[kMaxInputs + 1][kMaxAxes];  // bytes; the output's last
  npy_intp elements;                           // 0 where an extent is
};

// NumPy's rule. False if the operands do not combine, or the number of elements overflows.
bool align_numpy(Shape& shape, const Operand* operands, int count);
// By a plan: `axes` has, for each operand in turn, its axes' result axes (-1: dropped).
bool align_planned(Shape& shape, const Operand* operands, int count, int rank,
                   const npy_intp* extents, const int* axes);
// Widens the shape to an `out` that NumPy broadcasts it to. False if it does not.
bool widen_to(Shape& shape, int count, int rank, const npy_intp* extents);

// The strides of a new output of elements of `size` bytes, in the order that NumPy's iterator would
// choose: that of the operands' strides where they agree, else C.
void lay_out(Shape& shape, int count, npy_intp size);
// The same of operands' strides that lie anywhere, into `strides`.
void lay_out(int rank, const npy_intp* extent, const npy_intp* const* operands, int count,
             npy_intp size, npy_intp* strides);

// The overlap of an output with the operands.
enum class Overlap {
  None,
  Same,     // element by element: each is read before it is written
  Partial,  // anything else
};
Overlap overlap(const Shape& shape, const char* out, npy_intp out_size, const npy_intp* out_strides,
                const char* in, npy_intp in_size, const npy_intp* in_strides);
// Whether two elements of the output may be one in memory.
bool overlaps_itself(int rank, const npy_intp* extent, const npy_intp* strides, npy_intp size);

}  // namespace zs
