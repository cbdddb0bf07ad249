// Quotients and remainders of integers. Division by zero gives 0; the lowest number divided by -1
// is itself, as everything here wraps around.
//
// Processors divide vectors of floats alone, and integers slowly, one by one. So integers are
// divided as floats that have enough digits: a quotient lies at least 1 / b from every integer that
// it is not, and the float is off by far less, so that rounding it down (or towards zero) gives the
// integers'. 64-bit integers are divided so where a whole block of them is small enough.
#pragma once

#include "forms.h"
#include "vmath.h"

namespace zs::ZS_ISA {

template <bool kNarrow>
struct DivisionFloat {
  using Type = float;
};
template <>
struct DivisionFloat<false> {
  using Type = double;
};
// The float in which T is divided.
template <class T>
using Quotient = typename DivisionFloat<kBits<T> <= 16>::Type;

// Added to a small number, it leaves the next integer in the lowest bits (of a half away, the even
// one). In place of conversions, which are undefined beyond the range, and which older instruction
// sets lack for 64 bits.
template <class F>
constexpr F kShift = kSame<F, float> ? F(0x1.8p23) : F(0x1.8p52);

template <class T>
inline Quotient<T> to_float(T n) {
  if constexpr (kBits<T> == 64) {
    return float_of(static_cast<uint64_t>(n) + bits_of(kShift<double>)) - kShift<double>;
  } else if constexpr (kSame<T, uint32_t>) {
    return float_of(n | bits_of(0x1p52)) - 0x1p52;
  } else {
    return static_cast<Quotient<T>>(n);
  }
}

template <class T>
inline T nearest_integer(Quotient<T> x) {
  return static_cast<T>(bits_of(x + kShift<Quotient<T>>) - bits_of(kShift<Quotient<T>>));
}

// The two ways to round a quotient. `correction` is subtracted from the quotient that the processor gives;
// `offset` moves a quotient so that its nearest integer is the rounded one.
struct Down {
  template <class F>
  static F round(F quotient) {
    return math::floor(quotient);
  }
  template <class F>
  static F offset(F, F size) {
    return size;
  }
  // One less where truncation went up: something is left, and its sign is not the divisor's.
  template <class T>
  static T correction(T rest, T divisor) {
    return static_cast<T>((rest != 0) & ((rest ^ divisor) < 0));
  }
};

struct TowardsZero {
  template <class F>
  static F round(F quotient) {
    return math::trunc(quotient);
  }
  template <class F>
  static F offset(F quotient, F size) {
    return with_sign(size, quotient);
  }
  template <class T>
  static T correction(T, T) {
    return 0;
  }
};

// Division by one number, known before, as a multiplication: n / b + (1 / 2 b - 1 / 2) lies within
// a half of n / b rounded down, by 1 / 2 b at least.
template <class Rounding, class T>
class QuickReciprocal {
 public:
  using F = Quotient<T>;
  // By zero: every quotient is 0.
  explicit QuickReciprocal(T b)
      : factor_(b == 0 ? F(0) : F(1) / to_float(b)),
        size_(b == 0 ? F(0) : F(0.5) - F(0.5) * magnitude(factor_)) {}

  T quotient(T n) const {
    const F quotient = to_float(n) * factor_;
    return nearest_integer<T>(quotient - Rounding::offset(quotient, size_));
  }

 private:
  F factor_;
  F size_;
};

// Bytes: a factor of 16 bits has digits enough. That of 1 would have 17.
template <class Rounding>
class QuickReciprocal<Rounding, uint8_t> {
 public:
  explicit QuickReciprocal(uint8_t b)
      : factor_(b > 1 ? static_cast<uint16_t>(65536 / b + 1) : uint16_t(0)),
        whole_(b == 1 ? uint8_t(255) : uint8_t(0)) {}

  uint8_t quotient(uint8_t n) const {
    const auto high = static_cast<uint16_t>((uint32_t(n) * uint32_t(factor_)) >> 16);
    return static_cast<uint8_t>(high | (n & whole_));
  }

 private:
  uint16_t factor_;
  uint8_t whole_;
};

template <class T>
inline T rest_of(T a, T quotient, T b) {
  using W = Wrapping<T>;
  return static_cast<T>(static_cast<W>(a) - static_cast<W>(quotient) * static_cast<W>(b));
}

// The result of a division: the quotient or the remainder.
struct TheQuotient {
  template <class T>
  static T of(T, T quotient, T) {
    return quotient;
  }
};
struct TheRest {
  template <class T>
  static T of(T a, T quotient, T b) {
    return b == 0 ? T(0) : rest_of(a, quotient, b);
  }
};

// a / b, rounded.
template <class Rounding, class T>
inline T quotient_of(T a, T b) {
  const auto quotient = to_float(a) / to_float(b == 0 ? T(1) : b);
  const T rounded = nearest_integer<T>(Rounding::round(quotient));
  return b == 0 ? T(0) : rounded;
}

// The same of 64-bit integers of any size.
template <class Rounding, class T>
inline T quotient_by_instruction(T a, T b) {
  if (b == 0) return 0;
  if constexpr (kSigned<T>) {
    if (b == -1) return static_cast<T>(uint64_t(0) - static_cast<uint64_t>(a));
    const T quotient = a / b;
    return quotient - Rounding::correction(static_cast<T>(a - quotient * b), b);
  } else {
    return a / b;
  }
}

// Of 64-bit integers by one number: a multiplication and shifts (Granlund and Montgomery, Division
// by invariant integers using multiplication, PLDI 1994, figure 4.1). b is not 0.
template <class Rounding, class T>
class LongReciprocal {
 public:
  explicit LongReciprocal(T b) : negative_(b < 0) {
    const uint64_t divisor =
        negative_ ? uint64_t(0) - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
    const int log = divisor > 1 ? 64 - __builtin_clzll(divisor - 1) : 0;  // rounded up
    const Wide above = (Wide(1) << log) - divisor;
    factor_ = static_cast<uint64_t>((above << 64) / divisor + 1);
    first_ = log > 1 ? 1 : log;
    second_ = log > 1 ? log - 1 : 0;
  }

  T quotient(T n) const {
    const auto bits = static_cast<uint64_t>(n);
    if constexpr (!kSigned<T>) {
      return of_magnitude(bits);
    } else if constexpr (kSame<Rounding, Down>) {
      // floor(n / b) = ~(~n / b) for negative n and positive b, and both are made so. -n of the
      // lowest n is positive, though its bits look otherwise.
      const bool below = negative_ ? n > 0 : n < 0;
      const uint64_t sign = below ? ~uint64_t(0) : 0;
      return static_cast<T>(of_magnitude((negative_ ? 0 - bits : bits) ^ sign) ^ sign);
    } else {
      const uint64_t size = of_magnitude(n < 0 ? 0 - bits : bits);
      return static_cast<T>((n < 0) != negative_ ? 0 - size : size);
    }
  }

 private:
  __extension__ using Wide = unsigned __int128;

  uint64_t of_magnitude(uint64_t n) const {
    const auto high = static_cast<uint64_t>((Wide(n) * factor_) >> 64);
    return (high + ((n - high) >> first_)) >> second_;
  }

  uint64_t factor_;
  int first_;
  int second_;
  bool negative_;
};

// Integers that a double holds, and for which QuickReciprocal's error is less than a half: those of
// which so many are above the lowest one.
template <class T>
constexpr uint64_t kRange = uint64_t(1) << (kSigned<T> ? 51 : 50);
template <class T>
inline uint64_t above_lowest(T n) {
  return static_cast<uint64_t>(n) + (kSigned<T> ? kRange<T> / 2 : 0);
}

template <class T>
inline bool all_small(const T* x) {
  uint64_t bits = 0;
  for (int i = 0; i < kBlock; ++i) bits |= above_lowest(x[i]);
  return bits < kRange<T>;
}

template <class Rounding, class Part>
struct IntegerDivision {
  template <class T>
    requires(kBits<T> < 64)
  static T of(T a, T b) {
    return Part::of(a, quotient_of<Rounding>(a, b), b);
  }

  template <class T>
    requires(kBits<T> < 64)
  static auto by(T b) {
    const QuickReciprocal<Rounding, T> divisor(b);
    return [=](T a) { return Part::of(a, divisor.quotient(a), b); };
  }

  template <class T>
    requires(kBits<T> == 64)
  static void block(const T* a, const T* b, T* out) {
    if (all_small(a) && all_small(b)) {
      ZS_INDEPENDENT
      for (int i = 0; i < kBlock; ++i)
        out[i] = Part::of(a[i], quotient_of<Rounding>(a[i], b[i]), b[i]);
    } else {
      for (int i = 0; i < kBlock; ++i) {
        out[i] = Part::of(a[i], quotient_by_instruction<Rounding>(a[i], b[i]), b[i]);
      }
    }
  }

  template <class T>
    requires(kBits<T> == 64)
  static auto block_by(T b) {
    const bool quick = above_lowest(b) < kRange<T>;
    const QuickReciprocal<Rounding, T> divisor(quick ? b : T(1));
    const LongReciprocal<Rounding, T> any(b == 0 ? T(1) : b);
    return [=](const T* a, T* out) {
      if (quick && all_small(a)) {
        ZS_INDEPENDENT
        for (int i = 0; i < kBlock; ++i) out[i] = Part::of(a[i], divisor.quotient(a[i]), b);
      } else if (b == 0) {
        for (int i = 0; i < kBlock; ++i) out[i] = 0;
      } else {
        for (int i = 0; i < kBlock; ++i) out[i] = Part::of(a[i], any.quotient(a[i]), b);
      }
    };
  }
};

constexpr auto integer_division() {
  return join(binary<IntegerDivision<Down, TheQuotient>>("floor_divide", Integers{}),
              binary<IntegerDivision<Down, TheRest>>("remainder", Integers{}),
              binary<IntegerDivision<TowardsZero, TheRest>>("fmod", Integers{}),
              binary<IntegerDivision<TowardsZero, TheQuotient>>("truncated_divide", Integers{}));
}

}  // namespace zs::ZS_ISA
