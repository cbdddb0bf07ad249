// log, log2, log10, log1p, and the functions composed of them: softplus, logaddexp, asinh, acosh, atanh.
//
// x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)). The coefficients are made by
// native/tests/coefficients.py.
#pragma once

#include "base.h"
#include "exp.h"

namespace zs::ZS_ISA::math {

// x = 2^exponent * fraction
template <class T>
struct Split {
  T exponent, fraction;
};

// The exponent as a number, from a number's upper bits minus those of the least fraction. Below AVX-512
// no instruction converts whole numbers of 64 bits: they become the low bits of a double.
ZS_INLINE float exponent_of(std::uint32_t above) {
  return static_cast<float>(static_cast<std::int32_t>(above) >> Ieee<float>::mantissa);
}
ZS_INLINE double exponent_of(std::uint64_t above) {
  using I = Ieee<double>;
  constexpr double zero = 0x1p52 + static_cast<double>(I::bias);
  const std::uint64_t biased = (above + (I::bias << I::mantissa)) >> I::mantissa;
  return from_bits<double>(biased | bits(0x1p52)) - zero;
}

// For positive normal x. `least` has the bits of the least fraction there is.
template <class T>
ZS_INLINE Split<T> split_normal(T x, Bits<T> least = Ieee<T>::root_half) {
  using I = Ieee<T>;
  constexpr Bits<T> mantissa = (Bits<T>(1) << I::mantissa) - 1;
  const Bits<T> above = bits(x) - least;
  return {exponent_of(above), from_bits<T>((above & mantissa) + least)};
}

// For positive x; subnormals are made normal first.
template <class T>
ZS_INLINE Split<T> split(T x, Bits<T> least = Ieee<T>::root_half) {
  constexpr T up = T(Bits<T>(1) << Ieee<T>::mantissa), steps = T(Ieee<T>::mantissa);
  const Bits<T> small = mask<T>(x < Ieee<T>::smallest_normal);
  const Split<T> s = split_normal(select(small, x * up, x), least);
  return {s.exponent - select(small, steps, T(0)), s.fraction};
}

// C's values for arguments that have no finite logarithm.
template <class T>
ZS_INLINE T log_special(T x, T result) {
  result = x < Ieee<T>::infinity ? result : x;
  return x > 0 ? result : (x == 0 ? -Ieee<T>::infinity : Ieee<T>::nan);
}

// k ln 2 + log(1 + f)
ZS_INLINE float log_parts(float k, float f) {
  const float q =
      polynomial(f, 0x1.555546p-2f, -0x1.000000p-2f, 0x1.99a546p-3f, -0x1.555f16p-3f,
                 0x1.232fe8p-3f, -0x1.fbc1e6p-4f, 0x1.e6f4eep-4f, -0x1.e04a3ap-4f, 0x1.16babcp-4f);
  const float square = f * f;
  const float low = fma(k, Exp<float>::ln2_low, fma(square * f, q, -0.5f * square));
  return fma(k, Exp<float>::ln2_high, f + low);
}

// log(1 + f) = f - (f^2/2 - s (f^2/2 + remainder)), s = f / (2 + f).
struct LogSeries {
  double half_square, s_times;
};
ZS_INLINE LogSeries log_series(double f) {
  const double s = f / (2 + f), z = s * s, half_square = 0.5 * f * f;
  const double remainder =
      z * polynomial(z, 0x1.5555555555594p-1, 0x1.999999997f73fp-2, 0x1.249249423ac79p-2,
                     0x1.c71c51d6d7e76p-3, 0x1.746647f14b159p-3, 0x1.39a0eaea502f7p-3,
                     0x1.2f0ccd19fb262p-3);
  return {half_square, s * (half_square + remainder)};
}
ZS_INLINE double log_parts(double k, double f) {
  const LogSeries l = log_series(f);
  const double low = fma(k, Exp<double>::ln2_low, l.s_times);
  return fma(k, Exp<double>::ln2_high, f - (l.half_square - low));
}

template <class T>
ZS_INLINE T log(T x) {
  const Split<T> s = split(x);
  return log_special(x, log_parts(s.exponent, s.fraction - T(1)));
}

#if ZS_HAS_FMA
// A logarithm of base b: k log_b(2) + f log_b(e) + f^2 q(f); its first terms are exact.
struct Base {
  float e_high, e_low, two_high, two_low;  // log_b of e and 2; the upper of 2 has 16 bits
};
ZS_INLINE float log_of_base(Split<float> p, Base b, float f, float q) {
  const float first = f * b.e_high, first_low = fma(f, b.e_low, fma(f, b.e_high, -first));
  const float low = fma(f * f, q, fma(p.exponent, b.two_low, first_low));
  const float whole = p.exponent * b.two_high, high = whole + first;
  return high + ((first - (high - whole)) + low);
}
ZS_INLINE float log2(float x) {
  constexpr Base base = {0x1.715476p+0f, 0x1.4ae0c0p-26f, 1, 0};
  const Split<float> p = split(x);
  const float f = p.fraction - 1;
  const float q = polynomial(f, -0x1.715470p-1f, 0x1.ec7094p-2f, -0x1.715ac8p-2f, 0x1.277ef4p-2f,
                             -0x1.eab184p-3f, 0x1.a2e68ap-3f, -0x1.877ad0p-3f, 0x1.7e0dd4p-3f,
                             -0x1.c366bap-4f);
  return log_special(x, log_of_base(p, base, f, q));
}
ZS_INLINE float log10(float x) {
  constexpr Base base = {0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.3442p-2f, -0x1.95ec10p-19f};
  const Split<float> p = split(x);
  const float f = p.fraction - 1;
  const float q = polynomial(f, -0x1.bcb7aap-3f, 0x1.287a70p-3f, -0x1.bcbf28p-4f, 0x1.63d012p-4f,
                             -0x1.27701cp-4f, 0x1.f868bap-5f, -0x1.d73bf2p-5f, 0x1.cbf900p-5f,
                             -0x1.100802p-5f);
  return log_special(x, log_of_base(p, base, f, q));
}
#else
// log2 of a positive float (subnormals too) to about 45 bits.
ZS_INLINE double log2_wide(float x) {
  const Split<double> p = split_normal(static_cast<double>(x));
  const double s = (p.fraction - 1) / (p.fraction + 1), z = s * s;
  return fma(s,
             polynomial(z, 0x1.71547652b8251p+1, 0x1.ec709dc53c080p-1, 0x1.2776c293c3176p-1,
                        0x1.a61a2e592a611p-2, 0x1.479568f3dd54ep-2, 0x1.21afd8148cbffp-2),
             p.exponent);
}
ZS_INLINE float log2(float x) { return log_special(x, static_cast<float>(log2_wide(x))); }
ZS_INLINE float log10(float x) {
  return log_special(x, static_cast<float>(log2_wide(x) * 0x1.34413509f79ffp-2));
}
#endif

// log(1 + f) in two parts, the upper of at most 20 bits: its product with a constant of 32 is
// exact.
ZS_INLINE Pair log_pair(double f) {
  const LogSeries l = log_series(f);
  const double high = from_bits<double>(bits(f - l.half_square) & ~std::uint64_t{0xffffffff});
  return {high, (f - high) - l.half_square + l.s_times};
}
ZS_INLINE double log2(double x) {
  constexpr double e_high = 0x1.71547652p+0, e_low = 0x1.705fc2eefa200p-33;  // log2 e
  const Split<double> p = split(x);
  const Pair l = log_pair(p.fraction - 1);
  const Pair s = sum(p.exponent, l.high * e_high);
  return log_special(x, s.high + (s.low + ((l.low + l.high) * e_low + l.low * e_high)));
}
ZS_INLINE double log10(double x) {
  constexpr double e_high = 0x1.bcb7b152p-2, e_low = 0x1.b9438ca9aadd5p-36;        // log10 e
  constexpr double two_high = 0x1.34413509f7p-2, two_low = 0x1.3fde623e2566bp-43;  // log10 2
  const Split<double> p = split(x);
  const Pair l = log_pair(p.fraction - 1);
  const Pair s = sum(p.exponent * two_high, l.high * e_high);
  const double low = p.exponent * two_low + (l.low + l.high) * e_low + l.low * e_high;
  return log_special(x, s.high + (s.low + low));
}

// 1 + x is rounded; what the rounding took is put back, divided by the derivative.
template <class T>
ZS_INLINE T log1p(T x) {
  const T u = T(1) + x;
  const Split<T> s = split_normal(u);
  const T lost = (u < T(2) ? x - (u - T(1)) : T(1) - (u - x)) / u;
  // (Below sqrt(2) nothing needs to be lost.)
  const Bits<T> close = mask<T>(s.exponent == 0);
  const T result =
      log_parts(s.exponent, select(close, x, s.fraction - T(1))) + select(close, T(0), lost);
  return abs(x) < Ieee<T>::tiny ? x : log_special(u, result);
}

// log(1 + z) for z in [0, 1]: nothing is rounded before the logarithm.
template <class T>
ZS_INLINE T log1p_of_part(T z) {
  const Bits<T> over = mask<T>(z > T(0x1.a827999fcef32p-2));  // sqrt(2) - 1
  return log_parts(select(over, T(1), T(0)), select(over, (z - T(1)) * T(0.5), z));
}

// log(1 + e^x)
template <class T>
ZS_INLINE T softplus(T x) {
  return select(mask<T>(x > 0), x, T(0)) + log1p_of_part(exp_down(-abs(x)));
}

// log(e^x + e^y). Equal ones are apart, since the difference of infinities is none.
template <class T>
ZS_INLINE T logaddexp(T x, T y) {
  constexpr T ln2 = T(0x1.62e42fefa39efp-1);
  const T high = select(mask<T>(x > y), x, y);
  const T sum = high + log1p_of_part(exp_down(-abs(x - y)));
  return x == y ? x + ln2 : sum;
}

// From here on sqrt(x^2 + 1) is x, and x^2 might overflow.
template <class T>
constexpr T kHuge = T(Bits<T>(1) << (Ieee<T>::mantissa / 2 + 2));

// log(|x| + sqrt(x^2 + 1)), as a logarithm of 1 + something small for small x.
template <class T>
ZS_INLINE T asinh(T x) {
  constexpr T ln2 = T(0x1.62e42fefa39efp-1);
  const T a = abs(x), square = a * a;
  const bool huge = a > kHuge<T>;
  const T more = huge ? a - T(1) : a + square / (T(1) + sqrt(square + T(1)));
  return copysign(log1p(more) + (huge ? ln2 : T(0)), x);
}

// log(x + sqrt(x^2 - 1)), the same way.
template <class T>
ZS_INLINE T acosh(T x) {
  constexpr T ln2 = T(0x1.62e42fefa39efp-1);
  const T over = x - T(1);
  const bool huge = x > kHuge<T>;
  const T more = huge ? over : over + sqrt(over * over + T(2) * over);
  const T result = log1p(more) + (huge ? ln2 : T(0));
  return x < T(1) ? Ieee<T>::nan : result;
}

template <class T>
ZS_INLINE T atanh(T x) {
  const T a = abs(x);
  return copysign(T(0.5) * log1p(T(2) * a / (T(1) - a)), x);
}

}  // namespace zs::ZS_ISA::math
