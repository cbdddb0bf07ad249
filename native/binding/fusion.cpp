#include "fusion.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "evaluate.h"
#include "result.h"
#include "shape.h"

namespace zs {
namespace {

// Ways of lying that are kept; more than a loop over views needs.
constexpr std::size_t kLies = 16;
// Steps on elements under which the lock is kept: some ten microseconds of cheap ones.
constexpr std::int64_t kHoldsLock = 65536;

std::int64_t elements_of(int rank, const std::int64_t* shape) {
  std::int64_t elements = 1;
  for (int axis = 0; axis < rank; ++axis) elements *= shape[axis];
  return elements;
}

// Steps times elements.
double work_of(const FusedProgram& program) {
  double work = 0;
  for (const Phase& phase : program.phases) {
    double elements = 1;
    for (int axis = 0; axis < phase.rank; ++axis) {
      elements *= static_cast<double>(phase.shape[axis]);
    }
    work += elements * static_cast<double>(phase.steps.size() + phase.loads.size() +
                                           phase.stores.size());
  }
  return work;
}

bool is_batched(const FusedProgram& program, std::size_t phase) {
  return phase >= static_cast<std::size_t>(program.first) &&
         phase < static_cast<std::size_t>(program.last);
}

// Whether an output may be the memory of an input, element by element: whether each element is read for
// the last time before, or when, it is written.
bool may_be_one(const FusedProgram& program, int input, int output) {
  const auto& slots = program.slots;
  const Slot& a = slots[static_cast<std::size_t>(input)];
  const Slot& b = slots[static_cast<std::size_t>(output)];
  if (a.rank != b.rank || !std::equal(a.shape, a.shape + a.rank, b.shape) ||
      kSize[static_cast<int>(a.dtype)] != kSize[static_cast<int>(b.dtype)]) {
    return false;
  }
  const Store* store = nullptr;
  std::size_t storing = 0;
  for (std::size_t p = 0; p < program.phases.size(); ++p) {
    for (const Store& one : program.phases[p].stores) {
      if (one.slot == output) store = &one, storing = p;
    }
  }
  const Phase& last = program.phases[storing];
  for (std::size_t p = 0; p < program.phases.size(); ++p) {
    const Phase& phase = program.phases[p];
    for (const Load& load : phase.loads) {
      if (load.slot != input) continue;
      if (p > storing) return false;
      int axes = 0;  // that both have to walk in one way
      if (p == storing) {
        if (store->fold != Fold::None || last.stores.size() > 1) return false;
        axes = phase.rank;
      } else if (is_batched(program, p) && is_batched(program, storing)) {
        axes = program.batch;
      }
      for (int axis = 0; axis < axes; ++axis) {
        if (phase.shape[axis] != 1 && load.walk[axis] != store->walk[axis]) return false;
      }
    }
  }
  return true;
}

struct Span {
  const char* low;
  const char* high;  // one past the last byte
};

Span span_of(const Slot& slot, const char* data, const npy_intp* strides) {
  Span span{data, data + kSize[static_cast<int>(slot.dtype)]};
  for (int axis = 0; axis < slot.rank; ++axis) {
    const npy_intp reach = strides[axis] * (slot.shape[axis] - 1);
    (reach < 0 ? span.low : span.high) += reach;
  }
  return span;
}

bool meet(const Span& a, const Span& b) { return a.low < b.high && b.low < a.high; }

bool has_shape(const Slot& slot, int rank, const npy_intp* shape) {
  return rank == slot.rank && std::equal(shape, shape + rank, slot.shape);
}

// "float32 (2, 3)"
PyObject* describe(int rank, const npy_intp* shape, Kind kind) {
  PyObject* extents = PyTuple_New(rank);
  for (int axis = 0; extents && axis < rank; ++axis) {
    PyObject* extent = PyLong_FromSsize_t(shape[axis]);
    if (extent) PyTuple_SET_ITEM(extents, axis, extent);
    else Py_CLEAR(extents);
  }
  if (extents == nullptr) return nullptr;
  PyObject* words =
      PyUnicode_FromFormat("%s %R", kind == kNoKind ? "another dtype" : name_of(kind), extents);
  Py_DECREF(extents);
  return words;
}

// Whether values of a dtype may be stored in an array.
bool takes(PyArrayObject* array, Kind kind, DType dtype) {
  if (kind == static_cast<Kind>(dtype)) return true;
  PyArray_Descr* const own = descr_of(dtype);
  const bool casts = own && PyArray_CanCastTypeTo(own, PyArray_DESCR(array), NPY_SAME_KIND_CASTING);
  Py_XDECREF(own);
  return casts;
}

void refuse(const char* what, int index, const Slot& slot, int rank, const npy_intp* shape,
            Kind kind) {
  PyObject* is = describe(rank, shape, kind);
  PyObject* wanted = describe(slot.rank, slot.shape, static_cast<Kind>(slot.dtype));
  if (is && wanted) {
    PyErr_Format(PyExc_ValueError, "%s %d is %U; this program was made for %U", what, index, is,
                 wanted);
  }
  Py_XDECREF(is);
  Py_XDECREF(wanted);
}

}  // namespace

namespace {

// An array of a call's own, on the stack while it is small: a small call has no time for malloc.
template <class T, std::size_t kFew>
class Few {
 public:
  explicit Few(std::size_t count) : count_(count), at_(few_) {
    if (count <= kFew) return;
    many_.reset(new T[count]);
    at_ = many_.get();
  }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;
  T& operator[](std::size_t i) { return at_[i]; }
  const T& operator[](std::size_t i) const { return at_[i]; }
  T* begin() { return at_; }
  T* end() { return at_ + count_; }
  const T* begin() const { return at_; }
  const T* end() const { return at_ + count_; }
  std::size_t size() const { return count_; }

 private:
  std::size_t count_;
  T* at_;
  T few_[kFew];  // not initialized, unless T is
  std::unique_ptr<T[]> many_;
};

}  // namespace

// The state of a call.
struct Fusion::Call {
  explicit Call(std::size_t slots, std::size_t count, std::size_t longest_key)
      : spots(slots), held(slots), outputs(count), key(longest_key) {}
  ~Call() {
    for (const Output& output : outputs) Py_XDECREF(output.made);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  struct Output {
    PyArrayObject* given = nullptr;  // borrowed
    bool direct = false;             // `given` is written to
    PyObject* made = nullptr;        // a new array
    alignas(8) char scalar[8];
  };
  Few<Spot, 12> spots;
  Few<Operand, 12> held;
  Few<Output, 2> outputs;
  Few<npy_intp, 64> key;
  std::size_t key_size = 0;
};

Fusion::Fusion(FusedProgram program) : program_(std::move(program)) {
  const auto& slots = program_.slots;
  empty_ = true;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].kind != SlotKind::Output) continue;
    slot_of_output_.push_back(s);
    empty_ &= elements_of(slots[s].rank, slots[s].shape) == 0;
  }
  for (std::size_t s = 0; s < slots.size(); ++s) {
    for (const std::size_t output : slot_of_output_) {
      in_place_.push_back(slots[s].kind == SlotKind::Input &&
                          may_be_one(program_, static_cast<int>(s), static_cast<int>(output)));
    }
  }
  longest_key_ = 1;
  for (const Slot& slot : slots) longest_key_ += 1 + static_cast<std::size_t>(slot.rank);
  work_ = work_of(program_);
  short_ = work_ <= kHoldsLock;
}

bool Fusion::fits_output(int output, PyObject* object) const {
  if (!PyArray_CheckExact(object)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  const Slot& slot = program_.slots[slot_of_output_[static_cast<std::size_t>(output)]];
  if (kind_of(PyArray_DESCR(array)) != static_cast<Kind>(slot.dtype) ||
      !PyArray_ISWRITEABLE(array) || !has_shape(slot, PyArray_NDIM(array), PyArray_DIMS(array))) {
    return false;
  }
  // Python raises the error about shared elements.
  return PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS) ||
         !overlaps_itself(slot.rank, slot.shape, PyArray_STRIDES(array),
                          kSize[static_cast<int>(slot.dtype)]);
}

bool Fusion::run(PyObject* const* operands, Py_ssize_t count, PyObject* const* outs,
                 PyObject** results) {
  Call call(program_.slots.size(), slot_of_output_.size(), longest_key_);
  if (!read(call, operands, count) || !read_outs(call, outs)) return false;
  const std::shared_ptr<const Lie> lie = find(call);
  return make_outputs(call, *lie) && compute(call, *lie) && finish(call, results);
}

// The operands, where they lie.
bool Fusion::read(Call& call, PyObject* const* operands, Py_ssize_t count) const {
  if (count < program_.inputs) {
    PyErr_Format(PyExc_ValueError, "%zd operands; this program has %d", count, program_.inputs);
    return false;
  }
  for (std::size_t s = 0; s < program_.slots.size(); ++s) {
    const Slot& slot = program_.slots[s];
    if (slot.kind != SlotKind::Input) continue;
    Operand& operand = call.held[s];
    if (!read_operand(operand, operands[slot.index]) && !PyArray_CheckExact(operands[slot.index])) {
      PyErr_Format(PyExc_TypeError, "operand %d is a %s, and no NumPy array or number", slot.index,
                   Py_TYPE(operands[slot.index])->tp_name);
      return false;
    }
    if (operand.number && slot.rank == 0 && take_number(operand, slot.dtype)) {
      operand.kind = static_cast<Kind>(slot.dtype);
    }
    if (operand.kind != static_cast<Kind>(slot.dtype) ||
        !has_shape(slot, operand.rank, operand.shape)) {
      refuse("operand", slot.index, slot, operand.rank, operand.shape, operand.kind);
      return false;
    }
    call.spots[s] = {operand.data, operand.strides, operand.aligned};
  }
  return true;
}

// The outputs that are given, and whether they are written to as they are.
bool Fusion::read_outs(Call& call, PyObject* const* outs) const {
  for (std::size_t j = 0; outs && j < slot_of_output_.size(); ++j) {
    const auto number = static_cast<int>(j);
    if (outs[j] == nullptr || outs[j] == Py_None) continue;
    if (!PyArray_Check(outs[j])) {
      PyErr_Format(PyExc_TypeError, "output %d is a %s, and no NumPy array", number,
                   Py_TYPE(outs[j])->tp_name);
      return false;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(outs[j]);
    const Slot& slot = program_.slots[slot_of_output_[j]];
    const Kind kind = kind_of(PyArray_DESCR(array));
    if (!PyArray_ISWRITEABLE(array)) {
      PyErr_Format(PyExc_ValueError, "output %d is read-only", number);
      return false;
    }
    if (!takes(array, kind, slot.dtype) || !has_shape(slot, PyArray_NDIM(array), PyArray_DIMS(array))) {
      refuse("output", number, slot, PyArray_NDIM(array), PyArray_DIMS(array), kind);
      return false;
    }
    call.outputs[j].given = array;
    if (kind != static_cast<Kind>(slot.dtype) || !PyArray_CheckExact(outs[j])) continue;
    call.spots[slot_of_output_[j]] = {PyArray_BYTES(array), PyArray_STRIDES(array),
                                      static_cast<bool>(PyArray_ISALIGNED(array))};
    call.outputs[j].direct = is_safe(call, j);
  }
  return true;
}

// Whether an output's elements are each a place of its own, which nothing else that is read or written
// has, but for an operand that it may be.
bool Fusion::is_safe(const Call& call, std::size_t output) const {
  const std::size_t own = slot_of_output_[output];
  const Slot& slot = program_.slots[own];
  const Spot& spot = call.spots[own];
  if (elements_of(slot.rank, slot.shape) == 0) return true;
  if (overlaps_itself(slot.rank, slot.shape, spot.strides, kSize[static_cast<int>(slot.dtype)])) {
    return false;
  }
  const Span written = span_of(slot, spot.data, spot.strides);
  for (std::size_t j = 0; j < output; ++j) {
    const std::size_t s = slot_of_output_[j];
    if (call.outputs[j].direct &&
        meet(written, span_of(program_.slots[s], call.spots[s].data, call.spots[s].strides))) {
      return false;
    }
  }
  for (std::size_t s = 0; s < program_.slots.size(); ++s) {
    const Slot& other = program_.slots[s];
    if (other.kind != SlotKind::Input || elements_of(other.rank, other.shape) == 0) continue;
    if (!meet(written, span_of(other, call.spots[s].data, call.spots[s].strides))) continue;
    bool same = in_place_[s * slot_of_output_.size() + output] && call.spots[s].data == spot.data;
    for (int axis = 0; axis < slot.rank && same; ++axis) {
      same = slot.shape[axis] == 1 || call.spots[s].strides[axis] == spot.strides[axis];
    }
    if (!same) return false;
  }
  return true;
}

// The layout of the call's arrays, and the program made for it.
std::shared_ptr<const Lie> Fusion::find(Call& call) {
  npy_intp* key = call.key.begin();
  *key++ = static_cast<npy_intp>(reinterpret_cast<std::intptr_t>(&isa()));
  for (std::size_t s = 0; s < program_.slots.size(); ++s) {
    const Slot& slot = program_.slots[s];
    const Spot& spot = call.spots[s];
    if (slot.kind != SlotKind::Input) continue;
    *key++ = spot.aligned;
    key = std::copy_n(spot.strides, slot.rank, key);
  }
  for (std::size_t j = 0; j < call.outputs.size(); ++j) {
    const Spot& spot = call.spots[slot_of_output_[j]];
    const bool direct = call.outputs[j].direct;
    *key++ = direct + 2 * (direct && spot.aligned);
    if (direct) {
      key = std::copy_n(spot.strides, program_.slots[slot_of_output_[j]].rank, key);
    }
  }
  call.key_size = static_cast<std::size_t>(key - call.key.begin());
  for (const auto& lie : lies_) {
    if (std::equal(lie->key.begin(), lie->key.end(), call.key.begin(), key)) return lie;
  }
  auto made = make(call);
  news_ = true;
  if (lies_.size() < kLies) {
    lies_.push_back(made);
  } else {
    lies_[oldest_++ % kLies] = made;
  }
  return made;
}

std::shared_ptr<const Lie> Fusion::make(const Call& call) const {
  auto made = std::make_shared<Lie>();
  made->key.assign(call.key.begin(), call.key.begin() + call.key_size);
  std::vector<Spot> spots(call.spots.begin(), call.spots.end());
  made->outputs.resize(call.outputs.size());
  for (std::size_t j = 0; j < call.outputs.size(); ++j) {
    if (call.outputs[j].direct) continue;
    const std::size_t s = slot_of_output_[j];
    auto& strides = made->outputs[j];
    strides.resize(static_cast<std::size_t>(program_.slots[s].rank));
    lay_out_output(call, s, strides.data());
    spots[s] = {nullptr, strides.data(), true};
  }
  if (!empty_) made->prepared = prepare(program_, spots.data(), isa());
  return made;
}

// As NumPy would lay it out: in the order of the operands of the phase that stores it.
void Fusion::lay_out_output(const Call& call, std::size_t slot, npy_intp* strides) const {
  const Slot& own = program_.slots[slot];
  npy_intp walked[kMaxOperands][kMaxAxes];
  const npy_intp* operands[kMaxOperands];
  int count = 0;
  for (const Phase& phase : program_.phases) {
    for (const Store& store : phase.stores) {
      if (store.slot != static_cast<int>(slot)) continue;
      for (const Load& load : phase.loads) {
        const auto from = static_cast<std::size_t>(load.slot);
        const Slot& other = program_.slots[from];
        if (other.kind != SlotKind::Input) continue;
        std::fill_n(walked[count], own.rank, 0);
        for (int axis = 0; axis < phase.rank; ++axis) {
          const int to = store.walk[axis], of = load.walk[axis];
          if (to < 0 || of < 0 || other.shape[of] == 1) continue;
          walked[count][to] = call.spots[from].strides[of];
        }
        operands[count] = walked[count];
        ++count;
      }
    }
  }
  lay_out(own.rank, own.shape, operands, count, kSize[static_cast<int>(own.dtype)], strides);
}

bool Fusion::make_outputs(Call& call, const Lie& lie) const {
  for (std::size_t j = 0; j < call.outputs.size(); ++j) {
    Call::Output& output = call.outputs[j];
    if (output.direct) continue;
    const Slot& slot = program_.slots[slot_of_output_[j]];
    Spot& spot = call.spots[slot_of_output_[j]];
    const npy_intp* const strides = lie.outputs[j].data();
    if (slot.rank == 0 && !output.given) {
      spot = {output.scalar, strides, true};
      continue;
    }
    const bool plain = slot.rank == 0 || elements_of(slot.rank, slot.shape) == 0;
    output.made =
        new_array(slot.rank, slot.shape, static_cast<Kind>(slot.dtype), plain ? nullptr : strides);
    if (output.made == nullptr) return false;
    spot = {PyArray_BYTES(reinterpret_cast<PyArrayObject*>(output.made)), strides, true};
  }
  return true;
}

bool Fusion::compute(Call& call, const Lie& lie) const {
  if (!lie.prepared) return true;
  if (short_) {
    if (execute(*lie.prepared, call.spots.begin(), 1, nullptr, nullptr)) return true;
    PyErr_NoMemory();
    return false;
  }
  struct Work {
    const Prepared& prepared;
    const Spot* spots;
  } work{*lie.prepared, call.spots.begin()};
  return run_unlocked(
      [](void* context, int threads, bool (*poll)(void*), void* asked) {
        const Work& one = *static_cast<Work*>(context);
        return execute(one.prepared, one.spots, threads, poll, asked);
      },
      &work);
}

namespace {

// Into an array of another dtype: by the engine where it can, since NumPy may warn of a NaN.
bool copy_into(PyArrayObject* given, PyObject* made) {
  PyObject* const args[] = {made, reinterpret_cast<PyObject*>(PyArray_DESCR(given)),
                            reinterpret_cast<PyObject*>(given)};
  PyObject* const result = convert(nullptr, args, 3);
  if (result == nullptr) return false;
  const bool refused = result == Py_NotImplemented;
  Py_DECREF(result);
  return !refused || PyArray_CopyInto(given, reinterpret_cast<PyArrayObject*>(made)) == 0;
}

}  // namespace

// The results: the given outputs, new arrays, or scalars.
bool Fusion::finish(Call& call, PyObject** results) const {
  std::size_t done = 0;
  for (; done < call.outputs.size(); ++done) {
    Call::Output& output = call.outputs[done];
    PyObject*& result = results[done];
    if (output.given) {
      if (output.made && !copy_into(output.given, output.made)) break;
      result = Py_NewRef(reinterpret_cast<PyObject*>(output.given));
    } else if (output.made) {
      result = std::exchange(output.made, nullptr);
    } else {
      PyArray_Descr* descr = descr_of(program_.slots[slot_of_output_[done]].dtype);
      result = descr ? PyArray_Scalar(output.scalar, descr, nullptr) : nullptr;
      Py_XDECREF(descr);
      if (result == nullptr) break;
    }
  }
  if (done == call.outputs.size()) return true;
  while (done-- > 0) Py_CLEAR(results[done]);
  return false;
}

}  // namespace zs
