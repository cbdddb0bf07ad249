// A phase's steps on rows: a program's `body` (run.h) that calls a kernel for each step, on a block of
// elements after another, so that what lies between steps stays in the first cache.
#pragma once

#include <vector>

#include "../run.h"
#include "program.h"

namespace zs {

// A kernel on places, or a chain of cheap ones. A place is an operand, a register (elements of a block),
// a cell (one element) or a literal; their addresses are in a table.
struct Instruction {
  Row row;
  int in[kMaxInputs];
  int out;
  Chain chain = nullptr;  // else `count` links from `first` on
  int first = 0, count = 0;
};

// A chain's link on a place.
struct PlacedLink {
  Link link;
  Other other;
  int place;
};

// An operand that a block is taken from: its place, and bytes of an element.
struct Moving {
  int place;
  std::int64_t size;
};

struct Body {
  MachineCode code;                // compiled: it does all, and the rest is empty; else null
  bool past;                       // it stores past the caches, if asked
  std::int64_t block;              // elements, at most
  std::vector<Instruction> cells;  // on one element, before the first block
  std::vector<Instruction> wide;   // a cell all over a register, before the first block
  std::vector<Instruction> each;   // on each block
  std::vector<PlacedLink> links;
  std::vector<Moving> moving;
  // The table: the inputs' and outputs' places, then those that lie in scratch (at these offsets),
  // then the literals.
  int operands, outputs;  // `operands` counts both
  std::vector<std::int64_t> offset;
  std::vector<Literal> literals;
  std::int64_t scratch_bytes;  // a multiple of 64
};

// Makes the body that computes the values `results` of a phase, an output each. The phase's loads are the
// inputs; those in `splats` (a bit each) have one element. Where there are several outputs, none is an input:
// that could be overwritten before it is read. Every kernel that the phase names exists.
void interpret(Body& body, const Phase& phase, const int* results, int count, const Isa& isa,
               unsigned splats);

// If the machine code of such a body is installed, makes the body of it; otherwise lists it as to be compiled.
// `streamed`: results are stored past the caches. `row`: the elements of every row; 0 for any number.
bool take_code(Body& body, const Phase& phase, const int* results, int count, const Isa& isa,
               unsigned splats, bool streamed, int row);

// As Program::body, with a Body as its context.
void run_body(const Isa& isa, const void* context, const void* const* in, unsigned splats,
              void* const* out, std::int64_t n, char* scratch);

// As Program::rows, with a Body that is machine code.
void run_rows(const void* context, const void* const* in, void* const* out, std::int64_t n,
              char* scratch, std::int64_t rows, const std::int64_t* steps, bool past);

// The kernel of a step, or null. A conversion has none, and is always there.
const Kernel* kernel_of(const Isa& isa, const Step& step);

// The dtype of a phase's value.
DType dtype_of(const Phase& phase, int value);

}  // namespace zs
