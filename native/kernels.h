// Kernels: one op on one row of elements. They know nothing of strides, shapes, blocks or threads.
#pragma once

#include <cstdint>

#include "dtype.h"

namespace zs {

constexpr int kMaxInputs = 3;

// Computes n elements. Each operand lies one element after the other, or (by the form) is one
// element. `out` may be one of the operands that are rows, and overlaps none of them otherwise.
using Row = void (*)(const void* const* in, void* out, std::int64_t n);

// The same for so many rows of n elements: operand k's lie step[k] bytes apart, those of `out` the last of
// the steps. Rows of `out` overlap no other row.
using ManyRows = void (*)(const void* const* in, void* out, std::int64_t n, std::int64_t rows,
                          const std::int64_t* step);

// One op on one dtype.
struct Kernel {
  const char* op;  // the name in the op table
  int inputs;
  DType in[kMaxInputs];
  DType out;
  // By a number whose bit k says that operand k is one element. Absent (null) forms are computed by
  // widening operands to rows; form[0] is always there.
  Row form[1 << kMaxInputs];
  // The forms of what is so cheap that a call for each short row would take longer than the row.
  ManyRows many[1 << kMaxInputs] = {};
};

// Many values to one. Sums and products of integers wrap; of floats they are held in more digits than
// the dtype has. A NaN is least and greatest, and its position the first NaN's.
enum class Fold : std::uint8_t { None, Sum, Prod, Min, Max, Any, All, ArgMin, ArgMax };
constexpr int kFolds = 9;

// Positions of values among all that are folded, counted in C order over the folded axes.
struct Positions {
  std::int64_t first;       // of the first value
  std::int64_t along;       // from value to value of a run
  std::int64_t rows;        // from row to row of columns
  const std::int64_t* run;  // of each run, from the first's
};

// One fold of one dtype. The state of a result is one number or two; the states of many
// results lie in two rows, `a` and `b` (its elements have 8 bytes).
struct Folder {
  DType out;          // the results'
  std::int64_t size;  // bytes of a number in `a`; 0: there is no such fold
  // States of no values.
  void (*begin)(void* a, void* b, std::int64_t n);
  // `count` runs of `length` values, one after the other; run c goes to state state[c].
  void (*runs)(void* a, void* b, const std::int32_t* state, const void* values, std::int64_t length,
               std::int64_t count, const Positions& at);
  // Rows of n values, `pitch` values apart; column i goes to state i.
  void (*columns)(void* a, void* b, const void* values, std::int64_t n, std::int64_t rows,
                  std::int64_t pitch, const Positions& at);
  // Other states to these; `shift` is added to their positions.
  void (*merge)(void* a, void* b, const void* from_a, const void* from_b, std::int64_t n,
                std::int64_t shift);
  // The results.
  void (*finish)(const void* a, const void* b, void* out, std::int64_t n);
};

// The effect of a chain link on the value that passes through, with its operand. Several kernels as a
// chain are one pass: the value stays in a register between them.
enum class Link : std::uint8_t {
  Load, Store, Add, Subtract, SubtractFrom, Multiply, Divide, DivideInto, Maximum, MaximumOf, Minimum,
  MinimumOf, SquaredDifference, And, Or, Xor, ShiftLeft, ShiftRight, ShiftRightSigned, Negative, Abs,
  Relu, Reciprocal,
};
enum class Other : std::uint8_t { Each, One, Self };  // Self: the value again
struct ChainLink {
  Link link;
  Other other;
  void* at;  // the row, or the one element
};
// Computes n elements: the first link is a Load, the last a Store. Rows that are stored are exactly
// rows that are loaded, or apart from them.
using Chain = void (*)(const ChainLink* links, int count, std::int64_t n);

struct Nest;
struct Program;
struct FoldNest;

// All that one instruction set computes with. One object file set each; chosen once.
struct Isa {
  const char* name;  // "baseline", "avx2", "avx512", "neon"
  const Kernel* kernels;
  int count;
  // Elements of one dtype to another, as NumPy's astype; floats to integers truncate, stop at the
  // ends of the range, and NaN becomes 0.
  Row convert[kDTypes][kDTypes];
  // Writes one element, which is not in the row, all over it; by the logarithm of its bytes.
  Row fill[4];
  // By dtype; null where there are none. Integers' are of bits: no maximum, division or sign.
  Chain chain[kDTypes];
  // Computes blocks first..last-1. `scratch` has scratch_bytes(nest, program), aligned to 64.
  void (*run)(const Nest& nest, const Program& program, char* const* data, std::int64_t first,
              std::int64_t last, char* scratch);
  const Folder (*fold)[kDTypes];  // by Fold
  // Computes units first..last-1 of a phase that folds (folds.h). `data` has the nest's operands, then
  // the results. The states of cut groups are left in `parts`, a block's for each unit.
  void (*run_folds)(const FoldNest& folds, char* const* data, std::int64_t first, std::int64_t last,
                    char* parts, char* scratch);
  // Then merges these, and stores the results.
  void (*join_folds)(const FoldNest& folds, char* const* data, char* parts, char* scratch);
};

// The instruction set in use; the best that this processor has, unless chosen.
const Isa& isa();
// By name. False if this build or this processor lacks the set.
bool choose_isa(const char* name);
// The names that would be accepted, best first, null at the end.
const char* const* available_isas();
// The name in ZEROSTRIDE_ISA, if it is none of these (the best set is in use, and a caller should
// say so); else null.
const char* refused_isa();

// The kernel of an op on a dtype (of its last operand), or null.
const Kernel* find_kernel(const Isa& isa, const char* op, DType dtype);
// The form of a kernel that computes with the most of `splats` as they are.
unsigned best_form(const Kernel& kernel, unsigned splats);

}  // namespace zs
