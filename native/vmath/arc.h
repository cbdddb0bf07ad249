// atan, atan2, asin, acos.
#pragma once

#include "base.h"

namespace zs::ZS_ISA::math {

// pi / 4 in two parts; the upper leaves room for its product with 3.
template <class T>
constexpr T kQuarterPiHigh = 0x1.921fb54442d18p-1;
template <class T>
constexpr T kQuarterPiLow = 0x1.1a62633145c07p-55;
template <>
inline constexpr float kQuarterPiHigh<float> = 0x1.921fbp-1f;
template <>
inline constexpr float kQuarterPiLow<float> = 0x1.5110b4p-23f;

// atan t for |t| <= tan(pi / 8)
ZS_INLINE float atan_reduced(float t) {
  const float z = t * t;
  const float q = polynomial(z, -0x1.555548p-2f, 0x1.999128p-3f, -0x1.23ae5cp-3f, 0x1.b1952ap-4f,
                             -0x1.f0647ep-5f);
  return fma(t * z, q, t);
}
ZS_INLINE double atan_reduced(double t) {
  const double z = t * t;
  const double q = polynomial(z, -0x1.5555555555554p-2, 0x1.99999999995bcp-3, -0x1.2492492471fbbp-3,
                              0x1.c71c71b5e7dd0p-4, -0x1.745d148f1c6ffp-4, 0x1.3b136ae4da36cp-4,
                              -0x1.110c47c04a3afp-4, 0x1.e16f09b7199eap-5, -0x1.ab6c2c6754bc5p-5,
                              0x1.70acb4c974d75p-5, -0x1.11acfe4bb5561p-5, 0x1.efdd6220ceacep-7);
  return fma(t * z, q, t);
}

// atan(low / high) for 0 <= low <= high, as `quarters` quarters of pi and the rest.
template <class T>
struct Arc {
  T quarters, rest;
};
template <class T>
ZS_INLINE Arc<T> arc(T low, T high) {
  const bool turn = low > T(0x1.a827999fcef32p-2) * high;  // by pi/4 from tan(pi / 8) on
  const T t = (turn ? low - high : low) / (turn ? low + high : high);
  return {turn ? T(1) : T(0), atan_reduced(t)};
}

template <class T>
ZS_INLINE T quarters_and(T quarters, T rest) {
  return fma(quarters, kQuarterPiHigh<T>, fma(quarters, kQuarterPiLow<T>, rest));
}

template <class T>
ZS_INLINE T atan(T x) {
  const T a = abs(x);
  const bool steep = a > T(1);
  const Arc<T> p = arc(steep ? T(1) : a, steep ? a : T(1));
  const T result = quarters_and(steep ? T(2) - p.quarters : p.quarters, steep ? -p.rest : p.rest);
  return copysign(result, x);
}

template <class T>
ZS_INLINE T atan2(T y, T x) {
  constexpr T infinity = Ieee<T>::infinity;
  const T ax = abs(x), ay = abs(y);
  const bool steep = ay > ax;
  T high = steep ? ay : ax, low = steep ? ax : ay;
  // Of an infinity and a number the number is nothing, two infinities are equal, and so are two
  // zeros.
  low = high == infinity ? (low == infinity ? T(1) : T(0)) : low;
  high = high == infinity || high == T(0) ? T(1) : high;
  const T small = high > T(1) ? T(0.25) : T(1);  // their sum must not overflow
  const Arc<T> p = arc(low * small, high * small);
  // From the nearer half axis: the other way round where steep, and where x is negative.
  const bool back = copysign(T(1), x) < 0;
  const T start = steep ? T(2) : (back ? T(4) : T(0));
  const T way = steep == back ? T(1) : T(-1);
  const T result = copysign(quarters_and(start + way * p.quarters, way * p.rest), y);
  return x == x && y == y ? result : Ieee<T>::nan;
}

// asin t for |t| <= 1/2
ZS_INLINE float asin_reduced(float t, float z) {
  return fma(
      t * z,
      polynomial(z, 0x1.5555cap-3f, 0x1.3301acp-4f, 0x1.74808cp-5f, 0x1.8c2538p-6f, 0x1.59652cp-5f),
      t);
}
ZS_INLINE double asin_reduced(double t, double z) {
  const double q = polynomial(z, 0x1.555555555538fp-3, 0x1.333333336e26dp-4, 0x1.6db6db42dc67cp-5,
                              0x1.f1c72c11eeafep-6, 0x1.6e89f85557e58p-6, 0x1.1c6ba0146a008p-6,
                              0x1.c70301f298704p-7, 0x1.8e9fc26940bb2p-7, 0x1.ad039c008b9f5p-8,
                              0x1.3f20bef217577p-6, -0x1.08868a923d7cdp-6, 0x1.04fbc67cdbda1p-5);
  return fma(t * z, q, t);
}

// asin |x|, or, from 1/2 on, half of acos |x|: asin sqrt((1 - |x|) / 2).
template <class T>
ZS_INLINE T asin_or_half_acos(T a) {
  const bool steep = a > T(0.5);
  const T z = steep ? (T(1) - a) * T(0.5) : a * a;
  return asin_reduced(steep ? sqrt(z) : a, z);
}

template <class T>
ZS_INLINE T asin(T x) {
  const T a = abs(x), p = asin_or_half_acos(a);
  return copysign(a > T(0.5) ? quarters_and(T(2), T(-2) * p) : p, x);
}

template <class T>
ZS_INLINE T acos(T x) {
  const T a = abs(x), p = asin_or_half_acos(a);
  const T steep = x > 0 ? T(2) * p : quarters_and(T(4), T(-2) * p);
  return a > T(0.5) ? steep : quarters_and(T(2), copysign(p, -x));
}

}  // namespace zs::ZS_ISA::math
