// Lines of lanes, and the fold of two values of a lane.
//
// Compiled per instruction set, like all that includes it: every function here is the including
// file's own.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <utility>

#include "types.h"

namespace zs::ZS_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLineBytes = 64;
constexpr int kParts = kLineBytes / kVectorBytes;

#define ZS_NOW inline __attribute__((always_inline))

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
constexpr int kLanes = kLineBytes / static_cast<int>(sizeof(T));

// 64 bytes of lanes.
template <class T>
struct Line {
  typename VectorOf<T>::type part[kParts];
};

template <class T>
ZS_NOW Line<T> load_line(const T* from) {
  Line<T> line;
  __builtin_memcpy(&line, from, sizeof line);
  return line;
}

template <class T>
ZS_NOW void store_line(T* to, const Line<T>& line) {
  __builtin_memcpy(to, &line, sizeof line);
}

// --- Folds of two values, for scalars and for vectors (whose comparisons are masks). ----

template <class T>
struct Plus {
  using Value = T;
  static constexpr T kNothing = 0;
  template <class V>
  static ZS_NOW V of(V a, V b) {
    if constexpr (kSame<V, T> && sizeof(T) < sizeof(int)) {
      return static_cast<T>(unsigned(a) + unsigned(b));
    } else {
      return a + b;
    }
  }
  static T result(T a) { return a; }
};

template <class T>
struct Times {
  using Value = T;
  static constexpr T kNothing = 1;
  template <class V>
  static ZS_NOW V of(V a, V b) {
    if constexpr (kSame<V, T> && sizeof(T) < sizeof(int)) {
      return static_cast<T>(unsigned(a) * unsigned(b));
    } else {
      return a * b;
    }
  }
  static T result(T a) { return a; }
};

// The one that is less, or greater; otherwise the second.
template <class V>
ZS_NOW V lesser(V a, V b) {
  return a < b ? a : b;
}

template <class V>
ZS_NOW V greater(V a, V b) {
  return a > b ? a : b;
}

// The same of vectors of floats by the processor's own instructions, which compilers do not find with masks.
#define ZS_BOTH_ENDS(T, least, most)                                                         \
  ZS_NOW VectorOf<T>::type lesser(VectorOf<T>::type a, VectorOf<T>::type b) { return least; } \
  ZS_NOW VectorOf<T>::type greater(VectorOf<T>::type a, VectorOf<T>::type b) { return most; }

#if defined(__AVX512F__)
ZS_BOTH_ENDS(float, _mm512_maskz_min_ps(0xffff, a, b), _mm512_maskz_max_ps(0xffff, a, b))
ZS_BOTH_ENDS(double, _mm512_maskz_min_pd(0xff, a, b), _mm512_maskz_max_pd(0xff, a, b))
#elif defined(__AVX__)
ZS_BOTH_ENDS(float, _mm256_min_ps(a, b), _mm256_max_ps(a, b))
ZS_BOTH_ENDS(double, _mm256_min_pd(a, b), _mm256_max_pd(a, b))
#elif defined(__x86_64__)
ZS_BOTH_ENDS(float, _mm_min_ps(a, b), _mm_max_ps(a, b))
ZS_BOTH_ENDS(double, _mm_min_pd(a, b), _mm_max_pd(a, b))
#endif

// NaN wins, as in NumPy.
template <class T>
struct Least {
  using Value = T;
  static constexpr T kNothing = [] {
    if constexpr (kFloat<T>) return kInfinity<T>;
    else return kHighest<T>;
  }();
  template <class V>
  static ZS_NOW V of(V a, V b) {
    const V least = lesser(b, a);
    if constexpr (kFloat<T>) return b != b ? b : least;
    else return least;
  }
  static T result(T a) { return a; }
};

template <class T>
struct Greatest {
  using Value = T;
  static constexpr T kNothing = [] {
    if constexpr (kFloat<T>) return -kInfinity<T>;
    else return kLowest<T>;
  }();
  template <class V>
  static ZS_NOW V of(V a, V b) {
    const V greatest = greater(b, a);
    if constexpr (kFloat<T>) return b != b ? b : greatest;
    else return greatest;
  }
  static T result(T a) { return a; }
};

// Bytes that are true unless they are 0.
struct AnyTrue {
  using Value = uint8_t;
  static constexpr uint8_t kNothing = 0;
  template <class V>
  static ZS_NOW V of(V a, V b) {
    return static_cast<V>(a | b);
  }
  static uint8_t result(uint8_t a) { return a != 0; }
};

struct AllTrue {
  using Value = uint8_t;
  static constexpr uint8_t kNothing = 0xff;
  template <class V>
  static ZS_NOW V of(V a, V b) {
    if constexpr (kSame<V, uint8_t>) return b != 0 ? a : uint8_t(0);
    else return a & reinterpret_cast<V>(b != 0);
  }
  static uint8_t result(uint8_t a) { return a != 0; }
};

template <class Op, class T>
ZS_NOW Line<T> both(const Line<T>& a, const Line<T>& b) {
  Line<T> line;
#pragma GCC unroll 4
  for (int p = 0; p < kParts; ++p) line.part[p] = Op::of(a.part[p], b.part[p]);
  return line;
}

template <int kBy, class V, int... kLane>
ZS_NOW V turned(V v, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(v, v, ((kLane + kBy) % int(sizeof...(kLane)))...);
}

// Each lane with the one half a vector on, a quarter on, and so forth; the first one has all.
template <class Op, int kHalf, class V>
ZS_NOW auto fold_lanes(V v) {
  constexpr int kAll = int(sizeof(V) / sizeof(v[0]));
  v = Op::of(v, turned<kHalf>(v, std::make_integer_sequence<int, kAll>{}));
  if constexpr (kHalf > 1) return fold_lanes<Op, kHalf / 2>(v);
  else return v[0];
}

// One value of a line, in the same order whatever the vectors are.
template <class Op, class T>
ZS_NOW T fold_line(Line<T> line) {
#pragma GCC unroll 4
  for (int parts = kParts / 2; parts; parts /= 2) {
    for (int p = 0; p < parts; ++p) line.part[p] = Op::of(line.part[p], line.part[p + parts]);
  }
  return fold_lanes<Op, kVectorBytes / int(sizeof(T)) / 2>(line.part[0]);
}

// Four lines of lanes over `steps` times four lines of values, and these to one.
template <class Op, class T>
ZS_NOW Line<T> four_lines(const T* v, int64_t steps) {
  constexpr int kWidth = kLanes<T>;
  Line<T> a = load_line(v), b = load_line(v + kWidth);
  Line<T> c = load_line(v + 2 * kWidth), d = load_line(v + 3 * kWidth);
  for (int64_t s = 1; s < steps; ++s) {
    v += 4 * kWidth;
    a = both<Op>(a, load_line(v));
    b = both<Op>(b, load_line(v + kWidth));
    c = both<Op>(c, load_line(v + 2 * kWidth));
    d = both<Op>(d, load_line(v + 3 * kWidth));
  }
  return both<Op>(both<Op>(a, b), both<Op>(c, d));
}

}  // namespace
}  // namespace zs::ZS_ISA
