#include "plan_states.h"

#include <algorithm>

#include "../stage.h"
#include "body.h"

namespace zs {
namespace {

// States that a row is added to, where it has axes of less elements: some whole vectors.
constexpr std::int64_t kWide = 128;
// Elements of a group's cut, and units and bytes of states that cutting makes, at most. These say
// which additions are done together, and must not depend on the machine or on threads.
constexpr std::int64_t kCut = 65536;
constexpr std::int64_t kUnits = 128;
constexpr std::int64_t kPartBytes = std::int64_t{1} << 20;

// The operand in whose rows a value lies: a load, or a store made where it belongs. Or -1.
int operand_of(const Nest& nest, int value, const std::vector<int>& stored, unsigned splats) {
  if (value < nest.inputs && !(splats >> value & 1)) return value;
  for (std::size_t j = 0; j < stored.size(); ++j) {
    const int k = nest.inputs + static_cast<int>(j);
    if (stored[j] == value && !is_staged(nest, k)) return k;
  }
  return -1;
}

void number_states(FoldNest& folds) {
  const Nest& nest = folds.nest;
  folds.lanes = nest.chunk;
  if (folds.wide && folds.folded[nest.inner]) {
    folds.lanes = std::min(nest.chunk, pieces_of(kWide, nest.below));
  }
  std::int64_t next = 1;
  for (int i = 0; i <= nest.inner; ++i) {
    folds.state_stride[i] = next;
    if (folds.wide || !folds.folded[i]) {
      next *= i == nest.inner ? folds.lanes : nest.axis[i].extent;
    }
  }
  folds.row_states = next;
  const bool kept = nest.across >= 0 && !folds.folded[nest.across];
  if (nest.across >= 0) folds.state_stride[nest.across] = next;
  folds.states = kept ? next * nest.rows : next;
  folds.state_bytes = 0;
  for (int f = 0; f < folds.folds; ++f) {
    FoldedValue& fold = folds.fold[f];
    fold.a = folds.state_bytes;
    fold.b = fold.a + aligned(folds.states * fold.folder->size);
    folds.state_bytes = fold.b + aligned(folds.states * kWidest);
  }
}

// The state and the position of each run in a row.
void number_runs(Reduction& made) {
  FoldNest& folds = made.folds;
  const Nest& nest = folds.nest;
  const std::int64_t row = nest.below * nest.chunk;
  const std::int64_t runs = folds.wide || nest.inner == 0 ? 1 : row / nest.axis[0].extent;
  for (std::int64_t c = 0; c < runs; ++c) {
    std::int64_t state = 0, position = 0, left = c;
    for (int i = 1; i <= nest.inner; ++i) {
      const std::int64_t all = i == nest.inner ? nest.chunk : nest.axis[i].extent;
      const std::int64_t index = left % all;
      left /= all;
      (folds.folded[i] ? position : state) +=
          index * (folds.folded[i] ? folds.pitch[i] : folds.state_stride[i]);
    }
    made.run_state.push_back(static_cast<std::int32_t>(state));
    made.run_position.push_back(position);
  }
  folds.run_state = made.run_state.data();
  folds.run_position = made.run_position.data();
}

void cut(FoldNest& folds) {
  const Nest& nest = folds.nest;
  folds.cuts = 1;
  if (folds.groups >= kUnits / 2) return;
  const std::int64_t by_work = nest.elements / folds.groups / kCut;
  const std::int64_t by_bytes = kPartBytes / (folds.groups * folds.state_bytes);
  const std::int64_t most = std::min({by_work, by_bytes, kUnits / folds.groups, folds.group});
  folds.cuts = std::max<std::int64_t>(1, most);
}

void measure_scratch(FoldNest& folds) {
  const Nest& nest = folds.nest;
  const bool columns = folds.wide && nest.across >= 0 && folds.folded[nest.across];
  const bool computed = folds.values + nest.operands - nest.inputs > 0;
  folds.batch = !computed ? nest.rows : columns ? std::min(nest.rows, kBatch) : 1;
  // A line more: rows that lie 4 KB apart are in each other's way.
  folds.value_pitch = (nest.below * nest.chunk + kLine - 1) / kLine * kLine + kLine / 4;
  std::int64_t bytes = folds.program.body_scratch + folds.state_bytes;
  bytes += 2 * aligned(folds.states * kWidest);
  for (int v = 0; v < folds.values; ++v) {
    bytes += aligned(folds.batch * folds.value_pitch * size_of(folds.value_dtype[v]));
  }
  for (int k = 0; k < nest.operands; ++k) bytes += stage_bytes(nest, folds.program, k);
  folds.scratch_bytes = aligned(bytes);
}

}  // namespace

void compile_body(Reduction& made, const Phase& phase, const std::vector<int>& stores,
                  const Isa& isa) {
  FoldNest& folds = made.folds;
  const Nest& nest = folds.nest;
  unsigned splats = 0;
  for (int k = 0; k < nest.inputs; ++k) {
    splats |= static_cast<unsigned>(nest.access[k] == Access::Splat) << k;
  }
  std::vector<int> results, values;
  for (const int s : stores) {
    if (phase.stores[static_cast<std::size_t>(s)].fold == Fold::None) results.push_back(phase.stores[static_cast<std::size_t>(s)].value);
  }
  int f = 0;
  for (const int s : stores) {
    const Store& store = phase.stores[static_cast<std::size_t>(s)];
    if (store.fold == Fold::None) continue;
    FoldedValue& fold = folds.fold[f++];
    fold.load = operand_of(nest, store.value, results, splats);
    fold.value = -1;
    if (fold.load >= 0) continue;
    const auto known = std::find(values.begin(), values.end(), store.value);
    fold.value = static_cast<int>(known - values.begin());
    if (known == values.end()) values.push_back(store.value);
  }
  folds.values = static_cast<int>(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    folds.value_dtype[v] = dtype_of(phase, values[v]);
  }
  results.insert(results.end(), values.begin(), values.end());
  Program& program = folds.program;
  program.inputs = nest.inputs;
  program.outputs = static_cast<int>(results.size());
  program.body = run_body;
  program.context = &made.body;
  program.body_scratch = 0;
  if (results.empty()) return;
  if (!take_code(made.body, phase, results.data(), program.outputs, isa, splats, false, 0)) {
    interpret(made.body, phase, results.data(), program.outputs, isa, splats);
  }
  program.body_scratch = made.body.scratch_bytes;
}

void lay_out_states(Reduction& made) {
  number_states(made.folds);
  number_runs(made);
  cut(made.folds);
  measure_scratch(made.folds);
}

}  // namespace zs
