#include "reduce.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "../launch.h"
#include "../pool.h"
#include "../sizes.h"

namespace zs {
namespace {

struct FoldRun {
  const Reduction& made;
  const Isa& isa;
  char* const* data;
  char* parts;
};

void run_units(const void* context, std::int64_t first, std::int64_t last, char* memory) {
  const FoldRun& run = *static_cast<const FoldRun*>(context);
  run.isa.run_folds(run.made.folds, run.data, first, last, run.parts, memory);
}

std::int64_t units_of(const FoldNest& folds) { return folds.groups * folds.cuts; }

std::int64_t part_bytes(const FoldNest& folds) {
  return folds.cuts > 1 ? units_of(folds) * folds.state_bytes : 0;
}

// Stores the neutral value of each fold to each result of an empty box.
void store_nothing(const Reduction& made, char* const* data, const Isa& isa) {
  const FoldNest& folds = made.folds;
  for (const std::int64_t extent : made.kept) {
    if (extent == 0) return;
  }
  for (int f = 0; f < folds.folds; ++f) {
    const FoldedValue& fold = folds.fold[f];
    const std::vector<std::int64_t>& strides = made.kept_strides[static_cast<std::size_t>(f)];
    alignas(kWidest) char a[kWidest], b[kWidest], done[kWidest], raw[kWidest];
    fold.folder->begin(a, b, 1);
    fold.folder->finish(a, b, done, 1);
    const void* const in = done;
    const auto from = static_cast<int>(fold.folder->out), to = static_cast<int>(fold.memory);
    isa.convert[from][to](&in, raw, 1);
    std::int64_t index[kMaxAxes] = {};  // no vector: a worker of the pool may be here
    char* at = data[folds.nest.operands + f];
    for (bool more = true; more;) {
      std::copy_n(raw, size_of(fold.memory), at);
      more = false;
      for (std::size_t i = 0; i < made.kept.size() && !more; ++i) {
        at += strides[i];
        more = ++index[i] < made.kept[i];
        if (more) break;
        at -= strides[i] * made.kept[i];
        index[i] = 0;
      }
    }
  }
}

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};

}  // namespace

bool execute(const Reduction& made, char* const* data, const Isa& isa, int threads,
             bool (*poll)(void*), void* poll_context) {
  if (made.empty) {
    store_nothing(made, data, isa);
    return true;
  }
  const FoldNest& folds = made.folds;
  const std::int64_t bytes = part_bytes(folds);
  std::unique_ptr<char, Free> parts;
  if (bytes) {
    parts.reset(static_cast<char*>(std::aligned_alloc(kLine, static_cast<std::size_t>(bytes))));
    if (!parts) return false;
  }
  const FoldRun run{made, isa, data, parts.get()};
  const Work work{run_units, &run, units_of(folds), folds.nest.elements, folds.scratch_bytes};
  if (!share_out(work, threads, poll, poll_context)) return false;
  if (!bytes) return true;
  char* const memory = scratch(folds.scratch_bytes);
  if (memory == nullptr) return false;
  isa.join_folds(folds, data, parts.get(), memory);
  return true;
}

std::int64_t scratch_bytes(const Reduction& made) {
  return made.empty ? 0 : made.folds.scratch_bytes + part_bytes(made.folds);
}

void execute_here(const Reduction& made, char* const* data, const Isa& isa, char* scratch) {
  if (made.empty) return store_nothing(made, data, isa);
  char* const parts = scratch + made.folds.scratch_bytes;
  isa.run_folds(made.folds, data, 0, units_of(made.folds), parts, scratch);
  if (made.folds.cuts > 1) isa.join_folds(made.folds, data, parts, scratch);
}

}  // namespace zs
