#include "elementwise.h"

namespace zs {

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
  build(made.nest, phase.rank, shape, inputs, operands, layouts);
  if (result) {
    std::int64_t elements = 1;
    for (int axis = 0; axis < phase.rank; ++axis) elements *= phase.shape[axis];
    stream_piece(made.nest, elements);
  }
  unsigned splats = 0;
  for (int k = 0; k < inputs; ++k) {
    splats |= static_cast<unsigned>(made.nest.access[k] == Access::Splat) << k;
  }
  compile(made.body, phase, results, operands - inputs, isa, splats, made.nest.streamed);
  made.program.inputs = inputs;
  made.program.outputs = operands - inputs;
  made.program.body = run_body;
  made.program.rows = made.body.code ? run_rows : nullptr;
  made.program.past = made.body.past;
  made.program.context = &made.body;
  made.program.body_scratch = made.body.scratch_bytes;
}

}  // namespace zs
