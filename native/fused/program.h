// A fused expression as the engine runs it. src/zerostride/fusion/schedule/program.py defines the meaning of
// every part; binding/spec.cpp makes this from it. Immutable afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels.h"
#include "../nest.h"

namespace zs {

enum class SlotKind : std::uint8_t { Input, Output, Temp, Piece };

struct Slot {
  SlotKind kind;
  int index;
  DType dtype;
  int rank;
  std::int64_t shape[kMaxAxes];
};

struct Load {
  int slot;
  std::int8_t walk[kMaxAxes];  // for each axis of the box; -1: none
  DType dtype;
};

struct Literal {
  DType dtype;
  alignas(8) char bytes[8];
};

struct Step {
  const char* op;  // a kernel's, or null: a conversion of dtype[0] to dtype[1]
  int args;
  int arg[kMaxInputs];
  DType dtype[kMaxInputs + 1];  // the arguments', then the result's
};

struct Store {
  int value;
  int slot;
  std::int8_t walk[kMaxAxes];
  Fold fold;
};

// Machine code of a phase's steps by fusion/jit/tier.py: as a Body for so many results. It computes `rows`
// rows, `steps` bytes apart (the inputs', then the outputs'; not read if there is one row). With `past` it
// stores past the caches, if it was compiled for that.
using MachineCode = void (*)(const void* const* in, void* const* out, std::int64_t n, char* scratch,
                             std::int64_t rows, const std::int64_t* steps,
                             std::int64_t past);
struct Machine {
  const Isa* isa;
  unsigned splats;
  std::vector<int> results;
  bool streamed;         // its output is so large that it is stored past the caches
  int row;               // elements of every row, where all have so few; 0: any number
  MachineCode code;      // null: not yet
  std::int64_t scratch;  // bytes that it needs
  bool past;             // it can store past the caches
};

struct Phase {
  int rank;
  std::int64_t shape[kMaxAxes];
  std::vector<Load> loads;
  std::vector<Literal> literals;
  std::vector<Step> steps;
  std::vector<Store> stores;
  mutable std::vector<Machine> machines;  // body.cpp's, under its lock
};

struct FusedProgram {
  std::vector<Slot> slots;
  std::vector<Phase> phases;
  int batch;
  int first, last;  // the batched phases
  int inputs, outputs;
};

// The place of a slot in one call.
struct Spot {
  char* data;
  const std::int64_t* strides;  // bytes, one for each axis of the slot
  bool aligned;
};

}  // namespace zs
