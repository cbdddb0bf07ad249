// The kernels' oracle: one element at a time, by the plainest code that says the same.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels.h"

namespace zs::oracle {

// The most that an approximate function may be wrong, in units of the last place.
constexpr double kMostUlp = 4.0;

// 16-bit floats: the bits, read and rounded here by arithmetic on doubles.
struct Half {
  static constexpr int kDigits = 11, kLowestExponent = -14, kHighestExponent = 15;
  std::uint16_t bits;
};
struct Brain {
  static constexpr int kDigits = 8, kLowestExponent = -126, kHighestExponent = 127;
  std::uint16_t bits;
};

template <class T>
constexpr bool kSmall = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;
template <class T>
constexpr bool kFloat = std::is_floating_point_v<T>;
template <class T>
constexpr bool kInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Calls f with a null T* for the dtype's type.
template <class F>
auto visit(DType dtype, F f) {
  switch (dtype) {
    case DType::Bool: return f(static_cast<bool*>(nullptr));
    case DType::I8: return f(static_cast<std::int8_t*>(nullptr));
    case DType::U8: return f(static_cast<std::uint8_t*>(nullptr));
    case DType::I16: return f(static_cast<std::int16_t*>(nullptr));
    case DType::U16: return f(static_cast<std::uint16_t*>(nullptr));
    case DType::I32: return f(static_cast<std::int32_t*>(nullptr));
    case DType::U32: return f(static_cast<std::uint32_t*>(nullptr));
    case DType::I64: return f(static_cast<std::int64_t*>(nullptr));
    case DType::U64: return f(static_cast<std::uint64_t*>(nullptr));
    case DType::F16: return f(static_cast<Half*>(nullptr));
    case DType::BF16: return f(static_cast<Brain*>(nullptr));
    case DType::F32: return f(static_cast<float*>(nullptr));
    case DType::F64: break;
  }
  return f(static_cast<double*>(nullptr));
}

template <class T>
T load(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// --- 16-bit floats -------------------------------------------------------------------------------

template <class T>
double value_of(T x) {
  const int fraction_bits = T::kDigits - 1;
  const int exponent_bits = 15 - fraction_bits;
  const int fraction = x.bits & ((1 << fraction_bits) - 1);
  const int field = (x.bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  double size = std::ldexp(fraction, T::kLowestExponent - fraction_bits);
  if (field == (1 << exponent_bits) - 1) {
    size = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (field > 0) {
    size = std::ldexp(fraction + (1 << fraction_bits), T::kLowestExponent + field - 1 - fraction_bits);
  }
  return x.bits & 0x8000 ? -size : size;
}

// The value of T nearest to x, of two the even one.
template <class T>
double rounded(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = std::ilogb(x);
  if (exponent < T::kLowestExponent) exponent = T::kLowestExponent;
  const double last_place = std::ldexp(1.0, exponent - (T::kDigits - 1));
  const double result = std::nearbyint(x / last_place) * last_place;
  const bool fits = std::fabs(result) < std::ldexp(1.0, T::kHighestExponent + 1);
  return fits ? result : std::copysign(std::numeric_limits<double>::infinity(), x);
}

// --- Operands ------------------------------------------------------------------------------------

// A sequence of 64-bit numbers that is the same everywhere (splitmix64).
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};

template <class T>
std::vector<T> specials() {
  if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else if constexpr (kSmall<T>) {
    constexpr std::uint16_t kInfinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
    return {{0},         {0x8000}, {1},    {0x8001}, {kInfinity}, {kInfinity | 0x8000}, {0x7fff},
            {kInfinity - 1}, {0x3c00}, {0x3f80}, {0x0400}, {0x03ff}, {0xfbff},     {0x4049}};
  } else if constexpr (kFloat<T>) {
    using Limits = std::numeric_limits<T>;
    return {T(0),           -T(0),          T(1),          -T(1),          T(0.5),
            T(-2.5),        T(3),           Limits::max(), -Limits::max(), Limits::infinity(),
            -Limits::infinity(), Limits::quiet_NaN(), Limits::min(), Limits::denorm_min(), T(2147483648.0),
            T(-2147483648.0), T(9223372036854775808.0), T(1e-5), T(88.7), T(-103.9), T(1e10),
            T(65519.996), T(65520), T(-128.5), T(255.5)};
  } else {
    using Limits = std::numeric_limits<T>;
    return {T(0), T(1), T(2), T(3), T(-1), T(-2), T(7), Limits::min(), Limits::max(), T(Limits::min() + 1),
            T(Limits::max() - 1), T(8 * sizeof(T)), T(8 * sizeof(T) - 1), T(100)};
  }
}

// Every pair of special values first, then numbers of a few units' size and any bits at all by turns.
template <class T>
void fill(unsigned char* at, int position, std::int64_t n) {
  const std::vector<T> special = specials<T>();
  const auto count = static_cast<std::int64_t>(special.size());
  Random random{static_cast<std::uint64_t>(position) * 1000 + sizeof(T)};
  for (std::int64_t k = 0; k < n; ++k, at += sizeof(T)) {
    const std::uint64_t bits = random.next();
    T value;
    if constexpr (std::is_same_v<T, bool>) {
      value = bits & 1;
    } else if (k < count * count || k % 11 == 10) {
      const std::int64_t at_special[3] = {k, k / count, k + k / count};
      value = special[static_cast<std::size_t>(at_special[position] % count)];
    } else if (k % 2 == 0) {
      std::memcpy(&value, &bits, sizeof(T));
    } else if constexpr (kFloat<T>) {
      value = static_cast<T>(static_cast<double>(bits % 2000001) * 1e-5 - 10.0);
    } else if constexpr (kSmall<T>) {
      value = {static_cast<std::uint16_t>(bits)};
    } else {
      value = static_cast<T>(bits % 41 - 20);
    }
    std::memcpy(at, &value, sizeof(T));
  }
}

inline std::vector<unsigned char> operand(DType dtype, int position, std::int64_t n) {
  std::vector<unsigned char> row(static_cast<std::size_t>(kSize[static_cast<int>(dtype)] * n));
  visit(dtype, [&](auto* type) {
    fill<std::remove_pointer_t<decltype(type)>>(row.data(), position, n);
  });
  return row;
}

// --- Results -------------------------------------------------------------------------------------

// The same, with one NaN for all: processors differ in the sign and payload of theirs.
inline std::vector<unsigned char> canonical(DType dtype, std::vector<unsigned char> row) {
  visit(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (kFloat<T> || kSmall<T>) {
      for (std::size_t at = 0; at < row.size(); at += sizeof(T)) {
        T x = load<T>(row.data() + at);
        if constexpr (kFloat<T>) {
          if (std::isnan(x)) x = std::numeric_limits<T>::quiet_NaN();
        } else {
          if (std::isnan(value_of(x))) x.bits = 0x7fff;
        }
        std::memcpy(row.data() + at, &x, sizeof(T));
      }
    }
  });
  return row;
}

inline bool same(DType dtype, const unsigned char* a, const unsigned char* b, std::size_t bytes) {
  if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return true;
  return canonical(dtype, {a, a + bytes}) == canonical(dtype, {b, b + bytes});
}

// Whether the op is known. If its result is not what it should be, `wrong` says so.
bool check(const Kernel& kernel, const void* const* in, const void* out, std::string& wrong);

}  // namespace zs::oracle
