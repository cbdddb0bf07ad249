// Sums, products, quotients of floats, extremes.
#pragma once

#include "divisor.h"
#include "forms.h"

namespace zs::ZS_ISA {

struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kFloat<T>) {
      return a + b;
    } else {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    }
  }
};

struct Subtract {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kFloat<T>) {
      return a - b;
    } else {
      return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
    }
  }
};

struct Multiply {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kFloat<T>) {
      return a * b;
    } else {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    }
  }
};

struct Divide {
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }

#if ZS_HAS_FMA
  // By one number. A function that a block of kBlock quotients comes from.
  template <class T>
  static auto block_by(T b) {
    return [divisor = Divisor<T>(b)](const T* x, T* out) {
      Unsigned<T> slow = 0;
      for (int i = 0; i < kBlock; ++i) slow |= divisor.is_slow(x[i]);
      if (slow) {
        ZS_INDEPENDENT
        for (int i = 0; i < kBlock; ++i) out[i] = x[i] / divisor.by;
      } else {
        ZS_INDEPENDENT
        for (int i = 0; i < kBlock; ++i) out[i] = divisor.quotient(x[i]);
      }
    };
  }
#endif
};

struct SquaredDifference {
  template <class T>
  static T of(T a, T b) {
    const T difference = Subtract::of(a, b);
    return Multiply::of(difference, difference);
  }
};

// Of zeros of both signs the second is the result, as NumPy's vectors have it.
struct LargerOrSecond {
  template <class T>
  static T of(T a, T b) {
    return a > b ? a : b;
  }
};

struct SmallerOrSecond {
  template <class T>
  static T of(T a, T b) {
    return a < b ? a : b;
  }
};

// NaN if either is.
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    const T larger = LargerOrSecond::of(a, b);
    return a != a ? a : larger;
  }
};

struct Minimum {
  template <class T>
  static T of(T a, T b) {
    const T smaller = SmallerOrSecond::of(a, b);
    return a != a ? a : smaller;
  }
};

// The number if the other is NaN.
struct Fmax {
  template <class T>
  static T of(T a, T b) {
    const T larger = LargerOrSecond::of(a, b);
    return b != b ? a : larger;
  }
};

struct Fmin {
  template <class T>
  static T of(T a, T b) {
    const T smaller = SmallerOrSecond::of(a, b);
    return b != b ? a : smaller;
  }
};

// 0 below zero, 1 above, the second at zero.
struct Heaviside {
  template <class T>
  static T of(T a, T b) {
    const T step = a < 0 ? T(0) : T(1);
    const T at_zero = a == 0 ? b : step;
    return a != a ? a : at_zero;
  }
};

// x where it is not negative, slope times x where it is.
struct Prelu {
  template <class T>
  static T of(T x, T slope) {
    if constexpr (!kFloat<T> && !kSigned<T>) {
      return x;
    } else {
      const T scaled = Multiply::of(x, slope);
      return x < 0 ? scaled : x;
    }
  }
};

constexpr auto arithmetic() {
  return join(cheap<Add>("add", Numbers{}), cheap<Subtract>("subtract", Numbers{}),
              cheap<Multiply>("multiply", Numbers{}), cheap<Divide>("divide", Floats{}),
              cheap<SquaredDifference>("squared_difference", Numbers{}),
              cheap<LargerOrSecond>("maximum", Integers{}),
              cheap<SmallerOrSecond>("minimum", Integers{}),
              cheap<LargerOrSecond>("fmax", Integers{}),
              cheap<SmallerOrSecond>("fmin", Integers{}), cheap<Maximum>("maximum", Floats{}),
              cheap<Minimum>("minimum", Floats{}), binary<Fmax>("fmax", Floats{}),
              binary<Fmin>("fmin", Floats{}), cheap<LargerOrSecond>("larger_or_second", Floats{}),
              cheap<SmallerOrSecond>("smaller_or_second", Floats{}),
              binary<Heaviside>("heaviside", Floats{}), binary<Prelu>("prelu", Numbers{}));
}

}  // namespace zs::ZS_ISA
