// How a phase that folds computes its values and keeps its states, once its blocks are chosen.
#pragma once

#include <vector>

#include "reduce.h"

namespace zs {

// Rows that are computed before they are added to columns: eight take the time of the accumulators'
// loads and stores off all but one.
constexpr std::int64_t kBatch = 8;

constexpr std::int64_t pieces_of(std::int64_t extent, std::int64_t most) {
  return (extent + most - 1) / most;
}

// Makes the body that computes what `stores` store and fold, of a nest whose operands are known.
void compile_body(Reduction& made, const Phase& phase, const std::vector<int>& stores,
                  const Isa& isa);

// Numbers the states of a block, cuts large groups, and counts the memory of a run.
void lay_out_states(Reduction& made);

}  // namespace zs
