#include "fold.h"

#include "fold_plain.h"
#include "fold_positions.h"
#include "fold_sums.h"

namespace zs::ZS_ISA {
namespace {

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
