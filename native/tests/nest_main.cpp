// Random nests, computed by the engine and by a loop that knows nothing, compared byte for byte:
// the gaps between an output's elements, too.
//
//   test_nest_main [SEED [CASES]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "../nest.h"
#include "../run.h"
#include "random_cases.h"

namespace {

// Small whole numbers: every dtype but bool holds them exactly.
constexpr int64_t kModulus = 97;

void convert(const void* from, DType from_type, void* to, DType to_type) {
  const zs::Isa& set = zs::isa();
  if (from_type == to_type) {
    std::memcpy(to, from, as_size(size_of(to_type)));
  } else {
    set.convert[static_cast<int>(from_type)][static_cast<int>(to_type)](&from, to, 1);
  }
}

int64_t read(const void* from, DType dtype) {
  alignas(8) char element[8];
  int64_t value;
  std::memcpy(element, from, as_size(size_of(dtype)));
  convert(element, dtype, &value, DType::I64);
  return value;
}

void write(void* to, DType dtype, int64_t value) {
  alignas(8) char element[8];
  convert(&value, DType::I64, element, dtype);
  std::memcpy(to, element, as_size(size_of(dtype)));
}

// The value of output `output`, of values in the dtypes computed in.
int64_t combine(const int64_t* values, int count, int output) {
  int64_t sum = output;
  for (int k = 0; k < count; ++k) sum = (sum * 5 + values[k]) % kModulus;
  return sum;
}

// The program's body: the context is the program. Fails where it is handed what it must not be.
void body(const zs::Isa&, const void* context, const void* const* in, unsigned splats,
          void* const* out, int64_t n, char* scratch) {
  const auto& program = *static_cast<const zs::Program*>(context);
  if (program.body_scratch) {
    std::memset(scratch, 0x5a, as_size(program.body_scratch));
  }
  std::vector<int64_t> values(as_size(program.inputs));
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < program.inputs; ++k) {
      const int64_t size = size_of(program.compute[k]);
      const int64_t at = splats >> k & 1 ? 0 : i;
      if (reinterpret_cast<std::uintptr_t>(in[k]) % static_cast<std::uintptr_t>(size)) std::abort();
      values[as_size(k)] = read(static_cast<const char*>(in[k]) + at * size, program.compute[k]);
    }
    for (int j = 0; j < program.outputs; ++j) {
      const DType dtype = program.compute[program.inputs + j];
      write(static_cast<char*>(out[j]) + i * size_of(dtype), dtype,
            combine(values.data(), program.inputs, j));
    }
  }
}

// An operand with the memory that it lies in, and no byte more.
struct Operand {
  std::vector<int64_t> strides;
  std::unique_ptr<char[]> memory;
  int64_t bytes = 0;
  int64_t first = 0;  // of its first element
  int same_as = -1;   // an output that is exactly this input
};

struct Case {
  std::vector<int64_t> shape;
  zs::Program program{};
  std::vector<Operand> operands;
  int64_t elements = 1;
  bool of_blocks = false;  // as make_shape_of_blocks makes it
  bool in_turns = false;   // as make_shape_in_turns makes it
};

DType some_dtype() { return static_cast<DType>(below(zs::kDTypes)); }

// Transposed planes of several blocks either way, again and again: a block may find in a buffer what an
// earlier one has left there, and is shorter where an axis ends.
void make_shape_of_blocks(Case& made) {
  made.of_blocks = true;
  made.shape = {2 + below(5), 20 + below(150), 70 + below(300)};
  if (chance(60)) made.shape.push_back(2 + below(6));
  if (chance(30)) std::swap(made.shape[0], made.shape[1]);
  for (int64_t& extent : made.shape) {
    extent = std::min(extent, 60000 / made.elements);
    made.elements *= extent;
  }
}

// Axes along which operands stretch in turn: blocks that are kept in buffers until they come again.
void make_shape_in_turns(Case& made) {
  made.in_turns = true;
  made.shape = {2 + below(3), 2 + below(3), 5 + below(20), 5 + below(20), 5 + below(20)};
  if (chance(40)) std::swap(made.shape[0], made.shape[2]);
  for (const int64_t extent : made.shape) made.elements *= extent;
}

// Many rows of a few elements.
void make_shape_of_short_rows(Case& made) {
  made.shape = {100 + below(900), 1 + below(40)};
  if (chance(30)) made.shape.insert(made.shape.begin(), 2 + below(3));
  for (const int64_t extent : made.shape) made.elements *= extent;
}

void make_shape(Case& made) {
  if (chance(8)) return make_shape_of_short_rows(made);
  if (chance(8)) return make_shape_of_blocks(made);
  if (chance(8)) return make_shape_in_turns(made);
  static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 100, 257, 1000, 3000};
  const int64_t most = chance(5) ? 200000 : 5000;
  const int64_t rank = chance(2) ? 64 : below(chance(10) ? 12 : 6);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t extent = extents[below(rank > 20 ? 2 : 15)];
    const bool fits = made.elements * extent <= most && !(rank > 20 && chance(70));
    made.shape.push_back(fits ? extent : 1);
    made.elements *= made.shape.back();
  }
}

// Strides of a dense array with its axes in some order, some of them backwards, some with gaps, and
// (an input) some stretched. Axes of one element have any stride at all.
void make_layout(Operand& operand, const Case& made, int64_t size, bool output) {
  const auto rank = made.shape.size();
  std::vector<std::size_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  if (made.of_blocks && !output && chance(60)) {
    std::swap(order[0], order[rank - 2]);
  } else if (chance(35) && rank > 1) {
    std::shuffle(order.begin(), order.end(), generator);
  }
  operand.strides.assign(rank, 0);
  const int64_t some = made.in_turns ? 50 : chance(made.of_blocks ? 20 : 50) ? 0 : 40;
  const int64_t stretched = output ? 0 : some && chance(10) ? 100 : some;
  const bool odd = chance(25);
  int64_t next = size, low = 0, high = 0;
  for (const std::size_t axis : order) {
    const int64_t extent = made.shape[axis];
    if (extent == 1) {
      operand.strides[axis] = chance(50) ? size : below(1000) * 7;
      continue;
    }
    if (chance(stretched)) continue;
    if (odd && chance(30)) next += (chance(20) ? 1 : size) * (1 + below(3));
    const int64_t stride = odd && chance(40) ? -next : next;
    operand.strides[axis] = stride;
    (stride < 0 ? low : high) += stride * (extent - 1);
    next *= extent;
  }
  const int64_t skew = chance(10) ? 1 + below(7) : 0;
  operand.first = skew - low;
  operand.bytes = operand.first + high + size;
  operand.memory = std::make_unique<char[]>(as_size(operand.bytes));
}

// Each element's place, in C order.
std::vector<int64_t> places(const Case& made, const Operand& operand) {
  std::vector<int64_t> all;
  all.reserve(as_size(made.elements));
  std::vector<int64_t> index(made.shape.size(), 0);
  int64_t at = operand.first;
  for (int64_t e = 0; e < made.elements; ++e) {
    all.push_back(at);
    for (std::size_t i = made.shape.size(); i-- > 0;) {
      at += operand.strides[i];
      if (++index[i] < made.shape[i]) break;
      at -= operand.strides[i] * index[i];
      index[i] = 0;
    }
  }
  return all;
}

void make_operands(Case& made) {
  zs::Program& program = made.program;
  program.inputs = static_cast<int>(chance(5) ? 1 + below(14) : 1 + below(3));
  program.outputs = static_cast<int>(chance(15) ? 1 + below(16 - program.inputs) : 1);
  const int count = program.inputs + program.outputs;
  made.operands.resize(as_size(count));
  const bool one_dtype = chance(50);
  const DType common = some_dtype();
  for (int k = 0; k < count; ++k) {
    program.memory[k] = one_dtype ? common : some_dtype();
    program.compute[k] = chance(60) ? program.memory[k] : some_dtype();
    Operand& operand = made.operands[as_size(k)];
    const bool output = k >= program.inputs;
    make_layout(operand, made, size_of(program.memory[k]), output);
    for (int64_t i = 0; i < operand.bytes; ++i) operand.memory[as_size(i)] = 0x33;
    for (const int64_t at : places(made, operand)) {
      write(operand.memory.get() + at, program.memory[k], below(kModulus));
    }
  }
  // In place: an input that is an output, if each of its elements is another.
  if (!chance(25)) return;
  const auto k = as_size(below(program.inputs));
  const auto out = as_size(program.inputs);
  Operand& input = made.operands[k];
  for (std::size_t i = 0; i < made.shape.size(); ++i) {
    if (made.shape[i] > 1 && input.strides[i] == 0) return;
  }
  if (size_of(program.memory[k]) != size_of(program.memory[out])) return;
  made.operands[out].same_as = static_cast<int>(k);
  made.operands[out].strides = input.strides;
  made.operands[out].first = input.first;
  if (chance(70)) program.memory[out] = program.memory[k];
}

// The same for many rows, of the splats that the nest has.
struct ManyRows {
  zs::Program program;
  unsigned splats;
};

void rows(const void* context, const void* const* in, void* const* out, int64_t n, char* scratch,
          int64_t count, const int64_t* steps, bool) {
  const ManyRows& many = *static_cast<const ManyRows*>(context);
  const zs::Program& program = many.program;
  const void* from[zs::kMaxOperands];
  void* to[zs::kMaxOperands];
  for (int64_t r = 0; r < count; ++r) {
    for (int k = 0; k < program.inputs; ++k) {
      from[k] = static_cast<const char*>(in[k]) + (r ? r * steps[k] : 0);
    }
    for (int j = 0; j < program.outputs; ++j) {
      to[j] = static_cast<char*>(out[j]) + (r ? r * steps[program.inputs + j] : 0);
    }
    body(zs::isa(), &program, from, many.splats, to, n, scratch);
  }
}

void body_of_rows(const zs::Isa& set, const void* context, const void* const* in, unsigned splats,
                  void* const* out, int64_t n, char* scratch) {
  body(set, &static_cast<const ManyRows*>(context)->program, in, splats, out, n, scratch);
}

// Makes a program one that computes many rows in a call.
void by_rows(zs::Program& program, const zs::Nest& nest, ManyRows& many) {
  many = {program, 0};
  for (int k = 0; k < nest.inputs; ++k) {
    many.splats |= static_cast<unsigned>(nest.access[k] == zs::Access::Splat) << k;
  }
  program.body = body_of_rows;
  program.rows = rows;
  program.context = &many;
}

void body_with_scratch(zs::Program& program) {
  program.body = body;
  program.context = &program;
  program.body_scratch = chance(30) ? 64 * (1 + below(4)) : 0;
}

// The memory of each output as it is to be.
std::vector<std::vector<char>> expected(const Case& made) {
  const zs::Program& program = made.program;
  std::vector<std::vector<int64_t>> at;
  std::vector<std::vector<char>> outs;
  for (std::size_t k = 0; k < made.operands.size(); ++k) {
    at.push_back(places(made, made.operands[k]));
    if (static_cast<int>(k) < program.inputs) continue;
    const int same = made.operands[k].same_as;
    const Operand& memory = made.operands[same < 0 ? k : as_size(same)];
    outs.emplace_back(memory.memory.get(), memory.memory.get() + memory.bytes);
  }
  std::vector<int64_t> values(as_size(program.inputs));
  alignas(8) char element[8];
  for (std::size_t e = 0; e < as_size(made.elements); ++e) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      std::memcpy(element, made.operands[k].memory.get() + at[k][e],
                  as_size(size_of(program.memory[k])));
      alignas(8) char computed[8];
      convert(element, program.memory[k], computed, program.compute[k]);
      values[k] = read(computed, program.compute[k]);
    }
    for (int j = 0; j < program.outputs; ++j) {
      const auto k = as_size(program.inputs + j);
      alignas(8) char computed[8];
      write(computed, program.compute[k], combine(values.data(), program.inputs, j));
      convert(computed, program.compute[k], element, program.memory[k]);
      std::memcpy(outs[as_size(j)].data() + at[k][e], element,
                  as_size(size_of(program.memory[k])));
    }
  }
  return outs;
}

bool is_usable(const Case& made, std::size_t k) {
  const Operand& operand = made.operands[k];
  if (made.program.memory[k] != made.program.compute[k]) return false;
  const auto size = size_of(made.program.memory[k]);
  const Operand& owner =
      operand.same_as < 0 ? operand : made.operands[as_size(operand.same_as)];
  int64_t bits =
      static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(owner.memory.get() + operand.first));
  for (std::size_t i = 0; i < made.shape.size(); ++i) {
    if (made.shape[i] > 1) bits |= operand.strides[i];
  }
  return bits % size == 0;
}

void compute(Case& made) {
  zs::Layout layouts[zs::kMaxOperands];
  char* data[zs::kMaxOperands];
  for (std::size_t k = 0; k < made.operands.size(); ++k) {
    Operand& operand = made.operands[k];
    layouts[k] = {operand.strides.data(), size_of(made.program.memory[k]), is_usable(made, k)};
    const auto owner = operand.same_as < 0 ? k : as_size(operand.same_as);
    data[k] = made.operands[owner].memory.get() + operand.first;
  }
  static zs::Nest nest;
  std::memset(static_cast<void*>(&nest), 0x77, sizeof nest);
  zs::build(nest, static_cast<int>(made.shape.size()), made.shape.data(), made.program.inputs,
            static_cast<int>(made.operands.size()), layouts, chance(50) ? 1 + below(20) : 0);
  ManyRows many;
  if (chance(50)) by_rows(made.program, nest, many);
  if (chance(50)) {
    const int threads = 1 + static_cast<int>(below(2));
    if (!zs::execute(nest, made.program, zs::isa(), data, threads, nullptr, nullptr)) std::abort();
    return;
  }
  // In pieces, from any block to any other, with not a byte of scratch too much.
  const auto bytes = as_size(zs::scratch_bytes(nest, made.program));
  char* const scratch = bytes ? static_cast<char*>(std::aligned_alloc(64, bytes)) : nullptr;
  if (scratch) std::memset(scratch, 0x77, bytes);
  for (int64_t first = 0; first < nest.blocks;) {
    const int64_t last = first + 1 + below(nest.blocks - first);
    zs::isa().run(nest, made.program, data, first, last, scratch);
    first = last;
  }
  std::free(scratch);
}

bool agrees(Case& made, unsigned long long seed) {
  const auto wanted = expected(made);
  compute(made);
  for (std::size_t j = 0; j < wanted.size(); ++j) {
    const Operand& output = made.operands[as_size(made.program.inputs) + j];
    const Operand& owner =
        output.same_as < 0 ? output : made.operands[as_size(output.same_as)];
    for (std::size_t i = 0; i < wanted[j].size(); ++i) {
      if (wanted[j][i] == owner.memory[i]) continue;
      std::printf("%s: seed %llu: output %zu differs at byte %zu; shape", zs::isa().name, seed, j,
                  i);
      for (const int64_t extent : made.shape) std::printf(" %lld", static_cast<long long>(extent));
      for (std::size_t k = 0; k < made.operands.size(); ++k) {
        std::printf("\n  %s in %s, strides", zs::kName[static_cast<int>(made.program.memory[k])],
                    zs::kName[static_cast<int>(made.program.compute[k])]);
        for (const int64_t stride : made.operands[k].strides) {
          std::printf(" %lld", static_cast<long long>(stride));
        }
      }
      std::printf("\n");
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  return run_cases({count, arguments, 2000}, "nests", 50, [](unsigned long long seed) {
    Case made;
    make_shape(made);
    make_operands(made);
    body_with_scratch(made.program);
    return agrees(made, seed);
  });
}
