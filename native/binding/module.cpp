// The extension module zerostride.compute._native.
#define ZS_IMPORTS_NUMPY
#include "python.h"

#include "../kernels.h"
#include "../pool.h"
#include "function.h"
#include "machine.h"
#include "fused.h"
#include "operand.h"
#include "program.h"
#include "result.h"
#include "strictness.h"

namespace zs {
namespace {

PyObject* py_isa(PyObject*, PyObject*) { return PyUnicode_FromString(isa().name); }

PyObject* py_available_isas(PyObject*, PyObject*) {
  PyObject* names = PyList_New(0);
  for (const char* const* name = available_isas(); names && *name; ++name) {
    PyObject* word = PyUnicode_FromString(*name);
    if (word == nullptr || PyList_Append(names, word) < 0) Py_CLEAR(names);
    Py_XDECREF(word);
  }
  return names;
}

PyObject* py_choose_isa(PyObject*, PyObject* name) {
  const char* word = PyUnicode_AsUTF8(name);
  return word ? PyBool_FromLong(choose_isa(word)) : nullptr;
}

PyObject* py_kernels(PyObject*, PyObject*) {
  PyObject* rows = PyList_New(0);
  for (int i = 0; rows && i < isa().count; ++i) {
    const Kernel& kernel = isa().kernels[i];
    PyObject* row = Py_BuildValue(
        "(ss)", kernel.op, kName[static_cast<int>(kernel.in[kernel.inputs - 1])]);
    if (row == nullptr || PyList_Append(rows, row) < 0) Py_CLEAR(rows);
    Py_XDECREF(row);
  }
  return rows;
}

PyObject* py_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }

PyObject* py_set_num_threads(PyObject*, PyObject* count) {
  const long threads = PyLong_AsLong(count);
  if (threads == -1 && PyErr_Occurred()) return nullptr;
  if (threads < 1 || threads > 4096) {
    PyErr_Format(PyExc_ValueError, "%ld threads; 1 to 4096", threads);
    return nullptr;
  }
  set_num_threads(static_cast<int>(threads));
  Py_RETURN_NONE;
}

PyObject* py_register_bfloat16(PyObject*, PyObject* number) {
  const long type_number = PyLong_AsLong(number);
  if (type_number == -1 && PyErr_Occurred()) return nullptr;
  register_bfloat16(static_cast<int>(type_number));
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"isa", py_isa, METH_NOARGS, "The instruction set in use."},
    {"available_isas", py_available_isas, METH_NOARGS, "Those that could be, best first."},
    {"choose_isa", py_choose_isa, METH_O, "Takes one by name; False if there is none."},
    {"kernels", py_kernels, METH_NOARGS, "Every kernel: its op and its dtype."},
    {"num_threads", py_num_threads, METH_NOARGS, "How many threads a call may use."},
    {"set_num_threads", py_set_num_threads, METH_O, "Sets that."},
    {"register_bfloat16", py_register_bfloat16, METH_O, "NumPy's type number of bfloat16."},
    {"convert", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(convert)),
     METH_FASTCALL, "convert(array, dtype, out): an array, or NotImplemented."},
    {}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", nullptr, -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace zs

PyMODINIT_FUNC PyInit__native() {
  import_array();
  PyObject* module = PyModule_Create(&zs::definition);
  if (module && (zs::add_function_type(module) < 0 || zs::add_program_type(module) < 0 ||
                 zs::add_machine_functions(module) < 0 ||
                 zs::add_fused_type(module) < 0 || zs::add_strictness(module) < 0)) {
    Py_CLEAR(module);
  }
  return module;
}
