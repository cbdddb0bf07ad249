#include "function.h"

#include <structmember.h>

#include <cstddef>

#include "result.h"
#include "settings.h"
#include "strictness.h"

namespace zs {
namespace {

struct Function {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* dict;
  PyObject* weak;
  PyObject* python;
  Settings* settings;
};

constexpr const char* kOptions[] = {"rule", "axis", "engine", "out", "dtype", "broadcast"};
constexpr int kOptionCount = 6;
PyObject* option_names[kOptionCount];

// A call: the result, null with an error set, or null without one where the reference is to compute.
PyObject* attempt(const Settings& settings, Setting& setting, PyObject* const* objects,
                  const Options& options) {
  const int inputs = settings.inputs;
  Operand operands[kMaxInputs];
  for (int k = 0; k < inputs; ++k)
    if (!read_operand(operands[k], objects[k])) return nullptr;
  PyArrayObject* out;
  Kind dtype;
  if (!read_out(options.out, &out) || !read_dtype(options.dtype, &dtype)) return nullptr;
  const Resolution* resolution = find_resolution(settings, setting, operands, dtype);
  if (resolution == nullptr || resolution->state != Resolution::Native) return nullptr;
  const Program& program = resolution->program;
  for (int k = 0; k < inputs; ++k)
    if (operands[k].number && !take_number(operands[k], program.memory[k])) return nullptr;
  Shape shape;
  if (!align(setting, shape, operands, inputs)) return nullptr;
  Place places[kMaxInputs + 1];
  for (int k = 0; k < inputs; ++k)
    places[k] = {operands[k].data, shape.strides[k], operands[k].aligned};
  return out ? into_out(program, resolution->result, shape, places, out)
             : into_new(program, resolution->result, shape, places);
}

// Sorts a vectorcall's arguments. False if they are wrong; Python then raises the error.
bool read_arguments(const Settings& settings, PyObject* const* args, Py_ssize_t positional,
                    PyObject* names, PyObject** operands, Options& options) {
  const int tensors = settings.inputs - settings.parameters;
  if (positional < tensors || positional > settings.inputs) return false;
  for (int k = 0; k < settings.inputs; ++k) operands[k] = k < positional ? args[k] : nullptr;
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  PyObject** const slots[] = {&options.rule, &options.axis,  &options.engine,
                              &options.out,  &options.dtype, &options.broadcast};
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    int slot = 0;
    while (slot < kOptionCount && name != option_names[slot]) ++slot;
    if (slot < kOptionCount) {
      *slots[slot] = args[positional + i];
      continue;
    }
    int k = 0;
    while (k < settings.parameters && name != settings.parameter_name[k]) ++k;
    if (k == settings.parameters || operands[tensors + k] != nullptr) return false;
    operands[tensors + k] = args[positional + i];
  }
  for (int k = 0; k < settings.parameters; ++k)
    if (operands[tensors + k] == nullptr) operands[tensors + k] = settings.parameter_value[k];
  return true;
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* names) {
  auto* function = reinterpret_cast<Function*>(self);
  Settings& settings = *function->settings;
  Options options{};
  PyObject* operands[kMaxInputs];
  if (!leaves_to_python() &&
      read_arguments(settings, args, PyVectorcall_NARGS(flags), names, operands, options)) {
    if (Setting* setting = find_setting(settings, options))
      if (PyObject* result = attempt(settings, *setting, operands, options)) return result;
    if (PyErr_Occurred()) return nullptr;
  }
  return PyObject_Vectorcall(function->python, args, flags, names);
}

// evaluate(operands, out, dtype): of arrays that NumPy's rule combines. NotImplemented where the
// reference is to compute.
PyObject* evaluate_method(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Settings& settings = *reinterpret_cast<Function*>(self)->settings;
  if (count != 3 || !PyTuple_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "evaluate(operands, out, dtype) takes a tuple first");
    return nullptr;
  }
  if (PyTuple_GET_SIZE(args[0]) != settings.inputs) Py_RETURN_NOTIMPLEMENTED;
  Options options{};
  options.out = args[1];
  options.dtype = args[2];
  PyObject* const* operands = &PyTuple_GET_ITEM(args[0], 0);
  PyObject* result = attempt(settings, *settings.made.front(), operands, options);
  if (result == nullptr && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
  return result;
}

PyObject* reduce_method(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(self, "__qualname__");
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<zerostride function %U>",
                              reinterpret_cast<Function*>(self)->settings->name);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* function = reinterpret_cast<Function*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(function->dict);
  Py_VISIT(function->python);
  if (function->settings == nullptr) return 0;
  Py_VISIT(function->settings->configure);
  for (const auto& setting : function->settings->made) {
    Py_VISIT(setting->planner);
    Py_VISIT(setting->resolver);
  }
  return 0;
}

int clear(PyObject* self) {
  auto* function = reinterpret_cast<Function*>(self);
  Py_CLEAR(function->dict);
  Py_CLEAR(function->python);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  auto* function = reinterpret_cast<Function*>(self);
  if (function->weak) PyObject_ClearWeakRefs(self);
  clear(self);
  if (function->settings) {
    Py_XDECREF(function->settings->name);
    Py_XDECREF(function->settings->configure);
    Py_XDECREF(function->settings->index);
    for (int k = 0; k < function->settings->parameters; ++k) {
      Py_XDECREF(function->settings->parameter_name[k]);
      Py_XDECREF(function->settings->parameter_value[k]);
    }
    delete function->settings;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *name, *python, *configure, *parameters = nullptr;
  int inputs;
  static const char* const names[] = {"name", "inputs", "python", "configure", "parameters",
                                      nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UiOO|O!", const_cast<char**>(names), &name,
                                   &inputs, &python, &configure, &PyDict_Type, &parameters))
    return nullptr;
  if (inputs < 1 || inputs > kMaxInputs || (parameters && PyDict_Size(parameters) >= inputs)) {
    PyErr_Format(PyExc_ValueError, "a function of %d operands; at most %d", inputs, kMaxInputs);
    return nullptr;
  }
  auto* function = reinterpret_cast<Function*>(type->tp_alloc(type, 0));
  if (function == nullptr) return nullptr;
  function->call = call;
  function->python = Py_NewRef(python);
  function->settings = new Settings;
  function->settings->name = Py_NewRef(name);
  function->settings->configure = Py_NewRef(configure);
  function->settings->inputs = inputs;
  PyObject *parameter, *value;
  Py_ssize_t place = 0;
  while (parameters && PyDict_Next(parameters, &place, &parameter, &value)) {
    const int k = function->settings->parameters++;
    function->settings->parameter_name[k] = Py_NewRef(parameter);
    PyUnicode_InternInPlace(&function->settings->parameter_name[k]);
    function->settings->parameter_value[k] = Py_NewRef(value);
  }
  if (!start(*function->settings)) Py_CLEAR(function);
  return reinterpret_cast<PyObject*>(function);
}

PyMethodDef methods[] = {
    {"evaluate", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(evaluate_method)),
     METH_FASTCALL, "evaluate(operands, out, dtype): the result, or NotImplemented."},
    {"__reduce__", reduce_method, METH_NOARGS, "The name by which it is found again."},
    {}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Function, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak), READONLY, nullptr},
    {}};

PyGetSetDef accessors[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_repr, reinterpret_cast<void*>(represent)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, accessors},
                       {0, nullptr}};

PyType_Spec spec = {"zerostride.compute._native.Function", sizeof(Function), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

int add_function_type(PyObject* module) {
  for (int i = 0; i < kOptionCount; ++i)
    if ((option_names[i] = PyUnicode_InternFromString(kOptions[i])) == nullptr) return -1;
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return -1;
  const int added = PyModule_AddObjectRef(module, "Function", type);
  Py_DECREF(type);
  return added;
}

}  // namespace zs
