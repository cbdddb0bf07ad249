// The dtypes that the engine computes natively. Everything else is the reference backend's.
#pragma once

#include <cstdint>

namespace zs {

enum class DType : std::uint8_t { Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64 };

constexpr int kDTypes = 13;

// Bytes of an element. A table and no function: objects of different instruction sets share nothing
// that a linker could take from the wrong one.
constexpr std::int64_t kSize[kDTypes] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
// The array API's names.
constexpr const char* kName[kDTypes] = {"bool",   "int8",   "uint8",   "int16",    "uint16",
                                        "int32",  "uint32", "int64",   "uint64",   "float16",
                                        "bfloat16", "float32", "float64"};

}  // namespace zs
