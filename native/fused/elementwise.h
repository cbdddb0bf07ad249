// A phase without folds, on operands that lie in one way: a nest and a program.
#pragma once

#include "body.h"

namespace zs {

struct Elementwise {
  Nest nest;
  Program program;  // its context is `body`
  Body body;
};

// The strides of a slot over a box: one for each axis of the box, 0 where the slot stretches.
void lay_over(const Phase& phase, const Slot& slot, const std::int8_t* walk,
              const std::int64_t* slot_strides, std::int64_t* strides);

// Makes one of a phase that has elements. It stays where it is: its program points into it.
void prepare(Elementwise& made, const FusedProgram& program, const Phase& phase, const Spot* spots,
             const Isa& isa);

// Computes it; as execute() in run.h.
bool execute(const Elementwise& made, const Phase& phase, const Spot* spots, const Isa& isa,
             int threads, bool (*poll)(void*), void* poll_context);

}  // namespace zs
