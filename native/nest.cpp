#include "nest.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "sizes.h"

namespace zs {
namespace {

// Elements of a row that is gathered or converted: the buffers of a few such rows stay in the first
// cache, and the work around a row is small against it.
constexpr std::int64_t kRow = 1024;
// A row that needs no buffer may be longer.
constexpr std::int64_t kLongRow = 8192;
// A row shorter than this is lengthened even if an operand must be gathered for it; one not shorter
// than kFairRow never is; one between them is, if the gathered elements serve many blocks. (Measured,
// int8, float32 and float64: rows in place are level with gathered ones from 64 to 96 elements on.)
constexpr std::int64_t kShortRow = 64;
constexpr std::int64_t kFairRow = 128;
// The same where operands pass through buffers anyway, so that each row costs more.
constexpr std::int64_t kShortBufferedRow = 256;
// A block of a transposed operand: this long a row, and rows enough to use two of its lines whole
// (measured, 2048 x 2048 float32: 8 % to 40 % faster than one line; four are slower).
constexpr std::int64_t kAcrossRow = 256;
constexpr std::int64_t kAcrossLines = 2;
// Elements of a row that takes in the axis along which a transposed operand is contiguous.
constexpr std::int64_t kWholeRow = 4096;
// Bytes of buffers in which all inputs' blocks stay until they come again, a quarter of a second cache of
// 1 MiB; and blocks of one input, whose list is made anew for each piece of work.
constexpr std::int64_t kKeptBytes = std::int64_t{256} << 10;
constexpr std::int64_t kMostKept = 64;
// Rows of half a line cost little where so many take one call. (Measured, packed int4, 4 rows of 8 in a call:
// 3 times the time of gathered ones.)
constexpr std::int64_t kRowsOfHalfLines = 16;
// A tile that serves this many blocks costs next to nothing.
constexpr std::int64_t kReuse = 4;

// Bytes of an output that is stored past the caches. (Measured, second cache of 2 MB: an output of 4 MB
// of int8 takes 1.2 of the time, 6 MB of float32 0.95 to 0.86, 16 MB 0.8 to 0.7; with a second op that
// reads it again 0.8.)
constexpr std::int64_t kStreamed = std::int64_t{6} << 20;
// The same where next to nothing is read: only stores take time. (Measured, a row and a column: 8 MB
// to 32 MB 1.1 to 1.06 of the time, 64 MB 0.65, 512 MB 0.42.)
constexpr std::int64_t kStreamedAlone = std::int64_t{48} << 20;
constexpr std::int64_t kNextToNothing = 8;  // this part of the output, at most
// A last cache no larger than this is taken to be this process's to use, and what fits stays in it;
// a larger one belongs to tens of processors, and is slow. (Measured, 32 MiB: operands and output of
// 12 MB take 0.4 of the time in it, of 32 MB 0.65 to 0.8, of 48 MB 1.0 to 1.2.) What is a quarter larger
// mostly stays: some lines are in the second caches alone.
constexpr std::int64_t kOwnCache = std::int64_t{64} << 20;
// Bytes of a row under which a buffer for each costs more than the lines save (512: a fifth slower).
constexpr std::int64_t kStreamedRow = 1024;

// Divisions are most of what a small call's nest would cost: none where nothing is divided.
std::int64_t divide(std::int64_t a, std::int64_t b) { return b == 1 ? a : a < b ? 0 : a / b; }

std::int64_t pieces_of(std::int64_t extent, std::int64_t most) {
  return extent <= most ? 1 : divide(extent + most - 1, most);
}

void copy_axis(Axis& to, const Axis& from, int operands) {
  to.extent = from.extent;
  for (int k = 0; k < operands; ++k) to.stride[k] = from.stride[k];
}

// Axes of more than one element, innermost first.
void collect(Nest& nest, int rank, const std::int64_t* shape, const Layout* layouts) {
  nest.axes = 0;
  nest.elements = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    nest.elements *= shape[i];
    Axis& axis = nest.axis[nest.axes++];
    axis.extent = shape[i];
    for (int k = 0; k < nest.operands; ++k) axis.stride[k] = layouts[k].strides[i];
  }
  if (nest.axes) return;
  // One element is a row like any other.
  nest.axes = 1;
  nest.axis[0].extent = 1;
  for (int k = 0; k < nest.operands; ++k) nest.axis[0].stride[k] = nest.size[k];
}

// Walks an axis from its other end where more operands would be walked forwards.
void orient(Nest& nest) {
  for (int i = 0; i < nest.axes; ++i) {
    Axis& axis = nest.axis[i];
    int backwards = 0;
    for (int k = 0; k < nest.operands; ++k) {
      backwards += (axis.stride[k] < 0) - (axis.stride[k] > 0);
    }
    if (backwards <= 0) continue;
    for (int k = 0; k < nest.operands; ++k) {
      nest.offset[k] += axis.stride[k] * (axis.extent - 1);
      axis.stride[k] = -axis.stride[k];
    }
  }
}

// Whether axis `a` should lie inside `b`: by the outputs, then by the inputs in turn.
bool inside(const Nest& nest, const Axis& a, const Axis& b) {
  for (int turn = nest.inputs; turn < nest.operands + nest.inputs; ++turn) {
    const int k = turn < nest.operands ? turn : turn - nest.operands;
    const std::int64_t x = magnitude(a.stride[k]), y = magnitude(b.stride[k]);
    if (x != y && x && y) return x < y;
  }
  return false;
}

void order(Nest& nest) {
  // Insertion: ranks are small, nearly always sorted, and equal axes keep their order.
  for (int i = 1; i < nest.axes; ++i) {
    for (int j = i; j > 0 && inside(nest, nest.axis[j], nest.axis[j - 1]); --j) {
      std::swap(nest.axis[j], nest.axis[j - 1]);
    }
  }
}

// Axes that every operand walks as one become one.
void merge(Nest& nest) {
  int last = 0;
  for (int i = 1; i < nest.axes; ++i) {
    Axis& into = nest.axis[last];
    const Axis& next = nest.axis[i];
    bool follows = true;
    for (int k = 0; k < nest.operands && follows; ++k) {
      follows = next.stride[k] == into.stride[k] * into.extent;
    }
    if (follows) {
      into.extent *= next.extent;
    } else if (++last != i) {
      copy_axis(nest.axis[last], next, nest.operands);
    }
  }
  nest.axes = last + 1;
}

}  // namespace

Access access_of(const Nest& nest, int k, int inner) {
  bool zero = k < nest.inputs, direct = true;
  std::int64_t next = nest.size[k];
  for (int i = 0; i <= inner; ++i) {
    const std::int64_t stride = nest.axis[i].stride[k];
    zero &= stride == 0;
    direct &= stride == next;
    next *= nest.axis[i].extent;
  }
  return direct ? Access::Direct : zero ? Access::Splat : Access::Tile;
}

namespace {

// Whether the tile of operand k over axes 0..inner serves many blocks. The axes below `inner` have `below`
// elements.
bool repeats(const Nest& nest, int k, int inner, std::int64_t below) {
  const Axis& last = nest.axis[inner];
  if (last.stride[k] == 0 && last.extent * below >= kReuse * kRow) return true;
  for (int i = inner + 1; i < nest.axes; ++i) {
    if (nest.axis[i].stride[k] == 0 && nest.axis[i].extent >= kReuse) return true;
  }
  return false;
}

// Whether rows of `row` elements should take in the axis after `inner`. Where one call computes many rows, one
// of a line or more should not if an operand would be gathered for it; one of half a line only for an operand
// whose gathered elements serve many blocks. (Measured, float32, 8 to 14 elements: 0.55 to 0.95 of the time.)
bool lengthen(const Nest& nest, int inner, std::int64_t row, bool buffers, std::int64_t many) {
  const std::int64_t rows = nest.axis[inner + 1].extent;  // in a call
  bool cheap = many && rows >= many && !buffers;          // a row
  for (int k = 0; k < nest.operands && cheap; ++k) cheap = access_of(nest, k, inner) != Access::Tile;
  const std::int64_t bytes = row * nest.size[nest.inputs];
  const bool half = cheap && rows >= kRowsOfHalfLines && bytes >= kLine / 2;
  if (!half && row < (buffers ? kShortBufferedRow : kShortRow)) return true;
  const bool fair = (cheap && bytes >= kLine) || (row >= kFairRow && !buffers);
  for (int k = 0; k < nest.operands; ++k) {
    const bool gathered =
        access_of(nest, k, inner + 1) == Access::Tile && access_of(nest, k, inner) != Access::Tile;
    if (gathered && (fair || !repeats(nest, k, inner + 1, row))) {
      return false;
    }
  }
  return true;
}

// The axis along which a transposed operand is contiguous, or -1. `line` becomes the elements of it
// that memory hands over at once.
int transposed_axis(const Nest& nest, std::int64_t& line) {
  for (int k = 0; k < nest.operands; ++k) {
    if (nest.axis[0].stride[k] == 0 || magnitude(nest.axis[0].stride[k]) == nest.size[k]) continue;
    for (int i = 1; i < nest.axes; ++i) {
      if (magnitude(nest.axis[i].stride[k]) == nest.size[k]) {
        line = kLine / nest.size[k];
        return i;
      }
    }
  }
  return -1;
}

// Chooses the blocks.
void choose(Nest& nest, std::int64_t many) {
  nest.inner = 0;
  nest.below = 1;
  nest.across = -1;
  nest.rows = 1;
  std::int64_t line = 1;
  bool buffers = false;
  for (int k = 0; k < nest.operands; ++k) {
    buffers |= !nest.usable[k] || access_of(nest, k, 0) == Access::Tile;
  }
  const int cross = nest.axes > 1 ? transposed_axis(nest, line) : -1;
  while (nest.inner + 1 < nest.axes && nest.inner != cross) {
    const std::int64_t row = nest.below * nest.axis[nest.inner].extent;
    if (nest.inner + 1 == cross ? row * line > kWholeRow : row * 2 > kRow) break;
    if (!lengthen(nest, nest.inner, row, buffers, many)) break;
    nest.below = row;
    ++nest.inner;
  }
  for (int k = 0; k < nest.operands; ++k) {
    nest.access[k] = access_of(nest, k, nest.inner);
    buffers |= nest.access[k] == Access::Tile;
  }
  std::int64_t most = buffers ? kRow : kLongRow;
  if (cross >= 0 && nest.inner == cross) {
    most = std::max(kRow, nest.below * line);
  } else if (cross >= 0) {
    nest.across = cross;
    nest.rows = std::min(nest.axis[cross].extent, kAcrossLines * line);
    most = std::min(kRow, kAcrossRow * divide(kAcrossLines * line, nest.rows));
  }
  const std::int64_t extent = nest.axis[nest.inner].extent;
  const std::int64_t wanted = std::max<std::int64_t>(1, divide(most, nest.below));
  nest.chunk = pieces_of(extent, pieces_of(extent, wanted));
  if (nest.chunk == extent) return;
  // Blocks that end on a line's boundary leave no line to two of them.
  if (nest.inner == 0) nest.chunk = (nest.chunk + kLine - 1) / kLine * kLine;
  if (nest.inner == cross) nest.chunk = std::max(line, divide(wanted, line) * line);
}

}  // namespace

bool is_dear(const Nest& nest, int k) {
  if (!nest.usable[k]) return nest.access[k] != Access::Splat;
  if (nest.access[k] != Access::Tile) return false;
  std::int64_t bytes = nest.size[k];
  for (int i = 0; i <= nest.inner && nest.axis[i].stride[k] == bytes; ++i) {
    bytes *= nest.axis[i].extent;
  }
  return bytes < kLine;
}

Kept kept_of(const Nest& nest, int k, std::int64_t bytes) {
  Kept kept{1, 0};
  if (k >= nest.inputs || nest.access[k] == Access::Splat) return kept;
  const std::int64_t most = std::min(kMostKept, kKeptBytes / nest.inputs / bytes);
  std::int64_t blocks = 1;
  for (int l = 0; l < nest.loops; ++l) {
    if (nest.axis[nest.loop_axis[l]].stride[k] == 0) {
      kept = {blocks, l};
    } else if ((blocks *= nest.loop_count[l]) > most) {
      break;
    }
  }
  return kept;
}

namespace {

// The loops over blocks, inside out. The axis along which a transposed operand is contiguous goes
// innermost: its pages stay, and its next lines can be foreseen. With `by_moves`, the axes follow along
// which operands that are expensive to buffer repeat: the buffer stays.
void order_loops(Nest& nest, bool by_moves) {
  nest.loops = 0;
  nest.blocks = 1;
  int moving[kMaxAxes];
  for (int i = nest.inner; i < nest.axes; ++i) {
    const std::int64_t step = i == nest.inner ? nest.chunk : i == nest.across ? nest.rows : 1;
    const std::int64_t count = pieces_of(nest.axis[i].extent, step);
    if (count == 1) continue;
    int move = 0;
    for (int k = 0; k < nest.inputs && by_moves; ++k) {
      move += nest.axis[i].stride[k] != 0 && is_dear(nest, k);
    }
    if (i == nest.across) move = -1;
    int at = nest.loops++;
    for (; at > 0 && moving[at - 1] > move; --at) {
      moving[at] = moving[at - 1];
      nest.loop_axis[at] = nest.loop_axis[at - 1];
      nest.loop_step[at] = nest.loop_step[at - 1];
      nest.loop_count[at] = nest.loop_count[at - 1];
    }
    moving[at] = move;
    nest.loop_axis[at] = i;
    nest.loop_step[at] = step;
    nest.loop_count[at] = count;
    nest.blocks *= count;
  }
}

// Whether no block of operand k, which is expensive to buffer, is buffered anew when it comes again.
bool is_kept(const Nest& nest, int k) {
  // With what a gather may write behind the end, and up to a line's.
  const std::int64_t bytes = nest.rows * nest.below * nest.chunk * nest.size[k] + 2 * kLine;
  for (int l = kept_of(nest, k, bytes).loops + 1; l < nest.loops; ++l) {
    if (nest.axis[nest.loop_axis[l]].stride[k] == 0) return false;
  }
  return true;
}

// The loops in the output's order, unless an operand that is expensive to buffer is converted or gathered
// again and again. (Measured, float32, two operands that stretch in turn along six axes to 8 MB: 0.75 of
// the time that it takes with the loops by moves, where the output is written in steps of 256 KB; a
// converted row, float16 to float32, 1.5.)
void loop(Nest& nest) {
  order_loops(nest, false);
  for (int k = 0; k < nest.inputs; ++k) {
    if (is_dear(nest, k) && !(nest.usable[k] && is_kept(nest, k))) return order_loops(nest, true);
  }
}

// The size of the last cache, or 0. The kernel knows which processors share it; the C library may
// give all caches' sum (ten times 32 MiB, where a processor has one).
std::int64_t last_cache() {
  std::int64_t kibibytes = 0;
  if (std::FILE* file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r")) {
    char unit = 0;
    const bool read = std::fscanf(file, "%9" SCNd64 "%c", &kibibytes, &unit) == 2 && unit == 'K';
    std::fclose(file);
    if (read) return kibibytes << 10;
  }
#if defined(_SC_LEVEL3_CACHE_SIZE)
  return sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  return 0;
#endif
}

std::int64_t own_cache() {
  const std::int64_t last = last_cache();
  return last <= kOwnCache ? last + last / 4 : 0;
}

std::int64_t least_row = kStreamedRow;
std::int64_t least_streamed = kStreamed;
std::int64_t least_streamed_alone = kStreamedAlone;
std::int64_t most_kept = own_cache();  // bytes of operands and output that stay in a cache

// Bytes of operand k in memory.
std::int64_t bytes_of(const Nest& nest, int k) {
  std::int64_t bytes = nest.size[k];
  for (int i = 0; i < nest.axes; ++i) {
    if (nest.axis[i].stride[k] != 0) bytes *= nest.axis[i].extent;
  }
  return bytes;
}

std::int64_t bytes_read(const Nest& nest) {
  std::int64_t bytes = 0;
  for (int k = 0; k < nest.inputs; ++k) bytes += bytes_of(nest, k);
  return bytes;
}

// Whether no cache keeps the output (of one), if it has so many elements in all.
bool is_large(const Nest& nest, std::int64_t elements) {
  const int k = nest.inputs;
  const std::int64_t written = elements * nest.size[k];
  if (written < least_streamed || nest.operands != k + 1) return false;
  const std::int64_t read = bytes_read(nest);
  if (read + written <= most_kept) return false;
  return written >= least_streamed_alone || read > written / kNextToNothing;
}

// Whether the output is stored past the caches.
bool is_streamed(const Nest& nest, std::int64_t elements) {
  const int k = nest.inputs;
  if (!is_large(nest, elements)) return false;
  if (nest.access[k] != Access::Direct || !nest.usable[k] || nest.across >= 0) return false;
  const std::int64_t row = nest.below * nest.chunk * nest.size[k];
  // Contiguous rows share no line with elements that are stored in another way.
  return nest.loops == 0 || nest.axis[nest.loop_axis[0]].stride[k] * nest.loop_step[0] == row;
}

}  // namespace

void stream_from(std::int64_t bytes, std::int64_t row) {
  least_row = row;
  least_streamed = least_streamed_alone = bytes;
  most_kept = 0;
}

void build(Nest& nest, int rank, const std::int64_t* shape, int inputs, int operands,
           const Layout* layouts, std::int64_t many) {
  nest.inputs = inputs;
  nest.operands = operands;
  for (int k = 0; k < operands; ++k) {
    nest.size[k] = layouts[k].size;
    nest.usable[k] = layouts[k].usable;
    nest.offset[k] = 0;
  }
  collect(nest, rank, shape, layouts);
  orient(nest);
  order(nest);
  merge(nest);
  choose(nest, many);
  loop(nest);
  nest.streamed = is_streamed(nest, nest.elements);
  if (many && !nest.streamed && is_large(nest, nest.elements)) {
    // Short rows gain less than an output that is stored past the caches.
    choose(nest, 0);
    loop(nest);
    nest.streamed = is_streamed(nest, nest.elements);
  }
  nest.asked = 0;
}

bool has_short_rows(const Nest& nest) {
  const std::int64_t row = nest.below * nest.chunk * nest.size[nest.inputs];
  return row < least_row;
}

void stream_piece(Nest& nest, std::int64_t elements) { nest.streamed = is_streamed(nest, elements); }

}  // namespace zs
