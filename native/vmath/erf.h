// erf, gelu.
//
// erf a = 1 - exp(-a q(a)), q(a) = -log(erfc a) / a: one polynomial, accurate at both ends since e^x - 1
// is. The coefficients are made by native/tests/coefficients.py.
#pragma once

#include "base.h"
#include "exp.h"

namespace zs::ZS_ISA::math {

// From here on erf is 1, and the polynomials end.
template <class T>
struct Erf;
template <>
struct Erf<float> {
  static constexpr float one = 4;
};
template <>
struct Erf<double> {
  static constexpr double one = 6;
};

// a q(a)
ZS_INLINE float erf_exponent(float a) {
  return a * polynomial(a, 0x1.20dd76p+0f, 0x1.45f288p-1f, 0x1.a5247ap-4f, -0x1.3cbcd6p-6f,
                        0x1.ce209ep-13f, 0x1.456696p-10f, -0x1.8bba3cp-12f, 0x1.517fc2p-15f);
}
ZS_INLINE double erf_exponent(double a) {
  return a * polynomial(a, 0x1.20dd750429b6dp+0, 0x1.45f306dc9c897p-1, 0x1.a4f4e2a1b2fefp-4,
                        -0x1.396685946a4fbp-6, -0x1.b6b687434a104p-13, 0x1.bca67664b2d45p-10,
                        -0x1.35650e985bbe1p-11, 0x1.b209fe1d6ea7dp-16, 0x1.0e991c107c25bp-14,
                        -0x1.f397649741cbep-16, 0x1.d5f71b4a41900p-19, 0x1.6b32971afd9afp-19,
                        -0x1.adcbfce25dd01p-20, 0x1.cb708d2dae905p-23, 0x1.df6c8e7b1498dp-23,
                        -0x1.99934432fd84fp-23, 0x1.7b2d97e5318bdp-24, -0x1.f8458f7d05507p-26,
                        0x1.01dd3e1369169p-27, -0x1.9d75ceb7ca2dap-30, 0x1.03457a4a92e3fp-32,
                        -0x1.f4046b60c8f7cp-36, 0x1.6671c87909878p-39, -0x1.67fcbeb0836e2p-43,
                        0x1.c3ee7456f4aadp-48, -0x1.0ac1be589acfbp-53);
}

template <class T>
ZS_INLINE T erf(T x) {
  const T a = abs(x), exponent = erf_exponent(a);
  return copysign(a > Erf<T>::one ? T(1) : -exp_pair(-exponent).less, x);
}

// (x + 5) e^(x^2 / 2) erfc(x / sqrt(2)), where v = (x - 5) / (x + 5).
ZS_INLINE float scaled_tail(float v) {
  return polynomial(v, 0x1.89d3acp+0f, -0x1.54ad04p+0f, 0x1.fb315cp-1f, -0x1.410ed4p-1f,
                       0x1.51f6dcp-2f, -0x1.1b1c0ap-3f, 0x1.54ae2ep-5f, -0x1.886588p-8f,
                       -0x1.ac9edcp-10f, 0x1.166ce0p-10f);
}
ZS_INLINE double scaled_tail(double v) {
  return polynomial(v, 0x1.89d3abe1f95aep+0, -0x1.54ad03f27ca18p+0, 0x1.fb31653876f61p-1,
                       -0x1.410ed5f87591fp-1, 0x1.51f6329f029a8p-2, -0x1.1b1c254ca6d1fp-3,
                       0x1.54b4d4f3fd16dp-5, -0x1.88590e8fd00b3p-8, -0x1.a25036b7cac3ep-10,
                       0x1.1daf193b8ef2dp-10, -0x1.f214df5d686a6p-14, -0x1.a16f5670881a8p-14,
                       0x1.17e158ace52c0p-15, 0x1.0afaab12f6dcap-17, -0x1.74082825669c7p-18,
                       -0x1.62b63f746b6e5p-21, 0x1.d5a4c2d0a84b1p-21, 0x1.1a6dc7d868383p-24,
                       -0x1.2b79bf5288edfp-23, -0x1.6864d37ba4671p-29, 0x1.334e8e20302a4p-26,
                       -0x1.4b2031ccceffap-29);
}

// -log(erfc(x / sqrt(2))) for x up to 1, where v has lost digits.
ZS_INLINE float tail_exponent(float x) {
  return x * polynomial(x, 0x1.98845cp-1f, 0x1.45f1a0p-2f, 0x1.29f500p-5f, -0x1.40c5a2p-8f,
                           0x1.2bc00ep-13f, 0x1.10e21ap-14f);
}
ZS_INLINE double tail_exponent(double x) {
  return x * polynomial(x, 0x1.9884533d4366bp-1, 0x1.45f306dc9b824p-2, 0x1.29a947faade63p-5,
                           -0x1.396685f91df4ep-8, -0x1.3635e61d5694ep-15, 0x1.bca443d72055bp-13,
                           -0x1.b56cd94359dccp-15, 0x1.a7da353f1f882p-20, 0x1.87de7cd4e292bp-19,
                           -0x1.11444225eb218p-20, 0x1.4d4103c1caa64p-23, -0x1.07037d422011ep-28,
                           -0x1.b3130532919c7p-30);
}

// The rounding error of x * x.
ZS_INLINE float square_low(float x) {
  const double exact = static_cast<double>(x) * static_cast<double>(x);
  return static_cast<float>(exact - static_cast<double>(x * x));
}
ZS_INLINE double square_low(double x) { return product(x, x).low; }

// x / 2 (1 + erf(x / sqrt(2))). With half = x / 2 erfc(|x| / sqrt(2)) that is half below 0, where 1 + erf
// would have no digits left, and x - half above.
template <class T>
ZS_INLINE T gelu(T x) {
  const T a = abs(x), more = a + T(5);
  const Bits<T> near = mask<T>(a < T(1));
  const T high = select(near, -tail_exponent(a), T(-0.5) * (x * x));
  const T low = select(near, T(0), T(-0.5) * square_low(x));
  const T factor = T(0.5) * x * select(near, T(1), scaled_tail((a - T(5)) / more) / more);
  const Nearest<T> n = nearest(high * Exp<T>::log2_e);
  const Scaling<T> s = scaling<T>(n.low);
  const T rest = expm1_reduced(reduce_exp(high, n.number) + low);
  const T half = copysign(fma(factor, rest, factor) * s.first * s.second, x);
  const Bits<T> above = mask<T>(x > 0);
  const T result = select(above, x - half, half);
  return high < Exp<T>::low ? select(above, x, T(-0.0)) : result;
}

}  // namespace zs::ZS_ISA::math
