// Elements of one dtype to another.
#pragma once

#include "forms.h"

namespace zs::ZS_ISA {

template <class From, class To>
void convert_row(const void* const* in, void* out, int64_t n);

template <class T>
void fill_row(const void* const* in, void* out, int64_t n);

using ConversionTable = Row[kDTypes];

template <class From, class... To>
constexpr void fill_conversions(Row* row, Types<To...>) {
  ((row[static_cast<int>(kDTypeOf<To>)] = convert_row<From, To>), ...);
}

struct Conversions {
  Row row[kDTypes][kDTypes];
};

template <class... T>
constexpr Conversions conversions(Types<T...> every) {
  Conversions table{};
  (fill_conversions<T>(table.row[static_cast<int>(kDTypeOf<T>)], every), ...);
  return table;
}

constexpr Conversions conversions() {
  return conversions(Types<Bool, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
                           uint64_t, Half, Brain, float, double>{});
}

}  // namespace zs::ZS_ISA
