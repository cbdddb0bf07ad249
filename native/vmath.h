// Elementary functions that the compiler vectorises: scalar, inline, without branches, so that
// `for (i) out[i] = math::exp(in[i])` becomes vector code on every instruction set. Float and
// double; special values are C's (Annex F); docs/accuracy.md has the errors.
//
// Compiled with -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math, and never -ffast-math.
//
// sin, cos and tan of huge arguments are libm's. A call would keep a loop from being vectorised:
// rows of them are computed by sin_row, cos_row and tan_row, and those of pow by pow_row. Every other function has a row
// function too, so that a table of kernels can be uniform. A row function's output may be one of
// its inputs.
//
// (The name is not math.h: in a folder given with -I that would stand before the system's.)
#pragma once

#include "vmath/arc.h"
#include "vmath/base.h"
#include "vmath/erf.h"
#include "vmath/exp.h"
#include "vmath/log.h"
#include "vmath/pow.h"
#include "vmath/trig.h"

namespace zs::ZS_ISA::math {

template <class T>
ZS_INLINE T rsqrt(T x) {
  return T(1) / sqrt(x);
}

#define ZS_MATH_ROW(name)                                              \
  template <class T>                                                   \
  static inline void name##_row(const T* in, T* out, std::int64_t n) { \
    ZS_LOOP                                                            \
    for (std::int64_t i = 0; i < n; ++i) out[i] = name(in[i]);         \
  }
ZS_MATH_ROW(exp)
ZS_MATH_ROW(exp2)
ZS_MATH_ROW(expm1)
ZS_MATH_ROW(log)
ZS_MATH_ROW(log2)
ZS_MATH_ROW(log10)
ZS_MATH_ROW(log1p)
ZS_MATH_ROW(sinh)
ZS_MATH_ROW(cosh)
ZS_MATH_ROW(tanh)
ZS_MATH_ROW(asin)
ZS_MATH_ROW(acos)
ZS_MATH_ROW(atan)
ZS_MATH_ROW(asinh)
ZS_MATH_ROW(acosh)
ZS_MATH_ROW(atanh)
ZS_MATH_ROW(erf)
ZS_MATH_ROW(sigmoid)
ZS_MATH_ROW(softplus)
ZS_MATH_ROW(mish)
ZS_MATH_ROW(gelu)
ZS_MATH_ROW(sqrt)
ZS_MATH_ROW(rsqrt)
ZS_MATH_ROW(floor)
ZS_MATH_ROW(ceil)
ZS_MATH_ROW(trunc)
ZS_MATH_ROW(round_even)
#undef ZS_MATH_ROW

#define ZS_MATH_ROW(name)                                                         \
  template <class T>                                                              \
  static inline void name##_row(const T* a, const T* b, T* out, std::int64_t n) { \
    ZS_LOOP                                                                       \
    for (std::int64_t i = 0; i < n; ++i) out[i] = name(a[i], b[i]);               \
  }
ZS_MATH_ROW(atan2)
ZS_MATH_ROW(logaddexp)
#undef ZS_MATH_ROW

}  // namespace zs::ZS_ISA::math
