// 16-bit floats to float and back, rounding once, to nearest even. Branches would keep loops from
// being vectorised: every case is computed, and one is chosen.
#pragma once

#include "types.h"

namespace zs::ZS_ISA {

inline float widen(Brain x) { return float_of(static_cast<uint32_t>(x) << 16); }

inline float widen(Half x) {
  const uint32_t bits = static_cast<uint32_t>(x);
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t rest = bits & 0x7fffu;
  // A float with the half's exponent field is 2^(127-15) too small; the product is exact, and makes
  // subnormal halves normal. Infinity and NaN have the field of all ones instead.
  constexpr float kRebias = 0x1p112f;
  const uint32_t finite = bits_of(float_of(rest << 13) * kRebias);
  const uint32_t special = (rest << 13) | 0x7f800000u;
  return float_of(sign | (rest >= 0x7c00u ? special : finite));
}

inline Brain narrow_to_brain(float x) {
  const uint32_t bits = bits_of(x);
  // Adds just under half of the last place kept, and the last bit itself: a tie goes to the even
  // one.
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = ((bits >> 16) & 0x8000u) | 0x7fc0u;
  return static_cast<Brain>(x != x ? nan : rounded);
}

inline Half narrow_to_half(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  // Normal halves, from 2^-14: the exponent rebiased, 13 bits rounded off. What rounds up to 65536
  // becomes the bits of infinity by itself.
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t normal = (rest - kRebias + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  // Subnormal halves are multiples of 2^-24, which is the last place of floats around 1/2: the sum
  // rounds there, and its bits beyond those of 1/2 are the count of them.
  constexpr float kHalf = 0.5f;
  const uint32_t tiny = bits_of(float_of(rest) + kHalf) - bits_of(kHalf);
  const uint32_t nan = 0x7e00u | ((rest >> 13) & 0x3ffu);
  const uint32_t finite = rest < 0x38800000u ? tiny : normal;
  const uint32_t bounded = rest >= 0x47800000u ? 0x7c00u : finite;
  return static_cast<Half>(sign | (rest > 0x7f800000u ? nan : bounded));
}

// A double with what a float's last place but one cannot hold gathered into its last place, so that
// rounding to 16 bits afterwards rounds the double itself: twice to nearest would not.
inline float sticky(double x) {
  constexpr uint64_t kBelow = (uint64_t(1) << 29) - 1;  // 52 - 23 bits
  const uint64_t bits = bits_of(x);
  const uint64_t rest = (bits & kBelow) != 0 ? kBelow + 1 : 0;
  return static_cast<float>(float_of((bits & ~kBelow) | rest));
}

}  // namespace zs::ZS_ISA
