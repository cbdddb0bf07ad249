// Choosing between operands.
#pragma once

#include "forms.h"

namespace zs::ZS_ISA {

// a where the condition is true, b elsewhere. Of bits: any dtype of that size.
struct Where {
  template <class T>
  static T of(Bool condition, T a, T b) {
    return truth(condition) ? a : b;
  }
};

// x, but at least `low` and then at most `high`; NaN if any of them is.
struct Clip {
  template <class T>
  static T of(T x, T low, T high) {
    const T raised = x < low ? low : x;
    const T limited = high < raised ? high : raised;
    if constexpr (kFloat<T>) {
      const T or_low = low != low ? low : limited;
      return high != high ? high : or_low;
    } else {
      return limited;
    }
  }
};

// `where` exists for any branches, `clip` for a row of x and any limits.
template <class T>
constexpr Kernel where_kernel() {
  using Bits = Unsigned<T>;
  return {"where",
          3,
          {DType::Bool, kDTypeOf<T>, kDTypeOf<T>},
          kDTypeOf<T>,
          {ternary_row<Where, 0, Bits, Bool, Bits, Bits>, nullptr,
           ternary_row<Where, 2, Bits, Bool, Bits, Bits>, nullptr,
           ternary_row<Where, 4, Bits, Bool, Bits, Bits>, nullptr,
           ternary_row<Where, 6, Bits, Bool, Bits, Bits>}};
}

template <class T>
constexpr Kernel clip_kernel() {
  return {"clip",
          3,
          {kDTypeOf<T>, kDTypeOf<T>, kDTypeOf<T>},
          kDTypeOf<T>,
          {ternary_row<Clip, 0, T, T, T, T>, nullptr, ternary_row<Clip, 2, T, T, T, T>, nullptr,
           ternary_row<Clip, 4, T, T, T, T>, nullptr, ternary_row<Clip, 6, T, T, T, T>}};
}

template <class... T>
constexpr auto where(Types<T...>) {
  return Rows<sizeof...(T)>{{where_kernel<T>()...}};
}

template <class... T>
constexpr auto clip(Types<T...>) {
  return Rows<sizeof...(T)>{{clip_kernel<T>()...}};
}

constexpr auto select() {
  // 16-bit floats are chosen as they lie: nothing is computed.
  return join(where(Everything{}), where(Types<Half, Brain>{}), clip(Numbers{}));
}

}  // namespace zs::ZS_ISA
