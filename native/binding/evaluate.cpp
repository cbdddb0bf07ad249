#include "evaluate.h"

#include <pthread.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <new>

#include "../pool.h"

namespace zs {
namespace {

// Shorter work keeps the lock: to release and take it costs as much as some thousand elements.
constexpr npy_intp kHoldsLock = 8192;

// Whether this is the process's first thread, where Python handles signals. Elsewhere there is nothing
// to ask; and a daemon thread that asked while the interpreter ends would be ended in the middle of a
// job that others still work at.
bool handles_signals() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np() != 0;
#endif
}

// Whether to go on: lets Python's signal handlers run.
bool poll(void* state) {
  auto** saved = static_cast<PyThreadState**>(state);
  PyEval_RestoreThread(*saved);
  const bool quiet = PyErr_CheckSignals() == 0;
  *saved = PyEval_SaveThread();
  return quiet;
}

// Bytes between one element and the next if the operand's elements lie in C order; 0 if it is one
// element for all; -1 otherwise.
npy_intp step_of(const Shape& shape, const npy_intp* strides, npy_intp size) {
  bool zero = true, dense = true;
  npy_intp next = size;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (shape.extent[axis] == 1) continue;
    zero &= strides[axis] == 0;
    dense &= strides[axis] == next;
    next *= shape.extent[axis];
  }
  return dense ? size : zero ? 0 : -1;
}

// The whole as one row, where that is short and all of it lies dense. False if it is not so.
bool evaluate_row(const Program& program, const Shape& shape, const Place* places) {
  if (program.body != run_kernel) return false;
  const void* in[kMaxInputs];
  unsigned splats = 0;
  for (int k = 0; k <= program.inputs; ++k) {
    if (program.memory[k] != program.compute[k] || !places[k].aligned) return false;
    const npy_intp size = kSize[static_cast<int>(program.memory[k])];
    const npy_intp step = step_of(shape, places[k].strides, size);
    if (step < 0 || (step == 0 && k == program.inputs)) return false;
    if (k == program.inputs) break;
    in[k] = places[k].data;
    // A row of one element is a row.
    splats |= static_cast<unsigned>(step == 0) << k;
  }
  const auto* kernel = static_cast<const Kernel*>(program.context);
  const Row row = kernel->form[splats];
  if (row == nullptr) return false;
  row(in, places[program.inputs].data, shape.elements);
  return true;
}

}  // namespace

bool evaluate(const Program& program, const Shape& shape, const Place* places) {
  if (shape.elements <= kHoldsLock && evaluate_row(program, shape, places)) return true;
  const int operands = program.inputs + program.outputs;
  Layout layouts[kMaxOperands];
  char* data[kMaxOperands];
  for (int k = 0; k < operands; ++k) {
    layouts[k] = {places[k].strides, kSize[static_cast<int>(program.memory[k])],
                  places[k].aligned && program.memory[k] == program.compute[k]};
    data[k] = places[k].data;
  }
  Nest nest;
  const bool many = program.body == run_kernel &&
                    static_cast<const Kernel*>(program.context)->many[0] != nullptr;
  build(nest, shape.rank, shape.extent, program.inputs, operands, layouts, many ? 1 : 0);
  if (shape.elements <= kHoldsLock) {
    if (execute(nest, program, isa(), data, 1, nullptr, nullptr)) return true;
    PyErr_NoMemory();
    return false;
  }
  struct Call {
    const Nest& nest;
    const Program& program;
    char* const* data;
  } call{nest, program, data};
  return run_unlocked(
      [](void* context, int threads, bool (*asks)(void*), void* asked) {
        const Call& one = *static_cast<Call*>(context);
        return execute(one.nest, one.program, isa(), one.data, threads, asks, asked);
      },
      &call);
}

bool run_unlocked(Computation compute, void* context) {
  PyThreadState* saved = PyEval_SaveThread();
  bool complete = false;
  try {
    complete = compute(context, num_threads(), handles_signals() ? poll : nullptr, &saved);
  } catch (const std::bad_alloc&) {  // not without the lock: below
  }
  PyEval_RestoreThread(saved);
  if (!complete && !PyErr_Occurred()) PyErr_NoMemory();
  return complete;
}

}  // namespace zs
