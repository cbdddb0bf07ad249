// Transposing a plane of elements by shuffles of the compiler's vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sizes.h"

namespace zs::ZS_ISA {
namespace {

template <int N>
struct Bytes {
  char byte[N];
};

// The edge of the squares that are transposed in registers: vectors of 16 bytes for the narrow
// elements, of 32 for the wide.
template <class T>
constexpr std::int64_t kEdge = sizeof(T) == 1   ? 16
                               : sizeof(T) == 8 ? 4
                                                : 8;

// The elements of a and b in turn: the first halves into `low`, the second into `high`.
template <class V>
void zip4(const V& a, const V& b, V& low, V& high) {
  low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}

template <class V>
void zip8(const V& a, const V& b, V& low, V& high) {
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

template <class V>
void zip16(const V& a, const V& b, V& low, V& high) {
  low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  high =
      __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// A square. Each round moves one bit of an element's row number to its lane number and one back.
template <class T>
void transpose_square(const char* from, std::int64_t from_pitch, char* to, std::int64_t to_pitch) {
  constexpr int kRows = static_cast<int>(kEdge<T>);
  typedef T Vector __attribute__((vector_size(sizeof(T) * kEdge<T>)));
  Vector a[kRows], b[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) __builtin_memcpy(&a[i], from + i * from_pitch, sizeof(Vector));
#pragma GCC unroll 4
  for (int round = 1; round < kRows; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows / 2; ++i) {
      if constexpr (kRows == 4) zip4(a[i], a[i + kRows / 2], b[2 * i], b[2 * i + 1]);
      if constexpr (kRows == 8) zip8(a[i], a[i + kRows / 2], b[2 * i], b[2 * i + 1]);
      if constexpr (kRows == 16) zip16(a[i], a[i + kRows / 2], b[2 * i], b[2 * i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) __builtin_memcpy(to + i * to_pitch, &a[i], sizeof(Vector));
}

// Prefetches the lines `bytes` behind a row, for the next block.
inline void prefetch_lines(const char* from, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + bytes + at);
}

// to[j][i] = from[i][j] for i < n, j < m, neither less than kEdge; pitches are the bytes from row
// to row. kAhead: the next block's rows go on where these end. (Measured: without, a third slower
// where pages are small.)
template <class T, bool kAhead>
void transpose(const char* from, std::int64_t from_pitch, char* to, std::int64_t to_pitch,
               std::int64_t n, std::int64_t m) {
  constexpr std::int64_t kSize = sizeof(T);
  // At an end a square reaches back over the one before.
  const std::int64_t last_i = n - kEdge<T>, last_j = m - kEdge<T>;
  for (std::int64_t i = 0;; i = i + kEdge<T> < last_i ? i + kEdge<T> : last_i) {
    if constexpr (kAhead) {
      for (int r = 0; r < kEdge<T>; ++r) prefetch_lines(from + (i + r) * from_pitch, m * kSize);
    }
    for (std::int64_t j = 0;; j = j + kEdge<T> < last_j ? j + kEdge<T> : last_j) {
      transpose_square<T>(from + i * from_pitch + j * kSize, from_pitch,
                          to + j * to_pitch + i * kSize, to_pitch);
      if (j == last_j) break;
    }
    if (i == last_i) break;
  }
}

}  // namespace
}  // namespace zs::ZS_ISA
