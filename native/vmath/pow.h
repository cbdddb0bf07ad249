// pow, with all of C's special cases.
//
// |x|^y = 2^(y log2 |x|). An error of the logarithm is multiplied by up to 128 (1024) before it
// becomes one of the result, so that the logarithm of a float is a double, and that of a double a
// pair.
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
  const Pair l = log_exact(abs(x));
  const Pair power = product(y, l.high);
  const Nearest<double> n = nearest(power.high * Exp<double>::log2_e, 2 * kBias<double>);
  const double t = fma(n.number, -Exp<double>::ln2_high, power.high);
  const double d = fma(n.number, -Exp<double>::ln2_low, power.low + y * l.low);
  const double r = t + d, r_low = d - (r - t);
  const double result = scale(1.0 + (expm1_reduced(r) + r_low), n.low);
  return pow_special(
      x, y,
      within(power.high, Exp<double>::low, 0.0, Exp<double>::high, Ieee<double>::infinity, result));
}

}  // namespace zs::ZS_ISA::math
