#include "convert.h"

#include "half.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace zs::ZS_ISA {

namespace {

// The ends of T's range as a float type, which may have fewer digits: the upper one is the power of
// two beyond, which is exact.
template <class F, class T>
constexpr F kBeyond = static_cast<F>(Unsigned<T>(1) << (kBits<T> - 1 - kSigned<T>)) * F(2);
template <class F, class T>
constexpr F kBottom = kSigned<T> ? -kBeyond<F, T> : F(0);
// The largest F below kBeyond.
template <class F, class T>
constexpr F kTop =
    kBeyond<F, T> - ((kBits<T> - kSigned<T>) > (kSame<F, float> ? 24 : 53)
                         ? kBeyond<F, T> * (kSame<F, float> ? F(0x1p-24) : F(0x1p-53))
                         : F(1));

// Truncates; stops at the ends of the range; NaN is 0.
template <class T, class F>
inline T saturate(F x) {
  // Written so that each line is one instruction, and NaN passes both.
  const F below = kTop<F, T> < x ? kTop<F, T> : x;
  const F bounded = kBottom<F, T> > below ? kBottom<F, T> : below;
  const F number = x != x ? F(0) : bounded;
  if constexpr (kBits<T> < 32) {
    return static_cast<T>(static_cast<int32_t>(number));
  } else {
    const T inside = static_cast<T>(number);
    return x >= kBeyond<F, T> ? kHighest<T> : inside;
  }
}

// 16-bit floats by their bits.
template <class T>
constexpr T kOne = static_cast<T>(kSame<T, Half>    ? 0x3c00
                                  : kSame<T, Brain> ? 0x3f80
                                                    : 1);

template <class To, class From>
inline To converted(From x) {
  constexpr bool kFrom16 = kSame<From, Half> || kSame<From, Brain>;
  if constexpr (kSame<To, From>) {
    return x;
  } else if constexpr (kSame<From, Bool>) {
    return truth(x) ? kOne<To> : To(0);
  } else if constexpr (kFrom16 && kSame<To, float>) {
    return widen(x);
  } else if constexpr (kFrom16) {
    return converted<To>(widen(x));
  } else if constexpr (kSame<To, Bool>) {
    return boolean(x != From(0));
  } else if constexpr (kSame<To, Brain>) {
    return narrow_to_brain(static_cast<float>(x));
  } else if constexpr (kSame<To, Half> && kSame<From, double>) {
    return narrow_to_half(sticky(x));
  } else if constexpr (kSame<To, Half>) {
    return narrow_to_half(static_cast<float>(x));
  } else if constexpr (kFloat<From> && !kFloat<To>) {
    return saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// The row, with this processor's own instruction where it has one; the portable code computes the rest
// of a row at the end, and every row on other sets.
template <class From, class To>
inline int64_t convert_by_instruction(const From*, To*, int64_t) {
  return 0;
}

#if defined(__F16C__)
inline int64_t convert_by_instruction(const Half* in, float* out, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(bits));
  }
  return i;
}
inline int64_t convert_by_instruction(const float* in, Half* out, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(in + i);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  return i;
}
#endif

}  // namespace

template <class From, class To>
void convert_row(const void* const* in, void* out, int64_t n) {
  const From* from = static_cast<const From*>(in[0]);
  To* to = static_cast<To*>(out);
  const int64_t first = convert_by_instruction(from, to, n);
  ZS_INDEPENDENT
  for (int64_t i = first; i < n; ++i) to[i] = converted<To>(from[i]);
}

template <class T>
void fill_row(const void* const* in, void* out, int64_t n) {
  const T one = *static_cast<const T*>(in[0]);
  T* to = static_cast<T*>(out);
  ZS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) to[i] = one;
}

template void fill_row<uint8_t>(const void* const*, void*, int64_t);
template void fill_row<uint16_t>(const void* const*, void*, int64_t);
template void fill_row<uint32_t>(const void* const*, void*, int64_t);
template void fill_row<uint64_t>(const void* const*, void*, int64_t);

// Compiles the functions that table.cpp has the addresses of.
extern constexpr Conversions convert_rows = conversions();

}  // namespace zs::ZS_ISA
