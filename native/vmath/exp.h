// exp, exp2, expm1, and the functions composed of them: sigmoid, tanh, sinh, cosh.
//
// e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2) / 2, and e^r is a polynomial. The coefficients
// are made by native/tests/coefficients.py.
#pragma once

#include "base.h"

namespace zs::ZS_ISA::math {

// The bounds beyond which a result is 0 or infinite for certain, and ln 2 in two parts; the upper
// has so few bits that its product with n is exact.
template <class T>
struct Exp;

template <>
struct Exp<float> {
  static constexpr float low = -105, high = 89.5f;
  static constexpr float low2 = -151, high2 = 129;
  static constexpr float log2_e = 0x1.715476p+0f;
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
};

template <>
struct Exp<double> {
  static constexpr double low = -746, high = 710.5;
  static constexpr double low2 = -1076, high2 = 1025;
  static constexpr double log2_e = 0x1.71547652b82fep+0;
  static constexpr double ln2_high = 0x1.62e42fefa3000p-1, ln2_low = 0x1.3de6af278ece6p-42;
};

// The result for x, or the ones below and above the bounds. Chosen last: were x clamped first,
// compilers would make paths of their own for the bounds. NaN stays.
template <class T>
ZS_INLINE T within(T x, T low, T below, T high, T above, T result) {
  result = x < low ? below : result;
  return x > high ? above : result;
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
ZS_INLINE float expm1_second(float r) {
  return polynomial(r, 0x1.000000p-1f, 0x1.5554acp-3f, 0x1.5554f0p-5f, 0x1.1229f8p-7f,
                    0x1.6d436ap-10f);
}
ZS_INLINE double expm1_second(double r) {
  return polynomial(r, 0x1.0000000000005p-1, 0x1.5555555555559p-3, 0x1.55555555520fbp-5,
                    0x1.111111110f651p-7, 0x1.6c16c17f34d5cp-10, 0x1.a01a01b0054cbp-13,
                    0x1.a019a68efc250p-16, 0x1.71ddf80b7def9p-19, 0x1.28a2a1912bcd5p-22,
                    0x1.af5f30f40dd14p-26);
}

// e^r - 1
template <class T>
ZS_INLINE T expm1_reduced(T r) {
  return fma(r * r, expm1_second(r), r);
}

template <class T>
ZS_INLINE T reduce_exp(T x, T n) {
  return fma(n, -Exp<T>::ln2_low, fma(n, -Exp<T>::ln2_high, x));
}

// For x within the bounds.
template <class T>
ZS_INLINE T exp_within(T x) {
  const Nearest<T> n = nearest(x * Exp<T>::log2_e, 2 * kBias<T>);
  const T r = reduce_exp(x, n.number);
  return scale(fma(fma(expm1_second(r), r, T(1)), r, T(1)), n.low);
}

template <class T>
ZS_INLINE T exp(T x) {
  return within(x, Exp<T>::low, T(0), Exp<T>::high, Ieee<T>::infinity, exp_within(x));
}

// For x not above 0.
template <class T>
ZS_INLINE T exp_down(T x) {
  const T result = exp_within(x);
  return x < Exp<T>::low ? T(0) : result;
}

// (2^r - 1) / r for |r| <= 1/2.
ZS_INLINE float exp2_first(float r) {
  return polynomial(r, 0x1.62e430p-1f, 0x1.ebfbe0p-3f, 0x1.c6af72p-5f, 0x1.3b2a48p-7f,
                    0x1.5f0dccp-10f, 0x1.4424b0p-13f);
}
ZS_INLINE double exp2_first(double r) {
  return polynomial(r, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5a6p-3, 0x1.c6b08d704a183p-5,
                    0x1.3b2ab6fb9fd4fp-7, 0x1.5d87fe7888b62p-10, 0x1.4309130f862b6p-13,
                    0x1.ffcbfcdbb0815p-17, 0x1.62bfc60f5590bp-20, 0x1.b524224fbe196p-24,
                    0x1.e61dcc21b6ec9p-28, 0x1.eafe8868eac99p-32);
}

template <class T>
ZS_INLINE T exp2(T x) {
  const Nearest<T> n = nearest(x, 2 * kBias<T>);
  const T r = x - n.number, result = scale(fma(exp2_first(r), r, T(1)), n.low);
  return within(x, Exp<T>::low2, T(0), Exp<T>::high2, Ieee<T>::infinity, result);
}

// e^x - 1 for x between -60 and 0.
template <class T>
ZS_INLINE T exp_less(T x) {
  const Nearest<T> n = nearest(x * Exp<T>::log2_e, kBias<T>);
  const T scale = power_of_2<T>(n.low);
  return fma(scale, expm1_reduced(reduce_exp(x, n.number)), scale - T(1));
}

// (e^x - 1) / 4, so that nothing overflows before e^x / 2 does. Not for subnormal results.
template <class T>
ZS_INLINE T quarter_expm1(T x) {
  const Nearest<T> n = nearest(x * Exp<T>::log2_e, kBias<T> - T(2));
  const T quarter = power_of_2<T>(n.low);
  const T result = fma(quarter, expm1_reduced(reduce_exp(x, n.number)), quarter - T(0.25));
  return within(x, T(-60), T(-0.25), Exp<T>::high, Ieee<T>::infinity, result);
}

template <class T>
ZS_INLINE T expm1(T x) {
  return abs(x) < Ieee<T>::tiny ? x : T(4) * quarter_expm1(x);
}

// 1 / (1 + e^-x), written so that no power overflows and small results keep their digits.
template <class T>
ZS_INLINE T sigmoid(T x) {
  const T e = exp_down(-abs(x));
  return select(mask<T>(x < 0), e, T(1)) / (T(1) + e);
}

// With l = e^(-2|x|) - 1: tanh |x| = -l / (2 + l).
template <class T>
ZS_INLINE T tanh(T x) {
  const T a = abs(x), l = exp_less(T(-2) * a), result = l / (T(2) + l);
  return copysign(a > T(20) ? T(1) : result, x);
}

// With h = (e^|x| - 1) / 2: sinh |x| = h + h / (2 h + 1), and the fraction is soon 1/2.
template <class T>
ZS_INLINE T sinh(T x) {
  const T a = abs(x), h = T(2) * quarter_expm1(a);
  const T result = h + (a > T(40) ? T(0.5) : h / (T(2) * h + T(1)));
  return a < Ieee<T>::tiny ? x : copysign(result, x);
}

// x tanh(log(1 + e^x)) = x p / (p + 2), p = e^2x + 2 e^x. Far below 0 that is x e^x, where e^x may
// have lost digits that the product keeps: x comes in before the last step of the scaling.
template <class T>
ZS_INLINE T mish(T x) {
  const Nearest<T> n = nearest(x * Exp<T>::log2_e, 2 * kBias<T>);
  const Scaling<T> s = scaling<T>(n.low);
  const T e = (T(1) + expm1_reduced(reduce_exp(x, n.number))) * s.first, power = e * s.second;
  const T p = fma(power, power, T(2) * power);
  const T result = x * (p / (p + T(2))), far = (x * e) * s.second;
  return within(x, Exp<T>::low - T(10), T(-0.0), T(40), x, x < T(-40) ? far : result);
}

// With h = e^|x| / 2: cosh x = h + 1 / (4 h).
template <class T>
ZS_INLINE T cosh(T x) {
  const T a = abs(x);
  const Nearest<T> n = nearest(a * Exp<T>::log2_e, kBias<T> - T(2));
  const T quarter = power_of_2<T>(n.low);
  const T h = T(2) * (quarter * (T(1) + expm1_reduced(reduce_exp(a, n.number))));
  return a > Exp<T>::high ? Ieee<T>::infinity : h + T(0.25) / h;
}

}  // namespace zs::ZS_ISA::math
