// Positions of extremes.
//
// Compiled per instruction set, like all that includes it: every function here is the including
// file's own.
#pragma once

#include "fold_plain.h"

namespace zs::ZS_ISA {
namespace {

// A state that knows nothing has position 0, which is right: if all there is equals what stands for
// nothing, then so does the first, which has position 0.
template <class Op, class T>
struct Position {
  using Stored = typename Op::Value;

  static void begin(void* a, void* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<Stored*>(a)[i] = known(Op::kNothing);
      static_cast<int64_t*>(b)[i] = 0;
    }
  }

  // A true byte may be any but 0, and is 1 here.
  static ZS_NOW Stored known(Stored x) {
    if constexpr (kSame<T, Bool>) return x != 0;
    else return x;
  }

  static ZS_NOW bool is_better(Stored x, Stored than) {
    if constexpr (kFloat<T>) {
      return (Op::of(than, x) != than) & (than == than);
    } else {
      return known(Op::of(than, x)) != than;
    }
  }

  static ZS_NOW bool is_same(Stored x, Stored y) {
    if constexpr (kFloat<T>) return (x == y) | ((x != x) & (y != y));
    else return x == y;
  }

  // The first of n values that is `wanted`, and one is.
  static int64_t find(const Stored* v, int64_t n, Stored wanted) {
    constexpr int64_t kWidth = kLanes<Stored>;
    int64_t i = 0;
    for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
      if (is_among(v + i, wanted)) break;
    }
    while (!is_same(known(v[i]), wanted)) ++i;
    return i;
  }

  // Whether it is among four lines of values.
  static ZS_NOW bool is_among(const Stored* v, Stored wanted) {
    constexpr int kWidth = kLanes<Stored>;
    const Line<Stored> line[4] = {load_line(v), load_line(v + kWidth), load_line(v + 2 * kWidth),
                                  load_line(v + 3 * kWidth)};
    uint64_t any = 0;
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
      const auto found =
          (same_lanes(line[0].part[p], wanted) | same_lanes(line[1].part[p], wanted)) |
          (same_lanes(line[2].part[p], wanted) | same_lanes(line[3].part[p], wanted));
      uint64_t word[kVectorBytes / 8];
      __builtin_memcpy(word, &found, sizeof word);
      for (const uint64_t each : word) any |= each;
    }
    return any != 0;
  }

  template <class V>
  static ZS_NOW auto same_lanes(V x, Stored wanted) {
    if constexpr (kFloat<T>) {
      return wanted == wanted ? x == wanted : x != x;
    } else if constexpr (kSame<T, Bool>) {
      return wanted != 0 ? x != 0 : x == 0;
    } else {
      return x == wanted;
    }
  }

  static void runs(void* a, void* b, const int32_t* state, const void* values, int64_t length,
                   int64_t count, const Positions& at) {
    const Stored* v = static_cast<const Stored*>(values);
    for (int64_t c = 0; c < count; ++c, v += length) {
      Stored& best = static_cast<Stored*>(a)[state[c]];
      const Stored here = known(fold_run<Op>(v, length));
      if (!is_better(here, best)) continue;
      best = here;
      static_cast<int64_t*>(b)[state[c]] = at.first + at.run[c] + find(v, length, here) * at.along;
    }
  }

  static void columns(void* a, void* b, const void* values, int64_t n, int64_t rows, int64_t pitch,
                      const Positions& at) {
    Stored* best = static_cast<Stored*>(a);
    int64_t* where = static_cast<int64_t*>(b);
    const Stored* v = static_cast<const Stored*>(values);
    for (int64_t r = 0; r < rows; ++r, v += pitch) {
      const int64_t here = at.first + r * at.rows;
      ZS_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) {
        const bool better = is_better(known(v[i]), best[i]);
        best[i] = better ? known(v[i]) : best[i];
        where[i] = better ? here : where[i];
      }
    }
  }

  static void merge(void* a, void* b, const void* from, const void* from_where, int64_t n,
                    int64_t shift) {
    Stored* best = static_cast<Stored*>(a);
    int64_t* where = static_cast<int64_t*>(b);
    for (int64_t i = 0; i < n; ++i) {
      const Stored x = static_cast<const Stored*>(from)[i];
      const int64_t there = static_cast<const int64_t*>(from_where)[i] + shift;
      if (!is_better(x, best[i]) && !(is_same(x, best[i]) && there < where[i])) continue;
      best[i] = x;
      where[i] = there;
    }
  }

  static void finish(const void*, const void* b, void* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<int64_t*>(out)[i] = static_cast<const int64_t*>(b)[i];
    }
  }
};

}  // namespace
}  // namespace zs::ZS_ISA
