#include "strictness.h"

namespace zs {

std::atomic<long> strict_contexts{0};

namespace {

// The ContextVar with the strict mode in force; null until Python sets it.
PyObject* in_force;

PyObject* watch_context(PyObject*, PyObject* variable) {
  if (!PyContextVar_CheckExact(variable)) {
    PyErr_SetString(PyExc_TypeError, "watch_context takes a ContextVar");
    return nullptr;
  }
  Py_XSETREF(in_force, Py_NewRef(variable));
  Py_RETURN_NONE;
}

PyObject* hold_context(PyObject*, PyObject* count) {
  const long more = PyLong_AsLong(count);
  if (more == -1 && PyErr_Occurred()) return nullptr;
  strict_contexts += more;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"watch_context", watch_context, METH_O, "The ContextVar whose value, if any, is in force."},
    {"hold_context", hold_context, METH_O, "Counts contexts in which it may have one."},
    {}};

}  // namespace

bool in_strict_context() {
  PyObject* value = nullptr;
  if (in_force == nullptr || PyContextVar_Get(in_force, nullptr, &value) < 0) {
    PyErr_Clear();
    return true;  // Python raises the error
  }
  const bool strict = value != nullptr && value != Py_None;
  Py_XDECREF(value);
  return strict;
}

int add_strictness(PyObject* module) { return PyModule_AddFunctions(module, methods); }

}  // namespace zs
