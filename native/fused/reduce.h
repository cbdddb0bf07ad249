// A phase that folds, on operands that lie in one way: a fold nest (folds.h) and a body.
#pragma once

#include <vector>

#include "../folds.h"
#include "body.h"

namespace zs {

struct Reduction {
  FoldNest folds;
  Body body;
  bool empty;  // the box has no elements: results are what folds of nothing give
  // The slots of the nest's operands, then of the results.
  std::vector<int> slots;
  std::vector<std::int32_t> run_state;
  std::vector<std::int64_t> run_position;
  // Of an empty box: the shape of the results, and their strides.
  std::vector<std::int64_t> kept;
  std::vector<std::vector<std::int64_t>> kept_strides;
};

// The folded axes of a store, a bit each. (A slot's axis of extent 1 is folded, too, where the box is
// longer.)
std::uint64_t folded_axes(const FusedProgram& program, const Phase& phase, const Store& store,
                          const std::int64_t* shape);

// Makes one of some of a phase's stores. At least one of these folds, and all that fold, fold the same
// axes. `shape` is the box's: the phase's own, or a piece of it. It stays where it is: its program
// points into it.
void prepare(Reduction& made, const FusedProgram& program, const Phase& phase,
             const std::int64_t* shape, const std::vector<int>& stores, const Spot* spots,
             const Isa& isa);

// Computes it; as execute() in run.h. `data` has the first elements of `slots`.
bool execute(const Reduction& made, char* const* data, const Isa& isa, int threads,
             bool (*poll)(void*), void* poll_context);

// The same on this thread alone, with scratch of that many bytes.
std::int64_t scratch_bytes(const Reduction& made);
void execute_here(const Reduction& made, char* const* data, const Isa& isa, char* scratch);

}  // namespace zs
