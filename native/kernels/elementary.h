// Elementary functions of floats.
#pragma once

#include "forms.h"
#include "vmath.h"

namespace zs::ZS_ISA {

// A functor for each function of vmath.h. Inlined whatever its size: a long one would be called,
// and its loop not vectorised.
#define ZS_FUNCTION(Name, function) \
  struct Name {                     \
    template <class T>              \
    static ZS_ALWAYS T of(T x) {    \
      return math::function(x);     \
    }                               \
  };
ZS_FUNCTION(Exp, exp)
ZS_FUNCTION(Expm1, expm1)
ZS_FUNCTION(Log, log)
ZS_FUNCTION(Log1p, log1p)
ZS_FUNCTION(Log2, log2)
ZS_FUNCTION(Log10, log10)
ZS_FUNCTION(Asin, asin)
ZS_FUNCTION(Acos, acos)
ZS_FUNCTION(Atan, atan)
ZS_FUNCTION(Sinh, sinh)
ZS_FUNCTION(Cosh, cosh)
ZS_FUNCTION(Tanh, tanh)
ZS_FUNCTION(Asinh, asinh)
ZS_FUNCTION(Acosh, acosh)
ZS_FUNCTION(Atanh, atanh)
ZS_FUNCTION(Erf, erf)
ZS_FUNCTION(Sigmoid, sigmoid)
ZS_FUNCTION(Rsqrt, rsqrt)
#undef ZS_FUNCTION

// Functions with rows of their own: huge angles are rare and expensive.
#define ZS_FUNCTION(Name, function)                   \
  struct Name {                                       \
    template <class T>                                \
    static void row(const T* in, T* out, int64_t n) { \
      math::function##_row(in, out, n);               \
    }                                                 \
  };
ZS_FUNCTION(Sin, sin)
ZS_FUNCTION(Cos, cos)
ZS_FUNCTION(Tan, tan)
#undef ZS_FUNCTION

// Of two operands.
#define ZS_FUNCTION(Name, function) \
  struct Name {                     \
    template <class T>              \
    static ZS_ALWAYS T of(T x, T y) {\
      return math::function(x, y);  \
    }                               \
  };
ZS_FUNCTION(Atan2, atan2)
ZS_FUNCTION(LogAddExp, logaddexp)
#undef ZS_FUNCTION

// With rows of its own: special cases are expensive.
struct Power {
  template <unsigned kOnes, class T>
  static void row(const T* x, const T* y, T* out, int64_t n) {
    math::pow_row<kOnes>(x, y, out, n);
  }
};

// log2(2^x + 2^y)
struct LogAddExp2 {
  template <class T>
  static ZS_ALWAYS T of(T x, T y) {
    constexpr T kLog2OfE = T(0x1.71547652b82fep0);
    const T larger = x > y ? x : y;
    const T gap = -magnitude(x - y);
    const T sum = larger + math::log1p(math::exp2(gap)) * kLog2OfE;
    // Of equal infinities the gap is NaN.
    return x == y ? x + T(1) : sum;
  }
};

// sqrt(x^2 + y^2), without overflow on the way.
struct Hypot {
  static ZS_ALWAYS float of(float x, float y) {
    const double a = x, b = y;
    const float length = static_cast<float>(math::sqrt(a * a + b * b));
    return infinite(x, y) ? kInfinity<float> : length;
  }
  static ZS_ALWAYS double of(double x, double y) {
    const double a = magnitude(x), b = magnitude(y);
    const double larger = a > b ? a : b;
    // Squares of values between the bounds are normal numbers.
    constexpr double kBound = 0x1p500, kScale = 0x1p600;
    const double scale = larger > kBound ? 1 / kScale : larger < 1 / kBound ? kScale : 1;
    const double back = larger > kBound ? kScale : larger < 1 / kBound ? 1 / kScale : 1;
    const double p = a * scale, q = b * scale;
    const double length = math::sqrt(p * p + q * q) * back;
    return infinite(x, y) ? kInfinity<double> : length;
  }

 private:
  // Then the other may be NaN.
  template <class T>
  static bool infinite(T x, T y) {
    const bool first = magnitude(x) == kInfinity<T>, second = magnitude(y) == kInfinity<T>;
    return first | second;
  }
};

struct CopySign {
  template <class T>
  static ZS_ALWAYS T of(T x, T sign) {
    return with_sign(x, sign);
  }
};

// The number next to x on the way to y.
struct NextAfter {
  template <class T>
  static ZS_ALWAYS T of(T x, T y) {
    using U = Unsigned<T>;
    const U bits = bits_of(x);
    // Bits of floats of one sign are in the order of their magnitudes.
    const U outward = (x < y) == (x > 0) ? U(1) : ~U(0);
    const T step = float_of(static_cast<U>(bits + outward));
    const T least = with_sign(float_of(U(1)), y);
    const T next = x == 0 ? least : step;
    const T number = x == y ? y : next;
    return ((x != x) | (y != y)) ? x + y : number;
  }
};

constexpr auto elementary() {
  constexpr Floats kFloats;
  return join(
      unary<Exp>("exp", kFloats), unary<Expm1>("expm1", kFloats), unary<Log>("log", kFloats),
      unary<Log1p>("log1p", kFloats), unary<Log2>("log2", kFloats), unary<Log10>("log10", kFloats),
      unary<Sin>("sin", kFloats), unary<Cos>("cos", kFloats), unary<Tan>("tan", kFloats),
      unary<Asin>("asin", kFloats), unary<Acos>("acos", kFloats), unary<Atan>("atan", kFloats),
      unary<Sinh>("sinh", kFloats), unary<Cosh>("cosh", kFloats), unary<Tanh>("tanh", kFloats),
      unary<Asinh>("asinh", kFloats), unary<Acosh>("acosh", kFloats),
      unary<Atanh>("atanh", kFloats), unary<Erf>("erf", kFloats),
      unary<Sigmoid>("sigmoid", kFloats), unary<Rsqrt>("rsqrt", kFloats));
}

constexpr auto elementary_of_two() {
  return join(binary<Power>("pow", Floats{}), binary<Atan2>("atan2", Floats{}),
              binary<LogAddExp>("logaddexp", Floats{}), binary<LogAddExp2>("logaddexp2", Floats{}),
              binary<Hypot>("hypot", Floats{}), binary<CopySign>("copysign", Floats{}),
              binary<NextAfter>("nextafter", Floats{}));
}

}  // namespace zs::ZS_ISA
