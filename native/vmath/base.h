// The parts of every elementary function: bits, selects, rounding, error-free products.
#pragma once

#include <cstdint>

#ifndef ZS_ISA
#error "ZS_ISA, the namespace of this instruction set, is given by the build"
#endif

// Inlined whatever its size: a call inside a loop would keep the loop from being vectorised.
#define ZS_ALWAYS inline __attribute__((always_inline))
#define ZS_INLINE static ZS_ALWAYS

// Whether a * b + c with one rounding is one instruction; libm's function is a slow call.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define ZS_HAS_FMA 1
#else
#define ZS_HAS_FMA 0
#endif

// Before a loop over rows: an output that is one of the inputs does no harm, and no other overlap
// is allowed (kernels.h).
#if defined(__clang__)
#define ZS_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define ZS_LOOP _Pragma("GCC ivdep")
#endif

namespace zs::ZS_ISA::math {

// The layout of a float or double.
template <class T>
struct Ieee;

template <>
struct Ieee<float> {
  using U = std::uint32_t;
  static constexpr int mantissa = 23;
  static constexpr int bits = 32;
  static constexpr U bias = 127;
  static constexpr U root_half = 0x3f3504f3;  // sqrt(1/2)
  static constexpr float round = 0x1.8p23f;   // x + round has the integer next to x in its low bits
  static constexpr float integers = 0x1p23f;  // from here on every number is an integer
  static constexpr float infinity = __builtin_inff();
  static constexpr float nan = __builtin_nanf("");
  static constexpr float smallest_normal = 0x1p-126f;
  static constexpr float tiny = 0x1p-26f;  // 1 + tiny is 1, and so are functions' second terms
};

template <>
struct Ieee<double> {
  using U = std::uint64_t;
  static constexpr int mantissa = 52;
  static constexpr int bits = 64;
  static constexpr U bias = 1023;
  static constexpr U root_half = 0x3fe6a09e667f3bcd;
  static constexpr double round = 0x1.8p52;
  static constexpr double integers = 0x1p52;
  static constexpr double infinity = __builtin_inf();
  static constexpr double nan = __builtin_nan("");
  static constexpr double smallest_normal = 0x1p-1022;
  static constexpr double tiny = 0x1p-55;
};

template <class T>
using Bits = typename Ieee<T>::U;

template <class T>
static constexpr ZS_ALWAYS Bits<T> bits(T x) {
  return __builtin_bit_cast(Bits<T>, x);
}

template <class T>
ZS_INLINE T from_bits(Bits<T> x) {
  return __builtin_bit_cast(T, x);
}

// All bits set, or none.
template <class T>
ZS_INLINE Bits<T> mask(bool set) {
  return Bits<T>(0) - static_cast<Bits<T>>(set);
}

// yes where the mask is set, else no. Of several conditional expressions with one condition
// compilers make two paths, each with all that follows; of a mask they make a blend.
template <class T>
ZS_INLINE T select(Bits<T> mask, T yes, T no) {
  return from_bits<T>(bits(no) ^ ((bits(yes) ^ bits(no)) & mask));
}

ZS_INLINE float abs(float x) { return __builtin_fabsf(x); }
ZS_INLINE double abs(double x) { return __builtin_fabs(x); }
ZS_INLINE float copysign(float x, float sign) { return __builtin_copysignf(x, sign); }
ZS_INLINE double copysign(double x, double sign) { return __builtin_copysign(x, sign); }
ZS_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
ZS_INLINE double sqrt(double x) { return __builtin_sqrt(x); }

// a * b + c: rounded once where the processor can, else twice. Where one rounding matters, ask
// ZS_HAS_FMA.
#if ZS_HAS_FMA
ZS_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
ZS_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
ZS_INLINE float fma(float a, float b, float c) { return a * b + c; }
ZS_INLINE double fma(double a, double b, double c) { return a * b + c; }
#endif

// c0 + c1 x + c2 x^2 + ...
template <class T>
ZS_INLINE T polynomial(T, T c0) {
  return c0;
}
template <class T, class... Rest>
ZS_INLINE T polynomial(T x, T c0, Rest... rest) {
  return fma(polynomial(x, rest...), x, c0);
}

// --- Rounding ----------------------------------------------------------------------------------
// Instructions of their own from SSE4.1 on, and on Arm.
#if defined(__SSE4_1__) || defined(__aarch64__)
ZS_INLINE float round_even(float x) { return __builtin_rintf(x); }
ZS_INLINE double round_even(double x) { return __builtin_rint(x); }
ZS_INLINE float floor(float x) { return __builtin_floorf(x); }
ZS_INLINE double floor(double x) { return __builtin_floor(x); }
ZS_INLINE float ceil(float x) { return __builtin_ceilf(x); }
ZS_INLINE double ceil(double x) { return __builtin_ceil(x); }
ZS_INLINE float trunc(float x) { return __builtin_truncf(x); }
ZS_INLINE double trunc(double x) { return __builtin_trunc(x); }
#else
// Among numbers of 2^23 (2^52) and more only integers are left: adding it rounds, to even. The sign
// is put back for the sake of -0. Larger numbers, infinities and NaN are as they were.
template <class T>
ZS_INLINE T round_even(T x) {
  constexpr T integers = Ieee<T>::integers;
  const T a = abs(x);
  return a < integers ? copysign((a + integers) - integers, x) : x;
}
template <class T>
ZS_INLINE T floor(T x) {
  const T r = round_even(x);
  return copysign(r - (r > x ? T(1) : T(0)), x);
}
template <class T>
ZS_INLINE T ceil(T x) {
  const T r = round_even(x);
  return copysign(r + (r < x ? T(1) : T(0)), x);
}
template <class T>
ZS_INLINE T trunc(T x) {
  const T a = abs(x);
  const T r = round_even(a);
  return copysign(r - (r > a ? T(1) : T(0)), x);
}
#endif

// --- Numbers of two parts ------------------------------------------------------------------------
// high + low, low at most half of high's last place.
struct Pair {
  double high, low;
};

// a + b exactly, where a is 0 or not smaller than b.
ZS_INLINE Pair sum(double a, double b) {
  const double high = a + b;
  return {high, b - (high - a)};
}

// a * b exactly.
ZS_INLINE Pair product(double a, double b) {
  const double high = a * b;
#if ZS_HAS_FMA
  return {high, __builtin_fma(a, b, -high)};
#else
  // Dekker: halves of at most 26 bits, cut off by masks, whose products are exact.
  constexpr std::uint64_t upper = ~std::uint64_t{0} << 27;
  const double ah = from_bits<double>(bits(a) & upper), al = a - ah;
  const double bh = from_bits<double>(bits(b) & upper), bl = b - bh;
  return {high, ((ah * bh - high) + ah * bl + al * bh) + al * bl};
#endif
}

// --- Exponents -----------------------------------------------------------------------------------
// The integer next to x as a number, and, `offset` added, in the low bits of an integer.
template <class T>
struct Nearest {
  T number;
  Bits<T> low;
};

// |x| up to 2^21 (2^50).
template <class T>
ZS_INLINE Nearest<T> nearest(T x, T offset = 0) {
  const T round = Ieee<T>::round + offset, shifted = x + round;
  return {shifted - round, bits(shifted)};
}

template <class T>
constexpr T kBias = T(Ieee<T>::bias);

// 2^n for a normal result, with n + bias in the low bits.
template <class T>
ZS_INLINE T power_of_2(Bits<T> low) {
  return from_bits<T>(low << Ieee<T>::mantissa);
}

// 2^n as a product, since 2^n itself may be out of range, with n + 2 bias in the low bits; n
// between -200 and 200 (-1600 and 1600).
template <class T>
struct Scaling {
  T first, second;
};
template <class T>
ZS_INLINE Scaling<T> scaling(Bits<T> low) {
  // (`low` is positive as an integer: its shift is the unsigned one, which every processor has.)
  const Bits<T> half = low >> 1, rest = low - half;
  return {power_of_2<T>(half), power_of_2<T>(rest)};
}

// x * 2^n for x in [1/2, 2], rounded once where that is subnormal.
template <class T>
ZS_INLINE T scale(T x, Bits<T> low) {
  const Scaling<T> s = scaling<T>(low);
  return x * s.first * s.second;
}

}  // namespace zs::ZS_ISA::math
