// Bits of integers, and shifts.
#pragma once

#include "forms.h"

namespace zs::ZS_ISA {

struct BitwiseAnd {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitwiseOr {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitwiseXor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct BitwiseInvert {
  template <class T>
  static T of(T x) {
    return static_cast<T>(~x);
  }
};

// x shifted by a count that is less than its width.
template <class T>
inline T shifted_left(T x, unsigned count) {
  return static_cast<T>(static_cast<Wrapping<T>>(x) << count);
}
template <class T>
inline T shifted_right(T x, unsigned count) {
  return static_cast<T>(x >> count);
}

// A count as unsigned: a negative one is far beyond the width.
template <class T>
inline bool over_wide(T count) {
  return static_cast<Unsigned<T>>(count) >= kBits<T>;
}

struct LeftShift {
  template <class T>
  static T of(T x, T count) {
    const T moved = shifted_left(x, static_cast<unsigned>(count) % kBits<T>);
    return over_wide(count) ? T(0) : moved;
  }
  template <class T>
  static auto by(T count) {
    const unsigned inside = static_cast<unsigned>(count) % kBits<T>;
    const T kept = over_wide(count) ? T(0) : static_cast<T>(~T(0));
    return [=](T x) { return static_cast<T>(shifted_left(x, inside) & kept); };
  }
};

// Of a negative x what is over-wide leaves the sign, -1.
struct RightShift {
  template <class T>
  static T of(T x, T count) {
    if constexpr (kSigned<T>) {
      const unsigned inside =
          over_wide(count) ? kBits<T> - 1u : static_cast<unsigned>(count) % kBits<T>;
      return shifted_right(x, inside);
    } else {
      const T moved = shifted_right(x, static_cast<unsigned>(count) % kBits<T>);
      return over_wide(count) ? T(0) : moved;
    }
  }
  template <class T>
  static auto by(T count) {
    const bool over = over_wide(count);
    const unsigned inside = over ? kBits<T> - 1u : static_cast<unsigned>(count);
    const T kept = over && !kSigned<T> ? T(0) : static_cast<T>(~T(0));
    return [=](T x) { return static_cast<T>(shifted_right(x, inside) & kept); };
  }
};

// Engines' shifts, which bring the count into the width: to its nearer end, or modulo the width.
template <class T>
inline T clamped(T count) {
  const T low = count < 0 ? T(0) : count;
  return low > kBits<T> - 1 ? static_cast<T>(kBits<T> - 1) : low;
}
template <class T>
inline T wrapped(T count) {
  return static_cast<T>(count & (kBits<T> - 1));
}

template <class Shift>
struct Clamped {
  template <class T>
  static T of(T x, T count) {
    return Shift::of(x, clamped(count));
  }
  template <class T>
  static auto by(T count) {
    return Shift::by(clamped(count));
  }
};

template <class Shift>
struct Wrapped {
  template <class T>
  static T of(T x, T count) {
    return Shift::of(x, wrapped(count));
  }
  template <class T>
  static auto by(T count) {
    return Shift::by(wrapped(count));
  }
};

constexpr auto bits() {
  return join(binary<BitwiseAnd>("bitwise_and", Integers{}),
              binary<BitwiseOr>("bitwise_or", Integers{}),
              binary<BitwiseXor>("bitwise_xor", Integers{}),
              unary<BitwiseInvert>("bitwise_invert", Integers{}),
              binary<LeftShift>("bitwise_left_shift", Integers{}),
              binary<RightShift>("bitwise_right_shift", Integers{}),
              binary<Clamped<LeftShift>>("clamped_left_shift", Integers{}),
              binary<Clamped<RightShift>>("clamped_right_shift", Integers{}),
              binary<Wrapped<LeftShift>>("wrapped_left_shift", Integers{}),
              binary<Wrapped<RightShift>>("wrapped_right_shift", Integers{}));
}

}  // namespace zs::ZS_ISA
