// Elementary functions that the compiler vectorises: scalar, inline, without branches, so that
// `for (i) out[i] = math::exp(in[i])` becomes vector code on every instruction set. Float and double;
// special values are C99's (Annex F), errors stand in docs/accuracy.md.
//
// Compiled with -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math, and never -ffast-math.
//
// sin, cos and tan of huge arguments need a slow path, which would keep a loop from being
// vectorised: rows of them are computed by sin_row, cos_row and tan_row. Every other function has a
// row function too, so that a table of kernels can be uniform.
//
// (The name is not math.h: in a folder given with -I that would stand before the system's.)
#pragma once

#include <cstdint>

#ifndef ZS_ISA
#error "ZS_ISA, the namespace of this instruction set, is given by the build"
#endif

namespace zs::ZS_ISA::math {

// What NumPy and C call by the same names. T is float or double.
#define ZS_MATH_UNARY(F) \
  F(exp) F(exp2) F(expm1) F(log) F(log2) F(log10) F(log1p) F(sin) F(cos) F(tan) F(sinh) F(cosh) \
  F(tanh) F(asin) F(acos) F(atan) F(asinh) F(acosh) F(atanh) F(erf) F(sqrt) F(floor) F(ceil) F(trunc)

#define ZS_FROM_LIBM(name)                                                      \
  static inline float name(float x) { return __builtin_##name##f(x); }          \
  static inline double name(double x) { return __builtin_##name(x); }
ZS_MATH_UNARY(ZS_FROM_LIBM)
#undef ZS_FROM_LIBM

// To the nearest integer, a tie to the even one.
static inline float round_even(float x) { return __builtin_rintf(x); }
static inline double round_even(double x) { return __builtin_rint(x); }

static inline float pow(float x, float y) { return __builtin_powf(x, y); }
static inline double pow(double x, double y) { return __builtin_pow(x, y); }
static inline float atan2(float y, float x) { return __builtin_atan2f(y, x); }
static inline double atan2(double y, double x) { return __builtin_atan2(y, x); }

// 1 / sqrt(x)
template <class T>
static inline T rsqrt(T x) {
  return T(1) / sqrt(x);
}

// 1 / (1 + exp(-x)), also where exp(-x) would overflow.
template <class T>
static inline T sigmoid(T x) {
  const T e = exp(x < 0 ? x : -x);
  return (x < 0 ? e : T(1)) / (T(1) + e);
}

// log(1 + exp(x))
template <class T>
static inline T softplus(T x) {
  return (x > 0 ? x : T(0)) + log1p(exp(x < 0 ? x : -x));
}

// log(exp(x) + exp(y))
template <class T>
static inline T logaddexp(T x, T y) {
  const T high = x > y ? x : y;
  const T gap = x > y ? y - x : x - y;
  return x == y ? x + T(0.693147180559945309) : high + log1p(exp(gap));
}

// x * tanh(softplus(x))
template <class T>
static inline T mish(T x) {
  return x * tanh(softplus(x));
}

// x / 2 * (1 + erf(x / sqrt(2)))
template <class T>
static inline T gelu(T x) {
  return x * T(0.5) * (T(1) + erf(x * T(0.707106781186547524)));
}

#define ZS_ROW(name)                                                                  \
  template <class T>                                                                  \
  static inline void name##_row(const T* in, T* out, std::int64_t n) {                \
    for (std::int64_t i = 0; i < n; ++i) out[i] = name(in[i]);                        \
  }
ZS_MATH_UNARY(ZS_ROW)
ZS_ROW(round_even)
ZS_ROW(rsqrt)
ZS_ROW(sigmoid)
ZS_ROW(softplus)
ZS_ROW(mish)
ZS_ROW(gelu)
#undef ZS_ROW

#define ZS_ROW(name)                                                                  \
  template <class T>                                                                  \
  static inline void name##_row(const T* a, const T* b, T* out, std::int64_t n) {     \
    for (std::int64_t i = 0; i < n; ++i) out[i] = name(a[i], b[i]);                   \
  }
ZS_ROW(pow)
ZS_ROW(atan2)
ZS_ROW(logaddexp)
#undef ZS_ROW

}  // namespace zs::ZS_ISA::math
