// The forms of a kernel, and the making of a table's rows out of functors.
//
// A functor has one of these:
//   of(x...)                    one element
//   row(in, out, n)             a whole row (one operand)
//   row<kOnes>(x, y, out, n)    ... of two operands; those in kOnes are one element
//   block(x, y, out)            kBlock elements of two operands; `out` may be one of these
// and where a second operand that is one element can be prepared once for the row
//   by(y)                       a function like of(x)
//   block_by(y)                 a function like block(x, out)
//
// This file only declares the functions; rows.h defines them. The .cpp file of each kernel family
// includes rows.h and so compiles that family. table.cpp needs only the addresses.
#pragma once

#include "kernels.h"
#include "types.h"

#if defined(__clang__)
// It warns of each loop that it was asked to vectorise and could not: some sets lack what some
// need.
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

namespace zs::ZS_ISA {

constexpr int kBlock = 64;

// kOnes: bit k says that operand k is one element.
template <class F, class Out, class A>
void unary_row(const void* const* in, void* out, int64_t n);
template <class F, unsigned kOnes, class Out, class A, class B>
void binary_row(const void* const* in, void* out, int64_t n);
template <class F, unsigned kOnes, class Out, class A, class B>
void binary_rows(const void* const* in, void* out, int64_t n, int64_t rows, const int64_t* step);
template <class F, unsigned kOnes, class Out, class A, class B, class C>
void ternary_row(const void* const* in, void* out, int64_t n);

template <int kRows>
struct Rows {
  static constexpr int kCount = kRows;
  Kernel row[kRows];
};

template <class... R>
constexpr auto join(const R&... parts) {
  Rows<(R::kCount + ...)> all{};
  int next = 0;
  const auto append = [&](const auto& part) {
    for (const Kernel& kernel : part.row) all.row[next++] = kernel;
  };
  (append(parts), ...);
  return all;
}

// One op: its name, its functor, its dtypes. Operands and result are of one dtype...
template <class F, class... T>
constexpr auto unary(const char* op, Types<T...>) {
  return Rows<sizeof...(T)>{{{op, 1, {kDTypeOf<T>}, kDTypeOf<T>, {unary_row<F, T, T>}}...}};
}

template <class F, class Out, class T>
constexpr Kernel binary_kernel(const char* op) {
  return {op,
          2,
          {kDTypeOf<T>, kDTypeOf<T>},
          kDTypeOf<Out>,
          {binary_row<F, 0, Out, T, T>, binary_row<F, 1, Out, T, T>, binary_row<F, 2, Out, T, T>}};
}

template <class F, class... T>
constexpr auto binary(const char* op, Types<T...>) {
  return Rows<sizeof...(T)>{{binary_kernel<F, T, T>(op)...}};
}

// The same, with many rows in a call.
template <class F, class T>
constexpr Kernel cheap_kernel(const char* op) {
  Kernel kernel = binary_kernel<F, T, T>(op);
  kernel.many[0] = binary_rows<F, 0, T, T, T>;
  kernel.many[1] = binary_rows<F, 1, T, T, T>;
  kernel.many[2] = binary_rows<F, 2, T, T, T>;
  return kernel;
}

template <class F, class... T>
constexpr auto cheap(const char* op, Types<T...>) {
  return Rows<sizeof...(T)>{{cheap_kernel<F, T>(op)...}};
}

// Of three operands the first is a row, mostly, and the others are rows or one element.
template <class F, class T>
constexpr Kernel ternary_kernel(const char* op) {
  constexpr DType kType = kDTypeOf<T>;
  return {op,
          3,
          {kType, kType, kType},
          kType,
          {ternary_row<F, 0, T, T, T, T>, nullptr, ternary_row<F, 2, T, T, T, T>, nullptr,
           ternary_row<F, 4, T, T, T, T>, nullptr, ternary_row<F, 6, T, T, T, T>}};
}

template <class F, class... T>
constexpr auto ternary(const char* op, Types<T...>) {
  return Rows<sizeof...(T)>{{ternary_kernel<F, T>(op)...}};
}

// ... or the result is Bool.
template <class F, class... T>
constexpr auto predicate(const char* op, Types<T...>) {
  return Rows<sizeof...(T)>{{{op, 1, {kDTypeOf<T>}, DType::Bool, {unary_row<F, Bool, T>}}...}};
}

template <class F, class... T>
constexpr auto relation(const char* op, Types<T...>) {
  return Rows<sizeof...(T)>{{binary_kernel<F, Bool, T>(op)...}};
}

}  // namespace zs::ZS_ISA
