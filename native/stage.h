// Buffers that operands pass through. Included where scratch is measured and where it is used, so
// every function here is the including file's own.
#pragma once

#include "run.h"
#include "sizes.h"

namespace zs {
namespace {

// Bytes that a gather may write behind the end of its buffer (copies of whole vectors).
constexpr std::int64_t kSlack = 64;

// Whether operand k passes through buffers: one as it lies in memory, one as it is computed with.
[[maybe_unused]] bool is_staged(const Nest& nest, int k) {
  return nest.access[k] == Access::Tile || !nest.usable[k];
}

// Elements of operand k in a block.
[[maybe_unused]] std::int64_t block_elements(const Nest& nest, int k) {
  return nest.rows * (nest.access[k] == Access::Splat ? 1 : nest.below * nest.chunk);
}

[[maybe_unused]] std::int64_t raw_bytes(const Nest& nest, int k) {
  return aligned(block_elements(nest, k) * nest.size[k] + kSlack);
}

[[maybe_unused]] std::int64_t ready_bytes(const Nest& nest, const Program& program, int k) {
  return aligned(block_elements(nest, k) * size_of(program.compute[k]));
}

}  // namespace
}  // namespace zs
