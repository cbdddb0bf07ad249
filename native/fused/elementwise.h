// A phase without folds, on operands that lie in one way: a nest and a program.
#pragma once

#include "body.h"

namespace zs {

struct Elementwise {
  Nest nest;
  Program program;  // its context is `body`
  Body body;
  std::vector<int> slots;  // of the operands
};

// The strides of a slot over a box: one for each axis of the box, 0 where the slot stretches.
void lay_over(const Phase& phase, const Slot& slot, const std::int8_t* walk,
              const std::int64_t* slot_strides, std::int64_t* strides);

// Makes one of a phase that has elements. `shape` is the box's: the phase's own, or a piece of it, and
// then `result` tells whether the phase stores results of the program. It stays
// where it is: its program points into it.
void prepare(Elementwise& made, const FusedProgram& program, const Phase& phase,
             const std::int64_t* shape, const Spot* spots, const Isa& isa, bool result);

}  // namespace zs
