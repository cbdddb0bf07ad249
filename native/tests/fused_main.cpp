// Random programs without folds on random operands, computed by the engine and by a loop over elements
// that knows neither blocks nor registers, compared byte for byte: the gaps between an output's
// elements, too.
//
//   test_fused_main [SEED [CASES]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "../fused/body.h"
#include "../fused/execute.h"
#include "random_cases.h"

namespace {

DType some_dtype() { return static_cast<DType>(below(zs::kDTypes)); }
bool is_half(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

struct Cell {
  alignas(8) char bytes[8];
};

void convert(const void* from, DType from_type, void* to, DType to_type) {
  zs::isa().convert[static_cast<int>(from_type)][static_cast<int>(to_type)](&from, to, 1);
}

Cell some_value(DType dtype) {
  double value = static_cast<double>(below(200) - 60) / (chance(50) ? 1 : 16);
  if (chance(3)) value = std::numeric_limits<double>::quiet_NaN();
  if (chance(3)) value *= 1e30;
  Cell cell{};
  convert(&value, DType::F64, cell.bytes, dtype);
  return cell;
}

// The memory of a slot: its own, and no byte more.
struct Memory {
  std::vector<int64_t> strides;
  std::vector<char> bytes;
  int64_t first = 0;
  int same_as = -1;  // an output that is this input
};

struct Case {
  zs::FusedProgram program{};
  std::vector<Memory> memory;
};

int64_t elements_of(int rank, const int64_t* shape) {
  int64_t elements = 1;
  for (int axis = 0; axis < rank; ++axis) elements *= shape[axis];
  return elements;
}

// A dense array with its axes in some order, some of them backwards, with gaps, at any address.
Memory make_memory(const zs::Slot& slot) {
  Memory made;
  std::vector<int> order;
  for (int axis = slot.rank - 1; axis >= 0; --axis) order.push_back(axis);
  const bool temporary = slot.kind == zs::SlotKind::Temp;
  if (!temporary && chance(40)) std::shuffle(order.begin(), order.end(), generator);
  const bool odd = !temporary && chance(25);
  made.strides.assign(as_size(slot.rank), 0);
  int64_t next = size_of(slot.dtype), low = 0, high = 0;
  for (const int axis : order) {
    if (odd && chance(30)) next += (chance(20) ? 1 : size_of(slot.dtype)) * (1 + below(3));
    const int64_t stride = odd && chance(40) ? -next : next;
    made.strides[as_size(axis)] = stride;
    (stride < 0 ? low : high) += stride * (slot.shape[axis] - 1);
    next *= slot.shape[axis];
  }
  made.first = (!temporary && chance(10) ? 1 + below(7) : 0) - low;
  made.bytes.assign(as_size(made.first + high + size_of(slot.dtype)), 0x33);
  return made;
}

// Calls visit(index) for each point of a box, in C order.
template <class Visit>
void each_point(int rank, const int64_t* shape, const Visit& visit) {
  int64_t index[zs::kMaxAxes] = {};
  for (int64_t e = elements_of(rank, shape); e > 0; --e) {
    visit(index);
    for (int axis = rank - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis) index[axis] = 0;
  }
}

int64_t offset_of(const Memory& memory, const zs::Slot& slot, int rank, const std::int8_t* walk,
                  const int64_t* index) {
  int64_t at = memory.first;
  for (int axis = 0; axis < rank; ++axis) {
    if (walk[axis] >= 0 && slot.shape[walk[axis]] != 1) {
      at += memory.strides[as_size(walk[axis])] * index[axis];
    }
  }
  return at;
}

int add_slot(Case& made, zs::SlotKind kind, int index, DType dtype, const std::vector<int64_t>& shape) {
  zs::Slot slot{kind, index, dtype, static_cast<int>(shape.size()), {}};
  std::copy(shape.begin(), shape.end(), slot.shape);
  made.program.slots.push_back(slot);
  made.memory.push_back(make_memory(slot));
  return static_cast<int>(made.program.slots.size()) - 1;
}

// An array that the box walks in some way: stretched, transposed, with axes of 1 more.
void add_load(Case& made, zs::Phase& phase, DType memory, DType computed) {
  std::vector<int> axes;
  for (int axis = 0; axis < phase.rank; ++axis) {
    if (chance(75)) axes.push_back(axis);
  }
  if (chance(25)) std::shuffle(axes.begin(), axes.end(), generator);
  zs::Load load{};
  load.dtype = computed;
  std::fill_n(load.walk, phase.rank, std::int8_t{-1});
  std::vector<int64_t> shape;
  for (const int axis : axes) {
    load.walk[axis] = static_cast<std::int8_t>(shape.size());
    shape.push_back(chance(15) ? 1 : phase.shape[axis]);
  }
  if (chance(10)) shape.push_back(1);
  load.slot = add_slot(made, zs::SlotKind::Input, made.program.inputs++, memory, shape);
  phase.loads.push_back(load);
  const zs::Slot& slot = made.program.slots.back();
  Memory& lies = made.memory.back();
  std::int8_t whole[zs::kMaxAxes];
  for (int axis = 0; axis < slot.rank; ++axis) whole[axis] = static_cast<std::int8_t>(axis);
  each_point(slot.rank, slot.shape, [&](const int64_t* index) {
    const Cell cell = some_value(slot.dtype);
    std::memcpy(lies.bytes.data() + offset_of(lies, slot, slot.rank, whole, index), cell.bytes,
                as_size(size_of(slot.dtype)));
  });
}

int count_of(const zs::Phase& phase) {
  return static_cast<int>(phase.loads.size() + phase.literals.size() + phase.steps.size());
}

// A value of this dtype: one that there is, or one converted.
int value_of(zs::Phase& phase, DType dtype) {
  const int count = count_of(phase);
  const int wanted = chance(60) ? count - 1 : static_cast<int>(below(count));
  if (zs::dtype_of(phase, wanted) == dtype) return wanted;
  for (int tries = 0; tries < 4; ++tries) {
    const int other = static_cast<int>(below(count));
    if (zs::dtype_of(phase, other) == dtype) return other;
  }
  phase.steps.push_back({nullptr, 1, {wanted}, {zs::dtype_of(phase, wanted), dtype}});
  return count;
}

// The ops of chains.
constexpr const char* kCheap[] = {
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "squared_difference", "square",
    "negative", "abs", "relu", "reciprocal", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_left_shift", "bitwise_right_shift"};

void add_step(zs::Phase& phase, DType common) {
  const zs::Isa& isa = zs::isa();
  const zs::Kernel* kernel = nullptr;
  if (chance(70)) kernel = zs::find_kernel(isa, kCheap[below(17)], common);
  for (int tries = 0; !kernel || (tries && tries < 50 && kernel->in[kernel->inputs - 1] != common);) {
    kernel = &isa.kernels[below(isa.count)];
    ++tries;
  }
  zs::Step step{kernel->op, kernel->inputs, {}, {}};
  for (int i = 0; i < kernel->inputs; ++i) {
    step.dtype[i] = kernel->in[i];
    step.arg[i] = value_of(phase, kernel->in[i]);
  }
  step.dtype[kernel->inputs] = kernel->out;
  if (zs::kernel_of(isa, step) != nullptr) phase.steps.push_back(step);
}

void add_store(Case& made, zs::Phase& phase, zs::SlotKind kind) {
  zs::Store store{};
  store.value = chance(70) ? count_of(phase) - 1 : static_cast<int>(below(count_of(phase)));
  DType memory = zs::dtype_of(phase, store.value);
  if (memory == DType::F32 && chance(30)) memory = chance(50) ? DType::F16 : DType::BF16;
  for (int axis = 0; axis < phase.rank; ++axis) store.walk[axis] = static_cast<std::int8_t>(axis);
  if (chance(20)) std::shuffle(store.walk, store.walk + phase.rank, generator);
  std::vector<int64_t> shape(as_size(phase.rank));
  for (int axis = 0; axis < phase.rank; ++axis) shape[as_size(store.walk[axis])] = phase.shape[axis];
  int& index = made.program.outputs;
  store.slot = add_slot(made, kind, kind == zs::SlotKind::Output ? index++ : 0, memory, shape);
  phase.stores.push_back(store);
}

// The one output takes an input's place, if each of that's elements is another.
void share_memory(Case& made) {
  const zs::Phase& phase = made.program.phases[0];
  if (made.program.phases.size() != 1 || phase.stores.size() != 1 || chance(50)) return;
  const auto out = as_size(phase.stores[0].slot);
  zs::Slot& slot = made.program.slots[out];
  for (const zs::Load& load : phase.loads) {
    const zs::Slot& other = made.program.slots[as_size(load.slot)];
    bool same = size_of(other.dtype) == size_of(slot.dtype) && other.rank == slot.rank &&
                std::equal(load.walk, load.walk + phase.rank, phase.stores[0].walk);
    for (int axis = 0; axis < slot.rank && same; ++axis) same = other.shape[axis] == slot.shape[axis];
    if (!same) continue;
    made.memory[out] = made.memory[as_size(load.slot)];
    made.memory[out].same_as = load.slot;
    return;
  }
}

zs::Phase make_box() {
  static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 257, 1000, 3000};
  zs::Phase phase{};
  const int64_t most = chance(10) ? 60000 : 3000;
  phase.rank = static_cast<int>(below(chance(5) ? 9 : 4));
  int64_t elements = 1;
  for (int axis = 0; axis < phase.rank; ++axis) {
    const int64_t extent = extents[below(14)];
    phase.shape[axis] = elements * extent <= most ? extent : 1;
    elements *= phase.shape[axis];
  }
  return phase;
}

void make(Case& made) {
  const DType common = chance(60) ? DType::F32 : some_dtype();
  const zs::Phase box = make_box();
  const int64_t phases = chance(25) ? 2 + below(2) : 1;
  for (int64_t p = 0; p < phases; ++p) {
    zs::Phase phase = box;
    const int64_t loads = below(chance(10) ? 12 : 4) + (p == 0 && chance(97));
    for (int64_t k = 0; k < loads; ++k) {
      const DType memory = chance(75) ? common : some_dtype();
      const DType computed = chance(85) && !is_half(memory) ? memory : some_dtype();
      add_load(made, phase, memory, computed);
    }
    // What earlier phases stored.
    for (const zs::Phase& before : made.program.phases) {
      for (const zs::Store& store : before.stores) {
        zs::Load load{store.slot, {}, made.program.slots[as_size(store.slot)].dtype};
        std::copy(store.walk, store.walk + phase.rank, load.walk);
        if (chance(60)) phase.loads.push_back(load);
      }
    }
    const int64_t literals = below(3) + phase.loads.empty();
    for (int64_t k = 0; k < literals; ++k) {
      zs::Literal literal{chance(80) ? common : some_dtype(), {}};
      std::memcpy(literal.bytes, some_value(literal.dtype).bytes, 8);
      phase.literals.push_back(literal);
    }
    const int64_t steps = below(chance(5) ? 60 : 12);
    for (int64_t k = 0; k < steps; ++k) add_step(phase, common);
    const int64_t stores = chance(25) ? 1 + below(4) : 1;
    const bool last = p + 1 == phases;
    for (int64_t k = 0; k < stores; ++k) {
      add_store(made, phase, last || chance(30) ? zs::SlotKind::Output : zs::SlotKind::Temp);
    }
    made.program.phases.push_back(std::move(phase));
  }
  share_memory(made);
}

// The result of a step on the values of one element.
Cell compute(const zs::Step& step, const std::vector<Cell>& values) {
  Cell result{};
  const void* in[zs::kMaxInputs] = {};
  for (int i = 0; i < step.args; ++i) in[i] = values[as_size(step.arg[i])].bytes;
  if (step.op == nullptr) {
    convert(in[0], step.dtype[0], result.bytes, step.dtype[1]);
  } else {
    zs::kernel_of(zs::isa(), step)->form[0](in, result.bytes, 1);
  }
  return result;
}

// The memory of each slot as it is to be.
std::vector<Memory> expected(const Case& made) {
  std::vector<Memory> memory = made.memory;
  std::vector<Cell> values;
  for (const zs::Phase& phase : made.program.phases) {
    each_point(phase.rank, phase.shape, [&](const int64_t* index) {
      values.clear();
      const auto at = [&](int number, const std::int8_t* walk) {
        const auto slot = as_size(number);
        return memory[slot].bytes.data() +
               offset_of(memory[slot], made.program.slots[slot], phase.rank, walk, index);
      };
      const auto dtype_at = [&](int number) { return made.program.slots[as_size(number)].dtype; };
      for (const zs::Load& load : phase.loads) {
        Cell raw{}, cell{};
        std::memcpy(raw.bytes, at(load.slot, load.walk), as_size(size_of(dtype_at(load.slot))));
        convert(raw.bytes, dtype_at(load.slot), cell.bytes, load.dtype);
        values.push_back(cell);
      }
      for (const zs::Literal& literal : phase.literals) {
        Cell cell;
        std::memcpy(cell.bytes, literal.bytes, 8);
        values.push_back(cell);
      }
      for (const zs::Step& step : phase.steps) values.push_back(compute(step, values));
      for (const zs::Store& store : phase.stores) {
        Cell cell{};
        convert(values[as_size(store.value)].bytes, zs::dtype_of(phase, store.value), cell.bytes,
                dtype_at(store.slot));
        std::memcpy(at(store.slot, store.walk), cell.bytes, as_size(size_of(dtype_at(store.slot))));
      }
    });
  }
  return memory;
}

bool run(Case& made) {
  std::vector<zs::Spot> spots;
  for (std::size_t s = 0; s < made.memory.size(); ++s) {
    Memory& lies = made.memory[s];
    Memory& owner = lies.same_as < 0 ? lies : made.memory[as_size(lies.same_as)];
    char* const data = owner.bytes.data() + lies.first;
    auto bits = reinterpret_cast<std::uintptr_t>(data);
    for (const int64_t stride : lies.strides) bits |= static_cast<std::uintptr_t>(stride);
    const auto size = static_cast<std::uintptr_t>(size_of(made.program.slots[s].dtype));
    spots.push_back({data, lies.strides.data(), bits % size == 0});
  }
  const int threads = 1 + static_cast<int>(below(2));
  if (!zs::execute(made.program, spots.data(), zs::isa(), threads, nullptr, nullptr)) return false;
  for (Memory& lies : made.memory) {
    if (lies.same_as >= 0) lies.bytes = made.memory[as_size(lies.same_as)].bytes;
  }
  return true;
}

bool is_nan(const char* bytes, DType dtype) {
  if (dtype < DType::F16) return false;
  double value;
  alignas(8) char cell[8];
  std::memcpy(cell, bytes, as_size(size_of(dtype)));
  convert(cell, dtype, &value, DType::F64);
  return std::isnan(value);
}

// Makes all NaNs of an output one: which one an operation gives of two, nothing says.
void unify(Memory& memory, const zs::Slot& slot) {
  std::int8_t whole[zs::kMaxAxes];
  for (int axis = 0; axis < slot.rank; ++axis) whole[axis] = static_cast<std::int8_t>(axis);
  each_point(slot.rank, slot.shape, [&](const int64_t* index) {
    char* const at = memory.bytes.data() + offset_of(memory, slot, slot.rank, whole, index);
    if (is_nan(at, slot.dtype)) std::memset(at, 0x7f, as_size(size_of(slot.dtype)));
  });
}

bool agrees(Case& made, unsigned long long seed) {
  std::vector<Memory> wanted = expected(made);
  if (!run(made)) {
    std::printf("%s: seed %llu: not computed\n", zs::isa().name, seed);
    return false;
  }
  for (std::size_t s = 0; s < made.memory.size(); ++s) {
    const zs::Slot& slot = made.program.slots[s];
    if (slot.kind != zs::SlotKind::Output) continue;
    unify(wanted[s], slot);
    unify(made.memory[s], slot);
    if (wanted[s].bytes == made.memory[s].bytes) continue;
    std::printf("%s: seed %llu: output %d (%s) differs; box", zs::isa().name, seed, slot.index,
                zs::kName[static_cast<int>(slot.dtype)]);
    const zs::Phase& phase = made.program.phases.back();
    for (int axis = 0; axis < phase.rank; ++axis) {
      std::printf(" %lld", static_cast<long long>(phase.shape[axis]));
    }
    for (const zs::Step& step : phase.steps) {
      std::printf("\n  %s", step.op ? step.op : "convert");
      for (int i = 0; i < step.args; ++i) {
        std::printf(" %d:%s", step.arg[i], zs::kName[static_cast<int>(step.dtype[i])]);
      }
    }
    std::printf("\n");
    return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  return run_cases({count, arguments, 1000}, "programs", 30, [](unsigned long long seed) {
    Case made;
    make(made);
    return agrees(made, seed);
  });
}
