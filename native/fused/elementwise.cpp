#include "elementwise.h"

namespace zs {
namespace {

// Rows of so few elements, and so many of them, are worth code of their own: what it spares for each row,
// counting and stepping, takes as long as 32 elements. (Measured, int8 to float32 in the first cache.)
constexpr std::int64_t kOwnRow = 128, kManyRows = 16;

bool is_short(const Nest& nest) { return nest.below * nest.chunk <= kOwnRow; }

// The elements of every row, where they are worth code of their own; else 0.
int row_of(const Nest& nest) {
  const bool alike = nest.axis[nest.inner].extent % nest.chunk == 0;
  const bool many = nest.blocks * nest.rows >= kManyRows;
  return is_short(nest) && alike && many ? static_cast<int>(nest.below * nest.chunk) : 0;
}

}  // namespace

void lay_over(const Phase& phase, const Slot& slot, const std::int8_t* walk,
              const std::int64_t* slot_strides, std::int64_t* strides) {
  for (int axis = 0; axis < phase.rank; ++axis) {
    const int own = walk[axis];
    strides[axis] = own < 0 || slot.shape[own] == 1 ? 0 : slot_strides[own];
  }
}

void prepare(Elementwise& made, const FusedProgram& program, const Phase& phase,
             const std::int64_t* shape, const Spot* spots, const Isa& isa, bool result) {
  Layout layouts[kMaxOperands] = {};
  std::int64_t strides[kMaxOperands][kMaxAxes];
  int results[kMaxOperands];
  int operands = 0;
  const auto add = [&](int number, const std::int8_t* walk, DType compute) {
    const Slot& slot = program.slots[static_cast<std::size_t>(number)];
    lay_over(phase, slot, walk, spots[number].strides, strides[operands]);
    layouts[operands] = {strides[operands], kSize[static_cast<int>(slot.dtype)],
                         spots[number].aligned && slot.dtype == compute};
    made.slots.push_back(number);
    made.program.memory[operands] = slot.dtype;
    made.program.compute[operands] = compute;
    ++operands;
  };
  for (const Load& load : phase.loads) add(load.slot, load.walk, load.dtype);
  const int inputs = operands;
  for (const Store& store : phase.stores) {
    results[operands - inputs] = store.value;
    add(store.slot, store.walk, dtype_of(phase, store.value));
  }
  std::int64_t elements = 1;
  for (int axis = 0; axis < phase.rank; ++axis) elements *= phase.shape[axis];
  const auto lay_out = [&](bool many) {
    build(made.nest, phase.rank, shape, inputs, operands, layouts, many ? kManyRows : 0);
    if (result) stream_piece(made.nest, elements);
    unsigned splats = 0;
    for (int k = 0; k < inputs; ++k) {
      splats |= static_cast<unsigned>(made.nest.access[k] == Access::Splat) << k;
    }
    return splats;
  };
  // Machine code takes many rows in one call, the interpreter one.
  unsigned splats = lay_out(true);
  const bool past = made.nest.streamed && !has_short_rows(made.nest);
  if (!take_code(made.body, phase, results, operands - inputs, isa, splats, past,
                 row_of(made.nest))) {
    if (is_short(made.nest)) splats = lay_out(false);
    interpret(made.body, phase, results, operands - inputs, isa, splats);
  }
  made.program.inputs = inputs;
  made.program.outputs = operands - inputs;
  made.program.body = run_body;
  made.program.rows = made.body.code ? run_rows : nullptr;
  made.program.past = made.body.past;
  made.program.context = &made.body;
  made.program.body_scratch = made.body.scratch_bytes;
}

}  // namespace zs
