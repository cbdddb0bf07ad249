// Comparisons, logic and the arithmetic of truth values, which is logic.
#pragma once

#include "forms.h"

namespace zs::ZS_ISA {

// Numbers are compared as they are, truth values as 0 and 1.
template <class T>
inline T comparable(T x) {
  return x;
}
inline uint8_t comparable(Bool x) { return truth(x); }

struct Equal {
  template <class T>
  static Bool of(T a, T b) {
    return boolean(comparable(a) == comparable(b));
  }
};

struct NotEqual {
  template <class T>
  static Bool of(T a, T b) {
    return boolean(comparable(a) != comparable(b));
  }
};

struct Less {
  template <class T>
  static Bool of(T a, T b) {
    return boolean(comparable(a) < comparable(b));
  }
};

struct LessEqual {
  template <class T>
  static Bool of(T a, T b) {
    return boolean(comparable(a) <= comparable(b));
  }
};

struct Greater {
  template <class T>
  static Bool of(T a, T b) {
    return Less::of(b, a);
  }
};

struct GreaterEqual {
  template <class T>
  static Bool of(T a, T b) {
    return LessEqual::of(b, a);
  }
};

// Every value but 0 is true, NaN too.
template <class T>
inline bool truth(T x) {
  return x != T(0);
}

// Of truths as integers: the bits of two comparisons, and no jump for the second.
struct LogicalAnd {
  template <class T>
  static Bool of(T a, T b) {
    const bool first = truth(a), second = truth(b);
    return boolean(first & second);
  }
};

struct LogicalOr {
  template <class T>
  static Bool of(T a, T b) {
    const bool first = truth(a), second = truth(b);
    return boolean(first | second);
  }
};

struct LogicalXor {
  template <class T>
  static Bool of(T a, T b) {
    return boolean(truth(a) != truth(b));
  }
};

struct LogicalNot {
  template <class T>
  static Bool of(T x) {
    return boolean(!truth(x));
  }
};

// A truth value, as 0 or 1.
struct Truth {
  static Bool of(Bool x) { return boolean(truth(x)); }
};

constexpr auto comparison() {
  return join(relation<Equal>("equal", Everything{}), relation<NotEqual>("not_equal", Everything{}),
              relation<Less>("less", Everything{}), relation<LessEqual>("less_equal", Everything{}),
              relation<Greater>("greater", Everything{}),
              relation<GreaterEqual>("greater_equal", Everything{}));
}

constexpr auto logic() {
  using Truths = Types<Bool>;
  return join(
      relation<LogicalAnd>("logical_and", Everything{}),
      relation<LogicalOr>("logical_or", Everything{}),
      relation<LogicalXor>("logical_xor", Everything{}),
      predicate<LogicalNot>("logical_not", Everything{}), binary<LogicalOr>("add", Truths{}),
      binary<LogicalAnd>("multiply", Truths{}), binary<LogicalOr>("maximum", Truths{}),
      binary<LogicalAnd>("minimum", Truths{}), binary<LogicalOr>("fmax", Truths{}),
      binary<LogicalAnd>("fmin", Truths{}), binary<LogicalAnd>("bitwise_and", Truths{}),
      binary<LogicalOr>("bitwise_or", Truths{}), binary<LogicalXor>("bitwise_xor", Truths{}),
      unary<LogicalNot>("bitwise_invert", Truths{}), unary<Truth>("abs", Truths{}),
      unary<Truth>("relu", Truths{}), unary<Truth>("floor", Truths{}),
      unary<Truth>("ceil", Truths{}), unary<Truth>("trunc", Truths{}));
}

}  // namespace zs::ZS_ISA
