// sin, cos, tan.
//
// x is reduced to r = x - m pi/2 with pi/2 in several parts, the first with so few
// bits (or the processor so exact a multiply-add) that r is right also where x is next to a
// multiple of pi/2. That holds up to a bound; beyond it libm computes. A loop with calls would not
// be vectorised, so that rows are computed first as if all arguments were small, and the others are
// done again. An element's result depends on nothing but the element.
#pragma once

#include "base.h"

namespace zs::ZS_ISA::math {

// An angle of a float: |r| at most pi/4. `low` is what r lacks of the angle, for doubles.
template <class T>
struct Angle {
  T r, low;
};

// --- Reduction: x - m pi/2 -----------------------------------------------------------------------
// Up to kNear x is reduced in its own type, up to kFar a float is in double. Without a multiply-add
// floats always are.
template <class T>
constexpr T kNear = T(0x1p20);
template <>
inline constexpr float kNear<float> = 0x1p15f;
template <class T>
constexpr T kFar = kNear<T>;
template <>
inline constexpr float kFar<float> = 0x1p29f;

// m up to 2^30: 24 and 23 bits of pi/2 make exact products.
ZS_INLINE Angle<float> reduce(double x, double m, float) {
  const double r = (x - m * 0x1.921fb4p+0) - m * 0x1.4442dp-24;
  return {static_cast<float>(r - m * 0x1.8469898cc5170p-48), 0};
}

// m up to 2^16: 72 bits of pi/2.
ZS_INLINE Angle<float> reduce(float x, float m, float) {
#if ZS_HAS_FMA
  const float r = fma(m, 0x1.777a5cp-25f, fma(m, -0x1.921fb6p+0f, x));
  return {fma(m, 0x1.ee59dap-50f, r), 0};
#else
  return reduce(static_cast<double>(x), static_cast<double>(m), 0.0f);
#endif
}

ZS_INLINE Angle<double> reduce(double x, double m, double) {
#if ZS_HAS_FMA
  const double a = fma(m, -0x1.921fb54442d18p+0, x);
  const Pair second = product(m, 0x1.1a62633145c07p-54);
  const double nearly = a - second.high;
  const double low = fma(m, 0x1.f1976b7ed8fbcp-110, ((a - nearly) - second.high) - second.low);
#else
  // Parts of 32 bits (the last: 53). m has at most 21.
  const double a = x - m * 0x1.921fb544p+0;
  const double second = m * 0x1.0b4611a6p-34, b = a - second;
  const double third = m * 0x1.3198a2ep-69, nearly = b - third;
  const double low = (((a - b) - second) + ((b - nearly) - third)) - m * 0x1.b839a252049c1p-104;
#endif
  // Next to a multiple of pi/2 nothing but `low` may be left.
  const double r = nearly + low;
  return {r, (nearly - r) + low};
}

// --- Polynomials for |r| <= pi/4 -----------------------------------------------------------------
ZS_INLINE float sin_reduced(Angle<float> a) {
  const float z = a.r * a.r;
  return fma(a.r * z, polynomial(z, -0x1.555546p-3f, 0x1.11077ep-7f, -0x1.9956b6p-13f), a.r);
}
ZS_INLINE double sin_reduced(Angle<double> a) {
  const double z = a.r * a.r;
  const double q =
      polynomial(z, -0x1.5555555555548p-3, 0x1.111111110f77ep-7, -0x1.a01a019bf8228p-13,
                 0x1.71de35650a32ap-19, -0x1.ae5e597db57c2p-26, 0x1.5d8fb827e3d03p-33);
  // a.low times the cosine; two of its terms are enough
  return a.r + fma(a.r * z, q, fma(a.low * z, -0.5, a.low));
}
ZS_INLINE float cos_reduced(Angle<float> a) {
  const float z = a.r * a.r;
  return fma(z * z, polynomial(z, 0x1.55554ap-5f, -0x1.6c0c2ep-10f, 0x1.99ead0p-16f),
             fma(z, -0.5f, 1.0f));
}
ZS_INLINE double cos_reduced(Angle<double> a) {
  const double z = a.r * a.r, half = 0.5 * z, most = 1 - half;
  const double q =
      polynomial(z, 0x1.555555555554bp-5, -0x1.6c16c16c1504cp-10, 0x1.a01a019c97a13p-16,
                 -0x1.27e4f7f911e6ap-22, 0x1.1ee9e17e6b4ccp-29, -0x1.8fa9a7413e865p-37);
  return most + (fma(z * z, q, (1 - most) - half) - a.r * a.low);
}

// --- Functions -----------------------------------------------------------------------------------
// Each for an x within the bound: T is the type of the result, W the one that x is reduced in.

// -x where bit 1 of the integer is set.
template <class T, class B>
ZS_INLINE T flip(T x, B integer) {
  const Bits<T> sign = static_cast<Bits<T>>(integer) & 2;
  return from_bits<T>(bits(x) ^ (sign << (Ieee<T>::bits - 2)));
}

// An angle's sine and cosine, exchanged where it lies in an odd quarter, without their signs.
template <class T>
struct Turned {
  T sine, cosine;
  Bits<T> quarter;
};

template <class T, class W>
ZS_INLINE Turned<T> turned(W x) {
  const Nearest<W> n = nearest(x * W(0x1.45f306dc9c883p-1));  // 2 / pi
  const Angle<T> a = reduce(x, n.number, T());
  const T s = sin_reduced(a), c = cos_reduced(a);
  // A mask and no select: 64-bit integers cannot be compared below SSE4.
  const Bits<T> quarter = static_cast<Bits<T>>(n.low);
  const Bits<T> swap = (bits(s) ^ bits(c)) & (Bits<T>(0) - (quarter & 1));
  return {from_bits<T>(bits(s) ^ swap), from_bits<T>(bits(c) ^ swap), quarter};
}

struct Sin {
  template <class T, class W>
  static ZS_ALWAYS T reduced(W x) {
    const Turned<T> t = turned<T>(x);
    return x == 0 ? static_cast<T>(x) : flip(t.sine, t.quarter);
  }
  static ZS_ALWAYS float libm(float x) { return __builtin_sinf(x); }
  static ZS_ALWAYS double libm(double x) { return __builtin_sin(x); }
};

struct Cos {
  template <class T, class W>
  static ZS_ALWAYS T reduced(W x) {
    const Turned<T> t = turned<T>(x);
    return flip(t.cosine, t.quarter + 1);
  }
  static ZS_ALWAYS float libm(float x) { return __builtin_cosf(x); }
  static ZS_ALWAYS double libm(double x) { return __builtin_cos(x); }
};

struct Tan {
  template <class T, class W>
  static ZS_ALWAYS T reduced(W x) {
    const Turned<T> t = turned<T>(x);
    return x == 0 ? static_cast<T>(x) : flip(t.sine / t.cosine, t.quarter << 1);
  }
  static ZS_ALWAYS float libm(float x) { return __builtin_tanf(x); }
  static ZS_ALWAYS double libm(double x) { return __builtin_tan(x); }
};

// x beyond kNear, up to kFar; and what has no such range.
template <class F>
ZS_INLINE float far_angle(float x) {
  return F::template reduced<float>(static_cast<double>(x));
}
template <class F>
ZS_INLINE double far_angle(double x) {
  return F::libm(x);
}

template <class F, class T>
ZS_INLINE T angle_function(T x) {
  if (abs(x) > kFar<T>) return F::libm(x);
  return abs(x) > kNear<T> ? far_angle<F>(x) : F::template reduced<T>(x);
}

template <class F, class T>
static inline void angle_row(const T* in, T* out, std::int64_t n) {
  constexpr std::int64_t chunk = 512;  // small enough for the copy to stay in the first cache
  T kept[chunk];
  for (std::int64_t first = 0; first < n; first += chunk, in += chunk, out += chunk) {
    const std::int64_t count = n - first < chunk ? n - first : chunk;
    int far = 0;
    for (std::int64_t i = 0; i < count; ++i) far |= abs(in[i]) > kNear<T>;
    if (far) {
      for (std::int64_t i = 0; i < count; ++i) kept[i] = in[i];
    }
    ZS_LOOP
    for (std::int64_t i = 0; i < count; ++i) out[i] = F::template reduced<T>(in[i]);
    if (!far) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      if (abs(kept[i]) > kNear<T>) out[i] = angle_function<F>(kept[i]);
    }
  }
}

#define ZS_ANGLE(name, F)                                              \
  template <class T>                                                   \
  ZS_INLINE T name(T x) {                                              \
    return angle_function<F>(x);                                       \
  }                                                                    \
  template <class T>                                                   \
  static inline void name##_row(const T* in, T* out, std::int64_t n) { \
    angle_row<F>(in, out, n);                                          \
  }
ZS_ANGLE(sin, Sin)
ZS_ANGLE(cos, Cos)
ZS_ANGLE(tan, Tan)
#undef ZS_ANGLE

}  // namespace zs::ZS_ISA::math
