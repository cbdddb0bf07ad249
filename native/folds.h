// The loop nest of a phase that folds: which blocks there are, and which results each adds to.
// Immutable once built.
//
// A block is a nest's (nest.h), over the phase's loads and over the stores that do not fold. Its row
// runs over axes 0..inner, and rows go along `across`. All folds of a nest fold the same axes.
//
// The partial results of a block are kept in states (kernels.h), which are numbered: in the order of the
// block's axes that are kept. Where axis 0 is kept, so are for the time being the folded
// axes in the row: a row is added to the states element by element (`wide`), and at the end these
// states are merged. Of axis `inner`, if it is folded, only so many have states of their own as make
// a good vector loop (`lanes`); a row is then several rows of these. Where axis 0 is folded, it is in
// runs.
//
// Loops over blocks: those along folded axes are innermost, so that the states of a block are
// complete before the next one's begin. A group is the blocks between: one set of results. It may be
// cut, so that several threads share it; a thread computes one cut of a group, a unit, at a time.
#pragma once

#include "run.h"

namespace zs {

// A value that is folded.
struct FoldedValue {
  const Folder* folder;
  std::int64_t a, b;  // bytes from the beginning of a block's states to this one's (kernels.h)
  DType compute;  // of the values
  DType memory;   // of the results where they lie
  int load;       // the operand, loaded or stored, whose elements these values are; or -1
  int value;      // else which of the body's outputs, counted behind those that are stored
  bool usable;    // results may be stored where they belong as they come
  std::int64_t offset;             // bytes from the first result to where the nest begins
  std::int64_t stride[kMaxAxes];   // bytes, by the nest's axes; 0 where folded
};

constexpr int kMaxFolds = 8;

struct FoldNest {
  Nest nest;
  Program program;  // outputs: the stores that do not fold, then the values that are folded
  int folds;
  FoldedValue fold[kMaxFolds];
  int values;                    // of the body's outputs, those that are folded
  DType value_dtype[kMaxFolds];
  bool folded[kMaxAxes];         // by the nest's axes
  std::int64_t pitch[kMaxAxes];  // positions (kernels.h) from one to the next along a folded axis
  bool positions;                // whether a fold needs them
  bool wide;
  std::int64_t lanes;  // states along axis `inner`
  std::int64_t state_stride[kMaxAxes];  // of the axes in a block: states from one to the next
  std::int64_t row_states;              // of one row
  std::int64_t states;                  // of a block
  std::int64_t state_bytes;             // of a block, for all folds; a multiple of 64
  std::int64_t batch;                   // rows that are computed before they are folded, at most
  std::int64_t value_pitch;             // elements from row to row of computed values
  int folding_loops;                    // the loops along folded axes
  std::int64_t group;                   // blocks in a group
  std::int64_t groups;
  // A group may be shared by several threads: it is cut into `cuts` parts, whose states are merged in
  // order at the end. 1: it is not. Chosen by sizes alone.
  std::int64_t cuts;
  // The runs: the state of each in a row, and its position.
  const std::int32_t* run_state;
  const std::int64_t* run_position;
  std::int64_t scratch_bytes;  // for one thread's run, a multiple of 64
};

}  // namespace zs
