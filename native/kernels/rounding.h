// Signs, rounding, squares, and what kind of number one is.
#pragma once

#include "forms.h"
#include "vmath.h"

namespace zs::ZS_ISA {

struct Negative {
  template <class T>
  static T of(T x) {
    if constexpr (kFloat<T>) {
      return -x;
    } else {
      return static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(x));
    }
  }
};

struct Abs {
  template <class T>
  static T of(T x) {
    if constexpr (kFloat<T>) {
      return magnitude(x);
    } else if constexpr (kSigned<T>) {
      return x < 0 ? Negative::of(x) : x;
    } else {
      return x;
    }
  }
};

// -1, 0 or 1; NaN of NaN. A zero's own sign is dropped.
struct Sign {
  template <class T>
  static T of(T x) {
    if constexpr (kFloat<T>) {
      const T sign = with_sign(T(1), x);
      const T or_zero = x == 0 ? T(0) : sign;
      return x != x ? x : or_zero;
    } else {
      return static_cast<T>((x > 0) - (x < 0));
    }
  }
};

struct Square {
  template <class T>
  static T of(T x) {
    if constexpr (kFloat<T>) {
      return x * x;
    } else {
      return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(x));
    }
  }
};

struct Reciprocal {
  template <class T>
  static T of(T x) {
    return T(1) / x;
  }
};

struct Sqrt {
  template <class T>
  static T of(T x) {
    return math::sqrt(x);
  }
};

struct Floor {
  template <class T>
  static T of(T x) {
    return math::floor(x);
  }
};

struct Ceil {
  template <class T>
  static T of(T x) {
    return math::ceil(x);
  }
};

struct Trunc {
  template <class T>
  static T of(T x) {
    return math::trunc(x);
  }
};

struct Round {
  template <class T>
  static T of(T x) {
    return math::round_even(x);
  }
};

// Integers are rounded already, for one.
struct Itself {
  template <class T>
  static T of(T x) {
    return x;
  }
};

struct IsNan {
  template <class T>
  static Bool of(T x) {
    return boolean(x != x);
  }
};

struct IsInf {
  template <class T>
  static Bool of(T x) {
    return boolean(magnitude(x) == kInfinity<T>);
  }
};

struct IsFinite {
  template <class T>
  static Bool of(T x) {
    return boolean(magnitude(x) < kInfinity<T>);
  }
};

// Of the bits of 16-bit floats, whose infinity has the bits kInfinite.
template <class T>
constexpr unsigned kInfinite = kSame<T, Half> ? 0x7c00u : 0x7f80u;
template <class T>
inline unsigned magnitude_bits(T x) {
  return static_cast<unsigned>(x) & 0x7fffu;
}

struct NegativeBits {
  template <class T>
  static T of(T x) {
    return static_cast<T>(static_cast<unsigned>(x) ^ 0x8000u);
  }
};

struct AbsBits {
  template <class T>
  static T of(T x) {
    return static_cast<T>(magnitude_bits(x));
  }
};

struct IsNanBits {
  template <class T>
  static Bool of(T x) {
    return boolean(magnitude_bits(x) > kInfinite<T>);
  }
};

struct IsInfBits {
  template <class T>
  static Bool of(T x) {
    return boolean(magnitude_bits(x) == kInfinite<T>);
  }
};

struct IsFiniteBits {
  template <class T>
  static Bool of(T x) {
    return boolean(magnitude_bits(x) < kInfinite<T>);
  }
};

struct Never {
  template <class T>
  static Bool of(T) {
    return boolean(false);
  }
};

struct Always {
  template <class T>
  static Bool of(T) {
    return boolean(true);
  }
};

constexpr auto rounding() {
  using Stored = Types<Half, Brain>;
  using Counts =
      Types<Bool, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
  return join(unary<Negative>("negative", Numbers{}), unary<Abs>("abs", Numbers{}),
              unary<Sign>("sign", Numbers{}), unary<Square>("square", Numbers{}),
              unary<Reciprocal>("reciprocal", Floats{}), unary<Sqrt>("sqrt", Floats{}),
              unary<Floor>("floor", Floats{}), unary<Ceil>("ceil", Floats{}),
              unary<Trunc>("trunc", Floats{}), unary<Round>("round", Floats{}),
              unary<Itself>("positive", Numbers{}), unary<Itself>("positive", Stored{}),
              unary<Itself>("floor", Integers{}), unary<Itself>("ceil", Integers{}),
              unary<Itself>("trunc", Integers{}), unary<Itself>("round", Integers{}),
              predicate<IsNan>("isnan", Floats{}), predicate<IsInf>("isinf", Floats{}),
              predicate<IsFinite>("isfinite", Floats{}), predicate<Never>("isnan", Counts{}),
              predicate<Never>("isinf", Counts{}), predicate<Always>("isfinite", Counts{}),
              unary<NegativeBits>("negative", Stored{}), unary<AbsBits>("abs", Stored{}),
              predicate<IsNanBits>("isnan", Stored{}), predicate<IsInfBits>("isinf", Stored{}),
              predicate<IsFiniteBits>("isfinite", Stored{}));
}

}  // namespace zs::ZS_ISA
