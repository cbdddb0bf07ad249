// Random programs with folds, and the arrays that they read and write.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../fused/body.h"
#include "random_cases.h"

namespace {

using zs::Fold;

inline bool is_float(DType dtype) { return dtype >= DType::F16; }

// Values are small whole numbers, whose sums are exact in every order; or NaN.
constexpr int64_t kNan = INT64_MIN + 1;

void put(void* to, DType dtype, int64_t value) {
  const double number = value == kNan ? std::nan("") : static_cast<double>(value);
  const void* const from = is_float(dtype) ? static_cast<const void*>(&number) : &value;
  const DType own = is_float(dtype) ? DType::F64 : DType::I64;
  alignas(8) char element[8];
  zs::isa().convert[static_cast<int>(own)][static_cast<int>(dtype)](&from, element, 1);
  std::memcpy(to, element, as_size(size_of(dtype)));
}

int64_t get(const void* from, DType dtype) {
  alignas(8) char element[8];
  std::memcpy(element, from, as_size(size_of(dtype)));
  const void* const in = element;
  double number;
  int64_t value;
  if (is_float(dtype)) {
    zs::isa().convert[static_cast<int>(dtype)][static_cast<int>(DType::F64)](&in, &number, 1);
    return std::isnan(number) ? kNan : static_cast<int64_t>(number);
  }
  zs::isa().convert[static_cast<int>(dtype)][static_cast<int>(DType::I64)](&in, &value, 1);
  return value;
}

// A value as a dtype holds it: integers wrap.
int64_t held(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::Bool: return value != 0;
    case DType::I8: return static_cast<std::int8_t>(value);
    case DType::U8: return static_cast<std::uint8_t>(value);
    case DType::I16: return static_cast<std::int16_t>(value);
    case DType::U16: return static_cast<std::uint16_t>(value);
    case DType::I32: return static_cast<std::int32_t>(value);
    case DType::U32: return static_cast<std::uint32_t>(value);
    default: return value;
  }
}

// The same of a value that may be another dtype's.
int64_t loaded(int64_t value, DType dtype) {
  if (value == kNan && !is_float(dtype)) return dtype == DType::Bool;
  return held(value, dtype);
}

// --- Arrays ---

struct Array {
  DType dtype;
  std::vector<int64_t> shape, strides;
  std::vector<char> memory;  // and not a byte more
  int64_t first = 0;

  char* at(const int64_t* place) {
    char* element = memory.data() + first;
    for (std::size_t i = 0; i < shape.size(); ++i) element += strides[i] * place[i];
    return element;
  }
};

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

// Dense, with its axes in some order, some backwards, some with gaps.
Array make_array(DType dtype, const std::vector<int64_t>& shape) {
  Array made{dtype, shape, std::vector<int64_t>(shape.size(), 0), {}, 0};
  std::vector<std::size_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  if (chance(35)) std::shuffle(order.begin(), order.end(), generator);
  const bool odd = chance(25);
  int64_t next = size_of(dtype), low = 0, high = 0;
  for (const std::size_t axis : order) {
    if (odd && chance(30)) next += size_of(dtype) * (1 + below(3));
    const int64_t stride = odd && chance(40) ? -next : next;
    made.strides[axis] = stride;
    (stride < 0 ? low : high) += stride * (std::max<int64_t>(shape[axis], 1) - 1);
    next *= std::max<int64_t>(shape[axis], 1);
  }
  const int64_t skew = chance(10) ? 1 + below(7) : 0;
  made.first = skew - low;
  made.memory.assign(as_size(made.first + high + size_of(dtype)), 0x33);
  return made;
}

// Calls take(place) for each place of a box, in C order.
template <class Take>
void walk_box(const std::vector<int64_t>& shape, const Take& take) {
  std::vector<int64_t> place(shape.size(), 0);
  for (int64_t left = product(shape); left > 0; --left) {
    take(place.data());
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++place[i] < shape[i]) break;
      place[i] = 0;
    }
  }
}

// --- Programs ---

struct Case {
  zs::FusedProgram program{};
  std::vector<Array> arrays;  // one for each slot
  bool products = false;      // values are 1 and -1: no product leaves the range
};

zs::Slot make_slot(zs::SlotKind kind, int number, DType dtype, const std::vector<int64_t>& shape) {
  zs::Slot slot{kind, number, dtype, static_cast<int>(shape.size()), {}};
  std::copy(shape.begin(), shape.end(), slot.shape);
  return slot;
}

int add_slot(Case& made, zs::SlotKind kind, DType dtype, const std::vector<int64_t>& shape) {
  int& count = kind == zs::SlotKind::Input ? made.program.inputs : made.program.outputs;
  const bool outside = kind == zs::SlotKind::Input || kind == zs::SlotKind::Output;
  made.program.slots.push_back(make_slot(kind, outside ? count++ : 0, dtype, shape));
  made.arrays.push_back(make_array(dtype, shape));
  return static_cast<int>(made.program.slots.size()) - 1;
}

std::vector<int64_t> make_shape() {
  static const int64_t extents[] = {1, 2, 3, 5, 8, 15, 16, 31, 40, 64, 100, 300, 700, 1500, 5000};
  const int64_t most = chance(10) ? 400000 : 20000;
  std::vector<int64_t> shape;
  for (int64_t i = below(6); i > 0; --i) {
    const int64_t extent = extents[below(15)];
    shape.push_back(product(shape) * extent <= most ? extent : 1);
  }
  if (!shape.empty() && chance(3)) shape[as_size(below(static_cast<int64_t>(shape.size())))] = 0;
  return shape;
}

// Some of the box's axes, in order.
void choose_axes(const std::vector<int64_t>& box, int64_t percent, int from, std::int8_t* walk,
                 std::vector<int64_t>& shape) {
  shape.clear();
  for (std::size_t i = 0; i < box.size(); ++i) {
    const bool taken = static_cast<int>(i) < from || chance(percent);
    walk[i] = taken ? static_cast<std::int8_t>(shape.size()) : std::int8_t{-1};
    if (taken) shape.push_back(box[i]);
  }
}

void fill(Case& made, Array& array) {
  const bool nans = is_float(array.dtype) && chance(10);
  walk_box(array.shape, [&](const int64_t* place) {
    int64_t value = made.products ? 1 - 2 * below(2) : below(9);
    if (nans && chance(1)) value = kNan;
    put(array.at(place), array.dtype, value);
  });
}

zs::Phase make_phase(const std::vector<int64_t>& box) {
  zs::Phase phase{};
  phase.rank = static_cast<int>(box.size());
  std::copy(box.begin(), box.end(), phase.shape);
  return phase;
}

const char* some_op(const Case& made, DType dtype) {
  if (dtype == DType::Bool) return nullptr;
  return made.products || chance(40) ? "multiply" : "add";
}

// Loads and steps of one dtype. The last value is the result.
void add_values(Case& made, zs::Phase& phase, const std::vector<int64_t>& box, DType dtype) {
  const int64_t loads = 1 + below(3);
  for (int64_t k = 0; k < loads; ++k) {
    zs::Load load{};
    std::vector<int64_t> shape;
    choose_axes(box, k == 0 ? 90 : 60, 0, load.walk, shape);
    const bool small = chance(20) && !made.products;
    load.slot = add_slot(made, zs::SlotKind::Input, small ? DType::BF16 : dtype, shape);
    load.dtype = dtype;
    fill(made, made.arrays.back());
    phase.loads.push_back(load);
  }
  int last = 0;
  for (int64_t s = 0; s < loads - 1 + (chance(30) ? 1 : 0); ++s) {
    zs::Step step{some_op(made, dtype), 2, {}, {dtype, dtype, dtype}};
    if (step.op == nullptr) break;
    step.arg[0] = last;
    step.arg[1] = static_cast<int>(s + 1 < loads ? s + 1 : 0);
    last = static_cast<int>(loads + s);
    phase.steps.push_back(step);
  }
}

std::vector<Fold> folds_of(const Case& made, DType dtype) {
  if (dtype == DType::Bool) {
    return {Fold::Any, Fold::All, Fold::Min, Fold::Max, Fold::ArgMin, Fold::ArgMax};
  }
  if (made.products) return {Fold::Prod, Fold::Max, Fold::Sum};
  return {Fold::Sum, Fold::Min, Fold::Max, Fold::ArgMin, Fold::ArgMax};
}

void add_store(Case& made, zs::Phase& phase, const std::vector<int64_t>& box, int value, Fold fold,
               const std::int8_t* walk) {
  zs::Store store{value, 0, {}, fold};
  std::vector<int64_t> shape;
  for (std::size_t i = 0; i < box.size(); ++i) {
    store.walk[i] = walk[i] < 0 ? std::int8_t{-1} : static_cast<std::int8_t>(shape.size());
    if (walk[i] >= 0) shape.push_back(box[i]);
  }
  const DType own = zs::dtype_of(phase, value);
  DType dtype = fold == Fold::ArgMin || fold == Fold::ArgMax ? DType::I64 : own;
  if (dtype == DType::F32 && chance(20)) dtype = DType::BF16;
  store.slot = add_slot(made, zs::SlotKind::Output, dtype, shape);
  phase.stores.push_back(store);
}

// One phase.
void make_single(Case& made) {
  static const DType dtypes[] = {DType::F32, DType::F64, DType::F32, DType::F64, DType::I64,
                                 DType::I32, DType::U8,  DType::I16, DType::Bool};
  const std::vector<int64_t> box = make_shape();
  const DType dtype = dtypes[below(9)];
  made.products = dtype != DType::Bool && chance(10);
  zs::Phase phase = make_phase(box);
  add_values(made, phase, box, dtype);
  const int values = static_cast<int>(phase.loads.size() + phase.steps.size());
  std::int8_t walk[zs::kMaxAxes];
  std::vector<int64_t> shape;
  choose_axes(box, 50, 0, walk, shape);
  const std::vector<Fold> folds = folds_of(made, dtype);
  for (int64_t f = 1 + below(3); f > 0; --f) {
    const int value = chance(70) ? values - 1 : static_cast<int>(below(values));
    if (chance(8)) choose_axes(box, 50, 0, walk, shape);
    const Fold fold = folds[as_size(below(static_cast<int64_t>(folds.size())))];
    add_store(made, phase, box, value, fold, walk);
  }
  if (chance(25)) {
    choose_axes(box, 100, 0, walk, shape);
    add_store(made, phase, box, values - 1, Fold::None, walk);
  }
  made.program.phases.push_back(phase);
}

// A statistic of rows, another that reads it, and an element-wise phase that reads both; in pieces.
void make_batch(Case& made) {
  static const DType dtypes[] = {DType::F32, DType::F64, DType::I64, DType::I32};
  const DType dtype = dtypes[below(4)];
  static const int64_t rows[] = {1, 2, 7, 16, 50, 333, 3000};
  static const int64_t lengths[] = {1, 3, 16, 33, 64, 300, 1024, 2500};
  const int axes = chance(60) ? 1 : 2;
  std::vector<int64_t> box;
  for (int i = 0; i < axes; ++i) box.push_back(rows[below(axes == 2 && i == 0 ? 4 : 7)]);
  box.push_back(lengths[below(8)]);
  while (product(box) > 300000) box.back() = (box.back() + 1) / 2;
  const bool outer = chance(30);  // the statistic is of another axis than the last
  const std::size_t row = box.size() - 1;
  if (outer) box.push_back(1 + below(20));
  std::vector<int64_t> kept = box;
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(row));
  made.program.batch = axes;
  made.program.first = 0;
  made.program.last = 3;
  zs::Load x{}, first{}, second{};
  zs::Store fold{};
  for (std::size_t i = 0; i < box.size(); ++i) {
    x.walk[i] = static_cast<std::int8_t>(i);
    first.walk[i] = i == row ? std::int8_t{-1} : static_cast<std::int8_t>(i - (i > row));
  }
  x.dtype = first.dtype = second.dtype = dtype;
  x.slot = add_slot(made, zs::SlotKind::Input, dtype, box);
  fill(made, made.arrays.back());
  const auto kind = [] { return chance(60) ? zs::SlotKind::Piece : zs::SlotKind::Temp; };
  first.slot = add_slot(made, kind(), dtype, kept);
  second = first;
  second.slot = add_slot(made, kind(), dtype, kept);
  std::copy_n(first.walk, zs::kMaxAxes, fold.walk);
  zs::Phase one = make_phase(box), two = make_phase(box), three = make_phase(box);
  one.loads = {x};
  fold.fold = Fold::Max;
  fold.slot = first.slot;
  one.stores = {fold};
  const auto step = [&](const char* op, int a, int b) {
    return zs::Step{op, 2, {a, b}, {dtype, dtype, dtype}};
  };
  two.loads = {x, first};
  two.steps = {step("add", 0, 1)};
  fold.fold = Fold::Sum;
  fold.value = 2;
  fold.slot = second.slot;
  two.stores = {fold};
  three.loads = {x, first, second};
  three.steps = {step("multiply", 0, 1), step("add", 3, 2)};
  zs::Store out{4, add_slot(made, zs::SlotKind::Output, dtype, box), {}, Fold::None};
  std::copy_n(x.walk, zs::kMaxAxes, out.walk);
  three.stores = {out};
  made.program.phases = {one, two, three};
}

}  // namespace
