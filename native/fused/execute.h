// Running a fused program: all of its phases, on operands that lie in one way or another.
#pragma once

#include <memory>

#include "program.h"

namespace zs {

// A program prepared for operands of one layout: nests, and the kernel of each step.
// Immutable, so that many calls may use it at once. The program must outlive it.
struct Prepared;
struct DeletePrepared {
  void operator()(const Prepared* prepared) const;
};
using PreparedPointer = std::unique_ptr<const Prepared, DeletePrepared>;

// A program is checked when it is made (binding/spec.cpp): here nothing fails but memory
// (std::bad_alloc). `spots` has one for each slot. Their strides and alignment are read, except those of
// temporaries.
PreparedPointer prepare(const FusedProgram& program, const Spot* spots, const Isa& isa);

// Computes a whole program on up to `threads` threads. The spots lie as those that `prepared` was made
// for. A phase whose box has no elements stores nothing, but for folds: there what folds nothing gives
// (a sum's 0). An output may be an input's memory only where each element is
// read before it is written, as binding/fusion.cpp makes sure. `poll` is as execute's in run.h; false,
// too, where there is no memory for temporaries or scratch.
bool execute(const Prepared& prepared, const Spot* spots, int threads, bool (*poll)(void*),
             void* poll_context);

// Both in one.
bool execute(const FusedProgram& program, const Spot* spots, const Isa& isa, int threads,
             bool (*poll)(void*), void* poll_context);

}  // namespace zs
