#include "shape.h"

#include <algorithm>

namespace zs {
namespace {

bool count_elements(Shape& shape) {
  npy_intp elements = 1;
  bool empty = false;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const npy_intp extent = shape.extent[axis];
    empty |= extent == 0;
    if (!empty && __builtin_mul_overflow(elements, extent, &elements)) return false;
  }
  // Bytes, too: the widest element has 8.
  npy_intp bytes;
  if (!empty && __builtin_mul_overflow(elements, npy_intp{8}, &bytes)) return false;
  shape.elements = empty ? 0 : elements;
  return true;
}

npy_intp magnitude(npy_intp stride) { return stride < 0 ? -stride : stride; }

// Whether axis `a` must lie inside axis `b`: 1 yes, -1 no, 0 not decided.
int inside(const npy_intp* const* operands, int count, int a, int b) {
  int said = 0;
  for (int k = 0; k < count; ++k) {
    const npy_intp x = magnitude(operands[k][a]), y = magnitude(operands[k][b]);
    if (x == 0 || y == 0) continue;
    if (y <= x) return -1;  // where operands disagree, C order wins
    said = 1;
  }
  return said;
}

struct Span {
  const char* low;
  const char* high;  // one past the last byte
};

Span span_of(const Shape& shape, const char* data, npy_intp size, const npy_intp* strides) {
  Span span{data, data + size};
  for (int axis = 0; axis < shape.rank; ++axis) {
    const npy_intp reach = strides[axis] * (shape.extent[axis] - 1);
    (reach < 0 ? span.low : span.high) += reach;
  }
  return span;
}

}  // namespace

bool align_numpy(Shape& shape, const Operand* operands, int count) {
  int rank = 0;
  for (int k = 0; k < count; ++k) rank = std::max(rank, operands[k].rank);
  shape.rank = rank;
  std::fill_n(shape.extent, rank, 1);
  for (int k = 0; k < count; ++k) {
    const int lead = rank - operands[k].rank;
    for (int axis = lead; axis < rank; ++axis) {
      const npy_intp extent = operands[k].shape[axis - lead];
      if (extent == 1) continue;
      if (shape.extent[axis] != 1 && shape.extent[axis] != extent) return false;
      shape.extent[axis] = extent;
    }
  }
  for (int k = 0; k < count; ++k) {
    const int lead = rank - operands[k].rank;
    std::fill_n(shape.strides[k], lead, 0);
    for (int axis = lead; axis < rank; ++axis)
      shape.strides[k][axis] =
          operands[k].shape[axis - lead] == 1 ? 0 : operands[k].strides[axis - lead];
  }
  return count_elements(shape);
}

bool align_planned(Shape& shape, const Operand* operands, int count, int rank,
                   const npy_intp* extents, const int* axes) {
  shape.rank = rank;
  std::copy_n(extents, rank, shape.extent);
  for (int k = 0; k < count; ++k) {
    std::fill_n(shape.strides[k], rank, 0);
    for (int axis = 0; axis < operands[k].rank; ++axis, ++axes)
      if (*axes >= 0 && operands[k].shape[axis] != 1)
        shape.strides[k][*axes] = operands[k].strides[axis];
  }
  return count_elements(shape);
}

bool widen_to(Shape& shape, int count, int rank, const npy_intp* extents) {
  const int lead = rank - shape.rank;
  if (lead < 0) return false;
  for (int axis = 0; axis < shape.rank; ++axis)
    if (shape.extent[axis] != 1 && shape.extent[axis] != extents[axis + lead]) return false;
  if (lead > 0)
    for (int k = 0; k < count; ++k) {
      std::copy_backward(shape.strides[k], shape.strides[k] + shape.rank, shape.strides[k] + rank);
      std::fill_n(shape.strides[k], lead, 0);
    }
  shape.rank = rank;
  std::copy_n(extents, rank, shape.extent);
  return count_elements(shape);
}

void lay_out(Shape& shape, int count, npy_intp size) {
  const npy_intp* operands[kMaxInputs];
  for (int k = 0; k < count; ++k) operands[k] = shape.strides[k];
  lay_out(shape.rank, shape.extent, operands, count, size, shape.strides[count]);
}

void lay_out(int rank, const npy_intp* extent, const npy_intp* const* operands, int count,
             npy_intp size, npy_intp* strides) {
  // Axes outermost first. The innermost is placed first; each further one goes outside of all that
  // are placed, and then inwards past those that the operands' strides put outside of it.
  int order[kMaxAxes];
  for (int axis = rank - 1; axis >= 0; --axis) {
    int place = axis;
    for (int other = axis + 1; other < rank; ++other) {
      const int said = inside(operands, count, axis, order[other]);
      if (said < 0) break;
      if (said > 0) place = other;
    }
    for (int i = axis; i < place; ++i) order[i] = order[i + 1];
    order[place] = axis;
  }
  npy_intp stride = size;
  for (int i = rank - 1; i >= 0; --i) {
    strides[order[i]] = stride;
    // An extent of 0 leaves nothing to step over.
    stride *= std::max<npy_intp>(1, extent[order[i]]);
  }
}

Overlap overlap(const Shape& shape, const char* out, npy_intp out_size, const npy_intp* out_strides,
                const char* in, npy_intp in_size, const npy_intp* in_strides) {
  const Span write = span_of(shape, out, out_size, out_strides);
  const Span read = span_of(shape, in, in_size, in_strides);
  if (write.high <= read.low || read.high <= write.low) return Overlap::None;
  bool same = in == out && in_size == out_size;
  for (int axis = 0; axis < shape.rank && same; ++axis)
    same = shape.extent[axis] == 1 || in_strides[axis] == out_strides[axis];
  return same ? Overlap::Same : Overlap::Partial;
}

bool overlaps_itself(int rank, const npy_intp* extent, const npy_intp* strides, npy_intp size) {
  // Each axis, from the smallest stride on, must step over all that the axes before it reach.
  int axes[kMaxAxes], count = 0;
  for (int axis = 0; axis < rank; ++axis)
    if (extent[axis] > 1) axes[count++] = axis;
  for (int i = 1; i < count; ++i)
    for (int j = i; j > 0 && magnitude(strides[axes[j]]) < magnitude(strides[axes[j - 1]]); --j)
      std::swap(axes[j], axes[j - 1]);
  npy_intp reach = size;
  for (int i = 0; i < count; ++i) {
    const npy_intp step = magnitude(strides[axes[i]]);
    if (step < reach) return true;
    reach += step * (extent[axes[i]] - 1);
  }
  return false;
}

}  // namespace zs
