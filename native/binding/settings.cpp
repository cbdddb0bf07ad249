#include "settings.h"

namespace zs {
namespace {

// Plans kept by a rule's setting; when there are more, they are forgotten together.
constexpr std::size_t kPlans = 4096;
// Settings kept by a function: more than there are valid combinations of rules, axes and engines. Later
// ones are left to Python, which raises the error.
constexpr std::size_t kSettings = 256;

// Makes a setting of what `configure` answers; null with an error set if it raises, without one where
// the options are none of this function's.
Setting* add_setting(Settings& settings, const Options& options) {
  PyObject* const none = Py_None;
  PyObject* const args[] = {options.rule ? options.rule : none, options.axis ? options.axis : none,
                            options.engine ? options.engine : none,
                            options.broadcast ? options.broadcast : none};
  PyObject* pair = PyObject_Vectorcall(settings.configure, args, 4, nullptr);
  if (pair == nullptr || pair == none) {
    Py_XDECREF(pair);
    return nullptr;
  }
  auto made = std::make_unique<Setting>();
  if (!PyArg_ParseTuple(pair, "OO", &made->planner, &made->resolver)) {
    made->planner = made->resolver = nullptr;
    Py_DECREF(pair);
    return nullptr;
  }
  Py_INCREF(made->resolver);
  if (made->planner == none)
    made->planner = nullptr;
  else
    Py_INCREF(made->planner);
  Py_DECREF(pair);
  int combinations = 1;
  for (int k = 0; k < settings.inputs; ++k) combinations *= kKinds;
  made->plain.resize(static_cast<std::size_t>(combinations));
  settings.made.push_back(std::move(made));
  return settings.made.back().get();
}

// The names that a resolver gave, as dtypes. False if they are not this engine's.
bool read_names(PyObject* names, int count, Kind* kinds) {
  if (!PyTuple_Check(names) || PyTuple_GET_SIZE(names) != count) return false;
  for (int k = 0; k < count; ++k) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
    if (name == nullptr) return false;
    if ((kinds[k] = kind_named(name)) == kNoKind) return false;
  }
  return true;
}

// 16-bit floats are stored so and computed with as float32.
DType computed_as(Kind kind) {
  const auto dtype = static_cast<DType>(kind);
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

// The kernel of operands and a result of these dtypes, which lie in memory as `memory` says; or null.
const Kernel* kernel_of(const char* op, int inputs, const Kind* to, const DType* memory) {
  const auto matches = [&](const Kernel* kernel, auto dtype_of) {
    if (kernel == nullptr || kernel->inputs != inputs || kernel->out != dtype_of(to[inputs]))
      return false;
    for (int k = 0; k < inputs; ++k)
      if (kernel->in[k] != dtype_of(to[k])) return false;
    return true;
  };
  const auto as_stored = [](Kind kind) { return static_cast<DType>(kind); };
  const Kernel* stored = find_kernel(isa(), op, as_stored(to[inputs - 1]));
  if (!matches(stored, as_stored)) stored = nullptr;
  const Kernel* computed = find_kernel(isa(), op, computed_as(to[inputs - 1]));
  if (!matches(computed, computed_as)) computed = nullptr;
  // An op that has a kernel for 16-bit floats uses it for operands of 16 bits; wider operands would be
  // rounded to 16 bits before the op. An op that only moves or inspects 16-bit floats has no other kernel.
  bool lies_so = true;
  for (int k = 0; k < inputs; ++k) lies_so &= memory[k] == as_stored(to[k]);
  return stored && (lies_so || computed == nullptr) ? stored : computed;
}

// Fills in what computes operands of these kinds. False with an error set if the resolver raised.
bool resolve(const Settings& settings, Setting& setting, Resolution& made,
             const Operand* operands, Kind dtype) {
  const int inputs = settings.inputs;
  PyObject* kinds = PyTuple_New(inputs);
  for (int k = 0; kinds && k < inputs; ++k) {
    PyObject* kind = PyUnicode_FromString(name_of(operands[k].kind));
    if (kind)
      PyTuple_SET_ITEM(kinds, k, kind);
    else
      Py_CLEAR(kinds);
  }
  if (kinds == nullptr) return false;
  const char* word = dtype == kNoKind ? nullptr : name_of(dtype);
  PyObject* names = PyObject_CallFunction(setting.resolver, "Oz", kinds, word);
  Py_DECREF(kinds);
  if (names == nullptr) return false;
  // Another thread has found it meanwhile, and may be computing by it.
  if (made.state != Resolution::Unknown) {
    Py_DECREF(names);
    return true;
  }
  made.state = Resolution::Reference;
  Kind to[kMaxInputs + 1];
  const bool named = names != Py_None && read_names(names, inputs + 1, to);
  Py_DECREF(names);
  if (PyErr_Occurred()) return false;
  if (!named) return true;
  DType memory[kMaxInputs + 1];
  for (int k = 0; k < inputs; ++k)
    memory[k] = static_cast<DType>(operands[k].number ? to[k] : operands[k].kind);
  memory[inputs] = static_cast<DType>(to[inputs]);
  const Kernel* kernel = kernel_of(PyUnicode_AsUTF8(settings.name), inputs, to, memory);
  if (kernel == nullptr) return true;
  program_of(made.program, *kernel, memory);
  made.result = to[inputs];
  made.state = Resolution::Native;
  return true;
}

// The shapes of the operands as a key.
std::string shapes_key(const Operand* operands, int count) {
  std::string key;
  for (int k = 0; k < count; ++k) {
    const auto& operand = operands[k];
    key.push_back(static_cast<char>(operand.rank));
    key.append(reinterpret_cast<const char*>(operand.shape),
               sizeof(npy_intp) * static_cast<std::size_t>(operand.rank));
  }
  return key;
}

PyObject* shape_of(const Operand& operand) {
  PyObject* shape = PyTuple_New(operand.rank);
  for (int axis = 0; shape && axis < operand.rank; ++axis) {
    PyObject* extent = PyLong_FromSsize_t(operand.shape[axis]);
    if (extent)
      PyTuple_SET_ITEM(shape, axis, extent);
    else
      Py_CLEAR(shape);
  }
  return shape;
}

// Gets the result axes of the operands from the planner. False with an error set if it raises, for
// example because the shapes do not combine.
bool ask_plan(const Setting& setting, const Operand* operands, int count, Landing& landing) {
  PyObject* shapes = PyTuple_New(count);
  for (int k = 0; shapes && k < count; ++k) {
    PyObject* shape = shape_of(operands[k]);
    if (shape)
      PyTuple_SET_ITEM(shapes, k, shape);
    else
      Py_CLEAR(shapes);
  }
  if (shapes == nullptr) return false;
  PyObject* plan = PyObject_CallObject(setting.planner, shapes);
  Py_DECREF(shapes);
  if (plan == nullptr) return false;
  PyObject *extents, *axes;
  bool good = PyArg_ParseTuple(plan, "O!O!", &PyTuple_Type, &extents, &PyTuple_Type, &axes) &&
              PyTuple_GET_SIZE(extents) <= kMaxAxes;
  if (good) {
    landing.rank = static_cast<int>(PyTuple_GET_SIZE(extents));
    for (int axis = 0; axis < landing.rank; ++axis)
      landing.extent[axis] = PyLong_AsSsize_t(PyTuple_GET_ITEM(extents, axis));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axes); ++i)
      landing.axes.push_back(static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(axes, i))));
  }
  Py_DECREF(plan);
  return !PyErr_Occurred();
}

}  // namespace

Setting::~Setting() {
  Py_XDECREF(planner);
  Py_XDECREF(resolver);
}

bool given(const PyObject* option) { return option != nullptr && option != Py_None; }

bool start(Settings& settings) {
  settings.index = PyDict_New();
  return settings.index != nullptr && add_setting(settings, Options{}) != nullptr;
}

Setting* find_setting(Settings& settings, const Options& options) {
  if (!given(options.rule) && !given(options.axis) && !given(options.engine) &&
      !given(options.broadcast))
    return settings.made.front().get();
  // True and 1.0 are equal to 1 and mean something else: only plain numbers and words have a place.
  if ((given(options.rule) && !PyUnicode_CheckExact(options.rule)) ||
      (given(options.engine) && !PyUnicode_CheckExact(options.engine)) ||
      (given(options.axis) && !PyLong_CheckExact(options.axis)) ||
      (given(options.broadcast) && !PyLong_CheckExact(options.broadcast)))
    return nullptr;
  PyObject* const none = Py_None;
  PyObject* key = PyTuple_Pack(4, options.rule ? options.rule : none,
                               options.axis ? options.axis : none,
                               options.engine ? options.engine : none,
                               options.broadcast ? options.broadcast : none);
  if (key == nullptr) return nullptr;
  Setting* setting = nullptr;
  if (PyObject* place = PyDict_GetItemWithError(settings.index, key)) {
    setting = settings.made[PyLong_AsSize_t(place)].get();
  } else if (!PyErr_Occurred() && settings.made.size() < kSettings) {
    setting = add_setting(settings, options);
    // Counted afterwards: `configure` is Python, and another thread may have added one meanwhile.
    PyObject* number = setting ? PyLong_FromSize_t(settings.made.size() - 1) : nullptr;
    if (number == nullptr || PyDict_SetItem(settings.index, key, number) < 0) setting = nullptr;
    Py_XDECREF(number);
  }
  Py_DECREF(key);
  return setting;
}

const Resolution* find_resolution(const Settings& settings, Setting& setting,
                                  const Operand* operands, Kind dtype) {
  int place = 0;
  for (int k = 0; k < settings.inputs; ++k) place = place * kKinds + operands[k].kind;
  auto& held = dtype == kNoKind ? setting.plain[static_cast<std::size_t>(place)]
                                : setting.asked[place * kKinds + dtype];
  if (!held) held = std::make_unique<Resolution>();
  if (held->state == Resolution::Unknown &&
      !resolve(settings, setting, *held, operands, dtype))
    return nullptr;
  return held.get();
}

bool align(Setting& setting, Shape& shape, const Operand* operands, int count) {
  if (setting.planner == nullptr)
    return align_numpy(shape, operands, count);
  const std::string key = shapes_key(operands, count);
  auto found = setting.plans.find(key);
  if (found == setting.plans.end()) {
    Landing landing;
    if (!ask_plan(setting, operands, count, landing)) return false;
    std::size_t axes = 0;
    for (int k = 0; k < count; ++k) axes += static_cast<std::size_t>(operands[k].rank);
    if (landing.axes.size() != axes) return false;
    if (setting.plans.size() >= kPlans) setting.plans.clear();
    found = setting.plans.emplace(key, std::move(landing)).first;
  }
  const Landing& landing = found->second;
  return align_planned(shape, operands, count, landing.rank, landing.extent,
                       landing.axes.data());
}

}  // namespace zs
