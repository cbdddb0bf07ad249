// Arithmetic on 16-bit floats: widened, computed and rounded once in registers, without a buffer between.
#pragma once

#include "arithmetic.h"
#include "half.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace zs::ZS_ISA {

#if defined(__F16C__)
// A vector of floats, and how it is read from halves and rounded to them.
#if defined(__AVX512F__)
using Lanes = float __attribute__((vector_size(64)));
#else
using Lanes = float __attribute__((vector_size(32)));
#endif
template <>
inline constexpr bool kFloat<Lanes> = true;
constexpr int64_t kLanes = sizeof(Lanes) / sizeof(float);
constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// `count` of them, kLanes at most. (With a mask even for all: what has none is declared by way of an undefined
// value, of which g++ 12 warns.)
#if defined(__AVX512F__)
inline __mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

inline Lanes widened(const Half* x, int64_t count = kLanes) {
  const __m256i bits = count == kLanes ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))
                                       : _mm256_maskz_loadu_epi16(first_lanes(count), x);
  return (Lanes)_mm512_maskz_cvtph_ps(first_lanes(kLanes), bits);
}

inline void narrowed(Half* at, Lanes x, int64_t count = kLanes) {
  const __m256i bits = _mm512_maskz_cvtps_ph(first_lanes(kLanes), (__m512)x, kNearest);
  if (count == kLanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), bits);
  } else {
    _mm256_mask_storeu_epi16(at, first_lanes(count), bits);
  }
}
#else
inline Lanes widened(const Half* x, int64_t count = kLanes) {
  Half some[kLanes] = {};
  for (int64_t i = 0; i < count && count < kLanes; ++i) some[i] = x[i];
  const Half* const from = count < kLanes ? some : x;
  return (Lanes)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

inline void narrowed(Half* at, Lanes x, int64_t count = kLanes) {
  Half some[kLanes];
  Half* const to = count < kLanes ? some : at;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph((__m256)x, kNearest));
  for (int64_t i = 0; i < count && count < kLanes; ++i) at[i] = some[i];
}
#endif

// One number in all of them.
template <class Stored>
inline Lanes everywhere(Stored x) {
  const float number = widen(x);
  Lanes lanes{};
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = number;
  return lanes;
}
#endif

#if defined(__AVX512BW__)
// Twice as many bfloat16 as there are lanes: those at even places, and those at odd ones, so that none crosses
// from lane to lane.
struct Pairs {
  Lanes even, odd;
};
using Bits = uint32_t __attribute__((vector_size(64)));
constexpr Bits kHigh = Bits{} + 0xffff0000u;

inline Pairs widened(const Brain* x, int64_t count) {
  const Bits bits = (Bits)_mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), x);
  return {(Lanes)(bits << 16), (Lanes)(bits & kHigh)};
}

// As narrow_to_brain, with the result in the high half; no NaN.
inline Bits rounded_high(Lanes x) {
  const auto odd = _mm512_test_epi32_mask((__m512i)x, (__m512i)(Bits{} + 0x10000u));
  const Bits down = (Bits)x + 0x7fffu;
  return (Bits)_mm512_mask_add_epi32((__m512i)down, odd, (__m512i)x, (__m512i)(Bits{} + 0x8000u));
}

inline Bits quiet_high(Lanes x, Bits rounded) {
  return x != x ? ((Bits)x & 0x80000000u) | 0x7fc00000u : rounded;
}

inline void narrowed(Brain* at, const Pairs& x, int64_t count) {
  Bits even = rounded_high(x.even), odd = rounded_high(x.odd);
  if (_mm512_cmp_ps_mask((__m512)x.even, (__m512)x.odd, _CMP_UNORD_Q)) {
    even = quiet_high(x.even, even);
    odd = quiet_high(x.odd, odd);
  }
  _mm512_mask_storeu_epi16(at, static_cast<__mmask32>((uint64_t{1} << count) - 1),
                           (__m512i)((even >> 16) | (odd & kHigh)));
}
#endif

// An op on floats as one on 16-bit floats. Compilers turn the loops over bfloat16 into vectors by
// themselves; of halves they have the instructions only by name.
template <class F>
struct InFloat {
  static Brain of(Brain a, Brain b) { return narrow_to_brain(F::of(widen(a), widen(b))); }
  static Half of(Half a, Half b) { return narrow_to_half(F::of(widen(a), widen(b))); }

#if defined(__F16C__)
  template <unsigned kOnes>
  static void row(const Half* a, const Half* b, Half* out, int64_t n) {
    const Lanes x = kOnes & 1 ? everywhere(*a) : Lanes{};
    const Lanes y = kOnes & 2 ? everywhere(*b) : Lanes{};
    const auto step = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
      narrowed(out + i, F::of(kOnes & 1 ? x : widened(a + i, count), kOnes & 2 ? y : widened(b + i, count)),
               count);
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) step(i, kLanes);
    if (i < n) step(i, n - i);
  }
#endif

#if defined(__AVX512BW__)
  template <unsigned kOnes>
  static void row(const Brain* a, const Brain* b, Brain* out, int64_t n) {
    constexpr int64_t kBoth = 2 * kLanes;
    const Lanes x = kOnes & 1 ? everywhere(*a) : Lanes{};
    const Lanes y = kOnes & 2 ? everywhere(*b) : Lanes{};
    const auto step = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
      const Pairs p = kOnes & 1 ? Pairs{x, x} : widened(a + i, count);
      const Pairs q = kOnes & 2 ? Pairs{y, y} : widened(b + i, count);
      narrowed(out + i, {F::of(p.even, q.even), F::of(p.odd, q.odd)}, count);
    };
    int64_t i = 0;
    for (; i + kBoth <= n; i += kBoth) step(i, kBoth);
    if (i < n) step(i, n - i);
  }
#endif
};

constexpr auto sixteen() {
  using Stored = Types<Half, Brain>;
  return join(cheap<InFloat<Add>>("add", Stored{}), cheap<InFloat<Subtract>>("subtract", Stored{}),
              cheap<InFloat<Multiply>>("multiply", Stored{}),
              cheap<InFloat<Divide>>("divide", Stored{}),
              cheap<InFloat<SquaredDifference>>("squared_difference", Stored{}),
              cheap<InFloat<Maximum>>("maximum", Stored{}),
              cheap<InFloat<Minimum>>("minimum", Stored{}), cheap<InFloat<Fmax>>("fmax", Stored{}),
              cheap<InFloat<Fmin>>("fmin", Stored{}),
              cheap<InFloat<LargerOrSecond>>("larger_or_second", Stored{}),
              cheap<InFloat<SmallerOrSecond>>("smaller_or_second", Stored{}));
}

}  // namespace zs::ZS_ISA
