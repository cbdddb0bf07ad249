// The C++ types of the dtypes, and what kernels ask of them.
//
// The standard library's traits and functions are left out: what it defines inline, several
// instruction sets' objects would share (native/README.md).
#pragma once

#include <cstdint>

#include "dtype.h"

#ifndef ZS_ISA
#error "ZS_ISA, the namespace of this instruction set, is given by the build"
#endif

// The elements of a row do not depend on each other: an output is exactly an operand or apart from
// it.
#if defined(__clang__)
#define ZS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ZS_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace zs::ZS_ISA {

using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

// A byte that is true unless it is 0: C++'s own bool may hold nothing but 0 and 1.
enum class Bool : uint8_t {};
// 16-bit floats where they lie: the bits.
enum class Half : uint16_t {};
enum class Brain : uint16_t {};

inline bool truth(Bool x) { return static_cast<uint8_t>(x) != 0; }
inline Bool boolean(bool x) { return static_cast<Bool>(x); }

template <class... T>
struct Types {};

using SignedIntegers = Types<int8_t, int16_t, int32_t, int64_t>;
using Integers = Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
using Floats = Types<float, double>;
using Numbers =
    Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t, float, double>;
using Everything = Types<Bool, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
                         uint64_t, float, double>;

template <class T>
inline constexpr DType kDTypeOf = DType::Bool;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::I8;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::U8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::I16;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::U16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::I32;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::U32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::I64;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::U64;
template <>
inline constexpr DType kDTypeOf<Half> = DType::F16;
template <>
inline constexpr DType kDTypeOf<Brain> = DType::BF16;
template <>
inline constexpr DType kDTypeOf<float> = DType::F32;
template <>
inline constexpr DType kDTypeOf<double> = DType::F64;

template <class T, class U>
constexpr bool kSame = __is_same(T, U);
template <class T>
constexpr bool kFloat = kSame<T, float> || kSame<T, double>;
template <class T>
constexpr bool kSigned = T(-1) < T(0);
template <class T>
constexpr int kBits = 8 * static_cast<int>(sizeof(T));

template <int kBytes>
struct Sized;
template <>
struct Sized<1> {
  using Signed = int8_t;
  using Unsigned = uint8_t;
  using Wrapping = unsigned;
};
template <>
struct Sized<2> {
  using Signed = int16_t;
  using Unsigned = uint16_t;
  using Wrapping = unsigned;
};
template <>
struct Sized<4> {
  using Signed = int32_t;
  using Unsigned = uint32_t;
  using Wrapping = uint32_t;
};
template <>
struct Sized<8> {
  using Signed = int64_t;
  using Unsigned = uint64_t;
  using Wrapping = uint64_t;
};

template <class T>
using Signed = typename Sized<sizeof(T)>::Signed;
template <class T>
using Unsigned = typename Sized<sizeof(T)>::Unsigned;
// The type in which integers of type T wrap around. As wide as int at least:
// uint16_t times uint16_t would be an int, and overflow.
template <class T>
using Wrapping = typename Sized<sizeof(T)>::Wrapping;

template <class T>
constexpr T kLowest = kSigned<T> ? static_cast<T>(Unsigned<T>(1) << (kBits<T> - 1)) : T(0);
template <class T>
constexpr T kHighest = static_cast<T>(~kLowest<T>);

// The bits of a float and back.
inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
inline float float_of(uint32_t x) { return __builtin_bit_cast(float, x); }
inline double float_of(uint64_t x) { return __builtin_bit_cast(double, x); }

inline float magnitude(float x) { return __builtin_fabsf(x); }
inline double magnitude(double x) { return __builtin_fabs(x); }
inline float with_sign(float x, float sign) { return __builtin_copysignf(x, sign); }
inline double with_sign(double x, double sign) { return __builtin_copysign(x, sign); }

template <class T>
constexpr T kInfinity = static_cast<T>(__builtin_inff());
template <class T>
constexpr T kNan = static_cast<T>(__builtin_nanf(""));

}  // namespace zs::ZS_ISA
