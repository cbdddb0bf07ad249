#include "program.h"

#include <new>

#include "fusion.h"
#include "spec.h"

namespace zs {
namespace {

struct ProgramObject {
  PyObject_HEAD
  Fusion* fusion;
};

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
  delete reinterpret_cast<ProgramObject*>(self)->fusion;
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
  PyObject* results = PyTuple_New(outputs);
  if (results == nullptr) return nullptr;
  PyObject** const into = reinterpret_cast<PyTupleObject*>(results)->ob_item;
  if (!run_program(self, reinterpret_cast<PyTupleObject*>(args[0])->ob_item,
                   PyTuple_GET_SIZE(args[0]), outs, into)) {
    Py_CLEAR(results);
  }
  return results;
}

PyMethodDef methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_method)), METH_FASTCALL,
     "run(operands, outs=None): a tuple of the results."},
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

bool run_program(PyObject* program, PyObject* const* operands, Py_ssize_t count,
                 PyObject* const* outs, PyObject** results) {
  try {
    return fusion_of(program).run(operands, count, outs, results);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return false;
  }
}

}  // namespace zs
