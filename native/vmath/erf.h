// erf a = 1 - exp(-a q(a)), q(a) = -log(erfc a) / a: one polynomial, accurate at both ends since
// expm1 is.
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

}  // namespace zs::ZS_ISA::math
