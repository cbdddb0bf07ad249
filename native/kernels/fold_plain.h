// Folds of one number, in the values' own dtype.
//
// Compiled per instruction set, like all that includes it: every function here is the including
// file's own.
#pragma once

#include "fold_lines.h"
#include "forms.h"

namespace zs::ZS_ISA {
namespace {

template <class Op, class T = typename Op::Value>
inline T fold_run(const T* v, int64_t n) {
  constexpr int kWidth = kLanes<T>;
  T rest = Op::kNothing;
  if (n >= kWidth) {
    Line<T> line;
    const int64_t steps = n / (4 * kWidth);
    int64_t done = steps * 4 * kWidth;
    if (steps) {
      line = four_lines<Op>(v, steps);
    } else {
      line = load_line(v);
      done = kWidth;
    }
    for (; done + kWidth <= n; done += kWidth) line = both<Op>(line, load_line(v + done));
    rest = fold_line<Op>(line);
    v += done;
    n -= done;
  }
  for (int64_t i = 0; i < n; ++i) rest = Op::of(rest, v[i]);
  return rest;
}

template <class Op>
struct Plain {
  using T = typename Op::Value;

  static void begin(void* a, void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(a)[i] = Op::kNothing;
  }

  static void runs(void* a, void*, const int32_t* state, const void* values, int64_t length,
                   int64_t count, const Positions&) {
    const T* v = static_cast<const T*>(values);
    for (int64_t c = 0; c < count; ++c, v += length) {
      T& known = static_cast<T*>(a)[state[c]];
      known = Op::of(known, fold_run<Op>(v, length));
    }
  }

  static void columns(void* a, void*, const void* values, int64_t n, int64_t rows, int64_t pitch,
                      const Positions&) {
    T* known = static_cast<T*>(a);
    const T* v = static_cast<const T*>(values);
    for (; rows >= 4; rows -= 4, v += 4 * pitch) add_rows<4>(known, v, n, pitch);
    for (; rows; --rows, v += pitch) add_rows<1>(known, v, n, pitch);
  }

  // By lines: compilers find no vectors in all of these.
  template <int kRows>
  static ZS_NOW void add_rows(T* known, const T* v, int64_t n, int64_t pitch) {
    constexpr int kWidth = kLanes<T>;
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      Line<T> line = load_line(known + i);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) line = both<Op>(line, load_line(v + r * pitch + i));
      store_line(known + i, line);
    }
    for (; i < n; ++i) {
      for (int r = 0; r < kRows; ++r) known[i] = Op::of(known[i], v[r * pitch + i]);
    }
  }

  static void merge(void* a, void*, const void* from, const void*, int64_t n, int64_t) {
    add_rows<1>(static_cast<T*>(a), static_cast<const T*>(from), n, 0);
  }

  static void finish(const void* a, const void*, void* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<T*>(out)[i] = Op::result(static_cast<const T*>(a)[i]);
    }
  }
};

}  // namespace
}  // namespace zs::ZS_ISA
