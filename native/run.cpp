// Walks the blocks of a nest: gathers and converts what a block needs, computes its rows, converts
// and scatters what came out.
#include "run.h"

#include "blocks.h"
#include "stream.h"

namespace zs::ZS_ISA {
namespace {

// A row's operands, as the program's body takes them: the inputs, then the outputs.
struct Rows {
  void* at[kMaxOperands];
  std::int64_t step[kMaxOperands];  // bytes from row to row
};

// All that is the same for every block of a run.
struct Runner {
  const Nest& nest;
  const Program& program;
  unsigned splats;
  Row kernel;  // a single op's kernel is called without a detour; else null
  ManyRows many;   // the same for many rows, if it has that and they are stored as ever
  Stream* stream;  // where its output goes past the caches; else null
  bool by_rows;    // rows that follow one another take one call of the program's
  bool in_batches; // short ones go into the stream many at a time
  bool past;       // it stores past the caches by itself
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
  // One value for the whole row fills the buffer once, as long as it is filled at the same place.
  const bool one_value = runner.splats + 1 == 1u << inputs;
  const char* filled = nullptr;
  for (std::int64_t done = 0, count; done < n; done += count) {
    count = Stream::kRoom / size;
    if (count > n - done) count = n - done;
    char* const end = stream.end();
    if (filled != end) compute_into(runner, in, end, count);
    filled = one_value && count * size == Stream::kRoom ? end : nullptr;
    stream.add(count * size);
    for (int k = 0; k < inputs; ++k) {
      if (runner.splats >> k & 1) continue;
      const auto dtype = static_cast<int>(runner.program.compute[k]);
      in[k] = static_cast<const char*>(in[k]) + count * kSize[dtype];
    }
  }
}

// Many short rows that follow one another, into the stream's buffer a few at a time.
void stream_rows(const Runner& runner, void* const* from, std::int64_t n, std::int64_t count) {
  const int output = runner.nest.inputs;
  const std::int64_t row = n * runner.nest.size[output], room = Stream::kRoom / row;
  Stream& stream = *runner.stream;
  void* at[kMaxOperands];
  for (int k = 0; k < output; ++k) at[k] = from[k];
  char* place = static_cast<char*>(from[output]);
  for (std::int64_t rows; count; count -= rows) {
    rows = count < room ? count : room;
    stream.go_to(place);
    at[output] = stream.end();
    if (runner.many) {
      runner.many(at, at[output], n, rows, runner.step);
    } else {
      runner.program.rows(runner.program.context, at, at + output, n, runner.body_scratch, rows,
                          runner.step, false);
    }
    stream.add(rows * row);
    place += rows * row;
    for (int k = 0; k < output; ++k) at[k] = ahead(at[k], rows * runner.step[k]);
  }
}

// Rows that lie a step apart.
void compute_rows(const Runner& runner, void* const* at, std::int64_t n, std::int64_t count) {
  if (runner.in_batches) {
    stream_rows(runner, at, n, count);
  } else if (runner.many) {
    runner.many(at, at[runner.nest.inputs], n, count, runner.step);
  } else {
    runner.program.rows(runner.program.context, at, at + runner.nest.inputs, n,
                        runner.body_scratch, count, runner.step, runner.past);
  }
}

void compute_row(const Runner& runner, void* const* at, std::int64_t n) {
  void* const* out = at + runner.nest.inputs;
  if (runner.stream) {
    stream_row(runner, at, n);
  } else if (runner.kernel) {
    runner.kernel(at, out[0], n);
  } else if (runner.past) {
    runner.program.rows(runner.program.context, at, out, n, runner.body_scratch, 1, nullptr, true);
  } else {
    runner.program.body(table, runner.program.context, at, runner.splats, out, n,
                        runner.body_scratch);
  }
}

// Prefetches the next row of operands that are used where they lie: a block's rows are short and far
// apart, and the processor does not foresee them. (Measured: a fifth to a third of the time of a large
// transposition. For contiguous rows the gain was within the noise.)
void foresee(const Runner& runner, const Rows& rows, std::int64_t n) {
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

// Points the body to the rows of a block.
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
    ask_ahead(nest, rows.at, n);
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

// Whole turns of the innermost loop that follow one another, of blocks that are all alike.
std::int64_t whole_turns(const Walk& walk, const Nest& nest, std::int64_t blocks) {
  if (nest.loops < 2 || walk.index[0] != 0) return 0;
  if (nest.loop_axis[0] == nest.inner || nest.loop_axis[1] == nest.inner) return 0;
  const std::int64_t left = nest.loop_count[1] - walk.index[1], whole = blocks / nest.loop_count[0];
  return left < whole ? left : whole;
}

// Blocks of one row each, all operands used where they lie.
void run_in_place(const Runner& runner, Walk& walk, std::int64_t blocks) {
  const Nest& nest = runner.nest;
  void* at[kMaxOperands];
  for (;;) {
    for (int k = 0; k < nest.operands; ++k) at[k] = walk.at[k];
    const std::int64_t turns = runner.many || runner.by_rows ? whole_turns(walk, nest, blocks) : 0;
    if (turns > 1) {
      const Axis& axis = nest.axis[nest.loop_axis[1]];
      for (std::int64_t t = 0; t < turns; ++t) {
        compute_rows(runner, at, nest.below * walk.chunk, nest.loop_count[0]);
        for (int k = 0; k < nest.operands; ++k) at[k] = ahead(at[k], axis.stride[k] * nest.loop_step[1]);
      }
      if ((blocks -= turns * nest.loop_count[0]) == 0) return;
      advance(walk, nest, turns, 1);
      continue;
    }
    const std::int64_t left = alike(walk, nest);
    const std::int64_t count = left < blocks ? left : blocks;
    const std::int64_t n = nest.below * walk.chunk;
    if (runner.many || runner.by_rows) {
      compute_rows(runner, at, n, count);
    } else {
      for (std::int64_t i = 0;;) {
        ask_ahead(nest, at, n);
        compute_row(runner, at, n);
        if (++i == count) break;
        for (int k = 0; k < nest.operands; ++k) at[k] = ahead(at[k], runner.step[k]);
      }
    }
    if ((blocks -= count) == 0) return;
    advance(walk, nest, count);
  }
}

// Blocks with operands that pass through buffers.
void run_staged(const Runner& runner, Walk& walk, std::int64_t blocks) {
  for (;;) {
    compute_block(runner, walk);
    if (--blocks == 0) return;
    advance(walk, runner.nest, 1);
  }
}

// Whether a run's output is streamed. An output over an input is in the caches already.
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
  Runner runner{nest,  program, 0,       nullptr, nullptr, nullptr, false,
                false, false,   scratch, {},      0,       0,       stages};
  scratch += program.body_scratch;
  for (int k = 0; k < nest.inputs; ++k) {
    if (nest.access[k] == Access::Splat) runner.splats |= 1u << k;
  }
  if (program.body == run_kernel) {
    const Kernel& kernel = *static_cast<const Kernel*>(program.context);
    runner.kernel = kernel.form[runner.splats];
    if (nest.asked == 0) runner.many = kernel.many[runner.splats];
  }
  runner.by_rows = program.rows && nest.asked == 0;
  for (int k = 0; k < nest.operands && nest.loops; ++k) {
    runner.step[k] = nest.axis[nest.loop_axis[0]].stride[k] * nest.loop_step[0];
  }
  runner.taken = make_stages(stages, nest, program, data, 0, nest.inputs, scratch);
  runner.put =
      make_stages(stages + runner.taken, nest, program, data, nest.inputs, nest.operands, scratch);
  const bool in_place = runner.taken + runner.put == 0 && nest.rows == 1;
  Stream stream;
  if (streams(nest, data) && !has_short_rows(nest)) {
    runner.past = program.rows && program.past;
    if (!runner.past) runner.stream = &stream;
    runner.by_rows &= runner.past;
    runner.many = nullptr;
  } else if (streams(nest, data) && in_place && (runner.by_rows || runner.many)) {
    runner.in_batches = true;
    runner.stream = &stream;
  }
  Walk walk;
  start(walk, nest, data, first);
  if (in_place) {
    run_in_place(runner, walk, last - first);
  } else {
    run_staged(runner, walk, last - first);
  }
  if (runner.stream) stream.finish();
  if (runner.past) fence();
}

}  // namespace zs::ZS_ISA
