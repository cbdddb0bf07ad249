// Quotients and remainders of integers. Division by zero gives 0; the lowest number divided by -1 is
// itself, as everything here wraps around.
#pragma once

#include "forms.h"

namespace zs::ZS_ISA {

// a / b, truncated; b is not 0. Processors divide vectors of floats alone, and slowly integers one by
// one. Where the integers have at most two thirds of the float's digits that quotient, truncated, is
// theirs: it lies at least 1 / b from the next integer, and the float is off by far less.
template <class T>
inline T truncated_quotient(T a, T b) {
  if constexpr (kBits<T> <= 16) {
    return static_cast<T>(static_cast<int32_t>(static_cast<float>(a) / static_cast<float>(b)));
  } else {
    // Quotients by the unit are the only ones that may not fit: -2^31 / -1 and 2^32 - 1.
    constexpr T kUnit = kSigned<T> ? static_cast<T>(-1) : T(1);
    const bool unit = b == kUnit;
    const T whole = kSigned<T> ? static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(a)) : a;
    if constexpr (kBits<T> == 32) {
      const double quotient = static_cast<double>(a) / static_cast<double>(b);
      const T part = static_cast<T>(static_cast<int32_t>(unit ? 0.0 : quotient));
      return unit ? whole : part;
    } else {
      return unit ? whole : static_cast<T>(a / (unit ? T(2) : b));
    }
  }
}

template <class T>
inline T wrapping_rest(T a, T quotient, T b) {
  using W = Wrapping<T>;
  return static_cast<T>(static_cast<W>(a) - static_cast<W>(quotient) * static_cast<W>(b));
}

// Whether truncation went up: something is left, and its sign is not the divisor's.
template <class T>
inline bool above_floor(T rest, T b) {
  if constexpr (kSigned<T>) {
    return (rest != 0) & ((rest ^ b) < 0);
  } else {
    return false;
  }
}

// Division by one number, known before: a multiplication and shifts (Granlund and Montgomery, Division
// by invariant integers using multiplication, PLDI 1994, figure 4.1).
template <class U>
class Divisor {
 public:
  explicit Divisor(U divisor) {
    const int log = divisor > 1 ? 64 - __builtin_clzll(uint64_t(divisor) - 1) : 0;  // rounded up
    const Wide power = Wide(1) << log;
    factor_ = static_cast<U>(((power - divisor) << kBits<U>) / divisor + 1);
    first_ = log > 1 ? 1 : log;
    second_ = log > 1 ? log - 1 : 0;
  }

  U quotient(U n) const {
    const U high = static_cast<U>((Wide(n) * Wide(factor_)) >> kBits<U>);
    const U half = static_cast<U>(static_cast<U>(n - high) >> first_);
    return static_cast<U>(static_cast<U>(high + half) >> second_);
  }

 private:
  // Twice as wide. (__int128 is g++'s and clang's on 64-bit processors.)
  template <class V, int kBytes>
  struct Twice {
    using Type = uint64_t;
  };
  template <class V>
  struct Twice<V, 8> {
    __extension__ using Type = unsigned __int128;
  };
  template <class V>
  struct Twice<V, 2> {
    using Type = uint32_t;
  };
  using Wide = typename Twice<U, sizeof(U)>::Type;

  U factor_;
  int first_;
  int second_;
};

// Bytes: in 16 bits the factor has digits enough to need no shifts. By 1 it would not fit.
template <>
class Divisor<uint8_t> {
 public:
  explicit Divisor(uint8_t divisor)
      : factor_(divisor > 1 ? static_cast<uint16_t>(65536 / divisor + 1) : uint16_t(0)),
        whole_(divisor > 1 ? uint8_t(0) : uint8_t(255)) {}

  uint8_t quotient(uint8_t n) const {
    const uint16_t high = static_cast<uint16_t>((uint32_t(n) * uint32_t(factor_)) >> 16);
    return static_cast<uint8_t>(high | (n & whole_));
  }

 private:
  uint16_t factor_;
  uint8_t whole_;
};

// All ones, or none.
template <class T>
inline Unsigned<T> mask(bool on) {
  return on ? static_cast<Unsigned<T>>(~Unsigned<T>(0)) : Unsigned<T>(0);
}

template <class T>
inline Unsigned<T> negated(Unsigned<T> x) {
  return static_cast<Unsigned<T>>(Wrapping<T>(0) - x);
}

template <class T>
inline Unsigned<T> absolute(T x) {
  const auto bits = static_cast<Unsigned<T>>(x);
  return x < 0 ? negated<T>(bits) : bits;
}

// -x where the mask is all ones, x where it is none.
template <class T>
inline Unsigned<T> negated_if(Unsigned<T> x, Unsigned<T> on) {
  return static_cast<Unsigned<T>>(Wrapping<T>(static_cast<Unsigned<T>>(x ^ on)) - on);
}

// x / b for one b, rounded down. A negative n has floor(n / b) = ~(~n / b), which is of numbers that
// are not negative.
template <class T>
inline auto floored_by(T b) {
  using U = Unsigned<T>;
  const Divisor<U> divisor(b == 0 ? U(1) : absolute(b));
  const U flip = mask<T>(b < 0), kept = mask<T>(b != 0);
  return [=](T a) {
    const U n = negated_if<T>(static_cast<U>(a), flip);
    // Of -a, the lowest number's too, which is not negative though its bits look so.
    const U sign = mask<T>(static_cast<T>(static_cast<U>(a) ^ flip) < static_cast<T>(flip));
    const U quotient = divisor.quotient(static_cast<U>(n ^ sign));
    return static_cast<T>((quotient ^ sign) & kept);
  };
}

template <class T>
inline auto truncated_by(T b) {
  using U = Unsigned<T>;
  const Divisor<U> divisor(b == 0 ? U(1) : absolute(b));
  const U flip = mask<T>(b < 0), kept = mask<T>(b != 0);
  return [=](T a) {
    const U sign = static_cast<U>(mask<T>(a < 0) ^ flip);
    return static_cast<T>(negated_if<T>(divisor.quotient(absolute(a)), sign) & kept);
  };
}

struct FloorDivide {
  template <class T>
  static T of(T a, T b) {
    const T divisor = b == 0 ? T(1) : b;
    const T quotient = truncated_quotient(a, divisor);
    const bool above = above_floor(wrapping_rest(a, quotient, divisor), divisor);
    return b == 0 ? T(0) : static_cast<T>(quotient - above);
  }
  template <class T>
  static auto by(T b) {
    return floored_by(b);
  }
};

struct TruncatedDivide {
  template <class T>
  static T of(T a, T b) {
    const T quotient = truncated_quotient(a, b == 0 ? T(1) : b);
    return b == 0 ? T(0) : quotient;
  }
  template <class T>
  static auto by(T b) {
    return truncated_by(b);
  }
};

// What floor division leaves.
struct Remainder {
  template <class T>
  static T of(T a, T b) {
    const T divisor = b == 0 ? T(1) : b;
    const T rest = wrapping_rest(a, truncated_quotient(a, divisor), divisor);
    return static_cast<T>(rest + (above_floor(rest, divisor) ? divisor : T(0)));
  }
  template <class T>
  static auto by(T b) {
    const auto quotient = floored_by(b);
    const T kept = static_cast<T>(mask<T>(b != 0));
    return [=](T a) { return static_cast<T>(wrapping_rest(a, quotient(a), b) & kept); };
  }
};

// What truncated division leaves.
struct Fmod {
  template <class T>
  static T of(T a, T b) {
    const T divisor = b == 0 ? T(1) : b;
    return wrapping_rest(a, truncated_quotient(a, divisor), divisor);
  }
  template <class T>
  static auto by(T b) {
    const auto quotient = truncated_by(b);
    const T kept = static_cast<T>(mask<T>(b != 0));
    return [=](T a) { return static_cast<T>(wrapping_rest(a, quotient(a), b) & kept); };
  }
};

constexpr auto integer_division() {
  return join(binary<FloorDivide>("floor_divide", Integers{}),
              binary<Remainder>("remainder", Integers{}),
              binary<Fmod>("fmod", Integers{}),
              binary<TruncatedDivide>("truncated_divide", Integers{}));
}

}  // namespace zs::ZS_ISA
