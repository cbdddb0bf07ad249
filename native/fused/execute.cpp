#include "execute.h"

#include <algorithm>
#include <cstdlib>

#include "../launch.h"
#include "../pool.h"
#include "../sizes.h"
#include "elementwise.h"
#include "reduce.h"

namespace zs {
namespace {

// Bytes that a piece's operands, results and what lies between take at most. Half of a small second cache:
// the next piece is on its way while one is computed (ask_for_next). (Measured, softmax and layer norm
// of 4096 rows: 64 KiB to 512 KiB within a tenth of each other, all better than 1 MiB.)
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;
// Elements that a piece has at least, so that what a phase costs to begin is little; pieces that
// there are at least where that allows it, so that threads end together.
constexpr std::int64_t kPieceElements = 16384;
constexpr std::int64_t kLeastPieces = 16;
// Operands that are smaller are in a cache after the first call.
constexpr std::int64_t kAskedBytes = std::int64_t{1} << 20;

// One pass over a phase's box, or a piece of it.
struct Pass {
  std::unique_ptr<Elementwise> each;  // one of
  std::unique_ptr<Reduction> folding;  // these
  const std::vector<int>* slots;      // of its operands, those that are stored last
  // Bytes along the batch's axes, for each operand in turn. Empty outside of a batch.
  std::vector<std::int64_t> batch_strides;
};

// The batched phases.
struct Batch {
  int axes = 0;
  std::int64_t shape[kMaxAxes];
  std::int64_t piece = 0;   // of the last axis
  std::int64_t pieces = 0;  // of all
  std::int64_t elements = 0;
  std::vector<Pass> whole, rest;  // of a piece; of the last one along the axis, if it is shorter
  std::int64_t temporary_bytes = 0, scratch_bytes = 0;
};

}  // namespace

struct Prepared {
  const FusedProgram& program;
  const Isa& isa;
  std::vector<std::vector<std::int64_t>> strides;  // of temporaries and pieces, by slot
  std::vector<std::int64_t> begin;  // where each begins in the memory that holds its kind
  std::int64_t temporary_bytes = 0;
  std::vector<Pass> before, after;
  Batch batch;
};

namespace {

bool is_empty(int rank, const std::int64_t* shape) {
  return std::find(shape, shape + rank, 0) != shape + rank;
}

std::int64_t product(int rank, const std::int64_t* shape) {
  std::int64_t elements = 1;
  for (int axis = 0; axis < rank; ++axis) elements *= shape[axis];
  return elements;
}

// --- Preparing ---

// The strides of an array of `shape` in C order. Returns its bytes.
std::int64_t lay_out(int rank, const std::int64_t* shape, DType dtype, std::int64_t* strides) {
  std::int64_t bytes = size_of(dtype);
  for (int axis = rank - 1; axis >= 0; --axis) {
    strides[axis] = bytes;
    bytes *= shape[axis];
  }
  return bytes;
}

void lay_out_temporaries(Prepared& made) {
  for (const Slot& slot : made.program.slots) {
    made.strides.emplace_back(static_cast<std::size_t>(slot.rank));
    const bool piece = slot.kind == SlotKind::Piece;
    std::int64_t shape[kMaxAxes];
    std::copy_n(slot.shape, slot.rank, shape);
    for (int axis = 0; piece && axis < made.batch.axes; ++axis) {
      shape[axis] = axis == made.batch.axes - 1 ? std::min(shape[axis], made.batch.piece) : 1;
    }
    const std::int64_t bytes = lay_out(slot.rank, shape, slot.dtype, made.strides.back().data());
    std::int64_t& all = piece ? made.batch.temporary_bytes : made.temporary_bytes;
    made.begin.push_back(all);
    if (piece || slot.kind == SlotKind::Temp) all += aligned(bytes);
  }
}

// The stores of a phase, together where they are computed together: those that fold the same axes;
// those that do not fold come with the last of these, since they may go where a load is read.
std::vector<std::vector<int>> groups_of(const FusedProgram& program, const Phase& phase) {
  std::vector<std::vector<int>> groups;
  std::vector<std::uint64_t> axes;
  std::vector<int> plain;
  for (int s = 0; s < static_cast<int>(phase.stores.size()); ++s) {
    const Store& store = phase.stores[static_cast<std::size_t>(s)];
    if (store.fold == Fold::None) {
      plain.push_back(s);
      continue;
    }
    const std::uint64_t folded = folded_axes(program, phase, store, phase.shape);
    std::size_t g = 0;
    while (g < groups.size() && !(axes[g] == folded && groups[g].size() < kMaxFolds)) ++g;
    if (g == groups.size()) {
      groups.emplace_back();
      axes.push_back(folded);
    }
    groups[g].push_back(s);
  }
  if (groups.empty()) groups.emplace_back();
  groups.back().insert(groups.back().end(), plain.begin(), plain.end());
  return groups;
}

// How each operand of a pass lies along the batch's axes.
void add_batch_strides(Pass& pass, const FusedProgram& program, const Phase& phase,
                       const std::vector<int>& stores, int axes, const Spot* spots) {
  const auto add = [&](int number, const std::int8_t* walk) {
    const Slot& slot = program.slots[static_cast<std::size_t>(number)];
    std::int64_t strides[kMaxAxes];
    lay_over(phase, slot, walk, spots[number].strides, strides);
    const bool piece = slot.kind == SlotKind::Piece;
    for (int axis = 0; axis < axes; ++axis) {
      pass.batch_strides.push_back(piece ? 0 : strides[axis]);
    }
  };
  for (const Load& load : phase.loads) add(load.slot, load.walk);
  for (const bool folds : {false, true}) {
    for (const int s : stores) {
      const Store& store = phase.stores[static_cast<std::size_t>(s)];
      if ((store.fold != Fold::None) == folds) add(store.slot, store.walk);
    }
  }
}

// Whether a phase stores only results of the program.
bool is_result(const FusedProgram& program, const Phase& phase) {
  return std::all_of(phase.stores.begin(), phase.stores.end(), [&](const Store& store) {
    return program.slots[static_cast<std::size_t>(store.slot)].kind == SlotKind::Output;
  });
}

void add_passes(std::vector<Pass>& passes, const Prepared& made, const Phase& phase,
                const std::int64_t* shape, const Spot* spots, bool batched) {
  for (const std::vector<int>& stores : groups_of(made.program, phase)) {
    const bool folds = phase.stores[static_cast<std::size_t>(stores[0])].fold != Fold::None;
    if (!folds && is_empty(phase.rank, shape)) continue;
    Pass pass;
    if (folds) {
      pass.folding = std::make_unique<Reduction>();
      prepare(*pass.folding, made.program, phase, shape, stores, spots, made.isa);
      pass.slots = &pass.folding->slots;
    } else {
      pass.each = std::make_unique<Elementwise>();
      const bool result = batched && is_result(made.program, phase);
      prepare(*pass.each, made.program, phase, shape, spots, made.isa, result);
      pass.slots = &pass.each->slots;
    }
    if (batched) {
      add_batch_strides(pass, made.program, phase, stores, made.batch.axes, spots);
    }
    passes.push_back(std::move(pass));
  }
}

// Bytes that a phase reads and writes for each index of the batch's last axis, each slot once.
std::int64_t bytes_of_index(const Prepared& made, std::vector<bool>& seen, const Phase& phase) {
  const int last = made.batch.axes - 1;
  std::int64_t bytes = 0;
  const auto add = [&](int number, const std::int8_t* walk) {
    const auto k = static_cast<std::size_t>(number);
    const Slot& slot = made.program.slots[k];
    if (seen[k] || walk[last] < 0 || slot.shape[walk[last]] == 1) return;
    seen[k] = true;
    std::int64_t each = size_of(slot.dtype);
    for (int axis = 0; axis < slot.rank; ++axis) each *= slot.shape[axis];
    for (int axis = 0; axis < made.batch.axes; ++axis) {
      if (walk[axis] >= 0) each /= slot.shape[walk[axis]];
    }
    bytes += each;
  };
  for (const Load& load : phase.loads) add(load.slot, load.walk);
  for (const Store& store : phase.stores) add(store.slot, store.walk);
  return bytes;
}

// The cut of the batch. It depends on sizes alone, not on the number of threads.
void cut_batch(Prepared& made) {
  const FusedProgram& program = made.program;
  Batch& batch = made.batch;
  batch.axes = program.batch;
  const auto first = static_cast<std::size_t>(program.first);
  const auto last = static_cast<std::size_t>(program.last);
  std::copy_n(program.phases[first].shape, batch.axes, batch.shape);
  std::int64_t indices = 1, bytes = 0;
  for (int axis = 0; axis < batch.axes; ++axis) indices *= batch.shape[axis];
  std::vector<bool> seen(program.slots.size(), false);
  for (std::size_t p = first; p < last && indices > 0; ++p) {
    const Phase& phase = program.phases[p];
    bytes += bytes_of_index(made, seen, phase);
    batch.elements += product(phase.rank, phase.shape);
  }
  if (indices == 0) return;
  const std::int64_t along = batch.shape[batch.axes - 1];
  const std::int64_t each = std::max<std::int64_t>(1, batch.elements / indices);
  const std::int64_t least = (kPieceElements + each - 1) / each;
  const std::int64_t even = (indices + kLeastPieces - 1) / kLeastPieces;
  const std::int64_t fits = kPieceBytes / std::max<std::int64_t>(1, bytes);
  batch.piece = std::min(fits, std::max(least, even));
  batch.piece = std::clamp<std::int64_t>(batch.piece, 1, along);
  batch.pieces = indices / along * ((along + batch.piece - 1) / batch.piece);
}

Nest& nest_of(Pass& pass) { return pass.each ? pass.each->nest : pass.folding->folds.nest; }

// The last pass that reads an operand of the call prefetches the elements that the next piece reads first,
// so that memory works while this piece is computed.
void ask_for_next(std::vector<Pass>& passes, const Prepared& made) {
  std::vector<bool> seen(made.program.slots.size(), false);
  for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass) {
    Nest& nest = nest_of(*pass);
    for (int k = 0; k < nest.inputs && nest.asked < kMaxAsked; ++k) {
      const auto s = static_cast<std::size_t>((*pass->slots)[static_cast<std::size_t>(k)]);
      const Slot& slot = made.program.slots[s];
      const auto along = static_cast<std::size_t>((k + 1) * made.batch.axes - 1);
      const std::int64_t bytes = pass->batch_strides[along] * made.batch.piece;
      if (slot.kind != SlotKind::Input || seen[s] || nest.access[k] != Access::Direct) continue;
      seen[s] = true;
      if (bytes == 0 || product(slot.rank, slot.shape) * nest.size[k] < kAskedBytes) continue;
      nest.asked_operand[nest.asked] = k;
      nest.asked_bytes[nest.asked++] = bytes;
    }
  }
}

void add_pieces(std::vector<Pass>& passes, const Prepared& made, std::int64_t piece,
                const Spot* spots) {
  for (int p = made.program.first; p < made.program.last; ++p) {
    const Phase& phase = made.program.phases[static_cast<std::size_t>(p)];
    std::int64_t shape[kMaxAxes];
    std::copy_n(phase.shape, phase.rank, shape);
    std::fill_n(shape, made.batch.axes, 1);
    shape[made.batch.axes - 1] = piece;
    add_passes(passes, made, phase, shape, spots, true);
  }
  ask_for_next(passes, made);
}

std::int64_t scratch_bytes(const Pass& pass) {
  return pass.each ? scratch_bytes(pass.each->nest, pass.each->program)
                   : scratch_bytes(*pass.folding);
}

void prepare_batch(Prepared& made, const Spot* spots) {
  Batch& batch = made.batch;
  if (batch.pieces == 0) return;
  add_pieces(batch.whole, made, batch.piece, spots);
  const std::int64_t rest = batch.shape[batch.axes - 1] % batch.piece;
  if (rest) add_pieces(batch.rest, made, rest, spots);
  for (const auto* passes : {&batch.whole, &batch.rest}) {
    for (const Pass& pass : *passes) {
      batch.scratch_bytes = std::max(batch.scratch_bytes, scratch_bytes(pass));
    }
  }
}

// The spots with those of the temporaries, which begin in `memory`, and of pieces (null).
std::vector<Spot> with_temporaries(const Prepared& prepared, const Spot* spots, char* memory) {
  const auto& slots = prepared.program.slots;
  std::vector<Spot> all(spots, spots + slots.size());
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].kind != SlotKind::Temp && slots[s].kind != SlotKind::Piece) continue;
    char* const data =
        slots[s].kind == SlotKind::Temp && memory ? memory + prepared.begin[s] : nullptr;
    all[s] = {data, prepared.strides[s].data(), true};
  }
  return all;
}

// --- Running ---

struct Call {
  const Prepared& prepared;
  const Spot* spots;
  int threads;
  bool (*poll)(void*);
  void* poll_context;
};

bool run_passes(const Call& call, const std::vector<Pass>& passes) {
  const Isa& isa = call.prepared.isa;
  for (const Pass& pass : passes) {
    char* data[kMaxOperands];
    char** next = data;
    for (const int slot : *pass.slots) *next++ = call.spots[slot].data;
    const bool done =
        pass.each ? execute(pass.each->nest, pass.each->program, isa, data, call.threads, call.poll,
                            call.poll_context)
                  : execute(*pass.folding, data, isa, call.threads, call.poll, call.poll_context);
    if (!done) return false;
  }
  return true;
}

// A piece: all phases, on this thread.
void run_piece(const Call& call, std::int64_t number, char* memory) {
  const Prepared& prepared = call.prepared;
  const Batch& batch = prepared.batch;
  std::int64_t index[kMaxAxes];
  const std::int64_t along = batch.shape[batch.axes - 1];
  const std::int64_t count = (along + batch.piece - 1) / batch.piece;
  std::int64_t outer = number / count;
  index[batch.axes - 1] = number % count * batch.piece;
  for (int axis = batch.axes - 2; axis >= 0; --axis) {
    index[axis] = outer % batch.shape[axis];
    outer /= batch.shape[axis];
  }
  const bool whole = index[batch.axes - 1] + batch.piece <= along;
  char* const scratch = memory + batch.temporary_bytes;
  for (const Pass& pass : whole ? batch.whole : batch.rest) {
    char* data[kMaxOperands];
    char** next = data;
    const std::int64_t* stride = pass.batch_strides.data();
    for (const int s : *pass.slots) {
      const auto k = static_cast<std::size_t>(s);
      const bool piece = prepared.program.slots[k].kind == SlotKind::Piece;
      char* at = piece ? memory + prepared.begin[k] : call.spots[k].data;
      for (int axis = 0; axis < batch.axes; ++axis) at += index[axis] * *stride++;
      *next++ = at;
    }
    if (pass.each) {
      const Nest& nest = pass.each->nest;
      prepared.isa.run(nest, pass.each->program, data, 0, nest.blocks, scratch);
    } else {
      execute_here(*pass.folding, data, prepared.isa, scratch);
    }
  }
}

void run_pieces(const void* context, std::int64_t first, std::int64_t last, char* memory) {
  for (std::int64_t piece = first; piece < last; ++piece) {
    run_piece(*static_cast<const Call*>(context), piece, memory);
  }
}

bool run_batch(const Call& call) {
  const Batch& batch = call.prepared.batch;
  if (batch.pieces == 0) return true;
  // One more line: memory is never null.
  const std::int64_t bytes = batch.temporary_bytes + batch.scratch_bytes + kLine;
  const Work work{run_pieces, &call, batch.pieces, batch.elements, bytes};
  return share_out(work, call.threads, call.poll, call.poll_context);
}

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};

}  // namespace

void DeletePrepared::operator()(const Prepared* prepared) const { delete prepared; }

PreparedPointer prepare(const FusedProgram& program, const Spot* spots, const Isa& isa) {
  auto* const made = new Prepared{program, isa, {}, {}, 0, {}, {}, {}};
  PreparedPointer pointer(made);
  const bool batched = program.batch > 0 && program.first < program.last;
  if (batched) cut_batch(*made);
  lay_out_temporaries(*made);
  const std::vector<Spot> all = with_temporaries(*made, spots, nullptr);
  for (int p = 0; p < static_cast<int>(program.phases.size()); ++p) {
    if (batched && p >= program.first && p < program.last) continue;
    const Phase& phase = program.phases[static_cast<std::size_t>(p)];
    const bool first = batched ? p < program.first : true;
    add_passes(first ? made->before : made->after, *made, phase, phase.shape, all.data(), false);
  }
  if (batched) prepare_batch(*made, all.data());
  return pointer;
}

bool execute(const Prepared& prepared, const Spot* spots, int threads, bool (*poll)(void*),
             void* poll_context) {
  if (prepared.batch.axes == 0 && prepared.temporary_bytes == 0) {
    return run_passes({prepared, spots, threads, poll, poll_context}, prepared.before);
  }
  std::unique_ptr<char, Free> memory;
  if (prepared.temporary_bytes) {
    const auto bytes = static_cast<std::size_t>(prepared.temporary_bytes);
    memory.reset(static_cast<char*>(std::aligned_alloc(kLine, bytes)));
    if (!memory) return false;
  }
  const std::vector<Spot> all = with_temporaries(prepared, spots, memory.get());
  const Call call{prepared, all.data(), threads, poll, poll_context};
  return run_passes(call, prepared.before) && run_batch(call) && run_passes(call, prepared.after);
}

bool execute(const FusedProgram& program, const Spot* spots, const Isa& isa, int threads,
             bool (*poll)(void*), void* poll_context) {
  return execute(*prepare(program, spots, isa), spots, threads, poll, poll_context);
}

}  // namespace zs
