// How a phase that folds is cut into blocks, and which results each adds to.
#include <algorithm>
#include <utility>

#include "../stage.h"
#include "elementwise.h"
#include "plan_states.h"
#include "reduce.h"

namespace zs {
namespace {

// Elements of a row that is computed, converted or gathered.
constexpr std::int64_t kRow = 1024;
// ... and of one that is folded where it lies.
constexpr std::int64_t kLongRow = 8192;
// A row shorter than this takes in the next axis.
constexpr std::int64_t kFairRow = 256;
// A folded axis shorter than this lies across rows along a kept one, if there is one that is not
// shorter than kLeastColumns: columns are added up in whole vectors.
constexpr std::int64_t kShortRun = 64;
// But not so many bytes, and more, that are folded where they lie: to transpose them costs as much.
constexpr std::int64_t kShortRunBytes = 128;
constexpr std::int64_t kLeastColumns = 16;
// Elements of a block whose rows are such columns.
constexpr std::int64_t kColumnBlock = 8192;
// Rows that are added to columns where they lie, as kBatch.
constexpr std::int64_t kDirectBatch = 64;
// Runs whose results are stored together.
constexpr std::int64_t kRunRows = 8;
// A block of a transposed operand (nest.cpp says why).
constexpr std::int64_t kAcrossRow = 256;
constexpr std::int64_t kAcrossLines = 2;

// An axis of the box: the strides are the operands', then the results'.
struct BoxAxis {
  Axis axis;
  bool folded;
  std::int64_t pitch;
};

class Planner {
 public:
  Planner(Reduction& made, const FusedProgram& program, const Phase& phase,
          const std::int64_t* shape, const Spot* spots, const Isa& isa)
      : made_(made),
        folds_(made.folds),
        nest_(made.folds.nest),
        program_(program),
        phase_(phase),
        shape_(shape),
        spots_(spots),
        isa_(isa) {}

  void plan(const std::vector<int>& stores) {
    add_operands(stores);
    collect();
    if (made_.empty) return;
    orient();
    order();
    merge();
    choose();
    settle();
    loop();
    compile_body(made_, phase_, stores, isa_);
    lay_out_states(made_);
  }

 private:
  // --- The phase ---

  void add_operand(const Layout& layout, DType memory, DType compute) {
    const int k = nest_.operands++;
    nest_.size[k] = layout.size;
    nest_.usable[k] = layout.usable;
    nest_.offset[k] = 0;
    folds_.program.memory[k] = memory;
    folds_.program.compute[k] = compute;
  }

  void add_operands(const std::vector<int>& stores) {
    nest_.operands = 0;
    folds_.folds = 0;
    folds_.positions = false;
    const auto add = [&](int number, const std::int8_t* walk, DType compute) {
      const Slot& slot = slot_of(number);
      strides_.emplace_back(kMaxAxes);
      lay_over(phase_, slot, walk, spots_[number].strides, strides_.back().data());
      made_.slots.push_back(number);
      const bool usable = spots_[number].aligned && slot.dtype == compute;
      add_operand({nullptr, size_of(slot.dtype), usable}, slot.dtype, compute);
    };
    for (const Load& load : phase_.loads) add(load.slot, load.walk, load.dtype);
    nest_.inputs = nest_.operands;
    for (const int s : stores) {
      const Store& store = store_of(s);
      if (store.fold == Fold::None) add(store.slot, store.walk, dtype_of(phase_, store.value));
    }
    for (const int s : stores) {
      if (store_of(s).fold != Fold::None) add_fold(store_of(s));
    }
    total_ = nest_.operands + folds_.folds;
  }

  void add_fold(const Store& store) {
    FoldedValue& fold = folds_.fold[folds_.folds++];
    const Slot& slot = slot_of(store.slot);
    strides_.emplace_back(kMaxAxes);
    lay_over(phase_, slot, store.walk, spots_[store.slot].strides, strides_.back().data());
    made_.slots.push_back(store.slot);
    fold.compute = dtype_of(phase_, store.value);
    fold.folder = &isa_.fold[static_cast<int>(store.fold)][static_cast<int>(fold.compute)];
    fold.memory = slot.dtype;
    fold.usable = spots_[store.slot].aligned && slot.dtype == fold.folder->out;
    fold.offset = 0;
    folds_.positions |= store.fold == Fold::ArgMin || store.fold == Fold::ArgMax;
    folded_ = folded_axes(program_, phase_, store, shape_);
  }

  // Axes of more than one element, innermost first.
  void collect() {
    std::int64_t pitch = 1;
    nest_.elements = 1;
    made_.empty = false;
    for (int i = phase_.rank - 1; i >= 0; --i) {
      const bool folded = folded_ >> i & 1;
      nest_.elements *= shape_[i];
      if (shape_[i] == 0) made_.empty = true;
      if (shape_[i] == 1) continue;
      BoxAxis made{};
      made.axis.extent = shape_[i];
      for (std::size_t k = 0; k < strides_.size(); ++k) {
        made.axis.stride[k] = strides_[k][static_cast<std::size_t>(i)];
      }
      made.folded = folded;
      made.pitch = folded ? pitch : 0;
      if (folded) pitch *= shape_[i];
      axes_.push_back(made);
    }
    if (made_.empty) return keep_shape();
    if (!axes_.empty()) return;
    // One element is a run like any other.
    BoxAxis one{};
    one.axis.extent = 1;
    one.folded = true;
    for (int k = 0; k < nest_.operands; ++k) one.axis.stride[k] = nest_.size[k];
    axes_.push_back(one);
  }

  // Of an empty box.
  void keep_shape() {
    made_.kept_strides.resize(static_cast<std::size_t>(folds_.folds));
    for (const BoxAxis& each : axes_) {
      if (each.folded) continue;
      made_.kept.push_back(each.axis.extent);
      for (int f = 0; f < folds_.folds; ++f) {
        made_.kept_strides[static_cast<std::size_t>(f)].push_back(
            each.axis.stride[nest_.operands + f]);
      }
    }
  }

  // --- The axes' order ---

  // Walks an axis from its other end where more operands would be walked forwards. (Not where
  // positions are counted along it: the first of equals is the first that is met.)
  void orient() {
    for (BoxAxis& each : axes_) {
      if (each.folded && folds_.positions) continue;
      int backwards = 0;
      for (int k = 0; k < total_; ++k) {
        backwards += (each.axis.stride[k] < 0) - (each.axis.stride[k] > 0);
      }
      if (backwards <= 0) continue;
      for (int k = 0; k < total_; ++k) {
        std::int64_t& stride = each.axis.stride[k];
        const std::int64_t offset = stride * (each.axis.extent - 1);
        (k < nest_.operands ? nest_.offset[k] : folds_.fold[k - nest_.operands].offset) += offset;
        stride = -stride;
      }
    }
  }

  // Bytes of operand k in memory.
  std::int64_t bytes_of(int k) const {
    std::int64_t bytes = nest_.size[k];
    for (const BoxAxis& each : axes_) {
      if (each.axis.stride[k] != 0) bytes *= each.axis.extent;
    }
    return bytes;
  }

  // By stored bytes, then by loaded bytes, the largest first.
  void order() {
    std::vector<int> by;
    for (int k = nest_.inputs; k < nest_.operands; ++k) by.push_back(k);
    for (int k = 0; k < nest_.inputs; ++k) by.push_back(k);
    std::stable_sort(by.begin() + (nest_.operands - nest_.inputs), by.end(),
                     [&](int a, int b) { return bytes_of(a) > bytes_of(b); });
    const auto inside = [&](const BoxAxis& a, const BoxAxis& b) {
      for (const int k : by) {
        const std::int64_t x = magnitude(a.axis.stride[k]), y = magnitude(b.axis.stride[k]);
        if (x != y && x && y) return x < y;
      }
      return false;
    };
    // Insertion: "inside" is no order that std::sort would take.
    for (std::size_t i = 1; i < axes_.size(); ++i) {
      for (std::size_t j = i; j > 0 && inside(axes_[j], axes_[j - 1]); --j) {
        std::swap(axes_[j], axes_[j - 1]);
      }
    }
    if (folds_.positions) order_positions();
  }

  // Puts the folded axes, where they stand among the others, into C order.
  void order_positions() {
    std::vector<BoxAxis> folded;
    for (const BoxAxis& each : axes_) {
      if (each.folded) folded.push_back(each);
    }
    std::stable_sort(folded.begin(), folded.end(),
                     [](const BoxAxis& a, const BoxAxis& b) { return a.pitch < b.pitch; });
    auto next = folded.begin();
    for (BoxAxis& each : axes_) {
      if (each.folded) each = *next++;
    }
  }

  bool follows(const BoxAxis& into, const BoxAxis& next) const {
    if (into.folded != next.folded) return false;
    for (int k = 0; k < total_; ++k) {
      if (next.axis.stride[k] != into.axis.stride[k] * into.axis.extent) return false;
    }
    return !into.folded || !folds_.positions || next.pitch == into.pitch * into.axis.extent;
  }

  void merge() {
    std::size_t last = 0;
    for (std::size_t i = 1; i < axes_.size(); ++i) {
      if (follows(axes_[last], axes_[i])) {
        axes_[last].axis.extent *= axes_[i].axis.extent;
      } else if (++last != i) {
        axes_[last] = axes_[i];
      }
    }
    axes_.resize(last + 1);
  }

  // --- Blocks ---

  std::int64_t extent(int i) const { return axes_[static_cast<std::size_t>(i)].axis.extent; }
  std::int64_t stride(int i, int k) const {
    return axes_[static_cast<std::size_t>(i)].axis.stride[k];
  }
  bool folded(int i) const { return axes_[static_cast<std::size_t>(i)].folded; }
  int count() const { return static_cast<int>(axes_.size()); }

  // The first axis from `from` on that is (or is not) folded, or -1.
  int first_axis(int from, bool wanted) const {
    for (int i = from; i < count(); ++i) {
      if (folded(i) == wanted) return i;
    }
    return -1;
  }

  void move_axis(int from, int to) {
    const auto first = axes_.begin() + std::min(from, to);
    const auto last = axes_.begin() + std::max(from, to);
    if (from < to) {
      std::rotate(first, first + 1, last + 1);
    } else {
      std::rotate(first, last, last + 1);
    }
  }

  // The block.
  void choose() {
    nest_.inner = 0;
    nest_.below = 1;
    nest_.across = -1;
    nest_.rows = 1;
    bool buffers = phase_.steps.size() > 0;
    for (int k = 0; k < nest_.operands; ++k) {
      buffers |= !nest_.usable[k] || stride(0, k) != nest_.size[k];
    }
    std::int64_t most = buffers ? kRow : kLongRow;
    if (!lay_short_runs_across(most)) {
      lengthen();
      if (folded(0)) {
        choose_across_runs(most);
      } else {
        choose_across_columns(buffers, most);
      }
    }
    const std::int64_t whole = extent(nest_.inner);
    const std::int64_t wanted = std::max<std::int64_t>(1, most / nest_.below);
    nest_.chunk = pieces_of(whole, pieces_of(whole, wanted));
    // Whole lines, and lanes, but for the last.
    if (nest_.chunk < whole && nest_.inner == 0) {
      nest_.chunk = std::min(whole, (nest_.chunk + kLine - 1) / kLine * kLine);
    }
  }

  // Takes axes into the row until it is long enough.
  void lengthen() {
    std::int64_t row = extent(0);
    while (row < kFairRow && nest_.inner + 1 < count()) {
      nest_.below = row;
      row *= extent(++nest_.inner);
    }
  }

  bool lay_short_runs_across(std::int64_t& most) {
    // The stores would be transposed as well.
    if (!folded(0) || extent(0) >= kShortRun || nest_.operands > nest_.inputs) return false;
    const bool in_place = phase_.steps.empty() && nest_.operands == 1 && nest_.usable[0];
    const std::int64_t run_bytes = extent(0) * nest_.size[0];
    if (in_place && stride(0, 0) == nest_.size[0] && run_bytes >= kShortRunBytes) return false;
    const int columns = first_axis(1, false);
    if (columns < 0 || extent(columns) < kLeastColumns) return false;
    const std::int64_t rows = extent(0);
    move_axis(columns, 0);
    int across = 1;
    if (extent(0) < kFairRow && count() > 2 && !folded(2)) {
      move_axis(2, 1);
      nest_.below = extent(0);
      nest_.inner = 1;
      across = 2;
    }
    nest_.across = across;
    nest_.rows = rows;
    most = std::clamp(kColumnBlock / rows / kLine * kLine, 2 * kLine, kRow);
    return true;
  }

  // The axis beyond the row along which a transposed operand is contiguous, or -1.
  int transposed_axis() const {
    for (int k = 0; k < nest_.operands; ++k) {
      if (stride(0, k) == 0 || magnitude(stride(0, k)) == nest_.size[k]) continue;
      for (int i = nest_.inner + 1; i < count(); ++i) {
        if (magnitude(stride(i, k)) == nest_.size[k]) return i;
      }
    }
    return -1;
  }

  void take_transposed(int axis, std::int64_t& most) {
    nest_.across = axis;
    nest_.rows = std::min(extent(axis), kAcrossLines * kLine / 4);
    most = kAcrossRow;
  }

  void choose_across_runs(std::int64_t& most) {
    const int cross = transposed_axis();
    if (cross >= 0 && !(folds_.positions && folded(cross))) return take_transposed(cross, most);
    const int kept = first_axis(nest_.inner + 1, false);
    if (kept < 0 || nest_.below * extent(nest_.inner) > most) return;
    nest_.across = kept;
    nest_.rows = std::min(extent(kept), kRunRows);
  }

  void choose_across_columns(bool buffers, std::int64_t& most) {
    // Accumulators are a row, too.
    if (!buffers && !folded(nest_.inner)) most = 2 * kRow;
    bool folded_inside = false;
    for (int i = 0; i <= nest_.inner; ++i) folded_inside |= folded(i);
    const int across = first_axis(nest_.inner + 1, true);
    const int cross = transposed_axis();
    // Positions rise along a column only if the folded axes are walked in their order.
    const bool any = !folds_.positions || !folded_inside;
    if (cross >= 0 && (!folded(cross) || (any && (!folds_.positions || cross == across)))) {
      return take_transposed(cross, most);
    }
    if (across < 0 || !any) return;
    nest_.across = across;
    nest_.rows = std::min(extent(across), buffers ? kBatch : kDirectBatch);
  }

  // The nest's own axes.
  void settle() {
    nest_.axes = count();
    for (int i = 0; i < count(); ++i) {
      const BoxAxis& from = axes_[static_cast<std::size_t>(i)];
      nest_.axis[i] = from.axis;
      folds_.folded[i] = from.folded;
      folds_.pitch[i] = from.pitch;
      for (int f = 0; f < folds_.folds; ++f) {
        folds_.fold[f].stride[i] = from.folded ? 0 : from.axis.stride[nest_.operands + f];
      }
    }
    for (int k = 0; k < nest_.operands; ++k) nest_.access[k] = access_of(nest_, k, nest_.inner);
    nest_.streamed = false;
    nest_.asked = 0;
    folds_.wide = !folds_.folded[0];
  }

  // Loops along folded axes are innermost; then those along which operands that are expensive to buffer
  // repeat.
  void loop() {
    nest_.loops = 0;
    folds_.group = folds_.groups = 1;
    for (const bool folding : {true, false}) {
      int moving[kMaxAxes];
      const int first = nest_.loops;
      for (int i = nest_.inner; i < nest_.axes; ++i) {
        if (folds_.folded[i] != folding) continue;
        const std::int64_t step =
            i == nest_.inner ? nest_.chunk : i == nest_.across ? nest_.rows : 1;
        const std::int64_t loops = pieces_of(nest_.axis[i].extent, step);
        if (loops == 1) continue;
        (folding ? folds_.group : folds_.groups) *= loops;
        int move = 0;
        for (int k = 0; k < nest_.inputs && !folding; ++k) {
          move += nest_.axis[i].stride[k] != 0 && is_dear(nest_, k);
        }
        int at = nest_.loops++;
        for (; at > first && moving[at - 1] > move; --at) {
          moving[at] = moving[at - 1];
          nest_.loop_axis[at] = nest_.loop_axis[at - 1];
          nest_.loop_step[at] = nest_.loop_step[at - 1];
          nest_.loop_count[at] = nest_.loop_count[at - 1];
        }
        moving[at] = move;
        nest_.loop_axis[at] = i;
        nest_.loop_step[at] = step;
        nest_.loop_count[at] = loops;
      }
      if (folding) folds_.folding_loops = nest_.loops;
    }
    nest_.blocks = folds_.group * folds_.groups;
  }

  const Slot& slot_of(int number) const { return program_.slots[static_cast<std::size_t>(number)]; }
  const Store& store_of(int number) const {
    return phase_.stores[static_cast<std::size_t>(number)];
  }

  Reduction& made_;
  FoldNest& folds_;
  Nest& nest_;
  const FusedProgram& program_;
  const Phase& phase_;
  const std::int64_t* shape_;
  const Spot* spots_;
  const Isa& isa_;
  std::vector<std::vector<std::int64_t>> strides_;  // the operands', then the results'
  std::vector<BoxAxis> axes_;
  std::uint64_t folded_ = 0;  // axes of the box
  int total_ = 0;             // operands and results
};

}  // namespace

std::uint64_t folded_axes(const FusedProgram& program, const Phase& phase, const Store& store,
                          const std::int64_t* shape) {
  const Slot& slot = program.slots[static_cast<std::size_t>(store.slot)];
  std::uint64_t folded = 0;
  for (int i = 0; i < phase.rank; ++i) {
    const int own = store.walk[i];
    const bool one = own < 0 || (slot.shape[own] == 1 && shape[i] != 1);
    folded |= static_cast<std::uint64_t>(one) << i;
  }
  return folded;
}

void prepare(Reduction& made, const FusedProgram& program, const Phase& phase,
             const std::int64_t* shape, const std::vector<int>& stores, const Spot* spots,
             const Isa& isa) {
  Planner(made, program, phase, shape, spots, isa).plan(stores);
}

}  // namespace zs
