// Powers of integers: by squaring, wrapping around.
#pragma once

#include "forms.h"

namespace zs::ZS_ISA {

// The exponent is read as unsigned. A round of squaring for each bit of the block's largest.
template <class T>
inline void power_block(const T* base, const Unsigned<T>* exponent, T* out) {
  using U = Unsigned<T>;
  using W = Wrapping<T>;
  U power[kBlock], result[kBlock], rest[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    power[i] = static_cast<U>(base[i]);
    rest[i] = exponent[i];
    result[i] = 1;
  }
  for (U any = 1; any != 0;) {
    any = 0;
    for (int i = 0; i < kBlock; ++i) {
      const U taken = (rest[i] & 1) != 0 ? power[i] : U(1);
      result[i] = static_cast<U>(W(result[i]) * W(taken));
      power[i] = static_cast<U>(W(power[i]) * W(power[i]));
      rest[i] = static_cast<U>(rest[i] >> 1);
      any = static_cast<U>(any | rest[i]);
    }
  }
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<T>(result[i]);
}

// Of one exponent, bit by bit from its highest.
template <class T>
inline void power_block(const T* base, Unsigned<T> exponent, T* out) {
  using U = Unsigned<T>;
  using W = Wrapping<T>;
  U result[kBlock];
  for (int i = 0; i < kBlock; ++i) result[i] = static_cast<U>(exponent == 0 ? T(1) : base[i]);
  const int highest = exponent == 0 ? 0 : 63 - __builtin_clzll(exponent);
  for (int bit = highest - 1; bit >= 0; --bit) {
    for (int i = 0; i < kBlock; ++i) result[i] = static_cast<U>(W(result[i]) * W(result[i]));
    if ((exponent >> bit & 1) == 0) continue;
    for (int i = 0; i < kBlock; ++i) {
      result[i] = static_cast<U>(W(result[i]) * W(static_cast<U>(base[i])));
    }
  }
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<T>(result[i]);
}

// Callers refuse negative exponents before, as NumPy does.
struct IntegerPower {
  template <class T>
  static auto block_by(T y) {
    return [=](const T* x, T* out) { power_block(x, static_cast<Unsigned<T>>(y), out); };
  }
  template <class T>
  static void block(const T* x, const T* y, T* out) {
    Unsigned<T> exponent[kBlock];
    for (int i = 0; i < kBlock; ++i) exponent[i] = static_cast<Unsigned<T>>(y[i]);
    power_block(x, exponent, out);
  }
};

// A negative power is 0, unless the base is 1 or -1.
struct PowerOrZero {
  template <class T>
  static void block(const T* x, const T* y, T* out) {
    Unsigned<T> exponent[kBlock];
    T power[kBlock];
    // Of a negative exponent its last bit is left, by which -1 is 1 or -1.
    for (int i = 0; i < kBlock; ++i) {
      exponent[i] = static_cast<Unsigned<T>>(y[i] < 0 ? static_cast<T>(y[i] & 1) : y[i]);
    }
    power_block(x, exponent, power);
    ZS_INDEPENDENT
    for (int i = 0; i < kBlock; ++i) {
      const bool unit = (x[i] == 1) | (kSigned<T> & (x[i] == static_cast<T>(-1)));
      out[i] = ((y[i] < 0) & !unit) ? T(0) : power[i];
    }
  }
};

// The exponent's low six bits, whatever its sign.
struct PowerOfSixBits {
  template <class T>
  static void block(const T* x, const T* y, T* out) {
    Unsigned<T> exponent[kBlock];
    for (int i = 0; i < kBlock; ++i) exponent[i] = static_cast<Unsigned<T>>(y[i] & 63);
    power_block(x, exponent, out);
  }
};

constexpr auto power() {
  return join(binary<IntegerPower>("pow", Integers{}),
              binary<PowerOrZero>("integer_pow", Integers{}),
              binary<PowerOfSixBits>("pow_six_bits", Integers{}));
}

}  // namespace zs::ZS_ISA
