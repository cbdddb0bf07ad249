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

// Bytes of one such block as it lies in memory, and as it is computed with (none of its own where both
// are the same).
[[maybe_unused]] std::int64_t raw_bytes(const Nest& nest, int k) {
  return aligned(block_elements(nest, k) * nest.size[k] + kSlack);
}

[[maybe_unused]] std::int64_t ready_bytes(const Nest& nest, const Program& program, int k) {
  if (program.memory[k] == program.compute[k]) return 0;
  return aligned(block_elements(nest, k) * size_of(program.compute[k]));
}

// The block that an input's buffers have: where it begins (null: none), and its size.
struct Held {
  const char* from;
  std::int64_t chunk, rows;
};

// Bytes of all of operand k's buffers.
[[maybe_unused]] std::int64_t stage_bytes(const Nest& nest, const Program& program, int k) {
  if (!is_staged(nest, k)) return 0;
  const std::int64_t bytes = raw_bytes(nest, k) + ready_bytes(nest, program, k);
  const std::int64_t blocks = kept_of(nest, k, bytes).blocks;
  return blocks * bytes + aligned(blocks * static_cast<std::int64_t>(sizeof(Held)));
}

}  // namespace
}  // namespace zs
