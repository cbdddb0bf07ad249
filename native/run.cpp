// Walks the blocks of a nest: gathers and converts what a block needs, computes its rows, converts
// and scatters what came out.
#include "run.h"

#include "gather.h"
#include "stage.h"
#include "stream.h"

namespace zs::ZS_ISA {

extern const Isa table;

namespace {

void* ahead(void* at, std::int64_t bytes) { return static_cast<char*>(at) + bytes; }

// Where in the nest's loops a run is.
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
  const char* held;   // the block that an input's buffers have, if any
  Box box;
  std::int64_t chunk, rows;  // what the box (and what is held) was made for
};

// A row's operands, as the program's body takes them: the inputs, then the outputs.
struct Rows {
  void* at[kMaxOperands];
  std::int64_t step[kMaxOperands];  // bytes from row to row
};

// What is left of loop l's axis for this block.
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

// Goes `blocks` on, not beyond the end of the innermost loop by more than one.
void advance(Walk& walk, const Nest& nest, std::int64_t blocks) {
  for (int l = 0; l < nest.loops; ++l, blocks = 1) {
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
std::int64_t alike(const Walk& walk, const Nest& nest) {
  if (nest.loops == 0) return 1;
  const std::int64_t left = nest.loop_count[0] - walk.index[0];
  // The last along the chunked axis may be shorter.
  return nest.loop_axis[0] == nest.inner && left > 1 ? left - 1 : left;
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
    stage.raw = scratch;
    scratch += raw_bytes(nest, k);
    stage.ready = stage.converted ? scratch : stage.raw;
    scratch += ready_bytes(nest, program, k);
    stage.held = nullptr;
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

// Makes the box anew where this block has another size than the last. Returns whether it did.
bool fit(Stage& stage, const Nest& nest, const Walk& walk) {
  if (stage.chunk == walk.chunk && stage.rows == walk.rows) return false;
  stage.chunk = walk.chunk;
  stage.rows = walk.rows;
  if (stage.moved) make_box(stage.box, nest, stage.operand, walk.chunk, walk.rows);
  return true;
}

// Fills an input's buffers, unless they have this block.
void take(Stage& stage, const Nest& nest, const Walk& walk) {
  const char* from = static_cast<const char*>(walk.at[stage.operand]);
  if (!fit(stage, nest, walk) && stage.held == from) return;
  stage.held = from;
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

// All that is the same for every block of a run.
struct Runner {
  const Nest& nest;
  const Program& program;
  unsigned splats;
  Row kernel;  // a single op's kernel is called without a detour; else null
  Stream* stream;  // where its output goes past the caches; else null
  char* body_scratch;
  std::int64_t step[kMaxOperands];  // bytes from block to block along the innermost loop
  int taken, put;                   // stages of inputs and of outputs
  Stage* stages;                    // the inputs', then the outputs'
};

void compute_into(const Runner& runner, const void* const* in, void* out, std::int64_t n) {
  if (runner.kernel) {
    runner.kernel(in, out, n);
  } else {
    runner.program.body(table, runner.program.context, in, runner.splats, &out, n,
                        runner.body_scratch);
  }
}

// A row, computed into the stream's buffer piece by piece.
void stream_row(const Runner& runner, void* const* at, std::int64_t n) {
  const int inputs = runner.nest.inputs;
  const std::int64_t size = runner.nest.size[inputs];
  Stream& stream = *runner.stream;
  const void* in[kMaxOperands];
  for (int k = 0; k < inputs; ++k) in[k] = at[k];
  stream.go_to(static_cast<char*>(at[inputs]));
  // One value for the whole row fills the buffer once.
  const bool one_value = runner.splats + 1 == 1u << inputs;
  bool filled = false;
  for (std::int64_t done = 0, count; done < n; done += count) {
    count = stream.room() / size;
    if (count > n - done) count = n - done;
    if (!filled) compute_into(runner, in, stream.end(), count);
    filled = one_value && stream.is_whole(count * size);
    stream.add(count * size);
    for (int k = 0; k < inputs; ++k) {
      if (runner.splats >> k & 1) continue;
      const auto dtype = static_cast<int>(runner.program.compute[k]);
      in[k] = static_cast<const char*>(in[k]) + count * kSize[dtype];
    }
  }
}

void compute_row(const Runner& runner, void* const* at, std::int64_t n) {
  void* const* out = at + runner.nest.inputs;
  if (runner.stream) {
    stream_row(runner, at, n);
  } else if (runner.kernel) {
    runner.kernel(at, out[0], n);
  } else {
    runner.program.body(table, runner.program.context, at, runner.splats, out, n,
                        runner.body_scratch);
  }
}

// Asks for the next row of what is used where it lies: a block's rows are short and far apart, and
// the processor foresees neither. (Measured: a fifth to a third of the time of a large
// transposition. For rows that follow one another it gained nothing that could be told from noise.)
void foresee(const Runner& runner, const Rows& rows, std::int64_t n) {
  constexpr std::int64_t kLine = 64;
  const Nest& nest = runner.nest;
  for (int k = 0; k < nest.operands; ++k) {
    if (nest.access[k] != Access::Direct || !nest.usable[k]) continue;
    const char* const next = static_cast<const char*>(ahead(rows.at[k], rows.step[k]));
    const std::int64_t bytes = n * nest.size[k];
    if (k < nest.inputs) {
      for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(next + at);
    } else {
      for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(next + at, 1);
    }
  }
}

// Where the body finds the rows of a block.
void point(Rows& rows, const Runner& runner, const Walk& walk) {
  const Nest& nest = runner.nest;
  for (int k = 0; k < nest.operands; ++k) {
    rows.at[k] = walk.at[k];
    rows.step[k] = row_stride(nest, k);
  }
  for (int s = 0; s < runner.taken + runner.put; ++s) {
    const Stage& stage = runner.stages[s];
    const int k = stage.operand;
    const bool one_row = k >= nest.inputs && stage.converted;
    rows.at[k] = stage.ready;
    rows.step[k] = one_row ? 0 : row_elements(nest, walk, k) * stage.size;
  }
}

void compute_block(const Runner& runner, const Walk& walk) {
  const Nest& nest = runner.nest;
  for (int s = 0; s < runner.taken; ++s) take(runner.stages[s], nest, walk);
  Stage* const puts = runner.stages + runner.taken;
  for (int s = 0; s < runner.put; ++s) fit(puts[s], nest, walk);
  Rows rows;
  point(rows, runner, walk);
  const std::int64_t n = nest.below * walk.chunk;
  for (std::int64_t r = 0;; ++r) {
    const bool last = r + 1 == walk.rows;
    if (!last) foresee(runner, rows, n);
    compute_row(runner, rows.at, n);
    for (int s = 0; s < runner.put; ++s) finish_row(puts[s], nest, walk, r);
    if (last) break;
    for (int k = 0; k < nest.operands; ++k) rows.at[k] = ahead(rows.at[k], rows.step[k]);
  }
  for (int s = 0; s < runner.put; ++s) {
    if (!puts[s].moved) continue;
    scatter(puts[s].box, static_cast<char*>(walk.at[puts[s].operand]), puts[s].raw);
  }
}

// Blocks of one row each, all operands used where they lie.
void run_in_place(const Runner& runner, Walk& walk, std::int64_t blocks) {
  const Nest& nest = runner.nest;
  void* at[kMaxOperands];
  for (;;) {
    for (int k = 0; k < nest.operands; ++k) at[k] = walk.at[k];
    const std::int64_t left = alike(walk, nest);
    const std::int64_t count = left < blocks ? left : blocks;
    const std::int64_t n = nest.below * walk.chunk;
    for (std::int64_t i = 0;;) {
      compute_row(runner, at, n);
      if (++i == count) break;
      for (int k = 0; k < nest.operands; ++k) at[k] = ahead(at[k], runner.step[k]);
    }
    if ((blocks -= count) == 0) return;
    advance(walk, nest, count);
  }
}

// Blocks of which some operands pass through buffers.
void run_staged(const Runner& runner, Walk& walk, std::int64_t blocks) {
  for (;;) {
    compute_block(runner, walk);
    if (--blocks == 0) return;
    advance(walk, runner.nest, 1);
  }
}

// Whether a run's output is streamed. What is computed in place is in the caches already.
bool streams(const Nest& nest, char* const* data) {
  if (!kCanStream || !nest.streamed) return false;
  for (int k = 0; k < nest.inputs; ++k) {
    if (data[k] == data[nest.inputs]) return false;
  }
  return true;
}

}  // namespace

void run(const Nest& nest, const Program& program, char* const* data, std::int64_t first,
         std::int64_t last, char* scratch) {
  Stage stages[kMaxOperands];
  Runner runner{nest, program, 0, nullptr, nullptr, scratch, {}, 0, 0, stages};
  scratch += program.body_scratch;
  for (int k = 0; k < nest.inputs; ++k) {
    if (nest.access[k] == Access::Splat) runner.splats |= 1u << k;
  }
  if (program.body == run_kernel) {
    runner.kernel = static_cast<const Kernel*>(program.context)->form[runner.splats];
  }
  Stream stream;
  if (streams(nest, data)) runner.stream = &stream;
  for (int k = 0; k < nest.operands && nest.loops; ++k) {
    runner.step[k] = nest.axis[nest.loop_axis[0]].stride[k] * nest.loop_step[0];
  }
  runner.taken = make_stages(stages, nest, program, data, 0, nest.inputs, scratch);
  runner.put =
      make_stages(stages + runner.taken, nest, program, data, nest.inputs, nest.operands, scratch);
  Walk walk;
  start(walk, nest, data, first);
  if (runner.taken + runner.put == 0 && nest.rows == 1) {
    run_in_place(runner, walk, last - first);
  } else {
    run_staged(runner, walk, last - first);
  }
  if (runner.stream) stream.finish();
}

}  // namespace zs::ZS_ISA
