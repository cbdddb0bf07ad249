#include "fused.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "guarded.h"
#include "operand.h"
#include "program.h"
#include "strictness.h"
#include "../nest.h"

namespace zs {
namespace {

// The limit of signatures kept here; Python keeps further ones.
constexpr std::size_t kSignatures = 16;

// Operands as a program is chosen by them: each one's kind, rank and shape.
using Signature = std::vector<npy_intp>;

struct Known {
  Signature signature;
  Signature lay;  // the captured arrays', as the program was made for them
  PyObject* program;
  PyObject* captured;
  bool packed;
};

struct Fused {
  PyObject_HEAD
  vectorcallfunc call;
  std::vector<Known>* known;
  std::size_t oldest;
};

PyObject* call_name;
PyObject* out_name;

std::vector<Known>& known_of(PyObject* self) { return *reinterpret_cast<Fused*>(self)->known; }

void drop(Known& known) {
  Py_CLEAR(known.program);
  Py_CLEAR(known.captured);
}

// Adds an operand. False where Python is to look at it.
bool sign(Signature& signature, PyObject* object) {
  if (PyArray_CheckExact(object)) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const Kind kind = kind_of(PyArray_DESCR(array));
    const int rank = PyArray_NDIM(array);
    signature.push_back(kind);
    signature.push_back(rank);
    signature.insert(signature.end(), PyArray_DIMS(array), PyArray_DIMS(array) + rank);
    return kind != kNoKind;
  }
  if (PyFloat_CheckExact(object)) {
    signature.push_back(kWeakFloat);
    return true;
  }
  if (!PyLong_CheckExact(object)) return false;
  signature.push_back(kWeakInt);
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

bool sign(Signature& signature, PyObject* const* operands, Py_ssize_t count) {
  if (count > kMaxOperands) return false;
  return std::all_of(operands, operands + count,
                     [&](PyObject* operand) { return sign(signature, operand); });
}

bool sign_captured(Signature& signature, PyObject* captured) {
  return sign(signature, reinterpret_cast<PyTupleObject*>(captured)->ob_item,
              PyTuple_GET_SIZE(captured));
}

bool is_as_learnt(const Known& known) {
  static thread_local Signature lay;
  lay.clear();
  return sign_captured(lay, known.captured) && lay == known.lay;
}

// Runs a known signature. Otherwise returns null without an error, and Python takes the call.
PyObject* attempt(PyObject* self, PyObject* const* operands, Py_ssize_t count, PyObject* out) {
  static thread_local Signature signature;
  signature.clear();
  if (!sign(signature, operands, count)) return nullptr;
  for (const Known& known : known_of(self)) {
    if (known.signature != signature) continue;
    if (out && (known.packed || !fits_output(known.program, 0, out))) return nullptr;
    // A captured array may have been given another shape in place.
    if (!known.lay.empty() && !is_as_learnt(known)) return nullptr;
    // Another thread may make this function forget while the lock is released.
    PyObject* const program = Py_NewRef(known.program);
    PyObject* const captured = Py_NewRef(known.captured);
    const bool packed = known.packed;
    PyObject* all[2 * kMaxOperands];
    std::copy(operands, operands + count, all);
    const Py_ssize_t more = PyTuple_GET_SIZE(captured);
    for (Py_ssize_t i = 0; i < more; ++i) all[count + i] = PyTuple_GET_ITEM(captured, i);
    PyObject* result = packed ? new_results(outputs_of(program)) : nullptr;
    PyObject** const into =
        packed && result ? reinterpret_cast<PyTupleObject*>(result)->ob_item : &result;
    if ((!packed || result) && !run_program(program, all, count + more, out ? &out : nullptr, into)) {
      if (packed) Py_CLEAR(result);
    }
    if (packed && result) show_results(result);
    Py_DECREF(program);
    Py_DECREF(captured);
    return result;
  }
  return nullptr;
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* names) {
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  const bool into = named == 1 && PyTuple_GET_ITEM(names, 0) == out_name && args[count] != Py_None;
  if ((named == 0 || into) && !leaves_to_python()) {
    PyObject* const result =
        guarded([&] { return attempt(self, args, count, into ? args[count] : nullptr); });
    if (result || PyErr_Occurred()) return result;
  }
  PyObject* const python = PyObject_GetAttr(self, call_name);
  if (python == nullptr) return nullptr;
  PyObject* const result = PyObject_Vectorcall(python, args, static_cast<std::size_t>(count), names);
  Py_DECREF(python);
  return result;
}

PyObject* add_known(PyObject* self, PyObject* args) {
  PyObject *operands, *program, *captured;
  int packed;
  if (!PyArg_ParseTuple(args, "O!OO!p", &PyTuple_Type, &operands, &program, &PyTuple_Type,
                        &captured, &packed)) {
    return nullptr;
  }
  if (!is_program(program) || PyTuple_GET_SIZE(captured) > kMaxOperands ||
      (!packed && outputs_of(program) != 1)) {
    PyErr_SetString(PyExc_ValueError, "learn: no such program");
    return nullptr;
  }
  Known made{{}, {}, program, captured, packed != 0};
  if (!sign(made.signature, reinterpret_cast<PyTupleObject*>(operands)->ob_item,
            PyTuple_GET_SIZE(operands)) ||
      !sign_captured(made.lay, captured)) {
    Py_RETURN_FALSE;
  }
  auto& known = known_of(self);
  const auto same = [&](const Known& one) { return one.signature == made.signature; };
  const auto before = std::find_if(known.begin(), known.end(), same);
  if (before != known.end() && before->lay == made.lay) Py_RETURN_TRUE;
  const bool is_new = before == known.end() && known.size() < kSignatures;
  if (is_new) known.push_back(std::move(made));
  Py_INCREF(program);
  Py_INCREF(captured);
  if (!is_new) {
    auto& old = before != known.end() ? *before
                                      : known[reinterpret_cast<Fused*>(self)->oldest++ % kSignatures];
    std::swap(old, made);
    drop(made);
  }
  Py_RETURN_TRUE;
}

PyObject* learn(PyObject* self, PyObject* args) {
  return guarded([&] { return add_known(self, args); });
}

PyObject* forget(PyObject* self, PyObject*) {
  std::vector<Known> all;
  all.swap(known_of(self));
  for (Known& one : all) drop(one);
  Py_RETURN_NONE;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (reinterpret_cast<Fused*>(self)->known == nullptr) return 0;
  for (const Known& one : known_of(self)) Py_VISIT(one.captured);
  return 0;
}

int clear(PyObject* self) {
  if (reinterpret_cast<Fused*>(self)->known == nullptr) return 0;
  std::vector<Known> all;
  all.swap(known_of(self));
  for (Known& one : all) drop(one);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  delete reinterpret_cast<Fused*>(self)->known;
  type->tp_free(self);
  Py_DECREF(type);
}

// Its arguments are a subclass's.
PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  auto* self = reinterpret_cast<Fused*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = call;
  // Before 3.12 a Python class does not inherit this by itself.
  if (type->tp_call == PyVectorcall_Call) type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  self->known = new (std::nothrow) std::vector<Known>;
  auto* const object = reinterpret_cast<PyObject*>(self);
  if (self->known) return object;
  Py_DECREF(object);
  return PyErr_NoMemory();
}

PyMethodDef methods[] = {
    {"learn", learn, METH_VARARGS,
     "learn(operands, program, captured, packed): whether such calls now run that program."},
    {"forget", forget, METH_NOARGS, "Forgets all programs."},
    {}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Fused, call), READONLY, nullptr}, {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"zerostride.compute._native.Fused", sizeof(Fused), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                        Py_TPFLAGS_HAVE_VECTORCALL,
                    slots};

}  // namespace

int add_fused_type(PyObject* module) {
  call_name = PyUnicode_InternFromString("_call");
  out_name = PyUnicode_InternFromString("out");
  if (call_name == nullptr || out_name == nullptr) return -1;
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return -1;
  const int added = PyModule_AddObjectRef(module, "Fused", type);
  Py_DECREF(type);
  return added;
}

}  // namespace zs
