// The loops over a row.
#pragma once

#include "forms.h"

namespace zs::ZS_ISA {

// Element i of an operand, or its only one.
template <bool kOne, class T>
inline T element(const T* row, T one, int64_t i) {
  if constexpr (kOne) {
    return one;
  } else {
    return row[i];
  }
}

template <bool kOne, class T>
inline T the_one(const T* row) {
  if constexpr (kOne) {
    return *row;
  } else {
    return T();
  }
}

template <class T>
inline const T* operand(const void* row) {
  return static_cast<const T*>(row);
}

template <class F, class Out, class A>
void unary_row(const void* const* in, void* out, int64_t n) {
  const A* a = operand<A>(in[0]);
  Out* result = static_cast<Out*>(out);
  if constexpr (requires { F::row(a, result, n); }) {
    F::row(a, result, n);
  } else {
    ZS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) result[i] = F::of(a[i]);
  }
}

// The rest of an operand at the end of a row, as a block. The last element is repeated, which computes
// nothing that the row itself does not compute.
template <class T>
inline void load_block(const T* row, int64_t left, T* block) {
  for (int64_t i = 0; i < kBlock; ++i) block[i] = row[i < left ? i : left - 1];
}

template <class F, unsigned kOnes, class Out, class A, class B>
inline void by_blocks(const A* a, const B* b, Out* result, int64_t n) {
  A x[kBlock];
  B y[kBlock];
  Out z[kBlock];
  if constexpr (kOnes & 1) load_block(a, 1, x);
  if constexpr (kOnes & 2) load_block(b, 1, y);
  const int64_t whole = n - n % kBlock;
  for (int64_t at = 0; at < whole; at += kBlock) {
    F::block((kOnes & 1) ? x : a + at, (kOnes & 2) ? y : b + at, result + at);
  }
  if (whole == n) return;
  if constexpr (!(kOnes & 1)) load_block(a + whole, n - whole, x);
  if constexpr (!(kOnes & 2)) load_block(b + whole, n - whole, y);
  F::block(x, y, z);
  for (int64_t i = whole; i < n; ++i) result[i] = z[i - whole];
}

template <class Out, class A, class Function>
inline void each_block(const Function& function, const A* a, Out* result, int64_t n) {
  A x[kBlock];
  Out z[kBlock];
  const int64_t whole = n - n % kBlock;
  for (int64_t at = 0; at < whole; at += kBlock) function(a + at, result + at);
  if (whole == n) return;
  load_block(a + whole, n - whole, x);
  function(x, z);
  for (int64_t i = whole; i < n; ++i) result[i] = z[i - whole];
}

template <class F, unsigned kOnes, class Out, class A, class B>
[[gnu::always_inline]] inline void compute(const A* a, const B* b, Out* result, int64_t n) {
  if constexpr (requires { F::template row<kOnes>(a, b, result, n); }) {
    F::template row<kOnes>(a, b, result, n);
  } else if constexpr (kOnes == 2 && requires { F::by(*b); }) {
    const auto apply = F::by(*b);
    ZS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) result[i] = apply(a[i]);
  } else if constexpr (kOnes == 2 && requires { F::block_by(*b); }) {
    each_block(F::block_by(*b), a, result, n);
  } else if constexpr (requires { F::block(a, b, result); }) {
    by_blocks<F, kOnes>(a, b, result, n);
  } else {
    const A x = the_one<(kOnes & 1) != 0>(a);
    const B y = the_one<(kOnes & 2) != 0>(b);
    ZS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      result[i] = F::of(element<(kOnes & 1) != 0>(a, x, i), element<(kOnes & 2) != 0>(b, y, i));
    }
  }
}

template <class F, unsigned kOnes, class Out, class A, class B>
void binary_row(const void* const* in, void* out, int64_t n) {
  compute<F, kOnes>(operand<A>(in[0]), operand<B>(in[1]), static_cast<Out*>(out), n);
}

template <class F, unsigned kOnes, class Out, class A, class B>
void binary_rows(const void* const* in, void* out, int64_t n, int64_t rows, const int64_t* step) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(Out));
  const char* a = operand<char>(in[0]);
  const char* b = operand<char>(in[1]);
  char* result = static_cast<char*>(out);
  const auto each = [&](int64_t length) __attribute__((always_inline)) {
    for (int64_t r = 0; r < rows; ++r, a += step[0], b += step[1], result += step[2]) {
      compute<F, kOnes>(operand<A>(a), operand<B>(b), reinterpret_cast<Out*>(result), length);
    }
  };
  // Whole lines leave nothing at the end of a row. (Said by a mask, which compilers see through; the number of
  // one line would have g++ write out a line's elements one by one.)
  if (n % kLine == 0) {
    each(n & -kLine);
  } else {
    each(n);
  }
}

template <class F, unsigned kOnes, class Out, class A, class B, class C>
void ternary_row(const void* const* in, void* out, int64_t n) {
  const A* a = operand<A>(in[0]);
  const B* b = operand<B>(in[1]);
  const C* c = operand<C>(in[2]);
  Out* result = static_cast<Out*>(out);
  const A x = the_one<(kOnes & 1) != 0>(a);
  const B y = the_one<(kOnes & 2) != 0>(b);
  const C z = the_one<(kOnes & 4) != 0>(c);
  ZS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    result[i] = F::of(element<(kOnes & 1) != 0>(a, x, i), element<(kOnes & 2) != 0>(b, y, i),
                      element<(kOnes & 4) != 0>(c, z, i));
  }
}

}  // namespace zs::ZS_ISA
