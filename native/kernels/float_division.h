// Floor division and remainders of floats: Python's, by way of fmod, as NumPy computes them. And
// what engines compute from the rounded quotient instead.
#pragma once

#include "forms.h"
#include "vmath.h"

namespace zs::ZS_ISA {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
constexpr bool kFused = true;
#else
constexpr bool kFused = false;
#endif

// Whether quick_fmod is exact. Not of infinities and NaN, nor of quotients with many digits.
template <class T>
inline bool quick(T x, T y) {
  // Quotients of floats are computed as doubles, where those below 2^29 cannot round to the next
  // integer; of doubles below 2^51 they are at most one off. Doubles need a fused multiplication.
  constexpr double kMost = kSame<T, float> ? 0x1p29 : kFused ? 0x1p51 : 0;
  const double quotient = static_cast<double>(x) / static_cast<double>(y);
  const bool few = magnitude(quotient) < kMost, finite = magnitude(y) < kInfinity<T>;
  return few & finite;
}

inline float quick_fmod(float x, float y) {
  const double dividend = x, divisor = y;
  const double quotient = math::trunc(dividend / divisor);
  // The product has 29 + 24 digits: it is exact, and so is the difference.
  const double rest = dividend - quotient * divisor;
  return with_sign(static_cast<float>(quotient == 0 ? dividend : rest), x);
}

inline double quick_fmod(double x, double y) {
  const double quotient = math::trunc(x / y);
  const double rest = __builtin_fma(-quotient, y, x);
  // One too many: the rest is on the other side of zero.
  const bool beyond = (rest < 0) != (x < 0);
  const double back = ((rest != 0) & beyond) ? rest + with_sign(y, x) : rest;
  return with_sign(quotient == 0 ? x : back, x);
}

// As C's fmod, a block of kBlock apart from x and y.
template <class T>
inline void fmod_block(const T* x, const T* y, T* rest) {
  if constexpr (kSame<T, float> || kFused) {
    int slow = 0;
    for (int i = 0; i < kBlock; ++i) {
      slow |= !quick(x[i], y[i]);
      rest[i] = quick_fmod(x[i], y[i]);
    }
    if (!slow) return;
  }
  for (int i = 0; i < kBlock; ++i) {
    if (!quick(x[i], y[i])) {
      rest[i] = static_cast<T>(
          kSame<T, float> ? __builtin_fmodf(static_cast<float>(x[i]), static_cast<float>(y[i]))
                          : __builtin_fmod(x[i], y[i]));
    }
  }
}

struct FloatFmod {
  template <class T>
  static void block(const T* x, const T* y, T* out) {
    T rest[kBlock];
    fmod_block(x, y, rest);
    for (int i = 0; i < kBlock; ++i) out[i] = rest[i];
  }
};

// Whether the result of fmod lacks the sign of the divisor.
template <class T>
inline bool opposite(T rest, T y) {
  return (rest != 0) & ((y < 0) != (rest < 0));
}

struct FloatRemainder {
  template <class T>
  static void block(const T* x, const T* y, T* out) {
    T rest[kBlock];
    fmod_block(x, y, rest);
    ZS_INDEPENDENT
    for (int i = 0; i < kBlock; ++i) {
      const T floored = opposite(rest[i], y[i]) ? rest[i] + y[i] : rest[i];
      // A zero has the divisor's sign.
      out[i] = floored == 0 ? with_sign(T(0), y[i]) : floored;
    }
  }
};

struct FloatFloorDivide {
  template <class T>
  static void block(const T* x, const T* y, T* out) {
    T rest[kBlock];
    fmod_block(x, y, rest);
    ZS_INDEPENDENT
    for (int i = 0; i < kBlock; ++i) {
      // All but an integer: the subtraction and the division round.
      const T exact = (x[i] - rest[i]) / y[i];
      const T nearly = opposite(rest[i], y[i]) ? exact - T(1) : exact;
      const T low = math::floor(nearly);
      const T integer = nearly - low > T(0.5) ? low + T(1) : low;
      const T quotient = x[i] / y[i];
      const T zero = with_sign(T(0), quotient);
      out[i] = y[i] == 0 ? quotient : nearly == 0 ? zero : integer;
    }
  }
};

struct FloorOfQuotient {
  template <class T>
  static T of(T x, T y) {
    return math::floor(x / y);
  }
};

struct FloorOfFloat64Quotient {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(math::floor(static_cast<double>(x) / static_cast<double>(y)));
  }
};

struct RemainderOfQuotient {
  template <class T>
  static T of(T x, T y) {
    return x - math::floor(x / y) * y;
  }
};

struct FmodOfQuotient {
  template <class T>
  static T of(T x, T y) {
    return x - math::trunc(x / y) * y;
  }
};

struct NearestRemainder {
  template <class T>
  static T of(T x, T y) {
    return x - math::round_even(x / y) * y;
  }
};

constexpr auto float_division() {
  return join(binary<FloatFloorDivide>("floor_divide", Floats{}),
              binary<FloatRemainder>("remainder", Floats{}), binary<FloatFmod>("fmod", Floats{}),
              binary<FloorOfQuotient>("floor_of_quotient", Floats{}),
              binary<FloorOfFloat64Quotient>("floor_of_float64_quotient", Floats{}),
              binary<RemainderOfQuotient>("remainder_of_quotient", Floats{}),
              binary<FmodOfQuotient>("fmod_of_quotient", Floats{}),
              binary<NearestRemainder>("nearest_remainder", Floats{}));
}

}  // namespace zs::ZS_ISA
