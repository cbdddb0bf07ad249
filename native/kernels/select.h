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

struct ClipTruth {
  static Bool of(Bool x, Bool low, Bool high) {
    const bool raised = truth(low) ? true : truth(x), limit = truth(high);
    return boolean(raised & limit);
  }
};

// A condition that is one element would be a copy: callers widen it.
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

template <class... T>
constexpr auto where(Types<T...>) {
  return Rows<sizeof...(T)>{{where_kernel<T>()...}};
}

constexpr auto select() {
  // 16-bit floats are chosen as they lie: nothing is computed.
  return join(where(Everything{}), where(Types<Half, Brain>{}), ternary<Clip>("clip", Numbers{}),
              ternary<ClipTruth>("clip", Types<Bool>{}));
}

}  // namespace zs::ZS_ISA
