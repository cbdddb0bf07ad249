#include "machine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "guarded.h"
#include "../fused/machines.h"

namespace zs {
namespace {

// An instruction set by name, chosen or not: any of whose kernels may be called here. Null with an
// error set if this processor has none of that name.
const Isa* isa_named(const char* name) {
  if (std::strcmp(isa().name, name) == 0) return &isa();
  PyErr_Format(PyExc_ValueError, "%s is not the instruction set in use", name);
  return nullptr;
}

// kernel_forms(isa, op, dtype): the addresses of a kernel's forms, 0 where there is none.
PyObject* py_kernel_forms(PyObject*, PyObject* args) {
  const char *name, *op, *dtype;
  if (!PyArg_ParseTuple(args, "sss", &name, &op, &dtype)) return nullptr;
  const Isa* set = isa_named(name);
  if (set == nullptr) return nullptr;
  const Kernel* kernel = nullptr;
  for (int k = 0; k < kDTypes && !kernel; ++k) {
    if (std::strcmp(kName[k], dtype) == 0) kernel = find_kernel(*set, op, static_cast<DType>(k));
  }
  if (kernel == nullptr) {
    return PyErr_Format(PyExc_ValueError, "there is no kernel of %s on %s", op, dtype);
  }
  PyObject* forms = PyTuple_New(1 << kMaxInputs);
  for (Py_ssize_t k = 0; forms && k < 1 << kMaxInputs; ++k) {
    PyObject* address = PyLong_FromVoidPtr(reinterpret_cast<void*>(kernel->form[k]));
    if (address == nullptr) Py_CLEAR(forms);
    else PyTuple_SET_ITEM(forms, k, address);
  }
  return forms;
}

// Whether the processor divides rows in no more time than it takes to divide by one number without a division
// (kernels/divisor.h), which is so on AMD's processors of 2024.
PyObject* py_divides_quickly(PyObject*, PyObject*) {
  const Kernel* divide = find_kernel(isa(), "divide", DType::F32);
  if (divide == nullptr) Py_RETURN_FALSE;
  constexpr int kElements = 1024, kPasses = 8, kSamples = 9;
  alignas(64) float x[kElements], y[kElements], out[kElements];
  for (int i = 0; i < kElements; ++i) x[i] = y[i] = 3 + static_cast<float>(i % 7);
  const void* const in[] = {x, y, nullptr};
  using Clock = std::chrono::steady_clock;
  const auto time = [&](int form) {
    Clock::duration least = Clock::duration::max();
    for (int sample = 0; sample < kSamples; ++sample) {
      const auto began = Clock::now();
      for (int pass = 0; pass < kPasses; ++pass) divide->form[form](in, out, kElements);
      least = std::min(least, Clock::now() - began);
    }
    return least;
  };
  return PyBool_FromLong(time(0) <= time(2));
}

PyMethodDef functions[] = {
    {"divides_quickly", py_divides_quickly, METH_NOARGS,
     "Whether dividing is no slower than multiplying by an inverse and correcting: measured."},
    {"kernel_forms", py_kernel_forms, METH_VARARGS,
     "kernel_forms(isa, op, dtype): the addresses of a kernel's forms, 0 where there is none."},
    {}};

PyObject* results_of(const Machine& machine) {
  PyObject* results = PyTuple_New(static_cast<Py_ssize_t>(machine.results.size()));
  for (std::size_t j = 0; results && j < machine.results.size(); ++j) {
    PyObject* number = PyLong_FromLong(machine.results[j]);
    if (number == nullptr) Py_CLEAR(results);
    else PyTuple_SET_ITEM(results, static_cast<Py_ssize_t>(j), number);
  }
  return results;
}

}  // namespace

int add_machine_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }

namespace {

PyObject* list_all(const FusedProgram& program) {
  PyObject* list = PyList_New(0);
  for (std::size_t p = 0; list && p < program.phases.size(); ++p) {
    for (const Machine& machine : machines_of(program.phases[p])) {
      PyObject* results = results_of(machine);
      PyObject* one = results ? Py_BuildValue("(snIOOiO)", machine.isa->name,
                                              static_cast<Py_ssize_t>(p), machine.splats, results,
                                              machine.streamed ? Py_True : Py_False, machine.row,
                                              machine.code ? Py_True : Py_False)
                              : nullptr;
      Py_XDECREF(results);
      if (one == nullptr || PyList_Append(list, one) < 0) Py_CLEAR(list);
      Py_XDECREF(one);
      if (list == nullptr) return nullptr;
    }
  }
  return list;
}

int install_one(const FusedProgram& program, PyObject* args) {
  const char* name;
  Py_ssize_t phase;
  PyObject *results, *address;
  long long scratch;
  int streamed, past;
  Machine machine{};
  if (!PyArg_ParseTuple(args, "snIO!piOLp", &name, &phase, &machine.splats, &PyTuple_Type, &results,
                        &streamed, &machine.row, &address, &scratch, &past)) {
    return -1;
  }
  machine.streamed = streamed != 0;
  machine.past = past != 0;
  machine.isa = isa_named(name);
  if (machine.isa == nullptr) return -1;
  if (phase < 0 || static_cast<std::size_t>(phase) >= program.phases.size() || scratch < 0) {
    PyErr_SetString(PyExc_ValueError, "no phase of this program, or no size of scratch");
    return -1;
  }
  for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(results); ++j) {
    machine.results.push_back(static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(results, j))));
  }
  void* code = PyLong_AsVoidPtr(address);
  if (PyErr_Occurred()) return -1;
  machine.code = reinterpret_cast<MachineCode>(code);
  machine.scratch = scratch;
  return install(program.phases[static_cast<std::size_t>(phase)], machine) ? 1 : 0;
}

}  // namespace

PyObject* list_machines(const FusedProgram& program) {
  return guarded([&] { return list_all(program); });
}

int install_machine(const FusedProgram& program, PyObject* args) {
  return guarded([&] { return install_one(program, args); });
}

}  // namespace zs
