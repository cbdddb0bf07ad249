// Sums of floats are exact to more than the digits of their dtype. float32: a few additions in a
// vector's lanes, then float64. float64: a few additions likewise, then sums with their errors kept
// beside them. Lanes are a line of 64 bytes whatever the vectors are, so that every instruction set
// adds in the same order and gives the same bits.
#include "fold.h"

#include "fold_lines.h"

namespace zs::ZS_ISA {
namespace {

// --- Folds of one number, in the values' own dtype -----------------------------------------------

template <class Op, class T = typename Op::Value>
inline T fold_run(const T* v, int64_t n) {
  constexpr int kWidth = kLanes<T>;
  alignas(kLineBytes) T lane[kWidth];
  T rest = Op::kNothing;
  if (n >= kWidth) {
    Line<T> line;
    const int64_t steps = n / (4 * kWidth);
    int64_t done = steps * 4 * kWidth;
    if (steps) {
      line = four_lines<Op>(v, steps);
    } else {
      line = load_line(v);
      done = kWidth;
    }
    for (; done + kWidth <= n; done += kWidth) line = both<Op>(line, load_line(v + done));
    store_line(lane, line);
    for (int width = kWidth / 2; width; width /= 2) {
      for (int i = 0; i < width; ++i) lane[i] = Op::of(lane[i], lane[i + width]);
    }
    rest = lane[0];
    v += done;
    n -= done;
  }
  for (int64_t i = 0; i < n; ++i) rest = Op::of(rest, v[i]);
  return rest;
}

template <class Op>
struct Plain {
  using T = typename Op::Value;

  static void begin(void* a, void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(a)[i] = Op::kNothing;
  }

  static void runs(void* a, void*, const int32_t* state, const void* values, int64_t length,
                   int64_t count, const Positions&) {
    const T* v = static_cast<const T*>(values);
    for (int64_t c = 0; c < count; ++c, v += length) {
      T& known = static_cast<T*>(a)[state[c]];
      known = Op::of(known, fold_run<Op>(v, length));
    }
  }

  static void columns(void* a, void*, const void* values, int64_t n, int64_t rows, int64_t pitch,
                      const Positions&) {
    T* known = static_cast<T*>(a);
    const T* v = static_cast<const T*>(values);
    for (; rows >= 4; rows -= 4, v += 4 * pitch) add_rows<4>(known, v, n, pitch);
    for (; rows; --rows, v += pitch) add_rows<1>(known, v, n, pitch);
  }

  // By lines: compilers find no vectors in all of these.
  template <int kRows>
  static ZS_NOW void add_rows(T* known, const T* v, int64_t n, int64_t pitch) {
    constexpr int kWidth = kLanes<T>;
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      Line<T> line = load_line(known + i);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) line = both<Op>(line, load_line(v + r * pitch + i));
      store_line(known + i, line);
    }
    for (; i < n; ++i) {
      for (int r = 0; r < kRows; ++r) known[i] = Op::of(known[i], v[r * pitch + i]);
    }
  }

  static void merge(void* a, void*, const void* from, const void*, int64_t n, int64_t) {
    add_rows<1>(static_cast<T*>(a), static_cast<const T*>(from), n, 0);
  }

  static void finish(const void* a, const void*, void* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<T*>(out)[i] = Op::result(static_cast<const T*>(a)[i]);
    }
  }
};

// --- Products of float32, in float64 -------------------------------------------------------------

struct WideProduct {
  static void begin(void* a, void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<double*>(a)[i] = 1;
  }

  static double of_run(const float* v, int64_t n) {
    constexpr int kWidth = 8;
    double lane[kWidth] = {1, 1, 1, 1, 1, 1, 1, 1};
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      for (int j = 0; j < kWidth; ++j) lane[j] *= static_cast<double>(v[i + j]);
    }
    for (int j = 0; i < n; ++i, ++j) lane[j] *= static_cast<double>(v[i]);
    return ((lane[0] * lane[4]) * (lane[1] * lane[5])) *
           ((lane[2] * lane[6]) * (lane[3] * lane[7]));
  }

  static void runs(void* a, void*, const int32_t* state, const void* values, int64_t length,
                   int64_t count, const Positions&) {
    const float* v = static_cast<const float*>(values);
    for (int64_t c = 0; c < count; ++c) {
      static_cast<double*>(a)[state[c]] *= of_run(v + c * length, length);
    }
  }

  static void columns(void* a, void*, const void* values, int64_t n, int64_t rows, int64_t pitch,
                      const Positions&) {
    double* known = static_cast<double*>(a);
    const float* v = static_cast<const float*>(values);
    for (int64_t r = 0; r < rows; ++r, v += pitch) {
      ZS_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) known[i] *= static_cast<double>(v[i]);
    }
  }

  static void merge(void* a, void*, const void* from, const void*, int64_t n, int64_t) {
    double* known = static_cast<double*>(a);
    const double* more = static_cast<const double*>(from);
    for (int64_t i = 0; i < n; ++i) known[i] *= more[i];
  }

  static void finish(const void* a, const void*, void* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<float*>(out)[i] = static_cast<float>(static_cast<const double*>(a)[i]);
    }
  }
};

// --- Sums of floats ------------------------------------------------------------------------------

// Values of a block that is added up in the lanes alone.
constexpr int64_t kSumBlock = 512;

// Steps of four lines in the next block of n values.
inline int64_t first_steps(int64_t n, int width) {
  const int64_t left = n / (4 * width), most = kSumBlock / (4 * width);
  return left < most ? left : most;
}

// n values of eight rows at a time, added in pairs: add(i, sum) takes each column's.
template <class T, class Add>
ZS_NOW void sum_columns(const T* v, int64_t n, int64_t rows, int64_t pitch, const Add& add) {
  for (; rows >= 8; rows -= 8, v += 8 * pitch) {
    const T *b = v + pitch, *c = b + pitch, *d = c + pitch;
    const T *e = d + pitch, *f = e + pitch, *g = f + pitch, *h = g + pitch;
    ZS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      add(i, ((v[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i])));
    }
  }
  for (; rows >= 2; rows -= 2, v += 2 * pitch) {
    const T* b = v + pitch;
    ZS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) add(i, v[i] + b[i]);
  }
  if (rows == 0) return;
  ZS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) add(i, v[i]);
}

// float32 in float64.
struct WideSum {
  static void begin(void* a, void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<double*>(a)[i] = 0;
  }

  static ZS_NOW double of_run(const float* v, int64_t n) {
    constexpr int kWidth = kLanes<float>;
    alignas(kLineBytes) double total[kWidth];
    int64_t steps = first_steps(n, kWidth);
    if (steps) {
      alignas(kLineBytes) float lane[kWidth];
      store_line(lane, four_lines<Plus<float>>(v, steps));
      for (int i = 0; i < kWidth; ++i) total[i] = static_cast<double>(lane[i]);
      for (;;) {
        v += steps * 4 * kWidth;
        n -= steps * 4 * kWidth;
        if ((steps = first_steps(n, kWidth)) == 0) break;
        store_line(lane, four_lines<Plus<float>>(v, steps));
        for (int i = 0; i < kWidth; ++i) total[i] += static_cast<double>(lane[i]);
      }
    } else {
      for (int i = 0; i < kWidth; ++i) total[i] = 0;
    }
    for (; n >= kWidth; n -= kWidth, v += kWidth) {
      for (int i = 0; i < kWidth; ++i) total[i] += static_cast<double>(v[i]);
    }
    for (int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(v[i]);
    for (int i = 0; i < 8; ++i) total[i] += total[i + 8];
    for (int i = 0; i < 4; ++i) total[i] += total[i + 4];
    return (total[0] + total[2]) + (total[1] + total[3]);
  }

  static void runs(void* a, void*, const int32_t* state, const void* values, int64_t length,
                   int64_t count, const Positions&) {
    const float* v = static_cast<const float*>(values);
    for (int64_t c = 0; c < count; ++c) {
      static_cast<double*>(a)[state[c]] += of_run(v + c * length, length);
    }
  }

  static void columns(void* a, void*, const void* values, int64_t n, int64_t rows, int64_t pitch,
                      const Positions&) {
    double* known = static_cast<double*>(a);
    sum_columns(static_cast<const float*>(values), n, rows, pitch,
                [known](int64_t i, float sum) { known[i] += static_cast<double>(sum); });
  }

  static void merge(void* a, void*, const void* from, const void*, int64_t n, int64_t) {
    double* known = static_cast<double*>(a);
    const double* more = static_cast<const double*>(from);
    for (int64_t i = 0; i < n; ++i) known[i] += more[i];
  }

  static void finish(const void* a, const void*, void* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<float*>(out)[i] = static_cast<float>(static_cast<const double*>(a)[i]);
    }
  }
};

// float64: a sum, and the sum of what rounding took from it.
struct CompensatedSum {
  static void begin(void* a, void* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<double*>(a)[i] = 0;
      static_cast<double*>(b)[i] = 0;
    }
  }

  // Adds x to the sum a, and what is lost to b.
  static ZS_NOW void add(double& a, double& b, double x) {
    const double sum = a + x, part = sum - a;
    b += (a - (sum - part)) + (x - part);
    a = sum;
  }

  static ZS_NOW void add_run(double& a, double& b, const double* v, int64_t n) {
    if (n < kSumBlock) return add(a, b, sum_block(v, n));
    constexpr int kWidth = kLanes<double>;
    alignas(kLineBytes) double lane[kWidth], total[kWidth], lost[kWidth];
    for (int i = 0; i < kWidth; ++i) total[i] = lost[i] = 0;
    for (; n >= kSumBlock; n -= kSumBlock, v += kSumBlock) {
      store_line(lane, four_lines<Plus<double>>(v, kSumBlock / (4 * kWidth)));
      for (int i = 0; i < kWidth; ++i) add(total[i], lost[i], lane[i]);
    }
    for (int i = 0; i < kWidth; ++i) {
      add(a, b, total[i]);
      b += lost[i];
    }
    if (n) add(a, b, sum_block(v, n));
  }

  // Of less than a block: in lanes, then in pairs.
  static ZS_NOW double sum_block(const double* v, int64_t n) {
    constexpr int kWidth = kLanes<double>;
    double rest = 0;
    if (n >= kWidth) {
      alignas(kLineBytes) double lane[kWidth];
      const int64_t steps = n / (4 * kWidth);
      Line<double> line;
      int64_t done = steps * 4 * kWidth;
      if (steps) {
        line = four_lines<Plus<double>>(v, steps);
      } else {
        line = load_line(v);
        done = kWidth;
      }
      for (; done + kWidth <= n; done += kWidth) {
        line = both<Plus<double>>(line, load_line(v + done));
      }
      store_line(lane, line);
      for (int i = 0; i < 4; ++i) lane[i] += lane[i + 4];
      rest = (lane[0] + lane[2]) + (lane[1] + lane[3]);
      v += done;
      n -= done;
    }
    double odd = 0;
    for (int64_t i = 0; i < n; ++i) odd += v[i];
    return rest + odd;
  }

  static void runs(void* a, void* b, const int32_t* state, const void* values, int64_t length,
                   int64_t count, const Positions&) {
    const double* v = static_cast<const double*>(values);
    for (int64_t c = 0; c < count; ++c) {
      add_run(static_cast<double*>(a)[state[c]], static_cast<double*>(b)[state[c]], v + c * length,
              length);
    }
  }

  static void columns(void* a, void* b, const void* values, int64_t n, int64_t rows, int64_t pitch,
                      const Positions&) {
    double *known = static_cast<double*>(a), *lost = static_cast<double*>(b);
    sum_columns(static_cast<const double*>(values), n, rows, pitch,
                [known, lost](int64_t i, double sum) { add(known[i], lost[i], sum); });
  }

  static void merge(void* a, void* b, const void* from, const void* from_lost, int64_t n, int64_t) {
    double *known = static_cast<double*>(a), *lost = static_cast<double*>(b);
    for (int64_t i = 0; i < n; ++i) {
      add(known[i], lost[i], static_cast<const double*>(from)[i]);
      lost[i] += static_cast<const double*>(from_lost)[i];
    }
  }

  // Of an infinity or NaN the loss says nothing: it is a difference of infinities.
  static void finish(const void* a, const void* b, void* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const double sum = static_cast<const double*>(a)[i], lost = static_cast<const double*>(b)[i];
      const bool finite = magnitude(sum) < kInfinity<double> && magnitude(lost) < kInfinity<double>;
      static_cast<double*>(out)[i] = finite ? sum + lost : sum;
    }
  }
};

// --- Positions of extremes -----------------------------------------------------------------------

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

// --- The table -----------------------------------------------------------------------------------

template <class F, class State>
constexpr Folder folder(DType out) {
  return {out, sizeof(State), F::begin, F::runs, F::columns, F::merge, F::finish};
}

template <class Op>
constexpr Folder plain(DType out) {
  return folder<Plain<Op>, typename Op::Value>(out);
}

constexpr int number(Fold fold) { return static_cast<int>(fold); }

template <class T>
constexpr void add_integer(Folders& all) {
  constexpr DType kType = kDTypeOf<T>;
  constexpr int k = static_cast<int>(kType);
  all.row[number(Fold::Sum)][k] = plain<Plus<Unsigned<T>>>(kType);
  all.row[number(Fold::Prod)][k] = plain<Times<Unsigned<T>>>(kType);
}

template <class T>
constexpr void add_number(Folders& all) {
  constexpr DType kType = kDTypeOf<T>;
  constexpr int k = static_cast<int>(kType);
  all.row[number(Fold::Min)][k] = plain<Least<T>>(kType);
  all.row[number(Fold::Max)][k] = plain<Greatest<T>>(kType);
  all.row[number(Fold::ArgMin)][k] = folder<Position<Least<T>, T>, T>(DType::I64);
  all.row[number(Fold::ArgMax)][k] = folder<Position<Greatest<T>, T>, T>(DType::I64);
}

template <class... T>
constexpr void add_integers(Folders& all, Types<T...>) {
  (add_integer<T>(all), ...);
}

template <class... T>
constexpr void add_numbers(Folders& all, Types<T...>) {
  (add_number<T>(all), ...);
}

constexpr Folders make_folders() {
  Folders all{};
  add_integers(all, Integers{});
  add_numbers(all, Numbers{});
  constexpr int kBool = static_cast<int>(DType::Bool);
  constexpr int kF32 = static_cast<int>(DType::F32), kF64 = static_cast<int>(DType::F64);
  all.row[number(Fold::Any)][kBool] = all.row[number(Fold::Max)][kBool] =
      plain<AnyTrue>(DType::Bool);
  all.row[number(Fold::All)][kBool] = all.row[number(Fold::Min)][kBool] =
      plain<AllTrue>(DType::Bool);
  all.row[number(Fold::ArgMin)][kBool] = folder<Position<AllTrue, Bool>, uint8_t>(DType::I64);
  all.row[number(Fold::ArgMax)][kBool] = folder<Position<AnyTrue, Bool>, uint8_t>(DType::I64);
  all.row[number(Fold::Sum)][kF32] = folder<WideSum, double>(DType::F32);
  all.row[number(Fold::Prod)][kF32] = folder<WideProduct, double>(DType::F32);
  all.row[number(Fold::Sum)][kF64] = folder<CompensatedSum, double>(DType::F64);
  all.row[number(Fold::Prod)][kF64] = plain<Times<double>>(DType::F64);
  return all;
}

}  // namespace

extern constexpr Folders folders = make_folders();

}  // namespace zs::ZS_ISA
