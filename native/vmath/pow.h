// pow, with all of C's special cases.
//
// |x|^y = 2^(y log2 |x|). An error of the logarithm is multiplied by up to 128 (1024) before it
// becomes one of the result, so that the logarithm is a pair of floats or doubles. (Of a float
// without a multiply-add it is a double.)
#pragma once

#include "base.h"
#include "exp.h"
#include "log.h"

namespace zs::ZS_ISA::math {

// x^y, where `result` is |x|^y for numbers other than 0. (It need not be right where x is 0,
// infinite or NaN, nor for 1 to an infinite power.)
template <class T>
ZS_INLINE T pow_special(T x, T y, T result) {
  constexpr T infinity = Ieee<T>::infinity;
  constexpr Bits<T> sign = Bits<T>(1) << (Ieee<T>::bits - 1);
  const T a = abs(x), half = y * T(0.5);
  const bool whole = round_even(y) == y;
  const bool odd = whole & (round_even(half) != half);
  const bool number = (a > 0) & (a < infinity);
  const T end = (a < T(1)) == (y < 0) ? infinity : T(0);
  result = number ? result : end;
  result = odd ? from_bits<T>(bits(result) | (bits(x) & sign)) : result;
  result = (number & (x < 0) & !whole) ? Ieee<T>::nan : result;
  result = ((x != x) | (y != y)) ? x + y : result;
  const bool one = (x == T(1)) | (y == T(0)) | ((x == T(-1)) & (abs(y) == infinity));
  return one ? T(1) : result;
}

// A power as fraction * 2^n, with n + bias in the low bits, and its logarithm (of some base).
template <class T>
struct Power {
  T fraction;
  Bits<T> low;
  T logarithm;
};

// Bounds of that logarithm: below the result is 0, above it is infinite; and within the last one it
// is a normal number. And the bits of the least fraction (0.6975: log2_pair's ranges are alike).
template <class T>
struct PowerBounds;
template <>
struct PowerBounds<float> {
  static constexpr float low = Exp<float>::low2, high = Exp<float>::high2, normal = 124;
  static constexpr std::uint32_t least = 0x3f328f5c;
};
template <>
struct PowerBounds<double> {
  static constexpr double low = Exp<double>::low, high = Exp<double>::high, normal = 700;
  static constexpr std::uint64_t least = Ieee<double>::root_half;
};

#if ZS_HAS_FMA
struct FloatPair {
  float high, low;
};

// log2 of a positive number to about 31 bits. Of its fraction m three ranges, j = 1, 0 and -1, are
// multiplied by 1 + j / 4: 1 + f is near 1 then. f is exact; so is -log2(1 + j / 4) = j (a + j b)
// with 16 bits of a and b.
ZS_INLINE FloatPair log2_pair(Split<float> p) {
  constexpr float round = Ieee<float>::round;
  constexpr float e_high = 0x1.715476p+0f, e_low = 0x1.4ae0c0p-26f;  // log2 e
  constexpr float a_high = -0x1.7954p-2f, a_low = 0x1.c8563cp-20f;
  constexpr float b_high = 0x1.7d60p-5f, b_low = 0x1.25b3eep-23f;
  const float m = p.fraction, j = fma(m, -3.935f, round + 4) - round;
  const float f = fma(m, fma(j, 0.25f, 1.0f), -1.0f);

  // log(1 + f) = f - f^2 / 2 + f^3 q(f), the first two terms exactly
  const float square = f * f, square_low = fma(f, f, -square);
  const float q = polynomial(f, 0x1.555556p-2f, -0x1.00000ep-2f, 0x1.99982cp-3f, -0x1.5538e4p-3f,
                             0x1.24fd82p-3f, -0x1.08a0b4p-3f, 0x1.baffa8p-4f);
  const float factor = f * q, two = fma(-0.5f, square, f);
  const float two_low = fma(-0.5f, square, f - two);
  const float low = fma(square, factor, fma(square_low, factor - 0.5f, two_low));

  // Of the low parts those of 2^-20 and less come first, so that the cube is rounded once.
  const float part = two * e_high;
  const float whole = fma(j, fma(j, b_high, a_high), p.exponent), high = whole + part;
  const float products = fma(two, e_low, fma(two, e_high, -part));
  const float sums = fma(j, fma(j, b_low, a_low), products) + (part - (high - whole));
  const float rest = fma(low, e_high, sums);
  const float result = high + rest;
  return {result, rest - (result - high)};
}

ZS_INLINE Power<float> power(Split<float> x, float y) {
  const FloatPair l = log2_pair(x);
  const float high = y * l.high, low = fma(y, l.low, fma(y, l.high, -high));
  const Nearest<float> n = nearest(high, kBias<float>);
  const float r = (high - n.number) + low;

  // 2^r = 1 + r log(2) + r^2 q(r), the second term exactly: small whole powers are exact, too
  constexpr float ln2 = 0x1.62e430p-1f;
  const float q = polynomial(r, 0x1.ebfbe0p-3f, 0x1.c6af80p-5f, 0x1.3b2a48p-7f, 0x1.5f089ep-10f,
                             0x1.4424b0p-13f);
  const float two = fma(r, ln2, 1.0f), two_low = fma(r, ln2, 1.0f - two);
  return {two + fma(r * r, q, two_low), n.low, high};
}
#endif

// The natural logarithm of a positive number to about 68 bits.
// log(m) = 2 s + s^3 (2/3 + z q(z)), s = (m - 1) / (m + 1), z = s^2.
ZS_INLINE Pair log_exact(Split<double> p) {
  const double m = p.fraction, up = m - 1, down = m + 1, down_low = m - (down - 1);

  const double inverse = 1 / down, s = up * inverse;
  const Pair back = product(s, down);
  const double s_low = ((up - back.high) - back.low - s * down_low) * inverse;

  const Pair square = product(s, s);
  const double z = square.high, z_low = square.low + 2 * s * s_low;

  const double q =
      z * polynomial(z, 0x1.999999999999ap-2, 0x1.2492492492387p-2, 0x1.c71c71c73f7f7p-3,
                     0x1.745d173212c9ap-3, 0x1.3b13b7e341cefp-3, 0x1.110fa9da08a39p-3,
                     0x1.e240dcfbf9c66p-4, 0x1.a793dd4d88ea1p-4, 0x1.d9d5df9992777p-4);
  const Pair thirds = sum(0x1.5555555555555p-1, q);
  const double factor = thirds.high, factor_low = thirds.low + 0x1.5555555555555p-55;

  const Pair cube = product(s, z);
  const double cube_low = cube.low + s * z_low + s_low * z;
  const Pair third = product(cube.high, factor);
  const double third_low = third.low + cube.high * factor_low + cube_low * factor;

  const Pair a = sum(p.exponent * Exp<double>::ln2_high, 2 * s);
  const Pair b = sum(a.high, third.high);
  const double low = fma(p.exponent, Exp<double>::ln2_low, 2 * s_low + third_low) + a.low + b.low;
  return sum(b.high, low);
}

ZS_INLINE Power<double> power(Split<double> x, double y) {
  const Pair l = log_exact(x);
  const Pair power = product(y, l.high);
  const Nearest<double> n = nearest(power.high * Exp<double>::log2_e, kBias<double>);
  const double t = fma(n.number, -Exp<double>::ln2_high, power.high);
  const double d = fma(n.number, -Exp<double>::ln2_low, power.low + y * l.low);
  const double r = t + d, r_low = d - (r - t);
  return {1.0 + (expm1_reduced(r) + r_low), n.low, power.high};
}

template <class T>
ZS_INLINE T pow(T x, T y) {
  using Bounds = PowerBounds<T>;
  const Power<T> p = power(split(abs(x), Bounds::least), y);
  const T result = scale(p.fraction, p.low + Ieee<T>::bias);
  return pow_special(
      x, y, within(p.logarithm, Bounds::low, T(0), Bounds::high, Ieee<T>::infinity, result));
}

#if !ZS_HAS_FMA
ZS_INLINE float pow(float x, float y) {
  const double power = static_cast<double>(y) * log2_wide(abs(x));
  const Nearest<double> n = nearest(power, kBias<double>);
  const double r = power - n.number;
  const double p = polynomial(r, 0x1.ffffffffa70bbp-1, 0x1.62e430d045900p-1, 0x1.ebfbe0aa0c6b7p-3,
                              0x1.c6aecc557b143p-5, 0x1.3b29d8b558b88p-7, 0x1.5f48c72938f34p-10,
                              0x1.446c7dbc66a44p-13);
  const double scaled = p * power_of_2<double>(n.low);
  // Rounding to float makes the subnormals, and the zeros and infinities within the bounds.
  const double result = within(power, -160.0, 0.0, 160.0, Ieee<double>::infinity, scaled);
  return pow_special(x, y, static_cast<float>(result));
}
#endif

// --- Rows ----------------------------------------------------------------------------------------
// Special cases cost a third of the time, and are rare: a row's chunks are computed without them,
// and once more where one shows. An element's result is the same either way.

// The consequences of one exponent for all bases: whether negative ones have powers, and whether
// those are negative (the sign bit, or nothing); whether 0's is 0 (a mask).
template <class T>
struct Allowed {
  Bits<T> negative, odd, zero;
};
template <class T>
ZS_INLINE Allowed<T> allowed_by(T y) {
  constexpr Bits<T> sign = Bits<T>(1) << (Ieee<T>::bits - 1);
  const T half = y * T(0.5);
  const bool whole = round_even(y) == y;
  return {sign & mask<T>(whole), sign & mask<T>(whole & (round_even(half) != half)),
          mask<T>(y > 0)};
}

template <class T>
struct UsualPower {
  T result;
  Bits<T> special;  // its highest bit says that the result is not right
};
// For a positive normal base, or one that is allowed, and a power that is normal.
template <class T>
ZS_INLINE UsualPower<T> usual_pow(T x, T y, Allowed<T> allowed) {
  constexpr Bits<T> sign = Bits<T>(1) << (Ieee<T>::bits - 1);
  constexpr Bits<T> one_exponent = Bits<T>(1) << Ieee<T>::mantissa;
  const Bits<T> base = bits(x) & ~allowed.negative;
  const Power<T> p = power(split_normal(from_bits<T>(base), PowerBounds<T>::least), y);
  const T result = p.fraction * power_of_2<T>(p.low);
  // Only these sums of a negative, a zero or subnormal, an infinite or NaN have the highest bit.
  const Bits<T> no_number = (base - one_exponent) | (base + one_exponent);
  const Bits<T> no_normal = (bits(p.logarithm) & ~sign) + (sign - bits(PowerBounds<T>::normal));
  const Bits<T> zero = mask<T>(from_bits<T>(base) == 0) & allowed.zero;
  return {from_bits<T>((bits(result) & ~zero) | (bits(x) & allowed.odd)),
          (no_number | no_normal) & ~zero};
}

// kOnes: bit k says that operand k is one element.
template <unsigned kOnes, class T>
static inline void pow_row(const T* x, const T* y, T* out, std::int64_t n) {
  if (n == 0) return;
  constexpr bool one_x = (kOnes & 1) != 0, one_y = (kOnes & 2) != 0;
  constexpr std::int64_t chunk = 256;
  T kept[chunk];
  const bool in_place = out == x || out == y;  // then the first results must not lie there
  const T first_x = *x, first_y = *y;  // `out` may be one of them
  const Allowed<T> allowed = one_y ? allowed_by(first_y) : Allowed<T>{0, 0, 0};
  for (std::int64_t first = 0; first < n; first += chunk) {
    const std::int64_t count = n - first < chunk ? n - first : chunk;
    Bits<T> special = 0;
    T* const usual = in_place ? kept : out + first;
    ZS_LOOP
    for (std::int64_t i = 0; i < count; ++i) {
      const UsualPower<T> p =
          usual_pow(one_x ? first_x : x[first + i], one_y ? first_y : y[first + i], allowed);
      usual[i] = p.result;
      special |= p.special;
    }
    if (special >> (Ieee<T>::bits - 1) == 0) {
      for (std::int64_t i = 0; in_place && i < count; ++i) out[first + i] = kept[i];
      continue;
    }
    ZS_LOOP
    for (std::int64_t i = 0; i < count; ++i) {
      out[first + i] = pow(one_x ? first_x : x[first + i], one_y ? first_y : y[first + i]);
    }
  }
}

#if !ZS_HAS_FMA
template <unsigned kOnes>
static inline void pow_row(const float* x, const float* y, float* out, std::int64_t n) {
  if (n == 0) return;
  const float first_x = *x, first_y = *y;
  ZS_LOOP
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = pow((kOnes & 1) != 0 ? first_x : x[i], (kOnes & 2) != 0 ? first_y : y[i]);
  }
}
#endif

template <class T>
static inline void pow_row(const T* x, const T* y, T* out, std::int64_t n) {
  pow_row<0>(x, y, out, n);
}

}  // namespace zs::ZS_ISA::math
