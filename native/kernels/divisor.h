// Division by one positive number, without dividing: a multiplication by its inverse, and a correction.
//
// With inverse = 1/d rounded, and rest its error, x * inverse + x * rest is within one place of x / d.
// The remainder of x is exact as one fused operation, and adding its share gives the
// quotient correctly rounded (P. Markstein, "Computation of elementary functions on the IBM RISC
// System/6000 processor", 1990: the inverse is correctly rounded, too). Nothing may underflow or
// overflow in between: numbers for which that holds, and zeros, are found by their exponents; others are
// divided. A processor divides a vector in ten cycles and more; this takes five.
#pragma once

#include "shared_limits.h"
#include "types.h"
#include "vmath/base.h"

namespace zs::ZS_ISA {

template <class T>
struct QuickRange;
template <>
struct QuickRange<float> {
  // Of dividends and divisors: the least, and the bits up to the largest. Quotients are from 2^-124
  // to 2^124, and the remainder of a dividend has its last place at 2^-148.
  static constexpr uint32_t kMost = limits::kQuickDividends, kMostDivisor = limits::kQuickDivisors;
  static constexpr uint32_t kLeast = (127 - kMost) << 23, kSpan = (2 * kMost) << 23;
  static constexpr uint32_t kLeastDivisor = (127 - kMostDivisor) << 23;
  static constexpr uint32_t kDivisorSpan = (2 * kMostDivisor) << 23;
};
template <>
struct QuickRange<double> {
  static constexpr uint64_t kMost = limits::kQuickWideDividends;
  static constexpr uint64_t kMostDivisor = limits::kQuickWideDivisors;
  static constexpr uint64_t kLeast = (1023 - kMost) << 52, kSpan = (2 * kMost) << 52;
  static constexpr uint64_t kLeastDivisor = (1023 - kMostDivisor) << 52;
  static constexpr uint64_t kDivisorSpan = (2 * kMostDivisor) << 52;
};

template <class T>
struct Divisor {
  T by, inverse, rest;
  Unsigned<T> span;  // of sizes that are quick
  Unsigned<T> zero;  // a zero's size, if that is

  explicit Divisor(T d) : by(d), inverse(1 / d), rest(math::fma(-inverse, d, T(1)) * inverse) {
    using Range = QuickRange<T>;
    const bool quick = bits_of(d) - Range::kLeastDivisor < Range::kDivisorSpan;
    span = quick ? Range::kSpan : 0;
    zero = quick ? 0 : static_cast<Unsigned<T>>(kLowest<Signed<T>>);  // no size
  }

  static constexpr Unsigned<T> kSize = static_cast<Unsigned<T>>(kHighest<Signed<T>>);

  // Whether x is to be divided.
  bool is_slow(T x) const {
    const Unsigned<T> size = bits_of(x) & kSize;
    return (size - QuickRange<T>::kLeast >= span) & (size != zero);
  }

  T quotient(T x) const {
    const T near = math::fma(x, inverse, x * rest);
    return with_sign(math::fma(math::fma(-near, by, x), inverse, near), x);
  }
};

}  // namespace zs::ZS_ISA
