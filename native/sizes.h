// Units of memory. Files that are compiled once and files that are compiled for each instruction set
// include this, so every function here is the including file's own.
#pragma once

#include "dtype.h"

namespace zs {

// Bytes of a cache line, which memory hands over at once; what scratch is aligned to.
constexpr std::int64_t kLine = 64;
// Bytes of the widest element.
constexpr std::int64_t kWidest = 8;

namespace {

constexpr std::int64_t size_of(DType dtype) { return kSize[static_cast<int>(dtype)]; }

// Bytes up to the next whole line.
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

constexpr std::int64_t magnitude(std::int64_t stride) { return stride < 0 ? -stride : stride; }

}  // namespace
}  // namespace zs
