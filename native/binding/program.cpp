#include "program.h"

#include <new>

#include "fusion.h"
#include "machine.h"
#include "spec.h"

namespace zs {
namespace {

struct ProgramObject {
  PyObject_HEAD
  Fusion* fusion;
  // Called when a new layout has appeared and `enough` work is done; or null.
  PyObject* hot;
  double enough, done;
  PyObject* owners;  // a list: of the machine code that is installed
};

// The cost of a call besides its steps, in elements.
constexpr double kCallsWork = 4096;

PyTypeObject* program_type;

Fusion& fusion_of(PyObject* program) {
  return *reinterpret_cast<ProgramObject*>(program)->fusion;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* spec;
  static const char* const names[] = {"spec", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &spec)) {
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  try {
    reinterpret_cast<ProgramObject*>(self)->fusion = new Fusion(read_spec(spec));
  } catch (const Refusal& refusal) {
    PyErr_SetString(refusal.type, refusal.why.c_str());
    Py_CLEAR(self);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    Py_CLEAR(self);
  }
  return self;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* const program = reinterpret_cast<ProgramObject*>(self);
  delete program->fusion;
  Py_XDECREF(program->hot);
  Py_XDECREF(program->owners);
  type->tp_free(self);
  Py_DECREF(type);
}

// run(operands, outs): both tuples; `outs` may be None, and its items.
PyObject* run_method(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count < 1 || count > 2 || !PyTuple_Check(args[0]) ||
      (count == 2 && args[1] != Py_None && !PyTuple_Check(args[1]))) {
    PyErr_SetString(PyExc_TypeError, "run(operands, outs=None) takes tuples");
    return nullptr;
  }
  const Py_ssize_t outputs = outputs_of(self);
  PyObject* const* outs = nullptr;
  if (count == 2 && args[1] != Py_None) {
    outs = reinterpret_cast<PyTupleObject*>(args[1])->ob_item;
    if (PyTuple_GET_SIZE(args[1]) != outputs) {
      return PyErr_Format(PyExc_ValueError, "%zd outputs; this program has %zd",
                          PyTuple_GET_SIZE(args[1]), outputs);
    }
  }
  PyObject* results = new_results(outputs);
  if (results == nullptr) return nullptr;
  PyObject** const into = reinterpret_cast<PyTupleObject*>(results)->ob_item;
  if (!run_program(self, reinterpret_cast<PyTupleObject*>(args[0])->ob_item,
                   PyTuple_GET_SIZE(args[0]), outs, into)) {
    Py_CLEAR(results);
  } else {
    show_results(results);
  }
  return results;
}

// watch(work, hot)
PyObject* watch_method(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "watch(work, hot) takes a number and a callable");
    return nullptr;
  }
  const double work = PyFloat_AsDouble(args[0]);
  if (work == -1 && PyErr_Occurred()) return nullptr;
  auto* const program = reinterpret_cast<ProgramObject*>(self);
  program->enough = work;
  program->fusion->renew();
  Py_XSETREF(program->hot, Py_NewRef(args[1]));
  Py_RETURN_NONE;
}

PyObject* watcher_method(PyObject* self, PyObject*) {
  PyObject* hot = reinterpret_cast<ProgramObject*>(self)->hot;
  return Py_NewRef(hot ? hot : Py_None);
}

PyObject* machines_method(PyObject* self, PyObject*) {
  return list_machines(fusion_of(self).program());
}

// install(isa, phase, splats, results, streamed, row, address, scratch, past, owner)
PyObject* install_method(PyObject* self, PyObject* args) {
  auto* const program = reinterpret_cast<ProgramObject*>(self);
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  PyObject* what = PyTuple_GetSlice(args, 0, count - 1);
  if (what == nullptr) return nullptr;
  if (program->owners == nullptr) program->owners = PyList_New(0);
  int wanted = -1;
  if (program->owners && count == 10 &&
      PyList_Append(program->owners, PyTuple_GET_ITEM(args, count - 1)) == 0) {
    wanted = install_machine(program->fusion->program(), what);
    if (wanted > 0) program->fusion->forget();
  } else if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_TypeError, "install() takes ten arguments");
  }
  Py_DECREF(what);
  return wanted < 0 ? nullptr : PyBool_FromLong(wanted);
}

// Counts a call's work, and calls `hot` if it is due. An error of `hot` is only written out; after an
// interrupt the result is false.
bool count_work(PyObject* self) {
  auto* const program = reinterpret_cast<ProgramObject*>(self);
  program->done += program->fusion->work() + kCallsWork;
  if (program->done < program->enough || !program->fusion->take_news()) return true;
  program->done = 0;
  PyObject* const hot = Py_NewRef(program->hot);
  PyObject* const told = PyObject_CallOneArg(hot, self);
  const bool interrupted = told == nullptr && !PyErr_ExceptionMatches(PyExc_Exception);
  if (told == nullptr && !interrupted) PyErr_WriteUnraisable(hot);
  Py_XDECREF(told);
  Py_DECREF(hot);
  return !interrupted;
}

PyMethodDef methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_method)), METH_FASTCALL,
     "run(operands, outs=None): a tuple of the results."},
    {"watch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(watch_method)),
     METH_FASTCALL, "watch(work, hot): calls hot(program) after so much work by new bodies, or by all so far."},
    {"watcher", watcher_method, METH_NOARGS, "The `hot` that it was given, or None."},
    {"machines", machines_method, METH_NOARGS, "The bodies that calls needed."},
    {"install", install_method, METH_VARARGS, "Takes machine code for a body."},
    {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec type_spec = {"zerostride.compute._native.Program", sizeof(ProgramObject), 0,
                         Py_TPFLAGS_DEFAULT, slots};

}  // namespace

int add_program_type(PyObject* module) {
  PyObject* type = PyType_FromSpec(&type_spec);
  if (type == nullptr) return -1;
  program_type = reinterpret_cast<PyTypeObject*>(type);  // kept for is_program
  return PyModule_AddObjectRef(module, "Program", type);
}

bool is_program(PyObject* object) { return Py_TYPE(object) == program_type; }

int outputs_of(PyObject* program) { return fusion_of(program).program().outputs; }

bool fits_output(PyObject* program, int output, PyObject* object) {
  return fusion_of(program).fits_output(output, object);
}

PyObject* new_results(Py_ssize_t count) {
  PyObject* const results = PyTuple_New(count);
  if (results && count > 0) PyObject_GC_UnTrack(results);
  return results;
}

void show_results(PyObject* results) {
  if (PyTuple_GET_SIZE(results) > 0) PyObject_GC_Track(results);
}

bool run_program(PyObject* program, PyObject* const* operands, Py_ssize_t count,
                 PyObject* const* outs, PyObject** results) {
  try {
    if (!fusion_of(program).run(operands, count, outs, results)) return false;
    if (reinterpret_cast<ProgramObject*>(program)->hot == nullptr || count_work(program)) return true;
    for (int output = 0; output < outputs_of(program); ++output) Py_CLEAR(results[output]);
    return false;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return false;
  }
}

}  // namespace zs
