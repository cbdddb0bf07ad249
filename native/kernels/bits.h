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

// Unsigned x shifted right by one count for a row. Vectors of 8 and 16 bits have no such
// instruction, or a slow one; but the high half of a product is the same.
template <class U>
class RowShift {
 public:
  explicit RowShift(unsigned count)
      : count_(count),
        factor_(static_cast<uint16_t>(count % 16 == 0 && kBits<U> == 16 ? 0u : kOne >> count)),
        whole_(count == 0 ? static_cast<U>(~U(0)) : U(0)) {}

  U right(U x) const {
    if constexpr (kBits<U> == 8) {
      return static_cast<U>(static_cast<uint16_t>(uint16_t(x) * factor_) >> 8);
    } else if constexpr (kBits<U> == 16) {
      const auto high = static_cast<U>((uint32_t(x) * uint32_t(factor_)) >> 16);
      return static_cast<U>(high | (x & whole_));
    } else {
      return static_cast<U>(x >> count_);
    }
  }

 private:
  static constexpr uint32_t kOne = kBits<U> == 8 ? 256 : 65536;
  unsigned count_;
  uint16_t factor_;  // 2^(width - count), which for a count of 0 has 17 bits
  U whole_;
};

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
    if constexpr (kBits<T> >= 32) {
      return [=](T x) { return static_cast<T>(shifted_left(x, inside) & kept); };
    } else {
      const T factor = static_cast<T>((1u << inside) & static_cast<unsigned>(kept));
      return [=](T x) { return static_cast<T>(unsigned(x) * unsigned(factor)); };
    }
  }
};

// An over-wide shift of a negative x leaves the sign, -1.
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
    if constexpr (kBits<T> >= 32) {
      const T kept = over && !kSigned<T> ? T(0) : static_cast<T>(~T(0));
      return [=](T x) { return static_cast<T>(shifted_right(x, inside) & kept); };
    } else if constexpr (kSigned<T>) {
      // The lowest number is added, so that x is not negative, and what became of it taken off.
      using U = Unsigned<T>;
      const RowShift<U> shift(inside);
      const U low = static_cast<U>(kLowest<T>), moved = shift.right(low);
      return [=](T x) {
        return static_cast<T>(shift.right(static_cast<U>(static_cast<U>(x) ^ low)) - moved);
      };
    } else {
      const RowShift<T> shift(inside);
      const T kept = over ? T(0) : static_cast<T>(~T(0));
      return [=](T x) { return static_cast<T>(shift.right(x) & kept); };
    }
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
