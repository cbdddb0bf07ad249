// Activations. Their parameters are operands, in the order of the op table, and mostly one number.
#pragma once

#include "forms.h"
#include "vmath.h"

namespace zs::ZS_ISA {

// x times a share of it that falls to 0 on the left: there -inf times 0 is -0, the limit.
template <class T>
ZS_ALWAYS T share(T x, T factor) {
  const T product = x * factor;
  return x == -kInfinity<T> ? T(-0.0) : product;
}

// x sigmoid(y), in double: far to the left, where that is x e^y, an error of y's last place is one
// of many in the result.
template <class T>
ZS_ALWAYS T times_sigmoid(T x, double y) {
  const double wide = static_cast<double>(x), factor = math::sigmoid(y);
  // In place of an infinity times 0: the limit.
  const double product = wide * factor, limit = with_sign(0.0, wide);
  return static_cast<T>(factor == 0 ? limit : product);
}

template <class T>
ZS_ALWAYS T between_0_and_1(T x) {
  const T raised = x < 0 ? T(0) : x;
  return raised > 1 ? T(1) : raised;
}

struct Relu {
  template <class T>
  static ZS_ALWAYS T of(T x) {
    return x <= 0 ? T(0) : x;
  }
};

struct LeakyRelu {
  template <class T>
  static ZS_ALWAYS T of(T x, T alpha) {
    const T scaled = alpha * x;
    return x < 0 ? scaled : x;
  }
};

struct ThresholdedRelu {
  template <class T>
  static ZS_ALWAYS T of(T x, T alpha) {
    return x > alpha ? x : T(0);
  }
};

struct Elu {
  template <class T>
  static ZS_ALWAYS T of(T x, T alpha) {
    const T bent = alpha * math::expm1(x);
    return x <= 0 ? bent : x;
  }
};

struct Selu {
  template <class T>
  static ZS_ALWAYS T of(T x, T alpha, T gamma) {
    return gamma * Elu::of(x, alpha);
  }
};

struct Celu {
  template <class T>
  static ZS_ALWAYS T of(T x, T alpha) {
    const T bent = alpha * math::expm1(x / alpha);
    return x <= 0 ? bent : x;
  }
};

struct Gelu {
  template <class T>
  static ZS_ALWAYS T of(T x) {
    const T value = math::gelu(x);
    return x == -kInfinity<T> ? T(-0.0) : value;
  }
};

struct GeluTanh {
  template <class T>
  static ZS_ALWAYS T of(T x) {
    // (1 + tanh(y)) / 2 is sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3).
    constexpr double kTwice = 1.5957691216057307117597842397375;
    const double wide = x;
    return times_sigmoid(x, kTwice * (wide + 0.044715 * wide * wide * wide));
  }
};

struct Softplus {
  template <class T>
  static ZS_ALWAYS T of(T x) {
    return math::softplus(x);
  }
};

struct Softsign {
  template <class T>
  static ZS_ALWAYS T of(T x) {
    const T quotient = x / (T(1) + magnitude(x));
    return magnitude(x) == kInfinity<T> ? with_sign(T(1), x) : quotient;
  }
};

struct Mish {
  template <class T>
  static ZS_ALWAYS T of(T x) {
    const T value = math::mish(x);
    return x == -kInfinity<T> ? T(-0.0) : value;
  }
};

struct Swish {
  template <class T>
  static ZS_ALWAYS T of(T x, T alpha) {
    return times_sigmoid(x, static_cast<double>(alpha) * static_cast<double>(x));
  }
};

struct HardSigmoid {
  template <class T>
  static ZS_ALWAYS T of(T x, T alpha, T beta) {
    return between_0_and_1(alpha * x + beta);
  }
};

struct HardSwish {
  template <class T>
  static ZS_ALWAYS T of(T x) {
    return share(x, between_0_and_1(x / T(6) + T(0.5)));
  }
};

struct Shrink {
  template <class T>
  static ZS_ALWAYS T of(T x, T bias, T lambd) {
    const T lower = x > lambd ? x - bias : T(0);
    return x < -lambd ? x + bias : lower;
  }
};

constexpr auto activations() {
  return join(unary<Relu>("relu", Numbers{}), binary<LeakyRelu>("leaky_relu", Floats{}),
              binary<ThresholdedRelu>("thresholded_relu", Floats{}), binary<Elu>("elu", Floats{}),
              ternary<Selu>("selu", Floats{}), binary<Celu>("celu", Floats{}),
              unary<Gelu>("gelu", Floats{}), unary<GeluTanh>("gelu_tanh", Floats{}),
              unary<Softplus>("softplus", Floats{}), unary<Softsign>("softsign", Floats{}),
              unary<Mish>("mish", Floats{}), binary<Swish>("swish", Floats{}),
              ternary<HardSigmoid>("hard_sigmoid", Floats{}),
              unary<HardSwish>("hard_swish", Floats{}), ternary<Shrink>("shrink", Floats{}));
}

}  // namespace zs::ZS_ISA
