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
inline Lanes everywhere(Half x) {
  const float number = widen(x);
  Lanes lanes{};
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = number;
  return lanes;
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
