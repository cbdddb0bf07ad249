// The loop nest of one element-wise computation: how an output is cut into blocks, and what each
// operand is inside a block. Immutable once built; knows strides and sizes, never pointers or ops.
#pragma once

#include <cstdint>

#include "shared_limits.h"

namespace zs {

constexpr int kMaxAxes = 64;
// Inputs and outputs together: a single op has at most four, a fused program more.
constexpr int kMaxOperands = limits::kMostOperands;
constexpr int kMaxAsked = 4;

// How an operand's elements lie inside a row of a block.
enum class Access : std::uint8_t {
  Direct,  // one after the other
  Splat,   // one element for the whole row
  Tile,    // anything else: gathered into a buffer (an output: scattered from one)
};

struct Axis {
  std::int64_t extent;
  std::int64_t stride[kMaxOperands];  // bytes
};

struct Nest {
  int inputs;
  int operands;                       // the inputs, then the outputs
  std::int64_t size[kMaxOperands];    // bytes of an element in memory
  std::int64_t offset[kMaxOperands];  // bytes from the first element to where the nest begins
  bool usable[kMaxOperands];          // as its Layout says
  // A block: `rows` rows. A row runs over axes 0..inner-1 whole and a chunk of axis `inner`; the
  // rows run over a chunk of axis `across` (where there is one).
  int axes;
  Axis axis[kMaxAxes];  // innermost first, extents of 1 dropped, neighbours merged
  int inner;
  int across;          // -1: one row a block
  std::int64_t below;  // product of the extents of the axes under `inner`
  std::int64_t chunk;  // of axis `inner`
  std::int64_t rows;   // chunk of axis `across`
  Access access[kMaxOperands];
  // Operands whose elements so many bytes behind are read by another piece of the computation. They are
  // prefetched row by row, while this piece is computed.
  int asked;
  int asked_operand[kMaxAsked];
  std::int64_t asked_bytes[kMaxAsked];
  bool streamed;  // the output is so large that no cache would keep it, and its rows follow one another
  // The loops over blocks, innermost first: which axis each steps along, by how much, and how many
  // blocks.
  int loops;
  int loop_axis[kMaxAxes];
  std::int64_t loop_step[kMaxAxes];
  std::int64_t loop_count[kMaxAxes];
  std::int64_t blocks;
  std::int64_t elements;
};

// An operand as an argument of build().
struct Layout {
  const std::int64_t* strides;  // bytes, outermost axis first; 0 where it is stretched
  std::int64_t size;            // bytes of an element
  // Whether a row of it may be used where it lies: aligned, and of the dtype computed in. A row of
  // any other is converted into (an output: out of) a buffer.
  bool usable;
};

// Builds the nest of operands of one shape (outermost first), the outputs last. No extent is 0, and
// no output has a stride of 0 on an axis longer than 1. `many`: the rows that one call must compute for short
// ones to cost little; 0: a call computes one.
void build(Nest& nest, int rank, const std::int64_t* shape, int inputs, int operands,
           const Layout* layouts, std::int64_t many = 0);

// Says that a nest is a piece of a computation of so many elements: an output that no cache would
// keep is stored past them.
void stream_piece(Nest& nest, std::int64_t elements);

// Whether rows are so short that only many at once are worth storing past the caches.
bool has_short_rows(const Nest& nest);

// The access of operand k in a row over axes 0..inner.
Access access_of(const Nest& nest, int k, int inner);
// Whether operand k is expensive to buffer: its contiguous elements are fewer than a line.
bool is_dear(const Nest& nest, int k);

// Blocks of an input that stay in its buffers until they come again: as many as lie between. The counters
// of the first `loops` loops identify a block.
struct Kept {
  std::int64_t blocks;
  int loops;
};
// The kept blocks of input k, if the buffers of one take so many bytes. At least one.
Kept kept_of(const Nest& nest, int k, std::int64_t bytes);

// Outputs of so many bytes are stored past the caches, whatever the processor, and rows of so many bytes are
// not short: for tests.
void stream_from(std::int64_t bytes, std::int64_t row);

}  // namespace zs
