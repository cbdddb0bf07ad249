// Sums and products of floats are exact to more than the digits of their dtype. float32: a few
// additions in the lanes of vectors, then float64. float64: a few likewise, then sums with their
// errors kept beside them. Lanes are a line of 64 bytes whatever the vectors are, so that every
// instruction set adds in the same order and gives the same bits.
//
// Compiled per instruction set, like all that includes it: every function here is the including
// file's own.
#pragma once

#include "fold_lines.h"
#include "forms.h"

namespace zs::ZS_ISA {
namespace {

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

// float64: a sum, and the sum of its rounding errors.
struct CompensatedSum {
  static void begin(void* a, void* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<double*>(a)[i] = 0;
      static_cast<double*>(b)[i] = 0;
    }
  }

  // Adds x to the sum a, and the rounding error to b.
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
      rest = fold_line<Plus<double>>(line);
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

  // For an infinity or NaN the error is meaningless: it is a difference of infinities.
  static void finish(const void* a, const void* b, void* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const double sum = static_cast<const double*>(a)[i], lost = static_cast<const double*>(b)[i];
      const bool finite = magnitude(sum) < kInfinity<double> && magnitude(lost) < kInfinity<double>;
      static_cast<double*>(out)[i] = finite ? sum + lost : sum;
    }
  }
};

}  // namespace
}  // namespace zs::ZS_ISA
