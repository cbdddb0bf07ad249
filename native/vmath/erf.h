// erf, gelu.
//
// erf a = 1 - exp(-a q(a)), q(a) = -log(erfc a) / a: one polynomial, accurate at both ends since
// e^x - 1 is. The coefficients are made by native/tests/coefficients.py.
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
  return copysign(a > Erf<T>::one ? T(1) : -exp_less(-exponent), x);
}

// (x + 5) e^(x^2 / 2) erfc(x / sqrt(2)), where v = (x - 5) / (x + 5).
ZS_INLINE float scaled_tail(float v) {
  return polynomial(v, 0x1.89d3acp+0f, -0x1.54ad04p+0f, 0x1.fb315cp-1f, -0x1.410ed2p-1f,
                    0x1.51f6e2p-2f, -0x1.1b1cdcp-3f, 0x1.54accap-5f, -0x1.87b5f6p-8f,
                    -0x1.ac5e72p-10f, 0x1.11203ep-10f);
}
ZS_INLINE double scaled_tail(double v) {
  return polynomial(v, 0x1.89d3abe1f95aep+0, -0x1.54ad03f27ca18p+0, 0x1.fb31653876f5cp-1,
                    -0x1.410ed5f875932p-1, 0x1.51f6329f02db8p-2, -0x1.1b1c254ca61ebp-3,
                    0x1.54b4d4f3b72e3p-5, -0x1.88590e902257ap-8, -0x1.a250362acb5c1p-10,
                    0x1.1daf18e57d6e9p-10, -0x1.f2152b06159aep-14, -0x1.a16efdc7f754cp-14,
                    0x1.17e41d688a8bdp-15, 0x1.0ae79e91fa88bp-17, -0x1.743b501f30ef9p-18,
                    -0x1.5e870fc0fc09cp-21, 0x1.d66b2293ebb7dp-21, 0x1.c0f65114e72bfp-25,
                    -0x1.1da8f33de7ed1p-23, 0x1.778eab3026646p-28, 0x1.373ff48b899f1p-27);
}

// -log(erfc(x / sqrt(2))) for x up to 1.45, where v has lost digits.
ZS_INLINE float tail_exponent(float x) {
  return x * polynomial(x, 0x1.98845ap-1f, 0x1.45f218p-2f, 0x1.29d5f4p-5f, -0x1.3d5e18p-8f,
                        0x1.ccb62cp-15f, 0x1.1dc6e8p-13f, -0x1.7248a4p-16f);
}
ZS_INLINE double tail_exponent(double x) {
  return x * polynomial(x, 0x1.9884533d43651p-1, 0x1.45f306dc9c855p-2, 0x1.29a947f9cbaacp-5,
                        -0x1.3966859557255p-8, -0x1.363786b1eb34bp-15, 0x1.bca674cdb717bp-13,
                        -0x1.b58ce6d5f88a8p-15, 0x1.b21a7cd099d00p-20, 0x1.7e8df6d49ea7ep-19,
                        -0x1.f252d9932d2b4p-21, 0x1.3adddb035c474p-24, 0x1.974e6f3f247d6p-25,
                        -0x1.839cfa0e48c9ap-26, 0x1.636788da61f8ap-28, -0x1.72344afd2057fp-31,
                        0x1.61abc320bec95p-35);
}

// The rounding error of x * x.
ZS_INLINE float square_low(float x) {
  const double exact = static_cast<double>(x) * static_cast<double>(x);
  return static_cast<float>(exact - static_cast<double>(x * x));
}
ZS_INLINE double square_low(double x) { return product(x, x).low; }

// x / 2 (1 + erf(x / sqrt(2))). With half = x / 2 erfc(|x| / sqrt(2)) that is half below 0, where 1
// + erf would have no digits left, and x - half above.
template <class T>
ZS_INLINE T gelu(T x) {
  const T a = abs(x), more = a + T(5);
  const Bits<T> near = mask<T>(a < T(1.45));
  const T high = select(near, -tail_exponent(a), T(-0.5) * (x * x));
  const T low = select(near, T(0), T(-0.5) * square_low(x));
  const T factor = T(0.5) * x * select(near, T(1), scaled_tail((a - T(5)) / more) / more);
  const Nearest<T> n = nearest(high * Exp<T>::log2_e, 2 * kBias<T>);
  const Scaling<T> s = scaling<T>(n.low);
  const T rest = expm1_reduced(reduce_exp(high, n.number) + low);
  const T half = copysign(fma(factor, rest, factor) * s.first * s.second, x);
  const Bits<T> above = mask<T>(x > 0);
  const T result = select(above, x - half, half);
  return high < Exp<T>::low ? select(above, x, T(-0.0)) : result;
}

}  // namespace zs::ZS_ISA::math
