// The computation of each row of a nest's blocks, and how it is run.
#pragma once

#include <cstdint>

#include "kernels.h"
#include "nest.h"

namespace zs {

// The computation of one row, and the dtypes around it. A single op is a program whose `body` is
// one kernel; a fused expression has a body that runs many.
struct Program {
  int inputs;
  int outputs;
  DType memory[kMaxOperands];   // of each operand where it lies
  DType compute[kMaxOperands];  // of each operand where it is computed with
  // splats: bit k says that input k is one element. Outputs are rows.
  void (*body)(const Isa& isa, const void* context, const void* const* in, unsigned splats,
               void* const* out, std::int64_t n, char* scratch);
  // The same for several rows in one call, each `steps` bytes behind the one before (the inputs', then
  // the outputs'); or null. If the argument `past` is true and the member `past` is, it stores past the
  // caches by itself.
  void (*rows)(const void* context, const void* const* in, void* const* out, std::int64_t n,
               char* scratch, std::int64_t rows, const std::int64_t* steps, bool past) = nullptr;
  bool past = false;
  const void* context;        // the Kernel of a single op
  std::int64_t body_scratch;  // bytes that the body needs, a multiple of 64
};

// The body of a program of one kernel (the context). Widens where the kernel lacks a form.
void run_kernel(const Isa& isa, const void* context, const void* const* in, unsigned splats,
                void* const* out, std::int64_t n, char* scratch);
// The program of one kernel on operands that lie in memory as `memory` says (inputs, then output).
void program_of(Program& program, const Kernel& kernel, const DType* memory);

// Scratch for one thread's run of a nest, a multiple of 64.
std::int64_t scratch_bytes(const Nest& nest, const Program& program);

// Computes a whole nest on up to `threads` threads. `data` has each operand's first element.
// `poll` (may be null) is called about ten times a second, on the calling thread; when it returns
// false, the remaining blocks are not computed and execute returns false. It returns false, too, and
// nothing is computed, where there is no memory for scratch.
bool execute(const Nest& nest, const Program& program, const Isa& isa, char* const* data,
             int threads, bool (*poll)(void*), void* poll_context);

}  // namespace zs
