#include "spec.h"

#include <algorithm>
#include <cstring>

#include "../fused/body.h"
#include "operand.h"

namespace zs {
namespace {

constexpr const char* kSlotKinds[] = {"input", "output", "temp", "piece"};
constexpr const char* kFoldNames[] = {"",    "sum", "prod", "min",   "max",
                                      "any", "all", "argmin", "argmax"};

[[noreturn]] void wrong(const std::string& where, const std::string& why) {
  throw Refusal{PyExc_ValueError, where + ": " + why};
}

[[noreturn]] void lacking(const std::string& where, const std::string& why) {
  throw Refusal{PyExc_NotImplementedError, where + ": " + why};
}

std::string numbered(const char* what, Py_ssize_t i) {
  return std::string(what).append(" ").append(std::to_string(i));
}

// The items of a tuple, borrowed.
PyObject* const* items(PyObject* tuple, Py_ssize_t count, const std::string& where) {
  if (!PyTuple_CheckExact(tuple)) wrong(where, "is no tuple");
  if (PyTuple_GET_SIZE(tuple) != count) {
    wrong(where, "has " + std::to_string(PyTuple_GET_SIZE(tuple)) + " items and not " +
                     std::to_string(count));
  }
  return reinterpret_cast<PyTupleObject*>(tuple)->ob_item;
}

Py_ssize_t count_of(PyObject* tuple, const std::string& where) {
  if (!PyTuple_CheckExact(tuple)) wrong(where, "is no tuple");
  return PyTuple_GET_SIZE(tuple);
}

std::int64_t integer(PyObject* object, std::int64_t low, std::int64_t high,
                     const std::string& where) {
  int overflow = 0;
  const long long value =
      PyLong_CheckExact(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : low - 1;
  if (overflow || !PyLong_CheckExact(object) || value < low || value > high) {
    wrong(where, "is no integer of " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

const char* text(PyObject* object, const std::string& where) {
  const char* word = PyUnicode_CheckExact(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (word == nullptr) {
    PyErr_Clear();
    wrong(where, "is no string");
  }
  return word;
}

DType dtype(PyObject* object, const std::string& where) {
  const char* name = text(object, where);
  const Kind kind = kind_named(name);
  if (kind == kNoKind) lacking(where, std::string("the engine has no dtype ") + name);
  return static_cast<DType>(kind);
}

template <std::size_t N>
int one_of(const char* const (&names)[N], PyObject* object, const std::string& where) {
  const char* name = text(object, where);
  for (std::size_t i = 0; i < N; ++i) {
    if (*name && std::strcmp(name, names[i]) == 0) return static_cast<int>(i);
  }
  wrong(where, std::string("there is no ") + name);
}

// Extents, whose product with `size` can be counted even without those that are 0. Returns the rank.
int read_shape(PyObject* tuple, std::int64_t size, std::int64_t* shape, const std::string& where) {
  const Py_ssize_t rank = count_of(tuple, where);
  if (rank > kMaxAxes) lacking(where, "more than 64 axes");
  bool many = false;
  std::int64_t bytes = size;
  for (Py_ssize_t axis = 0; axis < rank; ++axis) {
    shape[axis] = integer(PyTuple_GET_ITEM(tuple, axis), 0, INT64_MAX, where);
    many |= __builtin_mul_overflow(bytes, shape[axis] ? shape[axis] : 1, &bytes);
  }
  if (many) lacking(where, "its elements cannot be counted");
  return static_cast<int>(rank);
}

bool is_half(DType one) { return one == DType::F16 || one == DType::BF16; }

class Reader {
 public:
  FusedProgram read(PyObject* spec) {
    PyObject* const* parts = items(spec, 5, "the spec");
    read_slots(parts[0]);
    const Py_ssize_t phases = count_of(parts[1], "the phases");
    program_.batch = static_cast<int>(integer(parts[2], 0, kMaxAxes, "batch"));
    program_.first = static_cast<int>(integer(parts[3], 0, phases, "first"));
    program_.last = static_cast<int>(integer(parts[4], program_.first, phases, "last"));
    if (program_.batch == 0 && program_.last != 0) wrong("last", "there is no batch");
    stored_.assign(program_.slots.size(), kUnstored);
    for (Py_ssize_t i = 0; i < phases; ++i) read_phase(PyTuple_GET_ITEM(parts[1], i), i);
    for (std::size_t s = 0; s < program_.slots.size(); ++s) {
      if (program_.slots[s].kind == SlotKind::Output && stored_[s] == kUnstored) {
        wrong(numbered("slot", static_cast<Py_ssize_t>(s)), "an output that nothing is stored in");
      }
    }
    return std::move(program_);
  }

 private:
  static constexpr int kUnstored = -1;
  // Sums of them and of some scratch are far from what 64 bits count.
  static constexpr std::int64_t kMostBetween = std::int64_t{1} << 60;

  void read_slots(PyObject* tuple) {
    const Py_ssize_t count = count_of(tuple, "the slots");
    std::int64_t between = 0;  // bytes of all that is kept between phases
    for (Py_ssize_t i = 0; i < count; ++i) {
      const std::string where = numbered("slot", i);
      PyObject* const* parts = items(PyTuple_GET_ITEM(tuple, i), 4, where);
      Slot slot{};
      slot.kind = static_cast<SlotKind>(one_of(kSlotKinds, parts[0], where));
      slot.index = static_cast<int>(integer(parts[1], 0, INT16_MAX, where + ", its index"));
      slot.dtype = dtype(parts[2], where);
      slot.rank = read_shape(parts[3], kSize[static_cast<int>(slot.dtype)], slot.shape, where);
      int& number = slot.kind == SlotKind::Output ? program_.outputs : program_.inputs;
      if (slot.kind == SlotKind::Input) number = std::max(number, slot.index + 1);
      if (slot.kind == SlotKind::Output && slot.index != number++) {
        wrong(where, "outputs are numbered from 0 on, in order");
      }
      if (slot.kind == SlotKind::Temp || slot.kind == SlotKind::Piece) {
        std::int64_t bytes = kSize[static_cast<int>(slot.dtype)];
        for (int axis = 0; axis < slot.rank; ++axis) bytes *= std::max<std::int64_t>(slot.shape[axis], 1);
        between += bytes / 64 + 2;
        if (between > kMostBetween / 64) lacking(where, "temporaries of more bytes than there are");
      }
      program_.slots.push_back(slot);
    }
  }

  bool is_batched(Py_ssize_t phase) const {
    return phase >= program_.first && phase < program_.last;
  }

  void read_phase(PyObject* tuple, Py_ssize_t number) {
    const std::string where = numbered("phase", number);
    PyObject* const* parts = items(tuple, 5, where);
    Phase phase{};
    phase.rank = read_shape(parts[0], 8, phase.shape, where + ", its shape");
    if (is_batched(number)) check_batch(phase, where);
    read_loads(phase, parts[1], number, where);
    read_literals(phase, parts[2], where);
    read_steps(phase, parts[3], where);
    read_stores(phase, parts[4], number, where);
    if (phase.loads.size() + phase.stores.size() > kMaxOperands) {
      lacking(where, "more than " + std::to_string(kMaxOperands) + " operands and results");
    }
    program_.phases.push_back(std::move(phase));
  }

  void check_batch(const Phase& phase, const std::string& where) const {
    if (phase.rank < program_.batch) wrong(where, "lacks axes of the batch");
    if (program_.phases.size() == static_cast<std::size_t>(program_.first)) return;
    const Phase& first = program_.phases[static_cast<std::size_t>(program_.first)];
    if (!std::equal(phase.shape, phase.shape + program_.batch, first.shape)) {
      wrong(where, "the batch has other extents than in the phases before");
    }
  }

  // A slot's number, and how the box walks it.
  int read_slot(const Phase& phase, PyObject* slot_number, PyObject* tuple, std::int8_t* walk,
                Py_ssize_t phase_number, bool load, const std::string& where) const {
    const auto slots = static_cast<std::int64_t>(program_.slots.size());
    const auto number = static_cast<int>(integer(slot_number, 0, slots - 1, where + ", its slot"));
    const Slot& slot = program_.slots[static_cast<std::size_t>(number)];
    PyObject* const* axes = items(tuple, phase.rank, where + ", its walk");
    bool walked[kMaxAxes] = {};
    for (int axis = 0; axis < phase.rank; ++axis) {
      const auto own = integer(axes[axis], -1, slot.rank - 1, where + ", its walk");
      walk[axis] = static_cast<std::int8_t>(own);
      if (own < 0) continue;
      if (walked[own]) wrong(where, "walks an axis twice");
      walked[own] = true;
      if (slot.shape[own] != phase.shape[axis] && !(load && slot.shape[own] == 1)) {
        wrong(where, "axis " + std::to_string(axis) + " of the box has another extent than axis " +
                         std::to_string(own) + " of slot " + std::to_string(number));
      }
    }
    for (int own = 0; own < slot.rank; ++own) {
      if (!walked[own] && slot.shape[own] != 1) wrong(where, "leaves out an axis of its slot");
    }
    if (slot.kind == SlotKind::Piece) check_piece(phase, slot, walk, phase_number, where);
    return number;
  }

  void check_piece(const Phase& phase, const Slot& slot, const std::int8_t* walk,
                   Py_ssize_t phase_number, const std::string& where) const {
    if (!is_batched(phase_number)) wrong(where, "a piece is there in batched phases alone");
    for (int axis = 0; axis < program_.batch; ++axis) {
      if (walk[axis] != axis || slot.shape[axis] != phase.shape[axis]) {
        wrong(where, "a piece has the batch's axes first");
      }
    }
  }

  void read_loads(Phase& phase, PyObject* tuple, Py_ssize_t number, const std::string& at) {
    const Py_ssize_t count = count_of(tuple, at + ", its loads");
    if (count > kMaxOperands) lacking(at, "more than " + std::to_string(kMaxOperands) + " loads");
    for (Py_ssize_t i = 0; i < count; ++i) {
      const std::string where = at + ", " + numbered("load", i);
      PyObject* const* parts = items(PyTuple_GET_ITEM(tuple, i), 3, where);
      Load load{};
      load.slot = read_slot(phase, parts[0], parts[1], load.walk, number, true, where);
      load.dtype = dtype(parts[2], where);
      check_order(load, number, where);
      phase.loads.push_back(load);
    }
  }

  // Refuses a load of a value that is not stored before; in a batch, in the same piece.
  void check_order(const Load& load, Py_ssize_t number, const std::string& where) const {
    const auto slot = static_cast<std::size_t>(load.slot);
    if (program_.slots[slot].kind == SlotKind::Input) return;
    if (stored_[slot] == kUnstored) wrong(where, "nothing is stored there before");
    if (!is_batched(number) || !is_batched(stored_[slot])) return;
    for (const Store& store : program_.phases[static_cast<std::size_t>(stored_[slot])].stores) {
      if (store.slot != load.slot) continue;
      if (!std::equal(store.walk, store.walk + program_.batch, load.walk)) {
        wrong(where, "walks the batch in another way than what was stored there");
      }
    }
  }

  static void read_literals(Phase& phase, PyObject* tuple, const std::string& at) {
    const Py_ssize_t count = count_of(tuple, at + ", its literals");
    for (Py_ssize_t i = 0; i < count; ++i) {
      const std::string where = at + ", " + numbered("literal", i);
      PyObject* const* parts = items(PyTuple_GET_ITEM(tuple, i), 2, where);
      Literal literal{};
      literal.dtype = dtype(parts[1], where);
      const std::int64_t size = kSize[static_cast<int>(literal.dtype)];
      if (!PyBytes_CheckExact(parts[0]) || PyBytes_GET_SIZE(parts[0]) != size) {
        wrong(where, "is not " + std::to_string(size) + " bytes");
      }
      std::memcpy(literal.bytes, PyBytes_AS_STRING(parts[0]), static_cast<std::size_t>(size));
      phase.literals.push_back(literal);
    }
  }

  static void read_steps(Phase& phase, PyObject* tuple, const std::string& at) {
    const Py_ssize_t count = count_of(tuple, at + ", its steps");
    for (Py_ssize_t i = 0; i < count; ++i) {
      const std::string where = at + ", " + numbered("step", i);
      PyObject* const* parts = items(PyTuple_GET_ITEM(tuple, i), 3, where);
      const char* op = text(parts[0], where);
      const Py_ssize_t args = count_of(parts[1], where + ", its arguments");
      if (args < 1 || args > kMaxInputs) wrong(where, "has " + std::to_string(args) + " arguments");
      PyObject* const* dtypes = items(parts[2], args + 1, where + ", its dtypes");
      Step step{};
      step.args = static_cast<int>(args);
      for (int k = 0; k <= step.args; ++k) step.dtype[k] = dtype(dtypes[k], where);
      for (int k = 0; k < step.args; ++k) {
        const auto values =
            static_cast<std::int64_t>(phase.loads.size() + phase.literals.size() + phase.steps.size());
        step.arg[k] = static_cast<int>(
            integer(PyTuple_GET_ITEM(parts[1], k), 0, values - 1, where + ", an argument"));
        if (dtype_of(phase, step.arg[k]) != step.dtype[k]) {
          wrong(where, "argument " + std::to_string(k) + " has another dtype");
        }
      }
      find(step, op, where);
      phase.steps.push_back(step);
    }
  }

  // The name that the kernel itself has: that stays.
  static void find(Step& step, const char* op, const std::string& where) {
    if (std::strcmp(op, "convert") == 0) {
      if (step.args != 1) wrong(where, "converts more than one argument");
      return;
    }
    step.op = op;
    const Kernel* kernel = kernel_of(isa(), step);
    if (kernel == nullptr) {
      lacking(where, std::string("the engine has no ") + op + " of these dtypes");
    }
    step.op = kernel->op;
  }

  void read_stores(Phase& phase, PyObject* tuple, Py_ssize_t number, const std::string& at) {
    const Py_ssize_t count = count_of(tuple, at + ", its stores");
    if (count == 0) wrong(at, "stores nothing");
    if (count > kMaxOperands) lacking(at, "more than " + std::to_string(kMaxOperands) + " stores");
    const auto values =
        static_cast<std::int64_t>(phase.loads.size() + phase.literals.size() + phase.steps.size());
    for (Py_ssize_t i = 0; i < count; ++i) {
      const std::string where = at + ", " + numbered("store", i);
      PyObject* const* parts = items(PyTuple_GET_ITEM(tuple, i), 4, where);
      Store store{};
      store.value = static_cast<int>(integer(parts[0], 0, values - 1, where + ", its value"));
      store.fold = parts[3] == Py_None ? Fold::None
                                       : static_cast<Fold>(one_of(kFoldNames, parts[3], where));
      store.slot = read_slot(phase, parts[1], parts[2], store.walk, number, false, where);
      check_store(phase, store, is_batched(number), where);
      int& stored = stored_[static_cast<std::size_t>(store.slot)];
      if (stored != kUnstored) wrong(where, "something is stored there already");
      stored = static_cast<int>(number);
      phase.stores.push_back(store);
    }
  }

  void check_store(const Phase& phase, const Store& store, bool batched,
                   const std::string& where) const {
    const Slot& slot = program_.slots[static_cast<std::size_t>(store.slot)];
    if (slot.kind == SlotKind::Input) wrong(where, "stores in an input");
    for (int axis = 0; axis < phase.rank; ++axis) {
      if (store.walk[axis] >= 0 || phase.shape[axis] == 1) continue;
      if (store.fold == Fold::None) wrong(where, "without a fold, it leaves out an axis of the box");
      if (batched && axis < program_.batch) wrong(where, "folds an axis of the batch");
    }
    const DType value = dtype_of(phase, store.value);
    if (store.fold != Fold::None &&
        isa().fold[static_cast<int>(store.fold)][static_cast<int>(value)].size == 0) {
      lacking(where, std::string("no such fold of ") + kName[static_cast<int>(value)]);
    }
    const bool position = store.fold == Fold::ArgMin || store.fold == Fold::ArgMax;
    const bool truth = store.fold == Fold::Any || store.fold == Fold::All;
    const DType given = position ? DType::I64 : truth ? DType::Bool : value;
    if (slot.dtype != given && !(given == DType::F32 && is_half(slot.dtype))) {
      wrong(where, std::string("gives ") + kName[static_cast<int>(given)] + " to a slot of " +
                       kName[static_cast<int>(slot.dtype)]);
    }
  }

  FusedProgram program_{};
  std::vector<int> stored_;  // the phase that stores in each slot
};

}  // namespace

FusedProgram read_spec(PyObject* spec) { return Reader().read(spec); }

}  // namespace zs
