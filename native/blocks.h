// The position of a run in a nest's loops over blocks, and the buffers that operands pass through.
//
// Compiled per instruction set, like all that includes it: every function here is the including
// file's own.
#pragma once

#include "gather.h"
#include "run.h"
#include "stage.h"

namespace zs::ZS_ISA {

extern const Isa table;

namespace {

void* ahead(void* at, std::int64_t bytes) { return static_cast<char*>(at) + bytes; }

// The position of a run in the nest's loops.
struct Walk {
  void* at[kMaxOperands];  // each operand's first element of the block
  std::int64_t index[kMaxAxes];
  std::int64_t chunk, rows;  // of this block: less at the end of an axis
};

// An operand that passes through buffers.
struct Stage {
  int operand;
  bool moved;      // gathered or scattered: by way of `raw`
  bool converted;  // by way of `ready`
  Row convert;
  std::int64_t size;  // bytes of an element of `ready`
  char* raw;          // a block of elements as they lie in memory
  char* ready;        // as they are computed with (an output: one row)
  Kept kept;
  Held* held;          // what an input's buffers have: one for each kept block
  char* first;         // the first one's `raw`
  std::int64_t pitch;  // bytes from one to the next
  Box box;
  std::int64_t chunk, rows;  // what the box was made for
};

// The rest of loop l's axis for this block.
void measure(Walk& walk, const Nest& nest, int l) {
  const int axis = nest.loop_axis[l];
  if (axis != nest.inner && axis != nest.across) return;
  const std::int64_t step = nest.loop_step[l];
  const std::int64_t left = nest.axis[axis].extent - walk.index[l] * step;
  (axis == nest.inner ? walk.chunk : walk.rows) = left < step ? left : step;
}

void start(Walk& walk, const Nest& nest, char* const* data, std::int64_t block) {
  walk.chunk = nest.chunk;
  walk.rows = nest.rows;
  for (int k = 0; k < nest.operands; ++k) walk.at[k] = data[k] + nest.offset[k];
  for (int l = 0; l < nest.loops; ++l) {
    // Divisions are slow, and small nests begin at their beginning.
    walk.index[l] = block ? block % nest.loop_count[l] : 0;
    block = block ? block / nest.loop_count[l] : 0;
    const std::int64_t steps = walk.index[l] * nest.loop_step[l];
    const Axis& axis = nest.axis[nest.loop_axis[l]];
    for (int k = 0; k < nest.operands; ++k) walk.at[k] = ahead(walk.at[k], axis.stride[k] * steps);
    measure(walk, nest, l);
  }
}

// Goes `blocks` on along loop l, not beyond its end by more than one. Loops within it are at their beginning.
void advance(Walk& walk, const Nest& nest, std::int64_t blocks, int l = 0) {
  for (; l < nest.loops; ++l, blocks = 1) {
    const Axis& axis = nest.axis[nest.loop_axis[l]];
    std::int64_t steps = blocks * nest.loop_step[l];
    walk.index[l] += blocks;
    const bool done = walk.index[l] < nest.loop_count[l];
    if (!done) {
      steps -= walk.index[l] * nest.loop_step[l];
      walk.index[l] = 0;
    }
    for (int k = 0; k < nest.operands; ++k) walk.at[k] = ahead(walk.at[k], axis.stride[k] * steps);
    measure(walk, nest, l);
    if (done) return;
  }
}

// Blocks from this one on, itself included, that are as long and lie a step of the innermost loop
// apart.
[[maybe_unused]] std::int64_t alike(const Walk& walk, const Nest& nest) {
  if (nest.loops == 0) return 1;
  const std::int64_t left = nest.loop_count[0] - walk.index[0];
  // The last along the chunked axis may be shorter.
  return nest.loop_axis[0] == nest.inner && left > 1 ? left - 1 : left;
}

// Prefetches the elements of the next piece while this one reads n elements at `at` (nest.h).
void ask_ahead(const Nest& nest, void* const* at, std::int64_t n) {
  for (int i = 0; i < nest.asked; ++i) {
    const int k = nest.asked_operand[i];
    const char* const next = static_cast<const char*>(at[k]) + nest.asked_bytes[i];
    const std::int64_t bytes = n * nest.size[k];
    // Into the second cache: the first one has this piece.
    for (std::int64_t b = 0; b < bytes; b += kLine) __builtin_prefetch(next + b, 0, 2);
  }
}

// Whether each element of operand k lies where its dtype may be loaded from.
bool is_aligned(const Nest& nest, int k, const char* data) {
  auto bits = reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(nest.offset[k]);
  for (int i = 0; i < nest.axes; ++i) bits |= static_cast<std::uintptr_t>(nest.axis[i].stride[k]);
  return (bits & static_cast<std::uintptr_t>(nest.size[k] - 1)) == 0;
}

// The stages of operands from..to-1; takes their buffers from `scratch`.
int make_stages(Stage* stages, const Nest& nest, const Program& program, char* const* data,
                int from, int to, char*& scratch) {
  int count = 0;
  for (int k = from; k < to; ++k) {
    if (!is_staged(nest, k)) continue;
    Stage& stage = stages[count++];
    const int memory = static_cast<int>(program.memory[k]);
    const int compute = static_cast<int>(program.compute[k]);
    stage.operand = k;
    stage.converted = memory != compute;
    stage.convert =
        k < nest.inputs ? table.convert[memory][compute] : table.convert[compute][memory];
    stage.size = kSize[compute];
    stage.moved =
        !stage.converted || nest.access[k] != Access::Direct || !is_aligned(nest, k, data[k]);
    const std::int64_t raw = raw_bytes(nest, k), ready = ready_bytes(nest, program, k);
    stage.kept = kept_of(nest, k, raw + ready);
    stage.pitch = raw + ready;
    stage.first = stage.raw = scratch;
    stage.ready = stage.raw + (stage.converted ? raw : 0);
    scratch += stage.kept.blocks * stage.pitch;
    stage.held = reinterpret_cast<Held*>(scratch);
    scratch += aligned(stage.kept.blocks * static_cast<std::int64_t>(sizeof(Held)));
    for (std::int64_t i = 0; i < stage.kept.blocks; ++i) stage.held[i].from = nullptr;
    stage.chunk = stage.rows = 0;
  }
  return count;
}

// Elements of operand k in a row of this block.
std::int64_t row_elements(const Nest& nest, const Walk& walk, int k) {
  return nest.access[k] == Access::Splat ? 1 : nest.below * walk.chunk;
}

// Bytes of operand k from row to row, in memory.
std::int64_t row_stride(const Nest& nest, int k) {
  return nest.across < 0 ? 0 : nest.axis[nest.across].stride[k];
}

// Makes the box anew where this block has another size than the last.
void fit(Stage& stage, const Nest& nest, const Walk& walk) {
  if (stage.chunk == walk.chunk && stage.rows == walk.rows) return;
  stage.chunk = walk.chunk;
  stage.rows = walk.rows;
  if (stage.moved) make_box(stage.box, nest, stage.operand, walk.chunk, walk.rows);
}

// Selects the buffers that keep this block. Returns their contents.
Held& find(Stage& stage, const Nest& nest, const Walk& walk) {
  std::int64_t number = 0, pitch = 1;
  for (int l = 0; l < stage.kept.loops; ++l) {
    if (nest.axis[nest.loop_axis[l]].stride[stage.operand] == 0) continue;
    number += walk.index[l] * pitch;
    pitch *= nest.loop_count[l];
  }
  const std::int64_t converted = stage.ready - stage.raw;
  stage.raw = stage.first + number * stage.pitch;
  stage.ready = stage.raw + converted;
  return stage.held[number];
}

// Fills an input's buffers, unless they have this block.
void take(Stage& stage, const Nest& nest, const Walk& walk) {
  const char* from = static_cast<const char*>(walk.at[stage.operand]);
  Held& held = find(stage, nest, walk);
  if (held.from == from && held.chunk == walk.chunk && held.rows == walk.rows) return;
  held = {from, walk.chunk, walk.rows};
  fit(stage, nest, walk);
  const std::int64_t n = row_elements(nest, walk, stage.operand);
  if (stage.moved) {
    gather(stage.box, from, stage.raw);
    const void* raw = stage.raw;
    if (stage.converted) stage.convert(&raw, stage.ready, n * walk.rows);
    return;
  }
  const std::int64_t stride = row_stride(nest, stage.operand);
  for (std::int64_t r = 0; r < walk.rows; ++r) {
    const void* row = from + r * stride;
    stage.convert(&row, stage.ready + r * n * stage.size, n);
  }
}

// Takes row r of an output from where the body left it.
void finish_row(const Stage& stage, const Nest& nest, const Walk& walk, std::int64_t r) {
  if (!stage.converted) return;
  const int k = stage.operand;
  const std::int64_t n = row_elements(nest, walk, k);
  const void* row = stage.ready;
  void* to = stage.moved ? ahead(stage.raw, r * n * nest.size[k])
                         : ahead(walk.at[k], r * row_stride(nest, k));
  stage.convert(&row, to, n);
}

}  // namespace
}  // namespace zs::ZS_ISA
