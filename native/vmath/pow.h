// pow, with all of C's special cases.
//
// |x|^y = 2^(y log2 |x|). An error of the logarithm is multiplied by up to 128 (1024) before it becomes
// one of the result, so that the logarithm of a float is a double, and that of a double a pair.
#pragma once

#include "base.h"
#include "exp.h"
#include "log.h"

namespace zs::ZS_ISA::math {

// Signs, and the cases where y is 0 or x is 1 or a negative number to the power of a fraction.
// `result` is |x|^y.
template <class T>
ZS_INLINE T pow_special(T x, T y, T result) {
  constexpr Bits<T> sign = Bits<T>(1) << (Ieee<T>::bits - 1);
  const T half = y * T(0.5);
  const bool integer = round_even(y) == y;
  const bool odd = integer && round_even(half) != half;
  result = x < 0 && x > -Ieee<T>::infinity && !integer ? Ieee<T>::nan : result;
  result = odd ? from_bits<T>(bits(result) | (bits(x) & sign)) : result;
  return x == T(1) || y == T(0) ? T(1) : result;
}

// log2 |x| where that is no number.
template <class T>
ZS_INLINE double log2_ends(T a, double log2) {
  log2 = a < Ieee<T>::infinity ? log2 : static_cast<double>(a);
  return a == T(0) ? -Ieee<double>::infinity : log2;
}

ZS_INLINE float pow(float x, float y) {
  const float a = abs(x);
  const double log2 = log2_ends(a, log2_wide(a));
  // (Of 1, whose logarithm is 0, an infinite y must make 0.)
  const double power = clamp(static_cast<double>(y), -1e30, 1e30) * log2;
  // Rounding to float makes the subnormals, zeros and infinities.
  const double inside = clamp(power, -160.0, 160.0);
  const Nearest<double> n = nearest(inside);
  const double r = inside - n.number;
  const double p = polynomial(r, 0x1.ffffffffa70bbp-1, 0x1.62e430d045900p-1, 0x1.ebfbe0aa0c6b7p-3,
                              0x1.c6aecc557b143p-5, 0x1.3b29d8b558b88p-7, 0x1.5f48c72938f34p-10,
                              0x1.446c7dbc66a44p-13);
  const double scaled = p * power_of_2<double>(n.low - bits(Ieee<double>::round));
  return pow_special(x, y, static_cast<float>(scaled));
}

// The natural logarithm of a positive number to about 68 bits.
// log(m) = 2 s + s^3 (2/3 + z q(z)), s = (m - 1) / (m + 1), z = s^2.
ZS_INLINE Pair log_exact(double x) {
  const Split<double> p = split(x);
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

ZS_INLINE double pow(double x, double y) {
  // Beyond it every power but that of 1 overflows or is 0; within it no product below overflows.
  constexpr double far = 0x1p70;
  const double a = abs(x);
  const Pair l = log_exact(a);
  const double log_high = log2_ends(a, l.high), finite = clamp(y, -far, far);
  const Pair power = product(finite, log_high);
  const double high = clamp(power.high, Exp<double>::low, Exp<double>::high);
  // (Infinite, the product has no lower part; clamped, none that matters.)
  const double low = abs(power.high) < 800 ? power.low + finite * l.low : 0.0;

  const Nearest<double> n = nearest(high * Exp<double>::log2_e);
  const double t = fma(n.number, -Exp<double>::ln2_high, high);
  const double d = fma(n.number, -Exp<double>::ln2_low, low);
  const double r = t + d, r_low = d - (r - t);
  return pow_special(x, y, scale(1.0 + (expm1_reduced(r) + r_low), n.low));
}

}  // namespace zs::ZS_ISA::math
