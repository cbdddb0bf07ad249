// Walks the blocks of a phase that folds: computes their rows and adds them to the states of the
// results; where these are complete, stores the results.
#include "blocks.h"
#include "folds.h"

namespace zs::ZS_ISA {
namespace {

// All that is the same for every block of a run.
struct Folding {
  const FoldNest& folds;
  const Nest& nest;
  char* const* data;
  unsigned splats;
  int taken, put;  // stages of inputs and of outputs
  Stage* stages;
  char* body_scratch;
  char* value[kMaxFolds];  // rows of computed values
  char* states;
  char* done;  // results, as they are computed and as they lie in memory
  char* raw;
};

// The places of the rows of a block.
struct BlockRows {
  void* at[kMaxOperands];
  std::int64_t step[kMaxOperands];  // bytes from row to row
};

// The states of fold f from number `state` on.
struct StatesAt {
  char *a, *b;
};
StatesAt states_at(const FoldedValue& fold, char* states, std::int64_t state) {
  return {states + fold.a + state * fold.folder->size, states + fold.b + state * kWidest};
}

void begin_states(const FoldNest& folds, char* states) {
  for (int f = 0; f < folds.folds; ++f) {
    const StatesAt at = states_at(folds.fold[f], states, 0);
    folds.fold[f].folder->begin(at.a, at.b, folds.states);
  }
}

// The position of a block's first element among all that are folded.
std::int64_t position_of(const FoldNest& folds, const Walk& walk) {
  std::int64_t position = 0;
  for (int l = 0; l < folds.folding_loops && folds.positions; ++l) {
    const int axis = folds.nest.loop_axis[l];
    position += walk.index[l] * folds.nest.loop_step[l] * folds.pitch[axis];
  }
  return position;
}

void point(BlockRows& rows, const Folding& run, const Walk& walk) {
  const Nest& nest = run.nest;
  for (int k = 0; k < nest.operands; ++k) {
    rows.at[k] = walk.at[k];
    rows.step[k] = row_stride(nest, k);
  }
  for (int s = 0; s < run.taken + run.put; ++s) {
    const Stage& stage = run.stages[s];
    const int k = stage.operand;
    const bool one_row = k >= nest.inputs && stage.converted;
    rows.at[k] = stage.ready;
    rows.step[k] = one_row ? 0 : row_elements(nest, walk, k) * stage.size;
  }
}

// A row of n values to states that are repeated along axis `inner`.
void add_wide_row(const FoldNest& folds, const FoldedValue& fold, const StatesAt& to,
                  const char* values, std::int64_t n, Positions at) {
  const std::int64_t width = folds.row_states;
  const std::int64_t rows = n / width, rest = n - rows * width;
  at.rows = folds.lanes * folds.pitch[folds.nest.inner];
  if (rows) fold.folder->columns(to.a, to.b, values, width, rows, width, at);
  if (rest == 0) return;
  at.first += rows * at.rows;
  values += rows * width * size_of(fold.compute);
  fold.folder->columns(to.a, to.b, values, rest, 1, 0, at);
}

// Rows r..r+count-1 of a block, whose values are there: folded.
void fold_rows(const Folding& run, const BlockRows& first, char* states, std::int64_t n,
               std::int64_t r, std::int64_t count, std::int64_t position) {
  const FoldNest& folds = run.folds;
  const Nest& nest = run.nest;
  const bool across_kept = nest.across >= 0 && !folds.folded[nest.across];
  const std::int64_t rows_pitch = nest.across < 0 || across_kept ? 0 : folds.pitch[nest.across];
  const std::int64_t length = nest.inner == 0 ? n : nest.axis[0].extent;
  const std::int64_t runs = nest.inner == 0 ? 1 : n / length;
  Positions at{position + r * rows_pitch, folds.pitch[0], rows_pitch, folds.run_position};
  for (int f = 0; f < folds.folds; ++f) {
    const FoldedValue& fold = folds.fold[f];
    const std::int64_t size = size_of(fold.compute);
    const char* values = fold.load < 0 ? run.value[fold.value]
                                       : static_cast<const char*>(first.at[fold.load]);
    const std::int64_t step = fold.load < 0 ? folds.value_pitch * size : first.step[fold.load];
    if (folds.wide && !across_kept && n <= folds.row_states) {
      const StatesAt to = states_at(fold, states, 0);
      fold.folder->columns(to.a, to.b, values, n, count, step / size, at);
      continue;
    }
    Positions row = at;
    for (std::int64_t i = 0; i < count; ++i, values += step, row.first += rows_pitch) {
      const StatesAt to = states_at(fold, states, across_kept ? (r + i) * folds.row_states : 0);
      if (folds.wide) {
        add_wide_row(folds, fold, to, values, n, row);
      } else {
        fold.folder->runs(to.a, to.b, folds.run_state, values, length, runs, row);
      }
    }
  }
}

// Computes row i of those that are computed together.
void compute_row(const Folding& run, const BlockRows& rows, std::int64_t i, std::int64_t n) {
  const FoldNest& folds = run.folds;
  const int stored = run.nest.operands - run.nest.inputs;
  if (stored + folds.values == 0) return;
  void* out[kMaxOperands];
  for (int k = 0; k < stored; ++k) out[k] = rows.at[run.nest.inputs + k];
  for (int v = 0; v < folds.values; ++v) {
    out[stored + v] = run.value[v] + i * folds.value_pitch * size_of(folds.value_dtype[v]);
  }
  folds.program.body(table, folds.program.context, rows.at, run.splats, out, n, run.body_scratch);
}

void compute_block(const Folding& run, const Walk& walk, char* states) {
  const Nest& nest = run.nest;
  for (int s = 0; s < run.taken; ++s) take(run.stages[s], nest, walk);
  Stage* const puts = run.stages + run.taken;
  for (int s = 0; s < run.put; ++s) fit(puts[s], nest, walk);
  BlockRows rows;
  point(rows, run, walk);
  const std::int64_t n = nest.below * walk.chunk;
  const std::int64_t position = position_of(run.folds, walk);
  for (std::int64_t r = 0; r < walk.rows;) {
    const BlockRows first = rows;
    const std::int64_t left = walk.rows - r;
    const std::int64_t count = left < run.folds.batch ? left : run.folds.batch;
    for (std::int64_t i = 0; i < count; ++i) {
      ask_ahead(nest, rows.at, n);
      compute_row(run, rows, i, n);
      for (int s = 0; s < run.put; ++s) finish_row(puts[s], nest, walk, r + i);
      for (int k = 0; k < nest.operands; ++k) rows.at[k] = ahead(rows.at[k], rows.step[k]);
    }
    fold_rows(run, first, states, n, r, count, position);
    r += count;
  }
  for (int s = 0; s < run.put; ++s) {
    if (!puts[s].moved) continue;
    scatter(puts[s].box, static_cast<char*>(walk.at[puts[s].operand]), puts[s].raw);
  }
}

// --- The end of a group --------------------------------------------------------------------------

// Extent of an axis of the group's blocks. That of a folded one is the longest: states beyond what
// the last block had know of nothing.
std::int64_t extent_of(const FoldNest& folds, const Walk& walk, int axis) {
  const Nest& nest = folds.nest;
  if (axis == nest.across) return folds.folded[axis] ? nest.rows : walk.rows;
  if (axis == nest.inner) return folds.folded[axis] ? folds.lanes : walk.chunk;
  return nest.axis[axis].extent;
}

// Merges the states of one fold along folded axis `axis` of a row, whose first state is `row`.
void merge_along(const FoldNest& folds, const FoldedValue& fold, const Walk& walk, int axis,
                 char* states, std::int64_t row) {
  const std::int64_t extent = extent_of(folds, walk, axis), under = folds.state_stride[axis];
  std::int64_t outer = 1;
  for (int i = axis + 1; i <= folds.nest.inner; ++i) outer *= extent_of(folds, walk, i);
  for (std::int64_t u = 0; u < outer; ++u) {
    const std::int64_t first = row + u * under * extent;
    const StatesAt to = states_at(fold, states, first);
    for (std::int64_t t = 1; t < extent; ++t) {
      const StatesAt from = states_at(fold, states, first + t * under);
      fold.folder->merge(to.a, to.b, from.a, from.b, under, t * folds.pitch[axis]);
    }
  }
}

void merge_wide(const FoldNest& folds, const Walk& walk, char* states) {
  const Nest& nest = folds.nest;
  const bool across_kept = nest.across >= 0 && !folds.folded[nest.across];
  const std::int64_t rows = across_kept ? walk.rows : 1;
  for (int f = 0; f < folds.folds; ++f) {
    for (int axis = nest.inner; axis > 0; --axis) {
      if (!folds.folded[axis]) continue;
      for (std::int64_t r = 0; r < rows; ++r) {
        merge_along(folds, folds.fold[f], walk, axis, states, r * folds.row_states);
      }
    }
  }
}

// Makes the box of a group's results beside the box of its states.
void make_result_box(Box& box, const FoldNest& folds, const FoldedValue& fold, const Walk& walk) {
  const Nest& nest = folds.nest;
  box.size = size_of(fold.memory);
  box.axes = 0;
  box.dense = true;
  const auto add = [&](int axis) {
    if (folds.folded[axis]) return;
    const std::int64_t extent = extent_of(folds, walk, axis), stride = fold.stride[axis];
    const std::int64_t pitch = folds.state_stride[axis];
    const int last = box.axes - 1;
    if (last >= 0 && stride == box.stride[last] * box.extent[last] &&
        pitch == box.pitch[last] * box.extent[last]) {
      box.extent[last] *= extent;
      return;
    }
    box.extent[box.axes] = extent;
    box.stride[box.axes] = stride;
    box.pitch[box.axes++] = pitch;
  };
  for (int axis = 0; axis <= nest.inner; ++axis) add(axis);
  if (nest.across > nest.inner) add(nest.across);
}

// The first result of the group of fold f.
char* result_at(const Folding& run, const Walk& walk, int f) {
  const FoldNest& folds = run.folds;
  const FoldedValue& fold = folds.fold[f];
  char* at = run.data[run.nest.operands + f] + fold.offset;
  for (int l = folds.folding_loops; l < run.nest.loops; ++l) {
    at += walk.index[l] * run.nest.loop_step[l] * fold.stride[run.nest.loop_axis[l]];
  }
  return at;
}

void store_results(const Folding& run, const Walk& walk, char* states) {
  const FoldNest& folds = run.folds;
  if (folds.wide) merge_wide(folds, walk, states);
  for (int f = 0; f < folds.folds; ++f) {
    const FoldedValue& fold = folds.fold[f];
    const Folder& folder = *fold.folder;
    Box box;
    make_result_box(box, folds, fold, walk);
    std::int64_t n = 1;
    for (int i = 0; i < box.axes; ++i) n += (box.extent[i] - 1) * box.pitch[i];
    char* const to = result_at(run, walk, f);
    const StatesAt from = states_at(fold, states, 0);
    const bool in_order = box.axes == 0 || (box.axes == 1 && (n == 1 || box.stride[0] == box.size));
    if (in_order && fold.usable) {
      folder.finish(from.a, from.b, to, n);
      continue;
    }
    folder.finish(from.a, from.b, run.done, n);
    const char* results = run.done;
    if (fold.memory != folder.out) {
      const void* const in = run.done;
      const int one = static_cast<int>(folder.out), other = static_cast<int>(fold.memory);
      table.convert[one][other](&in, run.raw, n);
      results = run.raw;
    }
    scatter(box, to, results);
  }
}

// --- Runs ----------------------------------------------------------------------------------------

// Takes what a run needs from `scratch`, in the order in which fused/plan_states.cpp has counted it.
void take_scratch(Folding& run, char* scratch) {
  const FoldNest& folds = run.folds;
  const Nest& nest = run.nest;
  run.body_scratch = scratch;
  scratch += folds.program.body_scratch;
  run.states = scratch;
  scratch += folds.state_bytes;
  run.done = scratch;
  scratch += aligned(folds.states * kWidest);
  run.raw = scratch;
  scratch += aligned(folds.states * kWidest);
  for (int v = 0; v < folds.values; ++v) {
    run.value[v] = scratch;
    scratch += aligned(folds.batch * folds.value_pitch * size_of(folds.value_dtype[v]));
  }
  run.taken = make_stages(run.stages, nest, folds.program, run.data, 0, nest.inputs, scratch);
  run.put = make_stages(run.stages + run.taken, nest, folds.program, run.data, nest.inputs,
                        nest.operands, scratch);
}

unsigned splats_of(const Nest& nest) {
  unsigned splats = 0;
  for (int k = 0; k < nest.inputs; ++k) {
    if (nest.access[k] == Access::Splat) splats |= 1u << k;
  }
  return splats;
}

char* part_of(const FoldNest& folds, char* parts, std::int64_t unit) {
  return parts + unit * folds.state_bytes;
}

}  // namespace

void run_folds(const FoldNest& folds, char* const* data, std::int64_t first, std::int64_t last,
               char* parts, char* scratch) {
  Stage stages[kMaxOperands];
  Folding run{folds, folds.nest, data, splats_of(folds.nest), 0, 0, stages, nullptr, {}, nullptr,
              nullptr, nullptr};
  take_scratch(run, scratch);
  const auto begin_of = [&](std::int64_t unit) {
    return unit / folds.cuts * folds.group + unit % folds.cuts * folds.group / folds.cuts;
  };
  Walk walk;
  std::int64_t block = begin_of(first);
  start(walk, folds.nest, data, block);
  for (std::int64_t unit = first; unit < last; ++unit) {
    char* const states = folds.cuts > 1 ? part_of(folds, parts, unit) : run.states;
    begin_states(folds, states);
    const std::int64_t end = begin_of(unit + 1);
    for (;;) {
      compute_block(run, walk, states);
      if (++block == end) break;
      advance(walk, folds.nest, 1);
    }
    if (folds.cuts == 1) store_results(run, walk, states);
    if (unit + 1 < last) advance(walk, folds.nest, 1);
  }
}

void join_folds(const FoldNest& folds, char* const* data, char* parts, char* scratch) {
  Stage stages[kMaxOperands];
  Folding run{folds, folds.nest, data, splats_of(folds.nest), 0, 0, stages, nullptr, {}, nullptr,
              nullptr, nullptr};
  take_scratch(run, scratch);
  Walk walk;
  for (std::int64_t group = 0; group < folds.groups; ++group) {
    char* const states = part_of(folds, parts, group * folds.cuts);
    for (std::int64_t cut = 1; cut < folds.cuts; ++cut) {
      char* const more = part_of(folds, parts, group * folds.cuts + cut);
      for (int f = 0; f < folds.folds; ++f) {
        const FoldedValue& fold = folds.fold[f];
        const StatesAt to = states_at(fold, states, 0), from = states_at(fold, more, 0);
        fold.folder->merge(to.a, to.b, from.a, from.b, folds.states, 0);
      }
    }
    start(walk, folds.nest, data, group * folds.group);
    store_results(run, walk, states);
  }
}

}  // namespace zs::ZS_ISA
