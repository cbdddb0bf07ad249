// Lines of lanes, and the fold of two values of a lane.
//
// Compiled per instruction set, like all that includes it: every function here is the including
// file's own.
#pragma once

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
    if constexpr (kFloat<T>) return ((b < a) | (b != b)) ? b : a;
    else return b < a ? b : a;
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
    if constexpr (kFloat<T>) return ((b > a) | (b != b)) ? b : a;
    else return b > a ? b : a;
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
